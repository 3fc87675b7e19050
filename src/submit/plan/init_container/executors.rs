//! `spark.kubernetes.cloakroom.executorStaging=init`: executors get the init-container by their pod template.
//!
//! There is only one template, so the user's is merged with ours.

use serde_json::{Map, Value, json};

use super::InitContainer;
use crate::spark::{SparkConf, keys};
use crate::submit::plan::error::PlanError;
use crate::submit::plan::spark_version::SparkVersion;
use crate::submit::plan::spec::append;
use crate::submit::plan::template::parse_pod;

const FILE: &str = "spark.kubernetes.executor.podTemplateFile";
const CONTAINER: &str = "spark.kubernetes.executor.podTemplateContainerName";
/// What Spark calls it where no template does.
const CONTAINER_NAME: &str = "spark-kubernetes-executor";

/// The executors' template, with the init-container if they are to have it.
pub(in crate::submit::plan) fn template(
    conf: &SparkConf,
    init: Option<&InitContainer>,
    user: Option<String>,
) -> Result<Option<String>, PlanError> {
    let Some(init) = init.filter(|init| init.for_executors) else { return Ok(user) };
    let pod = match user {
        Some(text) => {
            parse_pod(&text, SparkVersion::of(conf)?.0).map_err(|problem| conf.refuse(FILE, problem))?
        }
        None => Map::new(),
    };
    init.merged(conf, pod).map(|pod| Some(pod.to_string()))
}

impl InitContainer {
    fn merged(&self, conf: &SparkConf, mut pod: Map<String, Value>) -> Result<Value, PlanError> {
        pod.insert("apiVersion".to_owned(), json!("v1"));
        pod.insert("kind".to_owned(), json!("Pod"));
        let mut spec = match pod.remove("spec") {
            Some(Value::Object(spec)) => spec,
            _ => Map::new(),
        };
        let variables = conf.prefixed(keys::EXECUTOR_ENV_PREFIX);
        let policy = conf.get(keys::CONTAINER_IMAGE_PULL_POLICY).unwrap_or("IfNotPresent");
        let container = self.container(variables, &resources(conf)?, Some(&json!(policy)));
        append(&mut spec, "initContainers", [container]);
        append(&mut spec, "volumes", self.volumes());
        self.mount(conf, &mut spec)?;
        pod.insert("spec".to_owned(), Value::Object(spec));
        Ok(Value::Object(pod))
    }

    /// In the container that Spark takes: the named one, else the first, else one of its own.
    fn mount(&self, conf: &SparkConf, spec: &mut Map<String, Value>) -> Result<(), PlanError> {
        let mut containers = match spec.remove("containers") {
            Some(Value::Array(containers)) => containers,
            _ => Vec::new(),
        };
        if containers.is_empty() {
            let name = conf.get(CONTAINER).unwrap_or(CONTAINER_NAME);
            containers.push(json!({"name": name}));
        }
        let named = |name: &str| containers.iter().position(|container| container["name"] == name);
        let at = match conf.get(CONTAINER) {
            Some(name) => named(name)
                .ok_or_else(|| conf.refuse(CONTAINER, "the executors' pod template has no such container"))?,
            None => 0,
        };
        if let Some(Value::Object(container)) = containers.get_mut(at) {
            append(container, "volumeMounts", self.mounts());
        }
        spec.insert("containers".to_owned(), Value::Array(containers));
        Ok(())
    }
}

/// No more than the executor's own container has, so that the pod needs nothing more.
fn resources(conf: &SparkConf) -> Result<Value, PlanError> {
    let memory = format!("{}Mi", conf.mebibytes("spark.executor.memory")?.unwrap_or(1024));
    let cores = ["spark.kubernetes.executor.request.cores", "spark.executor.cores"];
    let cores = cores.into_iter().find_map(|key| conf.get(key)).unwrap_or("1").trim();
    let mut resources = json!({
        "requests": {"cpu": cores, "memory": memory},
        "limits": {"memory": memory},
    });
    if let Some(limit) = conf.get("spark.kubernetes.executor.limit.cores") {
        resources["limits"]["cpu"] = json!(limit.trim());
    }
    Ok(resources)
}
