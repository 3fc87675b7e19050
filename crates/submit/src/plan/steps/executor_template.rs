//! The executors' pod template, in a config map for the driver, which creates the executors
//! (`PodTemplateConfigMapStep`).

use serde_json::json;

use crate::plan::application::Application;
use crate::plan::error::PlanError;
use crate::plan::spec::DriverSpec;
use cloakroom_spark::keys::EXECUTOR_POD_TEMPLATE;
const VOLUME: &str = "pod-template-volume";
const PATH: &str = "/opt/spark/pod-template";
const FILE: &str = "pod-spec-template.yml";
const DATA_KEY: &str = "podspec-configmap-key";

#[expect(clippy::unnecessary_wraps, reason = "a step like all others")]
pub(super) fn step(application: &Application, mut spec: DriverSpec) -> Result<DriverSpec, PlanError> {
    let Some(text) = &application.executor_template else { return Ok(spec) };
    let name = application.names.of("driver-podspec-conf-map");
    let source = json!({"name": name, "items": [{"key": DATA_KEY, "path": FILE}]});
    spec.add_volume(json!({"name": VOLUME, "configMap": source}));
    spec.mount(VOLUME, PATH);
    // The user's path is one of the submitting machine.
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
