//! The executors' pod template, in a config map for the driver, which creates the executors
//! (`PodTemplateConfigMapStep`).

use serde_json::{Value, json};

use super::{Context, Feature, MOST_BYTES, Reader};
use crate::plan::error::PlanError;
use crate::plan::folder::text_by;
use crate::plan::needs::{FileKey, How};
use crate::plan::spec::DriverSpec;
use crate::plan::submitter::Machine;
use crate::plan::{init_container, source, template};
use cloakroom_spark::SparkConf;
use cloakroom_spark::keys::EXECUTOR_POD_TEMPLATE;
use cloakroom_spark::version::SparkVersion;

const VOLUME: &str = "pod-template-volume";
const PATH: &str = "/opt/spark/pod-template";
const FILE: &str = "pod-spec-template.yml";
const DATA_KEY: &str = "podspec-configmap-key";

/// The keys that name files.
pub(in crate::plan) const KEYS: [FileKey; 1] = [FileKey::new(EXECUTOR_POD_TEMPLATE.name(), How::Source)];

/// The text of the user's template; `None` if there is none.
pub(super) struct ExecutorTemplate(Option<String>);

impl ExecutorTemplate {
    pub fn read(from: &mut Reader) -> Result<Self, PlanError> {
        read(from.conf, from.machine, &mut from.warnings).map(Self)
    }
}

impl Feature for ExecutorTemplate {
    fn add(self: Box<Self>, context: &Context, spec: &mut DriverSpec) -> Result<(), PlanError> {
        let init = context.init_container.as_ref();
        let Some(text) = init_container::executor_template(&context.conf, init, self.0)? else {
            return Ok(());
        };
        let name = context.names.of("driver-podspec-conf-map");
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
        Ok(())
    }
}

/// The template's text for the driver. A template that can be read here is written anew, as JSON without merge keys,
/// aliases, tags and the like: the driver's reader refuses some of these, and drops others without a message. Spark sends
/// any text, so a template that cannot be read is sent as it is, with a warning. So is one whose JSON alone would be too
/// large for its config map.
pub(in crate::plan) fn read(
    conf: &SparkConf,
    machine: Machine,
    warnings: &mut Vec<String>,
) -> Result<Option<String>, PlanError> {
    let bytes = source::read_bytes(conf, &EXECUTOR_POD_TEMPLATE, machine)?;
    let Some(bytes) = bytes else { return Ok(None) };
    let version = SparkVersion::read(conf)?.0;
    let text = text_by(version, bytes).map_err(|problem| conf.refuse(&EXECUTOR_POD_TEMPLATE, problem))?;
    Ok(Some(match template::parse_pod(&text, version) {
        Ok(pod) => {
            let plain = Value::Object(pod).to_string();
            if plain.len() > MOST_BYTES && text.len() <= MOST_BYTES { text } else { plain }
        }
        Err(problem) => {
            warnings.push(format!(
                "the file of `{EXECUTOR_POD_TEMPLATE}` is sent as it is, and the driver may refuse it: {problem}"
            ));
            text
        }
    }))
}
