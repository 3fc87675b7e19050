//! The init-container's part of a pod: the container, its volumes, and the mounts of the fetched files.

use serde_json::{Value, json};

use super::InitContainer;
use super::objects::SECRET_FOLDER;
use crate::plan::fetch_container::fetch_container;

const NAME: &str = "spark-init";
const PROPERTIES_VOLUME: &str = "spark-init-properties";
const PROPERTIES_FOLDER: &str = "/etc/spark-init";
const PROPERTIES_FILE: &str = "spark-init.properties";
const SECRET_VOLUME: &str = "spark-init-secret";
const JARS_VOLUME: &str = "download-jars-volume";
const FILES_VOLUME: &str = "download-files";

impl InitContainer {
    pub(in crate::plan) fn container<'a>(
        &self,
        variables: impl Iterator<Item = (&'a str, &'a str)>,
        resources: &Value,
        policy: Option<&Value>,
    ) -> Value {
        let mut mounts = self.mounts().to_vec();
        for (volume, path) in [(PROPERTIES_VOLUME, PROPERTIES_FOLDER), (SECRET_VOLUME, SECRET_FOLDER)] {
            mounts.push(json!({"name": volume, "mountPath": path, "readOnly": true}));
        }
        let args = [format!("{PROPERTIES_FOLDER}/{PROPERTIES_FILE}")];
        let mut container = fetch_container(NAME, self.image.as_deref(), &args, &mounts, resources);
        let variables: Vec<Value> =
            variables.map(|(name, value)| json!({"name": name, "value": value})).collect();
        if !variables.is_empty() {
            container["env"] = json!(variables);
        }
        if let Some(policy) = policy {
            container["imagePullPolicy"] = policy.clone();
        }
        container
    }

    pub(in crate::plan) fn volumes(&self) -> [Value; 4] {
        let (kind, source) = self.objects.properties_source(PROPERTIES_FILE);
        [
            json!({"name": JARS_VOLUME, "emptyDir": {}}),
            json!({"name": FILES_VOLUME, "emptyDir": {}}),
            json!({"name": PROPERTIES_VOLUME, kind: source}),
            json!({"name": SECRET_VOLUME, "secret": {"secretName": self.objects.secret_name()}}),
        ]
    }

    /// The mounts of the fetched files, for the init-container and for Spark's.
    pub(in crate::plan) fn mounts(&self) -> [Value; 2] {
        [
            json!({"name": JARS_VOLUME, "mountPath": self.jars}),
            json!({"name": FILES_VOLUME, "mountPath": self.files}),
        ]
    }
}
