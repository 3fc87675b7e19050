//! The flags of `cloakroom stage --for`: for Spark applications that something else submits.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use cloakroom_spark::keys;

/// What submits the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SubmitterChoice {
    /// A stock spark-submit: prints its arguments, writes its pod template.
    SparkSubmit,
    /// The Kubeflow Spark Operator: prints the SparkApplication of -f with what was staged in it, or its fields where --name alone
    /// names it.
    SparkOperator,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "For a Spark application that something else submits")]
pub struct ExternalSubmitterArgs {
    /// Stage for an application that this will submit, make the Secret and the ConfigMap that its init-container reads, and
    /// print what it has to be given
    #[arg(long = "for", value_name = "SUBMITTER", value_enum)]
    pub submitter: Option<SubmitterChoice>,

    /// File of a SparkApplication; - is stdin. Its files of this machine are staged, and it is printed with what was staged in it,
    /// for `kubectl apply -f -`
    #[arg(long, short = 'f', value_name = "YAML", requires = "submitter", conflicts_with_all = ["labels", "kind"])]
    pub filename: Option<PathBuf>,

    /// Jars, separated by commas, as spark-submit takes them (so are the other lists)
    #[arg(long, value_name = "JARS", requires = "submitter")]
    pub jars: Option<String>,

    /// Files for the working directories of driver and executors; FILE#NAME stages it under another name
    #[arg(long = "files", id = "files-list", value_name = "FILES", requires = "submitter")]
    pub files: Option<String>,

    /// Archives that are unpacked there; ARCHIVE#NAME into a folder of that name
    #[arg(long, value_name = "ARCHIVES", requires = "submitter")]
    pub archives: Option<String>,

    /// .py, .zip and .egg files for the Python path
    #[arg(long, value_name = "PY_FILES", requires = "submitter")]
    pub py_files: Option<String>,

    /// Image of the init-container: this program's [default: what the server advertises]
    #[arg(long, value_name = "IMAGE", requires = "submitter")]
    pub fetch_image: Option<String>,

    /// A setting of staging, as `cloakroom submit` takes it, such as a pod template of yours; repeatable
    #[arg(long = "conf", value_name = "KEY=VALUE", value_parser = setting, requires = "submitter")]
    pub settings: Vec<(String, String)>,

    /// API server, such as `k8s://https://HOST:6443` [default: the current context of the kubeconfig]
    #[arg(long, value_name = "URL", requires = "submitter")]
    pub master: Option<String>,

    /// Folder that the pod templates are written to
    #[arg(long, value_name = "DIR", default_value = ".", requires = "submitter")]
    pub templates_to: PathBuf,

    /// Ask nothing of the cluster: print the Secret and the ConfigMap, for `kubectl apply -f -`, and what is to be given on
    /// stderr. The files are staged all the same: the Secret is made of their tickets
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
