//! A network policy: executors accept connections from pods of their own application only (`NetworkPolicyFeatureStep`,
//! from Spark 4.3 on).

use serde_json::json;

use super::labels::ROLE_LABEL;
use crate::plan::application::Application;
use crate::plan::error::PlanError;
use crate::plan::names::APP_ID_LABEL;
use crate::plan::spec::DriverSpec;

#[expect(clippy::unnecessary_wraps, reason = "a step like all others")]
pub(super) fn step(application: &Application, mut spec: DriverSpec) -> Result<DriverSpec, PlanError> {
    if !application.version.has_network_policy() {
        return Ok(spec);
    }
    let app_id = &application.names.app_id;
    spec.after_pod.push(json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "labels": {APP_ID_LABEL: app_id},
            "name": application.names.of("policy"),
            "namespace": application.namespace,
        },
        "spec": {
            "ingress": [{"from": [{"podSelector": {"matchLabels": {APP_ID_LABEL: app_id}}}]}],
            "podSelector": {"matchLabels": {ROLE_LABEL: "executor", APP_ID_LABEL: app_id}},
        },
    }));
    Ok(spec)
}
