//! Secrets that exist: as files (`spark.kubernetes.driver.secrets.NAME=/path`, `MountSecretsFeatureStep`), and as environment
//! variables (`spark.kubernetes.driver.secretKeyRef.ENV=secret:key`, `EnvSecretsFeatureStep`).

use serde_json::json;

use super::{Context, Feature};
use crate::plan::error::PlanError;
use crate::plan::spec::DriverSpec;
use cloakroom_spark::keys;

pub(super) struct Mounted;

impl Feature for Mounted {
    fn add(self: Box<Self>, context: &Context, spec: &mut DriverSpec) -> Result<(), PlanError> {
        // Spark uses the name of the secret unchanged, and so does this.
        for (secret, path) in context.conf.prefixed(keys::DRIVER_SECRETS.prefix()) {
            let volume = format!("{secret}-volume");
            spec.add_volume(json!({"name": volume, "secret": {"secretName": secret}}));
            spec.mount(&volume, path);
        }
        Ok(())
    }
}

pub(super) struct InVariables;

impl Feature for InVariables {
    fn add(self: Box<Self>, context: &Context, spec: &mut DriverSpec) -> Result<(), PlanError> {
        let conf = &context.conf;
        for (variable, reference) in conf.prefixed(keys::DRIVER_SECRET_KEYS.prefix()) {
            // Spark uses Java's `split`, which drops empty parts at the end: `name:key:` is accepted.
            let parts: Vec<&str> = reference.trim_end_matches(':').split(':').collect();
            let [secret, key] = parts[..] else {
                let problem = "it must be the name of a secret and a key in it, `name:key`";
                return Err(conf.refuse(&keys::DRIVER_SECRET_KEYS.of(&[variable]), problem).into());
            };
            let source = json!({"secretKeyRef": {"name": secret, "key": key}});
            spec.add_variable_from(json!({"name": variable, "valueFrom": source}));
        }
        Ok(())
    }
}
