//! The file of an application for the Kubeflow Spark Operator, and what staging changes in it.
//!
//! - `document`: finds the application in the file
//! - `settings`: reads the file's fields as Spark's settings
//! - `merging`: adds the staged files to the application

mod document;
mod merging;
mod settings;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use super::ExternalSubmission;
use cloakroom_spark::keys::{self, Key};

pub use document::{ApplicationFile, FileError, namespace, objects};
pub use settings::FileSetting;

/// Spark's lists of files, each with the operator's field below `spec.deps`.
const LISTS: [(Key<String>, &str); 4] =
    [(keys::JARS, "jars"), (keys::FILES, "files"), (keys::ARCHIVES, "archives"), (keys::PY_FILES, "pyFiles")];

/// The fields of an application's `spec` (v1beta2) that name the staged files. `driver.template` works without the
/// operator's webhook.
pub fn fields(external: &ExternalSubmission) -> Result<Value, serde_json::Error> {
    let mut spec = Map::new();
    if let Some(application) = &external.application {
        spec.insert("mainApplicationFile".to_owned(), json!(application));
    }
    if let Some(class) = &external.main_class {
        spec.insert("mainClass".to_owned(), json!(class));
    }
    let entries = |value: &str| json!(value.split(',').collect::<Vec<_>>());
    let mut deps = Map::new();
    for (key, value) in &external.lists {
        if let Some((_, field)) = LISTS.iter().find(|(list, _)| **list == **key) {
            deps.insert((*field).to_owned(), entries(value));
        }
    }
    if !deps.is_empty() {
        spec.insert("deps".to_owned(), Value::Object(deps));
    }
    spec.insert("driver".to_owned(), json!({"template": template(external.driver.clone())}));
    if let Some(text) = &external.executor {
        spec.insert("executor".to_owned(), json!({"template": template(serde_json::from_str(text)?)}));
    }
    Ok(Value::Object(spec))
}

/// A pod as a `PodTemplateSpec`, which has no `apiVersion` and no `kind`.
fn template(mut pod: Map<String, Value>) -> Map<String, Value> {
    pod.retain(|key, _| ["metadata", "spec"].contains(&key.as_str()));
    pod
}
