//! The config map with `spark.properties` and the files of `SPARK_CONF_DIR`.
//!
//! In Spark this is no feature step: its `Client` adds the map after all of them. So it is the last object that is
//! created.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::plan::application::Application;
use crate::plan::error::PlanError;
use crate::plan::properties::properties_file;
use crate::plan::spec::DriverSpec;
use cloakroom_spark::keys;

/// The folder that Spark's images read their configuration from (`SPARK_CONF_DIR_INTERNAL`).
pub(in crate::plan) const PATH: &str = "/opt/spark/conf";
/// The volume of the config map. A stock spark-submit has the same name for it, on which `plan::external_submitter` relies.
pub(in crate::plan) const VOLUME: &str = "spark-conf-volume-driver";
/// The file in [`PATH`] that the driver is started with (`--properties-file`).
pub(in crate::plan) const PROPERTIES: &str = "spark.properties";
/// `rw-r--r--`. Spark sends it as the decimal number 420.
const MODE: u32 = 0o644;

/// Writes the properties, which are complete now, and mounts them in the driver.
#[expect(clippy::unnecessary_wraps, reason = "a step like all others")]
pub(super) fn step(application: &Application, mut spec: DriverSpec) -> Result<DriverSpec, PlanError> {
    let name = &application.names.config_map;
    let properties = properties_file(name, application.now, &spec.properties);
    let mut data: BTreeMap<&str, &str> =
        application.conf_folder.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
    data.insert(PROPERTIES, &properties);
    let item = |file: &&str| json!({"key": file, "mode": MODE, "path": file});
    let items: Vec<Value> = data.keys().map(item).collect();
    // Spark puts the namespace into the map, and not into the volume: it is behind `items`.
    data.insert(&keys::NAMESPACE, &application.namespace);
    spec.after_pod.push(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": application.namespace},
        "data": data,
        "immutable": true,
    }));
    spec.add_variable("SPARK_CONF_DIR", PATH);
    spec.mount(VOLUME, PATH);
    spec.add_volume(json!({"name": VOLUME, "configMap": {"name": name, "items": items}}));
    Ok(spec)
}
