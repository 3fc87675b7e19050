//! `NAMESPACE:DRIVER-POD`, as `--kill` and `--status` take it.

use std::fmt;

/// One driver pod, or with a `*` at its end all whose names begin so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionId {
    text: String,
    namespace: String,
    name: String,
}

/// Text that is no submission id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the submission id “{0}” names no driver pod: it is NAMESPACE:POD, or NAMESPACE:PREFIX* for several")]
pub struct SubmissionIdError(String);

impl SubmissionId {
    /// Reads an id. Where it names no namespace it is in `default_namespace`; spark-submit fails there.
    pub fn parse(text: &str, default_namespace: &str) -> Result<Self, SubmissionIdError> {
        let (namespace, name) = text.split_once(':').unwrap_or((default_namespace, text));
        if namespace.is_empty() || name.is_empty() {
            return Err(SubmissionIdError(text.to_owned()));
        }
        Ok(Self { text: text.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// Where the driver is.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name of its pod, with the `*` if there is one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it stands for several: only a `*` at the end counts.
    pub fn is_glob(&self) -> bool {
        self.name.ends_with('*')
    }

    /// Whether a pod of this name is one of them.
    pub fn matches(&self, name: &str) -> bool {
        self.name.strip_suffix('*').map_or(name == self.name, |prefix| name.starts_with(prefix))
    }
}

/// As it was given.
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
