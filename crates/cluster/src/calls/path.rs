//! The path of an object of any kind in the API.

use std::fmt;

use kube::core::{ApiResource, GroupVersionKind};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// The characters to encode: all but the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Encodes a part of a path or of a query.
pub fn encoded(part: &str) -> String {
    utf8_percent_encode(part, RESERVED).to_string()
}

/// The path of one object, and its names for messages and roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPath {
    group: String,
    version: String,
    kind: String,
    plural: String,
    namespace: String,
    name: String,
}

/// An object without a field that its path needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an object has no {missing}")]
pub struct PathError {
    /// The name of the field.
    missing: &'static str,
}

impl ObjectPath {
    /// The path of `object` in `namespace`.
    pub fn new(object: &Value, namespace: &str) -> Result<Self, PathError> {
        let text = |value: &Value, missing| value.as_str().map(str::to_owned).ok_or(PathError { missing });
        let api_version = text(&object["apiVersion"], "apiVersion")?;
        let kind = text(&object["kind"], "kind")?;
        let name = text(&object["metadata"]["name"], "metadata.name")?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let plural = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind)).plural;
        let (group, version) = (group.to_owned(), version.to_owned());
        Ok(Self { group, version, kind, plural, namespace: namespace.to_owned(), name })
    }

    /// The kind in the form of kubectl and of roles: `networkpolicies.networking.k8s.io`.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The object in a sentence: `config map x`.
    pub fn called(&self) -> String {
        let mut words = String::new();
        for (index, letter) in self.kind.char_indices() {
            if letter.is_ascii_uppercase() && index > 0 {
                words.push(' ');
            }
            words.push(letter.to_ascii_lowercase());
        }
        format!("{words} {}", self.name)
    }
}

/// The path in a URL.
impl fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_str() {
            "" => write!(f, "/api/{}", self.version)?,
            group => write!(f, "/apis/{group}/{}", self.version)?,
        }
        write!(f, "/namespaces/{}/{}/{}", encoded(&self.namespace), self.plural, encoded(&self.name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_that_spark_makes_has_its_path() {
        for (api_version, kind, path, resource, called) in [
            ("v1", "Service", "/api/v1/namespaces/a/services/n", "services", "service n"),
            ("v1", "ConfigMap", "/api/v1/namespaces/a/configmaps/n", "configmaps", "config map n"),
            ("v1", "Secret", "/api/v1/namespaces/a/secrets/n", "secrets", "secret n"),
            (
                "v1",
                "PersistentVolumeClaim",
                "/api/v1/namespaces/a/persistentvolumeclaims/n",
                "persistentvolumeclaims",
                "persistent volume claim n",
            ),
            (
                "networking.k8s.io/v1",
                "NetworkPolicy",
                "/apis/networking.k8s.io/v1/namespaces/a/networkpolicies/n",
                "networkpolicies.networking.k8s.io",
                "network policy n",
            ),
            (
                "scheduling.volcano.sh/v1beta1",
                "PodGroup",
                "/apis/scheduling.volcano.sh/v1beta1/namespaces/a/podgroups/n",
                "podgroups.scheduling.volcano.sh",
                "pod group n",
            ),
        ] {
            let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "n"}});
            let found = ObjectPath::new(&object, "a").unwrap();
            assert_eq!((found.to_string().as_str(), found.resource().as_str()), (path, resource));
            assert_eq!(found.called(), called);
        }
    }

    #[test]
    fn names_stay_inside_of_their_path() {
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "../pods?x"}});
        let path = ObjectPath::new(&object, "a/b").unwrap().to_string();
        assert_eq!(path, "/api/v1/namespaces/a%2Fb/secrets/..%2Fpods%3Fx");
    }

    #[test]
    fn an_object_without_a_name_has_no_path() {
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {}});
        assert_eq!(ObjectPath::new(&object, "a").unwrap_err().to_string(), "an object has no metadata.name");
    }
}
