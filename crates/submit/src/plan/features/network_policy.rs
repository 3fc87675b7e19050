//! A network policy: executors accept connections from pods of their own application only (`NetworkPolicyFeatureStep`,
//! from Spark 4.3 on).

use serde_json::json;

use super::labels::ROLE_LABEL;
use super::{Context, Feature};
use crate::plan::error::PlanError;
use crate::plan::names::APP_ID_LABEL;
use crate::plan::spec::DriverSpec;

pub(super) struct NetworkPolicy;

impl Feature for NetworkPolicy {
    fn add(self: Box<Self>, context: &Context, spec: &mut DriverSpec) -> Result<(), PlanError> {
        if !context.version.has_network_policy() {
            return Ok(());
        }
        let app_id = &context.names.app_id;
        spec.after_pod.push(json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {
                "labels": {APP_ID_LABEL: app_id},
                "name": context.names.of("policy"),
                "namespace": context.namespace,
            },
            "spec": {
                "ingress": [{"from": [{"podSelector": {"matchLabels": {APP_ID_LABEL: app_id}}}]}],
                "podSelector": {"matchLabels": {ROLE_LABEL: "executor", APP_ID_LABEL: app_id}},
            },
        }));
        Ok(())
    }
}
