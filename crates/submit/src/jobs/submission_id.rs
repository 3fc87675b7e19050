//! Submission ids, the value of `--kill` and `--status`: `NAMESPACE:DRIVER-POD`.

use std::fmt;

use cloakroom_core::resource::{is_dns_label, is_dns_subdomain};

/// One driver pod. With a `*` at its end: all driver pods with this prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionId {
    text: String,
    namespace: String,
    name: String,
}

/// A text that is no submission id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the submission id “{id}” names no driver pod: {}", advice(.id))]
pub struct SubmissionIdError {
    id: String,
}

/// Who writes `NAMESPACE/POD`, as kubectl does for other kinds, means that pod.
fn advice(id: &str) -> String {
    match id.split_once('/').map(|(namespace, pod)| format!("{namespace}:{pod}")) {
        Some(meant) if SubmissionId::parse(&meant, "").is_ok() => format!("write {meant}"),
        _ => "it is NAMESPACE:POD, or NAMESPACE:PREFIX* for several".to_owned(),
    }
}

impl SubmissionId {
    /// Reads an id. Without a namespace, it is in `default_namespace`; spark-submit fails then. Names that no namespace and
    /// no pod can have are refused, because a request for them would be about something else.
    pub fn parse(text: &str, default_namespace: &str) -> Result<Self, SubmissionIdError> {
        let (namespace, name) = text.split_once(':').unwrap_or((default_namespace, text));
        let is_prefix =
            |prefix: &str| prefix.is_empty() || is_dns_subdomain(prefix.trim_end_matches(['-', '.']));
        let is_pod = name.strip_suffix('*').map_or_else(|| is_dns_subdomain(name), is_prefix);
        if !is_dns_label(namespace) || !is_pod {
            return Err(SubmissionIdError { id: text.to_owned() });
        }
        Ok(Self { text: text.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// The driver's namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name of the driver's pod, with the `*` if the id has one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the id is a prefix. Only a `*` at the end counts, as in Spark.
    pub fn is_glob(&self) -> bool {
        self.name.ends_with('*')
    }

    /// Whether the id stands for a pod of this name.
    pub fn matches(&self, name: &str) -> bool {
        self.name.strip_suffix('*').map_or(name == self.name, |prefix| name.starts_with(prefix))
    }
}

/// The id as it was given.
impl fmt::Display for SubmissionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_split_at_its_first_colon() {
        for (text, namespace, name, is_glob) in [
            ("ns1:spark-pi-driver", "ns1", "spark-pi-driver", false),
            ("spark-pi-driver", "spark", "spark-pi-driver", false),
            ("ns1:spark-pi*", "ns1", "spark-pi*", true),
            ("*", "spark", "*", true),
            ("ns1:spark-*", "ns1", "spark-*", true),
        ] {
            let id = SubmissionId::parse(text, "spark").unwrap();
            assert_eq!((id.namespace(), id.name(), id.is_glob()), (namespace, name, is_glob), "{text}");
            assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn an_id_without_a_pod_is_refused() {
        for text in ["", "ns1:", ":pod", "a:b:c", "ns1:a*b", "ns1:Pod", "ns_1:pod", "ns1/../x:pod", "a/b/c"] {
            let said = SubmissionId::parse(text, "spark").unwrap_err().to_string();
            assert!(said.contains("NAMESPACE:POD"), "{said}");
        }
    }

    #[test]
    fn a_slash_in_place_of_the_colon_is_refused_with_the_id_that_is_meant() {
        for (text, meant) in
            [("ns1/spark-pi-driver", "write ns1:spark-pi-driver"), ("n/spark-*", "write n:spark-*")]
        {
            let said = SubmissionId::parse(text, "spark").unwrap_err().to_string();
            assert!(said.ends_with(meant), "{said}");
        }
    }

    #[test]
    fn only_a_star_at_the_end_is_more_than_a_name() {
        let matches = |text: &str, name: &str| SubmissionId::parse(text, "n").unwrap().matches(name);
        assert!(matches("n:spark-*", "spark-pi") && matches("n:*", "anything"));
        assert!(!matches("n:spark-*", "other") && !matches("n:spark", "spark-pi"));
    }
}
