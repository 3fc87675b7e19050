//! The application itself, by its language.

/// The primary resource of an application: a URI with a scheme, or one of Spark's words such as `spark-internal`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MainResource {
    /// A jar.
    Java(String),
    /// A Python script.
    Python(String),
    /// An R script.
    R(String),
}

impl MainResource {
    /// By the end of the name, as Spark goes by it.
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

    /// The URI.
    pub fn uri(&self) -> &str {
        match self {
            Self::Java(uri) | Self::Python(uri) | Self::R(uri) => uri,
        }
    }

    /// What `spark.kubernetes.resource.type` says: `java`, `python` or `r`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Java(_) => "java",
            Self::Python(_) => "python",
            Self::R(_) => "r",
        }
    }
}
