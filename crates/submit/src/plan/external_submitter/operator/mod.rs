//! Applications of the Kubeflow Spark Operator: the file that somebody wrote, and what it has to say once files are staged.
//!
//! - `document`: finds the application in the file
//! - `settings`: what the file says, by Spark's keys
//! - `merging`: what was staged becomes part of the application

mod document;
mod merging;
mod settings;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use super::ExternalSubmission;
use cloakroom_spark::keys::{self, Key};

pub use document::{ApplicationFile, FileError};
pub use settings::FileSetting;

/// What the operator calls Spark's lists of files, below `spec.deps`.
const LISTS: [(Key<String>, &str); 4] =
    [(keys::JARS, "jars"), (keys::FILES, "files"), (keys::ARCHIVES, "archives"), (keys::PY_FILES, "pyFiles")];

/// The part of an application's `spec` (v1beta2) that tells of what was staged. Its `driver.template` needs no webhook.
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

/// A pod as a `PodTemplateSpec`, which is no object of its own.
fn template(mut pod: Map<String, Value>) -> Map<String, Value> {
    pod.retain(|key, _| ["metadata", "spec"].contains(&key.as_str()));
    pod
}
