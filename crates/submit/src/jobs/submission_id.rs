//! Submission ids, the value of `--kill` and `--status`: `NAMESPACE:DRIVER-POD`.

use std::fmt;

/// One driver pod. With a `*` at its end: all driver pods with this prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionId {
    text: String,
    namespace: String,
    name: String,
}

/// A text that is no submission id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the submission id “{0}” names no driver pod: it is NAMESPACE:POD, or NAMESPACE:PREFIX* for several")]
pub struct SubmissionIdError(String);

impl SubmissionId {
    /// Reads an id. Without a namespace, it is in `default_namespace`; spark-submit fails then.
    pub fn parse(text: &str, default_namespace: &str) -> Result<Self, SubmissionIdError> {
        let (namespace, name) = text.split_once(':').unwrap_or((default_namespace, text));
        if namespace.is_empty() || name.is_empty() {
            return Err(SubmissionIdError(text.to_owned()));
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
            ("a:b:c", "a", "b:c", false),
            ("spark-pi-driver", "spark", "spark-pi-driver", false),
            ("ns1:spark-pi*", "ns1", "spark-pi*", true),
            ("*", "spark", "*", true),
            ("ns1:a*b", "ns1", "a*b", false),
        ] {
            let id = SubmissionId::parse(text, "spark").unwrap();
            assert_eq!((id.namespace(), id.name(), id.is_glob()), (namespace, name, is_glob), "{text}");
            assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn an_id_without_a_pod_is_refused() {
        for text in ["", "ns1:", ":pod"] {
            let said = SubmissionId::parse(text, "spark").unwrap_err().to_string();
            assert!(said.contains("NAMESPACE:POD"), "{said}");
        }
    }

    #[test]
    fn only_a_star_at_the_end_is_more_than_a_name() {
        let matches = |text: &str, name: &str| SubmissionId::parse(text, "n").unwrap().matches(name);
        assert!(matches("n:spark-*", "spark-pi") && matches("n:*", "anything") && matches("n:a*b", "a*b"));
        assert!(
            !matches("n:spark-*", "other") && !matches("n:spark", "spark-pi") && !matches("n:a*b", "axb")
        );
    }
}
