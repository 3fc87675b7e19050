//! Pod templates, and other objects that a user writes, read as Spark's client library (fabric8) reads it. Fields that no type here knows are
//! kept.

mod document;
mod json;
#[cfg(test)]
mod reading_tests;
mod scalar;
#[cfg(test)]
mod tests;
mod typed;
mod yaml;

use k8s_openapi::api::core::v1::Pod;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use self::document::{Kind, Node};
use super::error::PlanError;
use super::source;
use super::submitter::Machine;
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
        let (version, _) = SparkVersion::read(conf)?;
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
    let pod = parse_object::<Pod>(text, version, ("Pod", "v1"))?;
    if pod.get("spec").is_none() {
        return Err("it must be a pod with a spec".to_owned());
    }
    Ok(pod)
}

/// An object of a kind and an `apiVersion` as the library of this Spark version reads it, or what is wrong with it. `T`
/// gives each field its type.
pub(super) fn parse_object<T: DeserializeOwned>(
    text: &str,
    version: SparkVersion,
    (kind, api): (&str, &str),
) -> Result<Map<String, Value>, String> {
    let document = parse_document(text)?;
    let Kind::Map(_) = document.kind else { return Err(format!("it must be one {kind} in YAML or JSON")) };
    let given = [("kind", kind), ("apiVersion", api)]
        .map(|(field, default)| document.text(field).unwrap_or_else(|| default.to_owned()));
    if given != [kind, api] {
        let [its_kind, its_api] = given;
        return Err(format!(
            "it must have `kind: {kind}` and `apiVersion: {api}`, and it has `{its_kind}` and `{its_api}`"
        ));
    }
    typed::read::<T>(&document, version.has_octal_modes())?;
    match document.into_value() {
        Some(Value::Object(object)) => Ok(object),
        _ => Ok(Map::new()),
    }
}

/// Reads a text that has exactly one document.
fn parse_document(text: &str) -> Result<Node, String> {
    let read = if json::is_json(text) { json::parse(text) } else { yaml::parse(text) };
    read.map_err(|problem| match line_of_placeholder(text) {
        Some((line, sign)) => format!(
            "line {line} has `{sign}`, so it looks like a template of Helm or Jinja that was not rendered; render it \
             first ({problem})"
        ),
        None => problem,
    })
}

/// The first line with the beginning of a placeholder that is not Spark's own, and that beginning.
fn line_of_placeholder(text: &str) -> Option<(usize, &'static str)> {
    let text = text.replace("{{APP_ID}}", "").replace("{{EXECUTOR_ID}}", "");
    let signs = |line: &str| ["{{", "{%"].into_iter().find(|sign| line.contains(sign));
    text.lines().enumerate().find_map(|(index, line)| Some((index + 1, signs(line)?)))
}
