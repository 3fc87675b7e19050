//! The executors' pod template travels to the driver, which makes the executors (`PodTemplateConfigMapStep`).

use serde_json::json;

use crate::spark::SparkConf;
use crate::spark::keys::EXECUTOR_POD_TEMPLATE;
use crate::spark::version::SparkVersion;
use crate::submit::plan::application::Application;
use crate::submit::plan::error::PlanError;
use crate::submit::plan::folder::text_by;
use crate::submit::plan::source;
use crate::submit::plan::spec::DriverSpec;
use crate::submit::plan::submitter::Submitter;
use crate::submit::plan::template;
const VOLUME: &str = "pod-template-volume";
const PATH: &str = "/opt/spark/pod-template";
const FILE: &str = "pod-spec-template.yml";
const DATA_KEY: &str = "podspec-configmap-key";

/// The template's text. The driver is the one that understands it, so what is odd about it is only a warning.
pub(in crate::submit::plan) async fn read(
    conf: &SparkConf,
    submitter: &Submitter,
    warnings: &mut Vec<String>,
) -> Result<Option<String>, PlanError> {
    let bytes = source::read_bytes(conf, &EXECUTOR_POD_TEMPLATE, submitter).await?;
    let Some(bytes) = bytes else { return Ok(None) };
    let version = SparkVersion::of(conf)?.0;
    let text = text_by(version, bytes).map_err(|problem| conf.refuse(&EXECUTOR_POD_TEMPLATE, problem))?;
    if let Err(problem) = template::parse_pod(&text, version) {
        warnings.push(format!("the driver will refuse the file of `{EXECUTOR_POD_TEMPLATE}`: {problem}"));
    }
    Ok(Some(text))
}

#[expect(clippy::unnecessary_wraps, reason = "a step like all others")]
pub(super) fn step(application: &Application, mut spec: DriverSpec) -> Result<DriverSpec, PlanError> {
    let Some(text) = &application.executor_template else { return Ok(spec) };
    let name = application.names.of("driver-podspec-conf-map");
    let source = json!({"name": name, "items": [{"key": DATA_KEY, "path": FILE}]});
    spec.add_volume(json!({"name": VOLUME, "configMap": source}));
    spec.mount(VOLUME, PATH);
    spec.set_property(&EXECUTOR_POD_TEMPLATE, format!("{PATH}/{FILE}"));
    spec.after_pod.push(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {DATA_KEY: text},
        "immutable": true,
    }));
    Ok(spec)
}
