//! spark-submit's command line, and its combination with the defaults.

mod application;
mod command_line;
pub mod java_options;
pub mod master;
mod options;
mod paths;
mod script;
mod settings;
#[cfg(test)]
mod tests;

pub use application::{ArgumentsError, check_amounts};
pub use command_line::{CommandLine, CommandLineError};
pub use options::{OPTIONS, Purpose, Spec, Switch};
pub use script::Script;
pub use settings::{CA_VARIABLE, Defaults, Settings};

use super::SparkConf;

/// An application to submit: the result of the command line, the files of defaults and the environment, after every
/// precedence was applied. Flags win over `--conf`, then come properties files, then `spark-defaults.conf`.
///
/// The lists of dependencies are in `conf` (`spark.jars`, `spark.files`, `spark.archives`, `spark.submit.pyFiles`). The
/// application's own jar is the last entry of `spark.jars`. Each entry is a URI with a scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmitArguments {
    /// Every setting whose key begins with `spark.`. Among them are `spark.master` (normalised, `k8s://https://…`),
    /// `spark.submit.deployMode` and `spark.app.name`.
    pub conf: SparkConf,
    /// The application itself.
    pub resource: MainResource,
    /// `--class`, or the class in the jar's manifest. For Python and R it is Spark's runner for them.
    pub main_class: String,
    /// The application's arguments, as they were written.
    pub arguments: Vec<String>,
    pub proxy_user: Option<String>,
}

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
    fn by_name(name: &str, uri: String) -> Self {
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
