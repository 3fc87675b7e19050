//! Hadoop's configuration: from a folder of this machine, or from an existing config map.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::plan::error::PlanError;
use crate::plan::folder;
use crate::plan::machine::Machine;
use crate::plan::submitter::Submitter;
use cloakroom_core::text::harmless;
use cloakroom_spark::version::SparkVersion;
use cloakroom_spark::{SparkConf, keys};

pub(in crate::plan) const VARIABLE: &str = "HADOOP_CONF_DIR";

/// The source of Hadoop's configuration.
pub(in crate::plan) enum HadoopConf {
    /// The name and the text of each file of `HADOOP_CONF_DIR`, and warnings about files that are left out.
    Folder(BTreeMap<String, String>, Vec<String>),
    /// The config map that `spark.kubernetes.hadoop.configMapName` names.
    ConfigMap(String),
}

impl HadoopConf {
    /// Reads the folder, or takes the config map. Like Spark, it refuses both together. An empty variable counts as set, and
    /// names a folder without files.
    pub fn read(
        conf: &SparkConf,
        machine: Machine,
        version: SparkVersion,
    ) -> Result<Option<Self>, PlanError> {
        let Some(value) = machine.submitter.variables.get(VARIABLE) else {
            return Ok(conf.get(&keys::HADOOP_CONFIG_MAP).map(|name| Self::ConfigMap(name.to_owned())));
        };
        if conf.contains(&keys::HADOOP_CONFIG_MAP) {
            let problem =
                format!("the environment variable {VARIABLE} is set as well; only one of them may be");
            return Err(conf.refuse(&keys::HADOOP_CONFIG_MAP, problem).into());
        }
        let Some(folder) = Self::folder(machine.submitter) else {
            return Ok(Some(Self::Folder(BTreeMap::new(), vec![no_files("is empty")])));
        };
        let (files, mut warnings) = folder::regular_files(&folder, machine.facts).map_err(|error| {
            refused(&folder, format!("this folder of configuration cannot be read: {error}"))
        })?;
        if files.is_empty() {
            warnings.push(no_files(&format!("is `{}`, where no file is", harmless(value))));
        }
        let texts = files.into_iter().map(|file| {
            let bytes = machine.read(&file.path).map_err(|error| folder::unreadable(&error));
            let text = bytes.and_then(|bytes| Ok(folder::text_by(version, bytes.to_vec())?));
            let text = text.map_err(|problem| refused(&folder, format!("{}: {problem}", file.name)))?;
            Ok((file.name, text))
        });
        Ok(Some(Self::Folder(texts.collect::<Result<_, PlanError>>()?, warnings)))
    }

    /// `HADOOP_CONF_DIR`, unless it is empty. The folder may be missing. Spark ignores `YARN_CONF_DIR` here.
    pub fn folder(submitter: &Submitter) -> Option<PathBuf> {
        let value = submitter.variables.get(VARIABLE).filter(|value| !value.is_empty())?;
        Some(submitter.working_folder.join(value))
    }

    /// The files to read: all that travel.
    pub fn contents(machine: Machine) -> Vec<PathBuf> {
        let found = Self::folder(machine.submitter)
            .and_then(|folder| folder::regular_files(&folder, machine.facts).ok());
        found.into_iter().flat_map(|(files, _)| files).map(|file| file.path).collect()
    }

    /// The text of a file of the folder. It is `None` for a config map, whose content this machine does not know.
    pub fn text(&self, file: &str) -> Option<&str> {
        match self {
            Self::Folder(files, _) => files.get(file).map(String::as_str),
            Self::ConfigMap(_) => None,
        }
    }
}

fn no_files(how: &str) -> String {
    format!(
        "the environment variable {VARIABLE} {how}: the driver gets no configuration of Hadoop; unset it if none is meant"
    )
}

fn refused(folder: &Path, problem: String) -> PlanError {
    PlanError::Variable { variable: VARIABLE, value: PathBuf::from(folder), problem }
}
