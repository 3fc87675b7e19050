//! Small local files, in a secret that the driver mounts. The driver serves them to its executors. Spark has no such
//! step.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{Context, Feature, Reader};
use crate::plan::dependencies::small_files::{self, FOLDER, SmallFile};
use crate::plan::error::PlanError;
use crate::plan::folder;
use crate::plan::names::APP_ID_LABEL;
use crate::plan::spec::DriverSpec;

const VOLUME: &str = "submitted-files";

/// The files with their collected bytes.
pub(super) struct SmallFiles(Vec<SmallFile>);

impl SmallFiles {
    /// Reads the files that the dependencies name; `None` if there are none.
    pub fn read(from: &Reader) -> Result<Option<Self>, PlanError> {
        let files = small_files::read(&from.dependencies.small_files, from.machine.facts)?;
        Ok((!files.is_empty()).then_some(Self(files)))
    }
}

impl Feature for SmallFiles {
    fn add(self: Box<Self>, context: &Context, spec: &mut DriverSpec) -> Result<(), PlanError> {
        let Self(files) = *self;
        let name = context.names.of("submitted-files");
        let (mut data, mut items) = (Map::new(), Vec::new());
        for (key, file) in keys(&files).into_iter().zip(&files) {
            items.push(json!({"key": key, "path": file.name}));
            data.insert(key, Value::String(STANDARD.encode(&file.bytes)));
        }
        spec.add_volume(json!({"name": VOLUME, "secret": {"secretName": name, "items": items}}));
        spec.add_mount(json!({"name": VOLUME, "mountPath": FOLDER, "readOnly": true}));
        spec.after_pod.push(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "labels": {APP_ID_LABEL: context.names.app_id}},
            "data": data,
            "immutable": true,
        }));
        Ok(())
    }
}

/// A key of the secret for each file. It is the file's name if Kubernetes allows that as a key, else a numbered key
/// that is not the name of another file.
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
