//! Secrets as environment variables: `spark.kubernetes.driver.secretKeyRef.ENV=secret:key` (`EnvSecretsFeatureStep`).

use serde_json::json;

use crate::submit::plan::application::Application;
use crate::submit::plan::error::PlanError;
use crate::submit::plan::spec::DriverSpec;

const PREFIX: &str = "spark.kubernetes.driver.secretKeyRef.";

pub(super) fn step(application: &Application, mut spec: DriverSpec) -> Result<DriverSpec, PlanError> {
    let conf = &application.conf;
    for (variable, reference) in conf.prefixed(PREFIX) {
        // Java's `split` knows nothing of colons at the end.
        let parts: Vec<&str> = reference.trim_end_matches(':').split(':').collect();
        let [secret, key] = parts[..] else {
            let problem = "it must be the name of a secret and a key in it, `name:key`";
            return Err(conf.refuse(&format!("{PREFIX}{variable}"), problem).into());
        };
        let source = json!({"secretKeyRef": {"name": secret, "key": key}});
        spec.add_variable_from(json!({"name": variable, "valueFrom": source}));
    }
    Ok(spec)
}
