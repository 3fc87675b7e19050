//! The command line of `cloakroom submit`: spark-submit's, which the library reads itself.

use std::ffi::OsString;

use clap::Args;

/// Submit a Spark application to Kubernetes, as spark-submit does, without a JVM
#[derive(Debug, Clone, Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct SubmitArgs {
    /// spark-submit's options, the application, its arguments; see `cloakroom submit --help`
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}
