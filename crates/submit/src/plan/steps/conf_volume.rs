//! The config map with `spark.properties` and the files of `SPARK_CONF_DIR`: the last of all objects.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::plan::application::Application;
use crate::plan::error::PlanError;
use crate::plan::properties::properties_file;
use crate::plan::spec::DriverSpec;
use cloakroom_spark::keys;

/// Where Spark's images look for their configuration.
pub(in crate::plan) const PATH: &str = "/opt/spark/conf";
/// What they come in.
pub(in crate::plan) const VOLUME: &str = "spark-conf-volume-driver";
/// What it reads there.
pub(in crate::plan) const PROPERTIES: &str = "spark.properties";
/// `rw-r--r--`
const MODE: u32 = 0o644;

/// Puts the properties, which are complete now, into the driver's hands.
#[expect(clippy::unnecessary_wraps, reason = "a step like all others")]
pub(super) fn step(application: &Application, mut spec: DriverSpec) -> Result<DriverSpec, PlanError> {
    let name = &application.names.config_map;
    let properties = properties_file(name, application.now, &spec.properties);
    let mut data: BTreeMap<&str, &str> =
        application.conf_folder.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
    data.insert(PROPERTIES, &properties);
    let item = |file: &&str| json!({"key": file, "mode": MODE, "path": file});
    let items: Vec<Value> = data.keys().map(item).collect();
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
