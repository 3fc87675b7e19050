//! Secrets as environment variables: `spark.kubernetes.driver.secretKeyRef.ENV=secret:key` (`EnvSecretsFeatureStep`).

use serde_json::json;

use crate::plan::application::Application;
use crate::plan::error::PlanError;
use crate::plan::spec::DriverSpec;
use cloakroom_spark::keys;

pub(super) fn step(application: &Application, mut spec: DriverSpec) -> Result<DriverSpec, PlanError> {
    let conf = &application.conf;
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
    Ok(spec)
}
