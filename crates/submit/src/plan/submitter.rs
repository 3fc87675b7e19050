//! The submitting machine, as far as it shows in what is submitted.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cloakroom_spark::conf::Surroundings;
use cloakroom_spark::hadoop_user::NoUser;

/// What the submitting machine brings along. Only the composition root reads the environment.
#[derive(Clone)]
pub struct Submitter {
    /// Environment variables, those that are UTF-8.
    pub variables: BTreeMap<String, String>,
    /// Who submits: `SPARK_USER`, else the short name of `HADOOP_USER_NAME`, else the operating system's user.
    pub user: Result<String, NoUser>,
    /// Properties of the system, by the names that a JVM has for them, with those that its options set.
    pub system: BTreeMap<String, String>,
    /// What relative paths are relative to.
    pub working_folder: PathBuf,
}

impl Submitter {
    /// What settings are read with.
    pub fn surroundings(&self) -> Surroundings<'_> {
        Surroundings { variables: &self.variables, system: &self.system, folder: &self.working_folder }
    }

    /// `SPARK_CONF_DIR`, else the folder `conf` of `SPARK_HOME`, which need not be there.
    pub fn spark_conf_folder(&self) -> Option<PathBuf> {
        let named = |name: &str| self.variables.get(name).filter(|value| !value.is_empty());
        let folder = match named("SPARK_CONF_DIR") {
            Some(folder) => PathBuf::from(folder),
            None => PathBuf::from(named("SPARK_HOME")?).join("conf"),
        };
        Some(self.working_folder.join(folder))
    }
}
