//! Hadoop's configuration for the driver, in a config map (`HadoopConfDriverFeatureStep`).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::plan::application::Application;
use crate::plan::error::PlanError;
use crate::plan::parts::hadoop::{HadoopConf, VARIABLE};
use crate::plan::spec::DriverSpec;
use cloakroom_spark::keys;

const VOLUME: &str = "hadoop-properties";
const PATH: &str = "/opt/hadoop/conf";

#[expect(clippy::unnecessary_wraps, reason = "a step like all others")]
pub(super) fn step(application: &Application, mut spec: DriverSpec) -> Result<DriverSpec, PlanError> {
    let (name, source) = match &application.hadoop {
        None => return Ok(spec),
        Some(HadoopConf::ConfigMap(name)) => (name.clone(), json!({"name": name})),
        Some(HadoopConf::Folder(files, warnings)) => {
            let name = application.names.of("hadoop-config");
            spec.warnings.extend(warnings.iter().cloned());
            spec.after_pod.push(config_map(&name, files));
            let source = source(&name, files);
            (name, source)
        }
    };
    spec.add_volume(json!({"name": VOLUME, "configMap": source}));
    spec.mount(VOLUME, PATH);
    spec.add_variable(VARIABLE, PATH);
    // The driver mounts the same config map in its executors.
    spec.set_property(&keys::EXECUTOR_HADOOP_CONFIG_MAP, name);
    Ok(spec)
}

/// A config map without `data` if the folder is empty or missing, as Spark sends it.
fn config_map(name: &str, files: &BTreeMap<String, String>) -> Value {
    let mut map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "immutable": true,
    });
    if !files.is_empty() {
        map["data"] = json!(files);
    }
    map
}

fn source(name: &str, files: &BTreeMap<String, String>) -> Value {
    let items: Vec<Value> = files.keys().map(|file| json!({"key": file, "path": file})).collect();
    if items.is_empty() { json!({"name": name}) } else { json!({"name": name, "items": items}) }
}
