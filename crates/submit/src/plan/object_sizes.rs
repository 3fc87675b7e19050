//! Refuses objects that are larger than an API server accepts. The dry run does not find them: it tries only the pod.

use serde_json::Value;

use super::application::Application;
use super::error::PlanError;
use super::features::MOST_BYTES;
use super::spec::DriverSpec;
use cloakroom_spark::keys::DEPENDENCY_LISTS;

/// Refuses an object that is too large, and says what to make smaller.
pub(super) fn check(application: &Application, spec: &DriverSpec) -> Result<(), PlanError> {
    for object in spec.before_pod.iter().chain(&spec.after_pod) {
        let size_bytes = data_bytes(object);
        if size_bytes > MOST_BYTES {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            return Err(PlanError::LargeObject {
                kind: if object["kind"] == "Secret" { "secret" } else { "config map" },
                name: text(&object["metadata"]["name"]),
                size_bytes,
                advice: advice(application),
            });
        }
    }
    Ok(())
}

/// The size of an object's data. A secret's data is in base64, and the API server counts the decoded bytes.
fn data_bytes(object: &Value) -> usize {
    let Some(data) = object["data"].as_object() else { return 0 };
    let texts = data.values().filter_map(Value::as_str);
    match object["kind"].as_str() {
        Some("ConfigMap") => texts.map(str::len).sum(),
        Some("Secret") => texts.map(|text| text.trim_end_matches('=').len() * 3 / 4).sum(),
        _ => 0,
    }
}

/// What to make smaller. Only lists of files grow long without being written so: by patterns.
fn advice(application: &Application) -> &'static str {
    let dependencies = &application.dependencies;
    let given = DEPENDENCY_LISTS.iter().filter_map(|key| application.context.conf.get(key)).map(str::len);
    let placed = dependencies.lists.iter().map(|(_, list)| list.len());
    let fetched = dependencies.remote_jars.iter().chain(&dependencies.remote_files).map(String::len);
    let (given, placed): (usize, usize) = (given.sum(), placed.chain(fetched).sum());
    if given.max(placed) > MOST_BYTES / 2 {
        "the lists of files are too long: pack the files into an archive (--archives)"
    } else {
        "make the settings smaller, or what travels with them, such as the files of SPARK_CONF_DIR \
         (`spark.kubernetes.configMap.maxSize`)"
    }
}
