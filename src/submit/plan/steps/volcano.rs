//! Volcano's gang scheduling: a `PodGroup` before the pod (`VolcanoFeatureStep`, here without a JVM).

use serde_json::{Map, Value, json};

use super::is_asked_for;
use crate::spark::{SparkConf, keys};
use crate::submit::plan::application::Application;
use crate::submit::plan::error::PlanError;
use crate::submit::plan::source;
use crate::submit::plan::spec::{DriverSpec, merge};
use crate::submit::plan::submitter::Submitter;
use crate::submit::plan::template;

pub(super) const CLASS: &str = "org.apache.spark.deploy.k8s.features.VolcanoFeatureStep";

/// The template of the `PodGroup`, an empty one where no file is named; `None` without the step.
pub(in crate::submit::plan) async fn read(
    conf: &SparkConf,
    submitter: &Submitter,
) -> Result<Option<Value>, PlanError> {
    if !is_asked_for(conf, CLASS) {
        return Ok(None);
    }
    let (key, text) = match source::read(conf, &keys::POD_GROUP_FILE, submitter).await? {
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

#[expect(clippy::unnecessary_wraps, reason = "a step like all others")]
pub(super) fn step(application: &Application, mut spec: DriverSpec) -> Result<DriverSpec, PlanError> {
    let Some(Value::Object(template)) = &application.pod_group else { return Ok(spec) };
    let name = format!("{}-podgroup", application.names.app_id);
    let mut group = template.clone();
    group.insert("apiVersion".to_owned(), json!("scheduling.volcano.sh/v1beta1"));
    group.insert("kind".to_owned(), json!("PodGroup"));
    let place = [("name", json!(name)), ("namespace", json!(application.namespace))];
    merge(&mut group, "metadata", place);
    if group.get("spec").is_none_or(Value::is_null) {
        group.insert("spec".to_owned(), json!({}));
    }
    spec.before_pod.push(Value::Object(group));
    merge(&mut spec.metadata, "annotations", [("scheduling.k8s.io/group-name", json!(name))]);
    Ok(spec)
}
