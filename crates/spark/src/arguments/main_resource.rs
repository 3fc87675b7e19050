//! The application itself, with its language.

/// The primary resource of an application: a URI with a scheme, or one of Spark's words such as `spark-internal`. The
/// language follows from the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MainResource {
    /// A jar, or one of Spark's words.
    Java(String),
    /// A Python script.
    Python(String),
    /// An R script.
    R(String),
}

impl MainResource {
    /// Chooses the language by the extension of the name, as Spark does.
    #[expect(clippy::case_sensitive_file_extension_comparisons, reason = "`x.PY` is a jar to Spark")]
    pub(super) fn by_name(name: &str, uri: String) -> Self {
        if name.ends_with(".py") {
            Self::Python(uri)
        } else if name.ends_with(".R") || name.ends_with(".r") {
            Self::R(uri)
        } else {
            Self::Java(uri)
        }
    }

    /// The URI or the word.
    pub fn uri(&self) -> &str {
        match self {
            Self::Java(uri) | Self::Python(uri) | Self::R(uri) => uri,
        }
    }

    /// The value of `spark.kubernetes.resource.type`: `java`, `python` or `r`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Java(_) => "java",
            Self::Python(_) => "python",
            Self::R(_) => "r",
        }
    }
}
