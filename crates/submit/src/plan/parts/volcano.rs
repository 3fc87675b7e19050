//! The template of Volcano's `PodGroup`.

use serde_json::{Map, Value, json};

use crate::plan::error::PlanError;
use crate::plan::machine::Machine;
use crate::plan::source;
use crate::plan::template;
use cloakroom_spark::{SparkConf, keys, split_list};

/// The only class of `spark.kubernetes.driver.pod.featureSteps` that is built in here.
pub(in crate::plan) const CLASS: &str = "org.apache.spark.deploy.k8s.features.VolcanoFeatureStep";

/// The template of the `PodGroup`. It is `None` without Volcano's step, and empty if no setting gives a template. The
/// file wins over the text.
pub(in crate::plan) fn read(conf: &SparkConf, machine: Machine) -> Result<Option<Value>, PlanError> {
    if !is_asked_for(conf) {
        return Ok(None);
    }
    let (key, text) = match source::read(conf, &keys::POD_GROUP_FILE, machine)? {
        Some(text) => (&keys::POD_GROUP_FILE, text),
        None => match conf.get(&keys::POD_GROUP_JSON) {
            Some(text) => (&keys::POD_GROUP_JSON, text.to_owned()),
            None => return Ok(Some(json!({}))),
        },
    };
    let group = template::parse(&text).and_then(pod_group).map(Value::Object);
    Ok(Some(group.map_err(|problem| conf.refuse(key, problem))?))
}

fn pod_group(group: Value) -> Result<Map<String, Value>, String> {
    match group {
        Value::Object(group) if group.get("kind").is_none_or(|kind| kind == "PodGroup") => Ok(group),
        _ => Err("it must be one PodGroup of scheduling.volcano.sh".to_owned()),
    }
}

/// Whether the settings name Volcano's step.
pub(in crate::plan) fn is_asked_for(conf: &SparkConf) -> bool {
    split_list(conf.get(&keys::EXTRA_STEPS).unwrap_or_default()).any(|asked| asked == CLASS)
}
