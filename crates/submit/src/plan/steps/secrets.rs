//! Secrets as files: `spark.kubernetes.driver.secrets.NAME=/path` (`MountSecretsFeatureStep`).

use serde_json::json;

use crate::plan::application::Application;
use crate::plan::error::PlanError;
use crate::plan::spec::DriverSpec;
use cloakroom_spark::keys;

#[expect(clippy::unnecessary_wraps, reason = "a step like all others")]
pub(super) fn step(application: &Application, mut spec: DriverSpec) -> Result<DriverSpec, PlanError> {
    // Spark uses the name of the secret unchanged, and so does this.
    for (secret, path) in application.conf.prefixed(keys::DRIVER_SECRETS.prefix()) {
        let volume = format!("{secret}-volume");
        spec.add_volume(json!({"name": volume, "secret": {"secretName": secret}}));
        spec.mount(&volume, path);
    }
    Ok(spec)
}
