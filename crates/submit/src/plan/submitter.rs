//! The parts of the submitting machine that influence a submission.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::facts::{Facts, Unread};
use cloakroom_spark::conf::Surroundings;
use cloakroom_spark::hadoop_user::NoUser;

/// The environment of the submitting machine. Only the binary reads it.
#[derive(Clone)]
pub struct Submitter {
    /// The environment variables that are UTF-8.
    pub variables: BTreeMap<String, String>,
    /// The submitting user: `SPARK_USER`, else the short name of `HADOOP_USER_NAME`, else the operating system's user.
    pub user: Result<String, NoUser>,
    /// The system properties that a JVM would have here, by their names. They include those of JVM options (`-D`).
    pub system: BTreeMap<String, String>,
    /// The folder that relative paths start from.
    pub working_folder: PathBuf,
}

impl Submitter {
    /// The sources for references in settings, such as `${env:NAME}`.
    pub fn surroundings(&self) -> Surroundings<'_> {
        Surroundings { variables: &self.variables, system: &self.system, folder: &self.working_folder }
    }

    /// `SPARK_CONF_DIR`, else the folder `conf` of `SPARK_HOME`. The folder may be missing.
    pub fn spark_conf_folder(&self) -> Option<PathBuf> {
        let named = |name: &str| self.variables.get(name).filter(|value| !value.is_empty());
        let folder = match named("SPARK_CONF_DIR") {
            Some(folder) => PathBuf::from(folder),
            None => PathBuf::from(named("SPARK_HOME")?).join("conf"),
        };
        Some(self.working_folder.join(folder))
    }
}

/// The submitting machine as the plan sees it: its surroundings and the collected facts. Nothing is read here.
#[derive(Clone, Copy)]
pub(super) struct Machine<'a> {
    pub submitter: &'a Submitter,
    pub facts: &'a Facts,
}

impl<'a> Machine<'a> {
    /// The whole path of a path that may be relative.
    pub fn path(self, path: impl AsRef<Path>) -> PathBuf {
        self.submitter.working_folder.join(path)
    }

    /// The collected bytes of a file.
    pub fn read(self, path: impl AsRef<Path>) -> Result<&'a [u8], Unread> {
        self.facts.read(&self.path(path))
    }
}
