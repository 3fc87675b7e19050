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
