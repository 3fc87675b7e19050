//! Small files without a staging server: they travel in a secret, as the original's did.

use std::collections::BTreeSet;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::application::Application;
use super::dependencies::no_way;
use super::error::PlanError;
use super::folder;
use super::metadata::APP_ID_LABEL;
use super::spec::DriverSpec;
use crate::spark::format_size;

/// Where the secret is mounted.
pub(super) const FOLDER: &str = "/etc/spark-submitted-files";
/// The original's limit for all of them together.
const MOST_BYTES: u64 = 10_240;
const PLACE: &str = "a file to submit";
const VOLUME: &str = "submitted-files";

/// A file with the name that it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SmallFile {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Reads the files, unless they are too large together.
pub(super) fn read(files: &[(PathBuf, String)]) -> Result<Vec<SmallFile>, PlanError> {
    let refuse = |path: &PathBuf, problem: String| PlanError::LocalFile {
        place: PLACE,
        file: path.display().to_string(),
        problem,
    };
    let mut total = 0;
    for (path, name) in files {
        // Kubernetes has such names for itself (`validateLocalNonReservedPath`).
        if name.starts_with("..") {
            let problem = format!(
                "cannot be called “{name}” in a secret, where no name begins with ..: give another name behind #, or \
                 rename it"
            );
            return Err(refuse(path, problem));
        }
        let metadata = std::fs::metadata(path).map_err(|error| refuse(path, folder::unreadable(&error)))?;
        total += metadata.len();
        if total > MOST_BYTES {
            let most = format_size(MOST_BYTES);
            return Err(refuse(
                path,
                no_way(&format!(" (without a server at most {most} travel in a secret)")),
            ));
        }
    }
    let read = files.iter().map(|(path, name)| {
        let bytes = std::fs::read(path).map_err(|error| refuse(path, folder::unreadable(&error)))?;
        Ok(SmallFile { name: name.clone(), bytes })
    });
    read.collect()
}

/// Shows the files to the driver, which hands them on to its executors.
pub(super) fn add(application: &Application, mut spec: DriverSpec) -> DriverSpec {
    let files = &application.dependencies.small_files;
    if files.is_empty() {
        return spec;
    }
    let name = application.names.of("submitted-files");
    let (mut data, mut items) = (Map::new(), Vec::new());
    for (key, file) in keys(files).into_iter().zip(files) {
        items.push(json!({"key": key, "path": file.name}));
        data.insert(key, Value::String(STANDARD.encode(&file.bytes)));
    }
    spec.add_volume(json!({"name": VOLUME, "secret": {"secretName": name, "items": items}}));
    spec.add_mount(json!({"name": VOLUME, "mountPath": FOLDER, "readOnly": true}));
    spec.after_pod.push(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": {APP_ID_LABEL: application.names.app_id}},
        "data": data,
        "immutable": true,
    }));
    spec
}

/// A key for each file: its name, or, as not every name can be a key, a number that is nobody's name.
fn keys(files: &[SmallFile]) -> Vec<String> {
    let mut taken: BTreeSet<String> =
        files.iter().map(|file| &file.name).filter(|name| folder::is_config_map_key(name)).cloned().collect();
    let mut number = 0..;
    let keys = files.iter().map(|file| {
        if taken.contains(&file.name) {
            return file.name.clone();
        }
        let mut numbered = number.by_ref().map(|number: u64| format!("file-{number}"));
        numbered.find(|key| taken.insert(key.clone())).unwrap_or_default()
    });
    keys.collect()
}
