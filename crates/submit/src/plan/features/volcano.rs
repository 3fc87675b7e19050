//! Volcano's gang scheduling: a `PodGroup` that is created before the pod (`VolcanoFeatureStep`).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Context, Feature, PACKAGE, Reader};
use crate::plan::error::PlanError;
use crate::plan::needs::{FileKey, How};
use crate::plan::spec::{DriverSpec, merge};
use crate::plan::{source, template};
use cloakroom_spark::{SparkConf, keys, split_list};

/// The name of Spark's class.
pub(super) const STEP: &str = "VolcanoFeatureStep";

const KIND: (&str, &str) = ("PodGroup", "scheduling.volcano.sh/v1beta1");

/// The keys that name files.
pub(in crate::plan) const KEYS: [FileKey; 1] =
    [FileKey::new(keys::POD_GROUP_FILE.name(), How::Source).only_if(|conf, _| is_asked_for(conf))];

/// The template of the `PodGroup`. It is empty if no setting gives one.
pub(super) struct PodGroup(Map<String, Value>);

impl PodGroup {
    /// The file wins over the text.
    pub fn read(from: &Reader) -> Result<Self, PlanError> {
        let Reader { conf, machine, version, .. } = from;
        let (key, text) = match source::read(conf, &keys::POD_GROUP_FILE, *machine)? {
            Some(text) => (&keys::POD_GROUP_FILE, text),
            None => match conf.get(&keys::POD_GROUP_JSON) {
                Some(text) => (&keys::POD_GROUP_JSON, text.to_owned()),
                None => return Ok(Self(Map::new())),
            },
        };
        let group = template::parse_object::<GroupFields>(&text, *version, KIND);
        Ok(Self(group.map_err(|problem| conf.refuse(key, problem))?))
    }
}

impl Feature for PodGroup {
    fn add(self: Box<Self>, context: &Context, spec: &mut DriverSpec) -> Result<(), PlanError> {
        let name = format!("{}-podgroup", context.names.app_id);
        let Self(mut group) = *self;
        group.insert("apiVersion".to_owned(), json!(KIND.1));
        group.insert("kind".to_owned(), json!(KIND.0));
        let place = [("name", json!(name)), ("namespace", json!(context.namespace))];
        merge(&mut group, "metadata", place);
        if group.get("spec").is_none_or(Value::is_null) {
            group.insert("spec".to_owned(), json!({}));
        }
        spec.before_pod.push(Value::Object(group));
        merge(&mut spec.metadata, "annotations", [("scheduling.k8s.io/group-name", json!(name))]);
        Ok(())
    }
}

/// Whether the settings name this step.
fn is_asked_for(conf: &SparkConf) -> bool {
    split_list(conf.get(&keys::EXTRA_STEPS).unwrap_or_default())
        .any(|class| class.strip_prefix(PACKAGE) == Some(STEP))
}

/// The types of the fields, as Spark's library has them (`io.fabric8.volcano.api.model.scheduling.v1beta1`).
#[derive(Deserialize)]
#[expect(dead_code, reason = "only the types of the fields count: the document keeps what is read")]
struct GroupFields {
    metadata: Option<ObjectMeta>,
    spec: Option<SpecFields>,
    status: Option<StatusFields>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the types of the fields count: the document keeps what is read")]
struct SpecFields {
    min_member: Option<i32>,
    min_resources: Option<BTreeMap<String, Quantity>>,
    min_task_member: Option<BTreeMap<String, i32>>,
    priority_class_name: Option<String>,
    queue: Option<String>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only the types of the fields count: the document keeps what is read")]
struct StatusFields {
    failed: Option<i32>,
    phase: Option<String>,
    running: Option<i32>,
    succeeded: Option<i32>,
}
