//! Kinds of objects, and objects of them that a real API server accepts.

use serde_json::{Value, json};

/// A kind of objects, as discovery names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    pub plural: &'static str,
    pub kind: &'static str,
    pub is_namespaced: bool,
}

pub const NAMESPACE: Kind =
    Kind { group: "", version: "v1", plural: "namespaces", kind: "Namespace", is_namespaced: false };
pub const POD: Kind = Kind { plural: "pods", kind: "Pod", is_namespaced: true, ..NAMESPACE };
pub const DEPLOYMENT: Kind = Kind { group: "apps", plural: "deployments", kind: "Deployment", ..POD };
pub const STATEFUL_SET: Kind = Kind { plural: "statefulsets", kind: "StatefulSet", ..DEPLOYMENT };
pub const JOB: Kind = Kind { group: "batch", plural: "jobs", kind: "Job", ..POD };
pub const SERVICE: Kind = Kind { plural: "services", kind: "Service", ..POD };
pub const CONFIG_MAP: Kind = Kind { plural: "configmaps", kind: "ConfigMap", ..POD };
pub const CLAIM: Kind = Kind { plural: "persistentvolumeclaims", kind: "PersistentVolumeClaim", ..POD };
/// A custom kind, which no API server has by itself.
pub const SPARK_APPLICATION: Kind = Kind {
    group: "sparkoperator.k8s.io",
    version: "v1beta2",
    plural: "sparkapplications",
    kind: "SparkApplication",
    is_namespaced: true,
};

impl Kind {
    pub fn group_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Built into the API server; all others are defined by a CustomResourceDefinition.
    pub fn is_built_in(&self) -> bool {
        ["", "apps", "batch"].contains(&self.group)
    }

    /// The path of all its objects, or of those in one namespace.
    pub fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let place = namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
        format!("{root}/{}/{place}{}", self.group_version(), self.plural)
    }

    /// The kind as an upload names it: built-in kinds without their group.
    pub fn as_owner(&self) -> String {
        if self.is_built_in() { self.kind.to_owned() } else { format!("{}.{}", self.kind, self.group) }
    }
}

/// An object that a test creates.
#[derive(Debug, Clone)]
pub struct Object {
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
    pub labels: Vec<(String, String)>,
}

impl Object {
    pub fn new(kind: Kind, namespace: &str, name: &str, labels: &[(&str, &str)]) -> Self {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Self { kind, namespace: namespace.to_owned(), name: name.to_owned(), labels }
    }

    pub fn pod(namespace: &str, name: &str, labels: &[(&str, &str)]) -> Self {
        Self::new(POD, namespace, name, labels)
    }

    /// The path of its collection.
    pub fn collection(&self) -> String {
        self.kind.path(self.kind.is_namespaced.then_some(&self.namespace))
    }

    pub fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }

    /// The object to send for its creation.
    pub fn manifest(&self) -> Value {
        let labels: Value =
            self.labels.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect();
        let mut object = json!({
            "apiVersion": self.kind.group_version(),
            "kind": self.kind.kind,
            "metadata": {"name": self.name, "labels": labels},
        });
        if self.kind.is_namespaced {
            object["metadata"]["namespace"] = self.namespace.as_str().into();
            object["spec"] = self.spec();
        }
        object
    }

    fn spec(&self) -> Value {
        let pod = json!({
            "containers": [{"name": "main", "image": "cloakroom.test/nothing"}],
            "restartPolicy": if self.kind == JOB { "Never" } else { "Always" },
        });
        let selected = json!({"cloakroom.test/of": self.name});
        let template = json!({"metadata": {"labels": selected}, "spec": pod});
        let selector = json!({"matchLabels": selected});
        match self.kind {
            POD => pod,
            DEPLOYMENT => json!({"selector": selector, "template": template}),
            STATEFUL_SET => json!({"selector": selector, "template": template, "serviceName": self.name}),
            JOB => json!({"template": {"spec": pod}}),
            _ => json!({"mode": "cluster"}),
        }
    }
}
