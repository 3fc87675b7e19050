//! The template of Volcano's `PodGroup`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::plan::error::PlanError;
use crate::plan::machine::Machine;
use crate::plan::source;
use crate::plan::template;
use cloakroom_spark::version::SparkVersion;
use cloakroom_spark::{SparkConf, keys, split_list};

/// The only class of `spark.kubernetes.driver.pod.featureSteps` that is built in here.
pub(in crate::plan) const CLASS: &str = "org.apache.spark.deploy.k8s.features.VolcanoFeatureStep";

const KIND: (&str, &str) = ("PodGroup", "scheduling.volcano.sh/v1beta1");

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
    let version = SparkVersion::of(conf)?.0;
    let group = template::parse_object::<PodGroup>(&text, version, KIND);
    Ok(Some(Value::Object(group.map_err(|problem| conf.refuse(key, problem))?)))
}

/// The types of the fields, as Spark's library has them (`io.fabric8.volcano.api.model.scheduling.v1beta1`).
#[derive(Deserialize)]
#[expect(dead_code, reason = "only the types of the fields count: the document keeps what is read")]
struct PodGroup {
    metadata: Option<ObjectMeta>,
    spec: Option<PodGroupSpec>,
    status: Option<PodGroupStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the types of the fields count: the document keeps what is read")]
struct PodGroupSpec {
    min_member: Option<i32>,
    min_resources: Option<BTreeMap<String, Quantity>>,
    min_task_member: Option<BTreeMap<String, i32>>,
    priority_class_name: Option<String>,
    queue: Option<String>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only the types of the fields count: the document keeps what is read")]
struct PodGroupStatus {
    failed: Option<i32>,
    phase: Option<String>,
    running: Option<i32>,
    succeeded: Option<i32>,
}

/// Whether the settings name Volcano's step.
pub(in crate::plan) fn is_asked_for(conf: &SparkConf) -> bool {
    split_list(conf.get(&keys::EXTRA_STEPS).unwrap_or_default()).any(|asked| asked == CLASS)
}
