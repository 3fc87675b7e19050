//! The driver's pod template: read as it is, fields that nobody here knows included.

#[cfg(test)]
mod tests;
mod texts;

use serde_json::{Map, Value};

use super::error::PlanError;
use super::source;
use super::submitter::Submitter;
use crate::spark::SparkConf;

const FILE: &str = "spark.kubernetes.driver.podTemplateFile";
const CONTAINER: &str = "spark.kubernetes.driver.podTemplateContainerName";

/// What the driver's pod begins as, the Spark container taken out of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PodTemplate {
    pub pod: Map<String, Value>,
    pub metadata: Map<String, Value>,
    pub spec: Map<String, Value>,
    pub container: Map<String, Value>,
}

impl PodTemplate {
    /// Reads the template, an empty one where no file is named.
    pub async fn read(conf: &SparkConf, submitter: &Submitter) -> Result<Self, PlanError> {
        let pod = match source::read(conf, FILE, submitter).await? {
            Some(text) => parse_pod(&text).map_err(|problem| conf.refuse(FILE, problem))?,
            None => Map::new(),
        };
        Self::split(pod, conf.get(CONTAINER)).map_err(|(key, problem)| conf.refuse(key, problem).into())
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
        let at = match name.filter(|_| has_template) {
            None => 0,
            Some(name) => {
                containers.iter().position(|container| container["name"] == name).ok_or_else(|| {
                    let names: Vec<_> = containers.iter().filter_map(|it| it["name"].as_str()).collect();
                    (
                        CONTAINER,
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

/// A pod, or what is wrong with it.
pub(super) fn parse_pod(text: &str) -> Result<Map<String, Value>, String> {
    let Value::Object(mut pod) = parse(text)? else {
        return Err("it must be a pod in YAML or JSON".to_owned());
    };
    let kind = pod.get("kind").and_then(Value::as_str).unwrap_or("Pod");
    if kind != "Pod" || pod.get("apiVersion").is_some_and(|version| version != "v1") {
        return Err(format!("it must be a Pod of v1, and it is a {kind} of another API"));
    }
    let is_map_or_nothing =
        |value: Option<&Value>| value.is_none_or(|value| value.is_object() || value.is_null());
    if !pod.get("spec").is_some_and(Value::is_object) || !is_map_or_nothing(pod.get("metadata")) {
        return Err("it must be a pod with a spec".to_owned());
    }
    let containers = &pod["spec"]["containers"];
    let is_list = |list: &Vec<Value>| list.iter().all(Value::is_object);
    if !containers.is_null() && !containers.as_array().is_some_and(is_list) {
        return Err("it must be a pod whose containers are a list".to_owned());
    }
    texts::settle(&mut pod);
    Ok(pod)
}

/// One document of YAML or JSON. Like Spark's library this reads YAML 1.2: `yes` and `010` are texts.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        with_snippet: false,
    };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| format!("its YAML cannot be read: {}", one_line(&error.to_string())))?;
    match <[Value; 1]>::try_from(documents) {
        Ok([document]) => Ok(document),
        Err(documents) => Err(format!("it must have one document in it, and it has {}", documents.len())),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
