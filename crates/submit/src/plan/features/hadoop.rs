//! Hadoop's configuration for the driver, in a config map (`HadoopConfDriverFeatureStep`): from a folder of this machine, or
//! from a config map that exists.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Context, Feature, Reader};
use crate::plan::error::PlanError;
use crate::plan::folder::{regular_files as files_of, text_by, unreadable};
use crate::plan::spec::DriverSpec;
use crate::plan::submitter::{Machine, Submitter};
use cloakroom_core::text::harmless;
use cloakroom_spark::keys;

const VARIABLE: &str = "HADOOP_CONF_DIR";

const VOLUME: &str = "hadoop-properties";
const PATH: &str = "/opt/hadoop/conf";

/// The source of Hadoop's configuration.
pub(super) enum HadoopConf {
    /// The name and the text of each file of `HADOOP_CONF_DIR`, and warnings about files that are left out.
    Folder(BTreeMap<String, String>, Vec<String>),
    /// The config map that `spark.kubernetes.hadoop.configMapName` names.
    ConfigMap(String),
}

impl HadoopConf {
    /// Reads the folder, or takes the config map. Like Spark, it refuses both together. An empty variable counts as set, and
    /// names a folder without files.
    pub fn read(from: &Reader) -> Result<Option<Self>, PlanError> {
        let Reader { conf, machine, version, .. } = *from;
        let Some(value) = machine.submitter.variables.get(VARIABLE) else {
            return Ok(conf.get(&keys::HADOOP_CONFIG_MAP).map(|name| Self::ConfigMap(name.to_owned())));
        };
        if conf.contains(&keys::HADOOP_CONFIG_MAP) {
            let problem =
                format!("the environment variable {VARIABLE} is set as well; only one of them may be");
            return Err(conf.refuse(&keys::HADOOP_CONFIG_MAP, problem).into());
        }
        let Some(folder) = folder(machine.submitter) else {
            return Ok(Some(Self::Folder(BTreeMap::new(), vec![no_files("is empty")])));
        };
        let (files, mut warnings) = files_of(&folder, machine.facts).map_err(|error| {
            refused(&folder, format!("this folder of configuration cannot be read: {error}"))
        })?;
        if files.is_empty() {
            warnings.push(no_files(&format!("is `{}`, where no file is", harmless(value))));
        }
        let texts = files.into_iter().map(|file| {
            let bytes = machine.read(&file.path).map_err(|error| unreadable(&error));
            let text = bytes.and_then(|bytes| Ok(text_by(version, bytes.to_vec())?));
            let text = text.map_err(|problem| refused(&folder, format!("{}: {problem}", file.name)))?;
            Ok((file.name, text))
        });
        Ok(Some(Self::Folder(texts.collect::<Result<_, PlanError>>()?, warnings)))
    }

    /// The text of a file of the folder. It is `None` for a config map, whose content this machine does not know.
    pub fn text(&self, file: &str) -> Option<&str> {
        match self {
            Self::Folder(files, _) => files.get(file).map(String::as_str),
            Self::ConfigMap(_) => None,
        }
    }
}

impl Feature for HadoopConf {
    fn add(self: Box<Self>, context: &Context, spec: &mut DriverSpec) -> Result<(), PlanError> {
        let (name, source) = match *self {
            Self::ConfigMap(name) => {
                let source = json!({"name": name});
                (name, source)
            }
            Self::Folder(files, warnings) => {
                let name = context.names.of("hadoop-config");
                spec.warnings.extend(warnings);
                spec.after_pod.push(config_map(&name, &files));
                let source = source(&name, &files);
                (name, source)
            }
        };
        spec.add_volume(json!({"name": VOLUME, "configMap": source}));
        spec.mount(VOLUME, PATH);
        spec.add_variable(VARIABLE, PATH);
        // The driver mounts the same config map in its executors.
        spec.set_property(&keys::EXECUTOR_HADOOP_CONFIG_MAP, name);
        Ok(())
    }
}

/// `HADOOP_CONF_DIR`, unless it is empty. The folder may be missing. Spark ignores `YARN_CONF_DIR` here.
pub(in crate::plan) fn folder(submitter: &Submitter) -> Option<PathBuf> {
    let value = submitter.variables.get(VARIABLE).filter(|value| !value.is_empty())?;
    Some(submitter.working_folder.join(value))
}

/// The files to read: all that travel.
pub(in crate::plan) fn contents(machine: Machine) -> Vec<PathBuf> {
    let found = folder(machine.submitter).and_then(|folder| files_of(&folder, machine.facts).ok());
    found.into_iter().flat_map(|(files, _)| files).map(|file| file.path).collect()
}

/// A config map without `data` if the folder is empty or missing, as Spark sends it.
fn config_map(name: &str, files: &BTreeMap<String, String>) -> Value {
    let mut map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "immutable": true,
    });
    if !files.is_empty() {
        map["data"] = json!(files);
    }
    map
}

fn source(name: &str, files: &BTreeMap<String, String>) -> Value {
    let items: Vec<Value> = files.keys().map(|file| json!({"key": file, "path": file})).collect();
    if items.is_empty() { json!({"name": name}) } else { json!({"name": name, "items": items}) }
}

fn no_files(how: &str) -> String {
    format!(
        "the environment variable {VARIABLE} {how}: the driver gets no configuration of Hadoop; unset it if none is meant"
    )
}

fn refused(folder: &Path, problem: String) -> PlanError {
    PlanError::Variable { variable: VARIABLE, value: PathBuf::from(folder), problem }
}
