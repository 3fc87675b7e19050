//! The init-container in a pod template: there is only one template, so the user's is merged with ours.

use serde_json::{Map, Value, json};

use crate::spark::{SettingError, SparkConf};
use crate::submit::plan::error::PlanError;
use crate::submit::plan::spark_version::SparkVersion;
use crate::submit::plan::spec::append;
use crate::submit::plan::template::parse_pod;

/// Whose template it is.
pub(in crate::submit::plan) struct TemplateKeys {
    /// The setting that names the file.
    pub file: &'static str,
    /// The setting that names the container which Spark takes.
    pub container: &'static str,
    /// What Spark calls that container where no template does.
    pub default_name: &'static str,
}

/// What is added to a template.
pub(in crate::submit::plan) struct Additions {
    pub init_container: Value,
    pub volumes: Vec<Value>,
    /// Of the container that Spark takes.
    pub mounts: Vec<Value>,
}

/// The user's template, as Spark reads it; an empty one where there is none.
pub(in crate::submit::plan) fn parsed(
    conf: &SparkConf,
    keys: &TemplateKeys,
    text: Option<&str>,
) -> Result<Map<String, Value>, PlanError> {
    let Some(text) = text else { return Ok(Map::new()) };
    parse_pod(text, SparkVersion::of(conf)?.0).map_err(|problem| conf.refuse(keys.file, problem).into())
}

/// The template with our additions behind what is there.
pub(in crate::submit::plan) fn merged(
    conf: &SparkConf,
    keys: &TemplateKeys,
    mut pod: Map<String, Value>,
    additions: Additions,
) -> Result<Map<String, Value>, SettingError> {
    pod.insert("apiVersion".to_owned(), json!("v1"));
    pod.insert("kind".to_owned(), json!("Pod"));
    let mut spec = match pod.remove("spec") {
        Some(Value::Object(spec)) => spec,
        _ => Map::new(),
    };
    append(&mut spec, "initContainers", [additions.init_container]);
    append(&mut spec, "volumes", additions.volumes);
    mount(conf, keys, &mut spec, additions.mounts)?;
    pod.insert("spec".to_owned(), Value::Object(spec));
    Ok(pod)
}

/// In the container that Spark takes: the named one, else the first, else one of its own.
fn mount(
    conf: &SparkConf,
    keys: &TemplateKeys,
    spec: &mut Map<String, Value>,
    mounts: Vec<Value>,
) -> Result<(), SettingError> {
    let mut containers = match spec.remove("containers") {
        Some(Value::Array(containers)) => containers,
        _ => Vec::new(),
    };
    if containers.is_empty() {
        let name = conf.get(keys.container).unwrap_or(keys.default_name);
        containers.push(json!({"name": name}));
    }
    let named = |name: &str| containers.iter().position(|container| container["name"] == name);
    let at = match conf.get(keys.container) {
        Some(name) => named(name).ok_or_else(|| {
            conf.refuse(keys.container, format!("the pod template of `{}` has no such container", keys.file))
        })?,
        None => 0,
    };
    if let Some(Value::Object(container)) = containers.get_mut(at) {
        append(container, "volumeMounts", mounts);
    }
    spec.insert("containers".to_owned(), Value::Array(containers));
    Ok(())
}
