//! spark-submit's command line, and what it comes to with its defaults.

mod application;
mod command_line;
pub mod java_options;
mod main_resource;
pub mod master;
mod options;
mod paths;
mod script;
mod settings;
#[cfg(test)]
mod tests;

pub use application::{ArgumentsError, check_amounts};
pub use command_line::{CommandLine, CommandLineError};
pub use main_resource::MainResource;
pub use options::{OPTIONS, Purpose, Spec, Switch};
pub use script::Script;
pub use settings::{Defaults, Settings};

use super::SparkConf;

/// An application to submit: what is left of the command line, its files of defaults and the environment once every
/// precedence was applied. Flags win over `--conf`, that over properties files, those over `spark-defaults.conf`.
///
/// The lists of dependencies are in `conf` (`spark.jars`, `spark.files`, `spark.archives`, `spark.submit.pyFiles`), with
/// the application's own jar as the last of `spark.jars`; each entry is a URI with a scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmitArguments {
    /// Every setting whose key begins with `spark.`, `spark.master` (normalised, `k8s://https://…`),
    /// `spark.submit.deployMode` and `spark.app.name` among them.
    pub conf: SparkConf,
    /// The application itself.
    pub resource: MainResource,
    /// `--class`, or what the jar's manifest says; for Python and R the runner that Spark has for them.
    pub main_class: String,
    /// What the application gets, as it was written.
    pub arguments: Vec<String>,
    /// `--proxy-user`.
    pub proxy_user: Option<String>,
}
