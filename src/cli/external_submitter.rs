//! The flags of `cloakroom stage --for`, for Spark applications that another program submits.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
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
    /// kubectl: prints the Pod or Job of -f with the files in it.
    Pods,
}

/// The program that submits a Spark application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SparkSubmitter {
    SparkSubmit,
    SparkOperator,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "For what something else submits: a Spark application, a Pod or a Job")]
pub struct ExternalSubmitterArgs {
    /// The program that will submit the application. stage creates the Secret and the ConfigMap for the init-container,
    /// and prints what to pass on to that program
    #[arg(long = "for", value_name = "SUBMITTER", value_enum)]
    pub submitter: Option<SubmitterChoice>,

    /// File of a SparkApplication, a Pod or a Job; - is stdin. stage uploads the application's local files, or the named
    /// ones, and prints it with the staged files in it, for `kubectl apply -f -`
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
    #[arg(long, value_name = "IMAGE", value_parser = NonEmptyStringValueParser::new(), requires = "submitter")]
    pub fetch_image: Option<String>,

    /// A setting of staging, as `cloakroom submit` takes it, or your own pod template; repeatable
    #[arg(long = "conf", value_name = "KEY=VALUE", value_parser = setting, requires = "submitter")]
    pub settings: Vec<(String, String)>,

    /// Folder for the pod templates; each run writes files with new names [default: .]
    #[arg(long, value_name = "DIR", requires = "submitter")]
    pub templates_to: Option<PathBuf>,

    /// Create no objects, and ask no cluster about them. Print the Secret and the ConfigMap for `kubectl apply -f -`, and on stderr
    /// what to pass on to the submitter. The files are staged all the same, because the Secret holds their tickets
    #[arg(long, requires = "submitter")]
    pub dry_run: bool,
}

impl ExternalSubmitterArgs {
    /// The first flag that is given for a Spark application.
    pub fn first_of_spark(&self) -> Option<&'static str> {
        let given = [
            ("--jars", self.jars.is_some()),
            ("--files", self.files.is_some()),
            ("--archives", self.archives.is_some()),
            ("--py-files", self.py_files.is_some()),
            ("--conf", !self.settings.is_empty()),
            ("--templates-to", self.templates_to.is_some()),
            ("--dry-run", self.dry_run),
        ];
        given.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if key.trim().starts_with(keys::PREFIX) => {
            Ok((key.trim().to_owned(), value.to_owned()))
        }
        _ => Err("it must be KEY=VALUE, and keys begin with “spark.”".to_owned()),
    }
}
