//! The objects of one namespace that its pods refer to.

use serde_json::{Value, json};

use crate::cluster::{Api, text};

/// Reads, and asks for tokens, in one namespace.
pub struct Objects {
    api: Api,
    namespace: String,
}

impl Objects {
    pub fn new(api: Api, namespace: String) -> Self {
        Self { api, namespace }
    }

    /// The object; `None` if it does not exist.
    pub async fn get(&self, plural: &str, name: &str) -> Option<Value> {
        let (status, object) = self.api.get(&self.path(plural, name)).await;
        (status == 200).then_some(object)
    }

    /// A token of a service account that is bound to a pod.
    pub async fn token(&self, account: &str, pod: &Value) -> Option<String> {
        let path = format!("{}/token", self.path("serviceaccounts", account));
        let metadata = &pod["metadata"];
        let bound =
            json!({"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]});
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3607, "boundObjectRef": bound},
        });
        let (status, answer) = self.api.post(&path, &request).await;
        (status == 201).then(|| text(&answer["status"]["token"]))
    }

    fn path(&self, plural: &str, name: &str) -> String {
        format!("/api/v1/namespaces/{}/{plural}/{name}", self.namespace)
    }
}

/// The elements of a list that may be missing.
pub fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
