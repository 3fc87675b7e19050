//! Volcano's gang scheduling: a `PodGroup` that is created before the pod (`VolcanoFeatureStep`).

use serde_json::{Value, json};

use crate::plan::application::Application;
use crate::plan::error::PlanError;
use crate::plan::spec::{DriverSpec, merge};

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
