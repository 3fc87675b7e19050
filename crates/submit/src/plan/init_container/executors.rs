//! `spark.kubernetes.cloakroom.executorStaging=init`: executors get the init-container through their pod template.

use serde_json::{Value, json};

use super::InitContainer;
use super::merging::{Additions, TemplateKeys, merged, parsed};
use crate::plan::error::PlanError;
use cloakroom_spark::{SparkConf, keys};

/// The keys and names of the executors' template.
pub(in crate::plan) const TEMPLATE: TemplateKeys = TemplateKeys {
    whose: "executors",
    volumes: &keys::EXECUTOR_VOLUMES,
    file: keys::EXECUTOR_POD_TEMPLATE,
    container: keys::EXECUTOR_TEMPLATE_CONTAINER,
    default_name: "spark-kubernetes-executor",
};

/// The executors' template. The init-container is in it if `executorStaging=init` is set.
pub(in crate::plan) fn template(
    conf: &SparkConf,
    init: Option<&InitContainer>,
    user: Option<String>,
) -> Result<Option<String>, PlanError> {
    let Some(init) = init.filter(|init| init.for_executors) else { return Ok(user) };
    let pod = parsed(conf, &TEMPLATE, user.as_deref())?;
    let variables = conf.prefixed(keys::EXECUTOR_ENV.prefix());
    let policy = conf.get(&keys::CONTAINER_IMAGE_PULL_POLICY).unwrap_or("IfNotPresent");
    let additions = Additions {
        init_container: init.container(variables, &resources(conf)?, Some(&json!(policy))),
        volumes: init.volumes().into(),
        mounts: init.mounts().into(),
    };
    Ok(Some(Value::Object(merged(conf, &TEMPLATE, pod, additions)?).to_string()))
}

/// CPU and memory of the init-container. They are at most those of the executor's container, so the pod needs no more.
fn resources(conf: &SparkConf) -> Result<Value, PlanError> {
    let memory = format!("{}Mi", conf.read(&keys::EXECUTOR_MEMORY)?.unwrap_or(1024));
    let cores =
        conf.get(&keys::EXECUTOR_REQUEST_CORES).or(conf.get(&keys::EXECUTOR_CORES)).unwrap_or("1").trim();
    let mut resources = json!({
        "requests": {"cpu": cores, "memory": memory},
        "limits": {"memory": memory},
    });
    if let Some(limit) = conf.get(&keys::EXECUTOR_LIMIT_CORES) {
        resources["limits"]["cpu"] = json!(limit.trim());
    }
    Ok(resources)
}
