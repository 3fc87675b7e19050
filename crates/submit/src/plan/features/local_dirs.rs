//! The folders in which the driver keeps shuffle files and spilled data (`LocalDirsFeatureStep`).

use serde_json::{Map, Value, json};

use super::{Context, Feature, Reader};
use crate::plan::error::PlanError;
use crate::plan::spec::DriverSpec;
use cloakroom_spark::keys;

const VARIABLE: &str = "SPARK_LOCAL_DIRS";
/// Spark uses mounted volumes with this prefix as local folders, and then adds none itself.
const VOLUME_PREFIX: &str = "spark-local-dir-";

pub(super) struct LocalDirs {
    /// The submitting machine's `SPARK_LOCAL_DIRS`.
    of_machine: Option<String>,
}

impl LocalDirs {
    pub fn new(from: &Reader) -> Self {
        Self { of_machine: from.machine.submitter.variables.get(VARIABLE).cloned() }
    }
}

impl Feature for LocalDirs {
    fn add(self: Box<Self>, context: &Context, spec: &mut DriverSpec) -> Result<(), PlanError> {
        let is_in_memory = context.conf.read(&keys::LOCAL_DIRS_IN_MEMORY)?.unwrap_or_default();
        let mut folders = mounted(&spec.container);
        if folders.is_empty() {
            folders = configured(context, self.of_machine.as_deref());
            for (at, folder) in folders.iter().enumerate() {
                let volume = format!("{VOLUME_PREFIX}{}", at + 1);
                let source = if is_in_memory { json!({"medium": "Memory"}) } else { json!({}) };
                spec.add_volume(json!({"name": volume, "emptyDir": source}));
                spec.mount(&volume, folder);
            }
        }
        spec.add_variable(VARIABLE, &folders.join(","));
        Ok(())
    }
}

fn mounted(container: &Map<String, Value>) -> Vec<String> {
    let mounts = container.get("volumeMounts").and_then(Value::as_array);
    let is_local_dir =
        |mount: &&Value| mount["name"].as_str().is_some_and(|name| name.starts_with(VOLUME_PREFIX));
    let path = |mount: &Value| mount["mountPath"].as_str().map(str::to_owned);
    mounts.into_iter().flatten().filter(is_local_dir).filter_map(path).collect()
}

/// The local folders of the environment variable, else of the setting, else one default folder. Spark shuffles them;
/// this keeps their order, so that equal submissions are equal.
fn configured(context: &Context, of_machine: Option<&str>) -> Vec<String> {
    let folders = of_machine.or(context.conf.get(&keys::LOCAL_DIRS)).unwrap_or(&context.names.local_dir);
    // As Java's `split`: empty parts at the end are dropped, but an empty text is one part.
    match folders.trim_end_matches(',') {
        "" if !folders.is_empty() => Vec::new(),
        folders => folders.split(',').map(str::to_owned).collect(),
    }
}
