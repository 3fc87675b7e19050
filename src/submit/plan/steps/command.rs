//! What the driver's container is told to run (`DriverCommandFeatureStep`).

use serde_json::json;

use super::conf_volume;
use crate::spark::{MainResource, keys};
use crate::submit::plan::application::Application;
use crate::submit::plan::error::PlanError;
use crate::submit::plan::spec::{DriverSpec, append};
/// Variables of Python, each with the keys that are asked before this machine's own.
const PYTHONS: [(&str, &[&str]); 2] = [
    ("PYSPARK_PYTHON", &[keys::PYTHON.name()]),
    ("PYSPARK_DRIVER_PYTHON", &[keys::DRIVER_PYTHON.name(), keys::PYTHON.name()]),
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
    append(&mut spec.container, "args", arguments.into_iter().map(|argument| json!(argument)));
    if matches!(application.resource, MainResource::Python(_)) {
        for (variable, keys) in PYTHONS {
            let own = application.variables.get(variable).map(String::as_str);
            if let Some(python) = keys.iter().find_map(|key| application.conf.get(key)).or(own) {
                spec.add_variable(variable, python);
            }
        }
    }
    spec.set_property(&keys::RESOURCE_TYPE, application.resource.kind());
    Ok(spec)
}
