//! The flags of `cloakroom stage --for`, for Spark applications that another program submits.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use cloakroom_spark::keys;

/// The program that submits the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SubmitterChoice {
    /// A stock spark-submit: prints its arguments, and writes its pod template.
    SparkSubmit,
    /// The Kubeflow Spark Operator: prints the SparkApplication of -f with the staged files in it, or only its fields
    /// without -f.
    SparkOperator,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "For a Spark application that something else submits")]
pub struct ExternalSubmitterArgs {
    /// The program that will submit the application. stage creates the Secret and the ConfigMap for the init-container,
    /// and prints what to pass on to that program
    #[arg(long = "for", value_name = "SUBMITTER", value_enum)]
    pub submitter: Option<SubmitterChoice>,

    /// File of a SparkApplication; - is stdin. stage uploads its local files, and prints it with the staged files in
    /// it, for `kubectl apply -f -`
    #[arg(long, short = 'f', value_name = "YAML", requires = "submitter", conflicts_with_all = ["labels", "kind"])]
    pub filename: Option<PathBuf>,

    /// Jars, separated by commas, as spark-submit takes them (the other lists likewise)
    #[arg(long, value_name = "JARS", requires = "submitter")]
    pub jars: Option<String>,

    /// Files for the working directories of driver and executors; FILE#NAME is staged under the other name
    #[arg(long = "files", id = "files-list", value_name = "FILES", requires = "submitter")]
    pub files: Option<String>,

    /// Archives that are unpacked in these directories; ARCHIVE#NAME is unpacked under that name
    #[arg(long, value_name = "ARCHIVES", requires = "submitter")]
    pub archives: Option<String>,

    /// .py, .zip and .egg files for the Python path
    #[arg(long, value_name = "PY_FILES", requires = "submitter")]
    pub py_files: Option<String>,

    /// Image of the init-container: the one with this program [default: what the server advertises]
    #[arg(long, value_name = "IMAGE", requires = "submitter")]
    pub fetch_image: Option<String>,

    /// A setting of staging, as `cloakroom submit` takes it, or your own pod template; repeatable
    #[arg(long = "conf", value_name = "KEY=VALUE", value_parser = setting, requires = "submitter")]
    pub settings: Vec<(String, String)>,

    /// Folder for the pod templates; each run writes files with new names
    #[arg(long, value_name = "DIR", default_value = ".", requires = "submitter")]
    pub templates_to: PathBuf,

    /// Create no objects, and ask no cluster about them. Print the Secret and the ConfigMap for `kubectl apply -f -`, and on stderr
    /// what to pass on to the submitter. The files are staged all the same, because the Secret holds their tickets
    #[arg(long, requires = "submitter")]
    pub dry_run: bool,
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if key.trim().starts_with(keys::PREFIX) => {
            Ok((key.trim().to_owned(), value.to_owned()))
        }
        _ => Err("it must be KEY=VALUE, and keys begin with “spark.”".to_owned()),
    }
}
