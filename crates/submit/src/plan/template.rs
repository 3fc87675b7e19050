//! The driver's pod template, read as Spark's client library (fabric8) reads it. Fields that no type here knows are
//! kept.

#[cfg(test)]
mod reading_tests;
mod scalar;
#[cfg(test)]
mod tests;
mod typed;
mod yaml;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Map, Value};

use self::yaml::{Kind, Node};
use super::error::PlanError;
use super::machine::Machine;
use super::source;
use cloakroom_spark::version::SparkVersion;
use cloakroom_spark::{SparkConf, keys};

/// The pod of the template, with the Spark container taken out (`KubernetesUtils.selectSparkContainer`).
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PodTemplate {
    pub pod: Map<String, Value>,
    pub metadata: Map<String, Value>,
    pub spec: Map<String, Value>,
    pub container: Map<String, Value>,
}

impl PodTemplate {
    /// Reads the template. It is empty if no setting names a file.
    pub fn read(conf: &SparkConf, machine: Machine) -> Result<Self, PlanError> {
        let (version, _) = SparkVersion::of(conf)?;
        let pod = match source::read(conf, &keys::DRIVER_POD_TEMPLATE, machine)? {
            Some(text) => parse_pod(&text, version)
                .map_err(|problem| conf.refuse(&keys::DRIVER_POD_TEMPLATE, problem))?,
            None => Map::new(),
        };
        Self::split(pod, conf.get(&keys::DRIVER_TEMPLATE_CONTAINER))
            .map_err(|(key, problem)| conf.refuse(key, problem).into())
    }

    fn split(mut pod: Map<String, Value>, name: Option<&str>) -> Result<Self, (&'static str, String)> {
        let has_template = !pod.is_empty();
        pod.insert("apiVersion".to_owned(), "v1".into());
        pod.insert("kind".to_owned(), "Pod".into());
        let metadata = taken(&mut pod, "metadata");
        let mut spec = taken(&mut pod, "spec");
        let mut containers = match spec.remove("containers") {
            Some(Value::Array(containers)) => containers,
            _ => Vec::new(),
        };
        // Spark takes the named container, else the first. If the named one is missing, Spark warns and takes the
        // first; that one is not Spark's, so it is refused here.
        let at = match name.filter(|_| has_template) {
            None => 0,
            Some(name) => {
                containers.iter().position(|container| container["name"] == name).ok_or_else(|| {
                    let names: Vec<_> = containers.iter().filter_map(|it| it["name"].as_str()).collect();
                    (
                        keys::DRIVER_TEMPLATE_CONTAINER.name(),
                        format!("the pod template has no such container; it has: {}", names.join(", ")),
                    )
                })?
            }
        };
        let container = if at < containers.len() { containers.remove(at) } else { Value::Null };
        if !containers.is_empty() {
            spec.insert("containers".to_owned(), Value::Array(containers));
        }
        let container = match container {
            Value::Object(container) => container,
            _ => Map::new(),
        };
        Ok(Self { pod, metadata, spec, container })
    }
}

fn taken(pod: &mut Map<String, Value>, key: &str) -> Map<String, Value> {
    match pod.remove(key) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

/// A pod as the library of this Spark version reads it, or what is wrong with it.
pub(super) fn parse_pod(text: &str, version: SparkVersion) -> Result<Map<String, Value>, String> {
    let document = Node::parse(text)?;
    let Kind::Map(_) = document.kind else { return Err("it must be a pod in YAML or JSON".to_owned()) };
    let kind = document.text("kind").unwrap_or_else(|| "Pod".to_owned());
    let api = document.text("apiVersion").unwrap_or_else(|| "v1".to_owned());
    if (kind.as_str(), api.as_str()) != ("Pod", "v1") {
        return Err(format!(
            "it must have `kind: Pod` and `apiVersion: v1`, and it has `{kind}` and `{api}`"
        ));
    }
    if !document.field("spec").is_some_and(|spec| matches!(spec.kind, Kind::Map(_))) {
        return Err("it must be a pod with a spec".to_owned());
    }
    typed::read::<Pod>(&document, version.has_strict_numbers())?;
    match document.into_value() {
        Some(Value::Object(pod)) => Ok(pod),
        _ => Ok(Map::new()),
    }
}

/// One document of YAML or JSON of any type.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    Ok(Node::parse(text)?.into_value().unwrap_or_default())
}
