//! The driver between two features: pod, properties, objects and warnings so far.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The part of the plan that features change (Spark's `SparkPod` and `KubernetesDriverSpec`).
#[derive(Clone, Default, PartialEq)]
pub(super) struct DriverSpec {
    /// The pod's fields beside metadata and spec: `apiVersion`, `kind`, and what a template adds.
    pub pod: Map<String, Value>,
    pub metadata: Map<String, Value>,
    /// The pod's spec, without the Spark container.
    pub spec: Map<String, Value>,
    /// The Spark container. [`Self::into_pod`] puts it back into `spec`.
    pub container: Map<String, Value>,
    /// Objects that are created before the pod.
    pub before_pod: Vec<Value>,
    /// Objects that the pod owns, in the order of their creation.
    pub after_pod: Vec<Value>,
    /// The content of `spark.properties`, by key.
    pub properties: BTreeMap<String, String>,
    /// Warnings for the user, in the order in which they are printed.
    pub warnings: Vec<String>,
}

impl DriverSpec {
    /// Adds a volume to the pod.
    pub fn add_volume(&mut self, volume: Value) {
        append(&mut self.spec, "volumes", [volume]);
    }

    /// Mounts a volume at `path` in the container, without options.
    pub fn mount(&mut self, volume: &str, path: &str) {
        self.add_mount(json!({"name": volume, "mountPath": path}));
    }

    /// Adds a whole `volumeMount` to the container.
    pub fn add_mount(&mut self, mount: Value) {
        append(&mut self.container, "volumeMounts", [mount]);
    }

    /// Adds an environment variable behind those that are there. Kubernetes takes the last one of a name, so this one
    /// wins.
    pub fn add_variable(&mut self, name: &str, value: &str) {
        self.add_variable_from(json!({"name": name, "value": value}));
    }

    /// Adds a whole `EnvVar`, for a value from a field or a secret.
    pub fn add_variable_from(&mut self, variable: Value) {
        append(&mut self.container, "env", [variable]);
    }

    /// Sets a property of the driver, and replaces the user's value.
    pub fn set_property(&mut self, key: &str, value: impl Into<String>) {
        self.properties.insert(key.to_owned(), value.into());
    }

    /// The whole pod. Spark puts its container behind those of the template, and so does this.
    pub fn into_pod(self) -> Value {
        let mut spec = self.spec;
        append(&mut spec, "containers", [Value::Object(self.container)]);
        let mut pod = self.pod;
        pod.insert("metadata".to_owned(), Value::Object(self.metadata));
        pod.insert("spec".to_owned(), Value::Object(spec));
        Value::Object(pod)
    }
}

/// Sets entries of the map at `key`. A missing map is created, unless there are no entries: Spark sends no empty maps.
pub(super) fn merge<K: Into<String>>(
    parent: &mut Map<String, Value>,
    key: &str,
    entries: impl IntoIterator<Item = (K, Value)>,
) {
    let mut map = taken_map(parent, key);
    map.extend(entries.into_iter().map(|(key, value)| (key.into(), value)));
    put_back(parent, key, Value::Object(map));
}

/// Sets entries of a map inside the map at `key`.
pub(super) fn merge_inside<K: Into<String>>(
    parent: &mut Map<String, Value>,
    key: &str,
    inner: &str,
    entries: impl IntoIterator<Item = (K, Value)>,
) {
    let mut map = taken_map(parent, key);
    merge(&mut map, inner, entries);
    put_back(parent, key, Value::Object(map));
}

/// Adds to the end of the list at `key`. A missing list is created, unless there are no items: Spark sends no empty
/// lists.
pub(super) fn append(parent: &mut Map<String, Value>, key: &str, items: impl IntoIterator<Item = Value>) {
    let mut list = match parent.remove(key) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    list.extend(items);
    put_back(parent, key, Value::Array(list));
}

fn taken_map(parent: &mut Map<String, Value>, key: &str) -> Map<String, Value> {
    match parent.remove(key) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

fn put_back(parent: &mut Map<String, Value>, key: &str, value: Value) {
    let is_empty = match &value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    if !is_empty {
        parent.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_stays_and_what_is_added_comes_behind_it() {
        let container = Map::from_iter([("env".to_owned(), json!([{"name": "A", "value": "1"}]))]);
        let mut spec = DriverSpec { container, ..DriverSpec::default() };
        spec.add_variable("A", "2");
        assert_eq!(spec.container["env"], json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]));
        merge(&mut spec.metadata, "labels", [("a", json!("1"))]);
        merge(&mut spec.metadata, "labels", [("a", json!("2")), ("b", json!("3"))]);
        assert_eq!(spec.metadata["labels"], json!({"a": "2", "b": "3"}));
    }

    #[test]
    fn nothing_is_made_for_nothing() {
        let mut parent = Map::new();
        append(&mut parent, "list", []);
        merge::<String>(&mut parent, "map", []);
        merge_inside::<String>(&mut parent, "map", "inner", []);
        assert!(parent.is_empty());
    }

    #[test]
    fn the_spark_container_is_the_last_one() {
        let mut spec = DriverSpec::default();
        append(&mut spec.spec, "containers", [json!({"name": "sidecar"})]);
        spec.container.insert("name".to_owned(), json!("spark"));
        assert_eq!(spec.into_pod()["spec"]["containers"], json!([{"name": "sidecar"}, {"name": "spark"}]));
    }
}
