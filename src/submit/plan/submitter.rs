//! The submitting machine, as far as it shows in what is submitted.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// What the submitting machine brings along. Only the composition root reads the environment.
#[derive(Clone)]
pub struct Submitter {
    /// Environment variables, those that are UTF-8.
    pub variables: BTreeMap<String, String>,
    /// Who submits: `SPARK_USER`, else `HADOOP_USER_NAME`, else the operating system's user.
    pub user: String,
    /// What relative paths are relative to.
    pub working_folder: PathBuf,
}
