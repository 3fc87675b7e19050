//! The arguments of the driver's container (`DriverCommandFeatureStep`).
//!
//! There is no `command`: the entrypoint of Spark's images reads `driver` and starts spark-submit in client mode.

use serde_json::json;

use super::conf_volume;
use crate::plan::application::Application;
use crate::plan::error::PlanError;
use crate::plan::spec::{DriverSpec, append};
use cloakroom_spark::{MainResource, keys};

const PYTHON: &str = "PYSPARK_PYTHON";
const DRIVER_PYTHON: &str = "PYSPARK_DRIVER_PYTHON";

/// Python's variables: the name in the pod, the keys that set it, then the submitting machine's variables that set it.
/// The first one that is set wins.
const PYTHONS: [(&str, &[&str], &[&str]); 2] = [
    (PYTHON, &[keys::PYTHON.name()], &[PYTHON]),
    (DRIVER_PYTHON, &[keys::DRIVER_PYTHON.name(), keys::PYTHON.name()], &[DRIVER_PYTHON, PYTHON]),
];

#[expect(clippy::unnecessary_wraps, reason = "a step like all others")]
pub(super) fn step(application: &Application, mut spec: DriverSpec) -> Result<DriverSpec, PlanError> {
    let mut arguments = vec!["driver".to_owned()];
    if let Some(user) = &application.proxy_user {
        arguments.extend(["--proxy-user".to_owned(), user.clone()]);
    }
    arguments.extend(["--properties-file".to_owned(), format!("{}/spark.properties", conf_volume::PATH)]);
    arguments.extend(["--class".to_owned(), application.main_class.clone()]);
    arguments.push(application.dependencies.resource.clone());
    arguments.extend(application.arguments.iter().cloned());
    // Each argument is sent verbatim. Spark does not escape `$(NAME)` either, so Kubernetes expands it.
    append(&mut spec.container, "args", arguments.into_iter().map(|argument| json!(argument)));
    if matches!(application.resource, MainResource::Python(_)) {
        for (variable, keys, variables) in PYTHONS {
            let of_machine = || variables.iter().find_map(|name| application.variables.get(*name));
            let configured = keys.iter().find_map(|key| application.conf.get(key));
            if let Some(python) = configured.or_else(|| of_machine().map(String::as_str)) {
                spec.add_variable(variable, python);
            }
        }
    }
    spec.set_property(&keys::RESOURCE_TYPE, application.resource.kind());
    Ok(spec)
}
