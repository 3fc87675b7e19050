//! Hadoop's configuration, from a folder of this machine or a config map that is there (`HadoopConfDriverFeatureStep`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::spark::version::SparkVersion;
use crate::spark::{SparkConf, keys};
use crate::submit::plan::application::Application;
use crate::submit::plan::error::PlanError;
use crate::submit::plan::folder;
use crate::submit::plan::spec::DriverSpec;
use crate::submit::plan::submitter::Submitter;

pub(super) const VARIABLE: &str = "HADOOP_CONF_DIR";
const VOLUME: &str = "hadoop-properties";
const PATH: &str = "/opt/hadoop/conf";

/// Where Hadoop's configuration comes from.
pub(in crate::submit::plan) enum HadoopConf {
    /// Name and text of each file of `HADOOP_CONF_DIR`, and what was left out.
    Folder(BTreeMap<String, String>, Vec<String>),
    /// The config map that `spark.kubernetes.hadoop.configMapName` names.
    ConfigMap(String),
}

impl HadoopConf {
    /// Reads the folder, if there is to be one.
    pub fn read(
        conf: &SparkConf,
        submitter: &Submitter,
        version: SparkVersion,
    ) -> Result<Option<Self>, PlanError> {
        let Some(folder) = submitter.variables.get(VARIABLE) else {
            return Ok(conf.get(&keys::HADOOP_CONFIG_MAP).map(|name| Self::ConfigMap(name.to_owned())));
        };
        if conf.contains(&keys::HADOOP_CONFIG_MAP) {
            let problem =
                format!("the environment variable {VARIABLE} is set as well; only one of them may be");
            return Err(conf.refuse(&keys::HADOOP_CONFIG_MAP, problem).into());
        }
        let folder = submitter.working_folder.join(folder);
        if !folder.is_dir() {
            return Ok(Some(Self::Folder(BTreeMap::new(), Vec::new())));
        }
        let (files, warnings) = folder::regular_files(&folder).map_err(|error| {
            refused(&folder, format!("this folder of configuration cannot be read: {error}"))
        })?;
        let texts = files.into_iter().map(|file| {
            let bytes = std::fs::read(&file.path).map_err(|error| folder::unreadable(&error));
            let text = bytes.and_then(|bytes| Ok(folder::text_by(version, bytes)?));
            let text = text.map_err(|problem| refused(&folder, format!("{}: {problem}", file.name)))?;
            Ok((file.name, text))
        });
        Ok(Some(Self::Folder(texts.collect::<Result<_, PlanError>>()?, warnings)))
    }

    /// The text of a file, where it is known.
    pub fn text(&self, file: &str) -> Option<&str> {
        match self {
            Self::Folder(files, _) => files.get(file).map(String::as_str),
            Self::ConfigMap(_) => None,
        }
    }
}

fn refused(folder: &Path, problem: String) -> PlanError {
    PlanError::Variable { variable: VARIABLE, value: PathBuf::from(folder), problem }
}

#[expect(clippy::unnecessary_wraps, reason = "a step like all others")]
pub(super) fn step(application: &Application, mut spec: DriverSpec) -> Result<DriverSpec, PlanError> {
    let (name, source) = match &application.hadoop {
        None => return Ok(spec),
        Some(HadoopConf::ConfigMap(name)) => (name.clone(), json!({"name": name})),
        Some(HadoopConf::Folder(files, warnings)) => {
            let name = application.names.of("hadoop-config");
            spec.warnings.extend(warnings.iter().cloned());
            spec.after_pod.push(config_map(&name, files));
            let source = source(&name, files);
            (name, source)
        }
    };
    spec.add_volume(json!({"name": VOLUME, "configMap": source}));
    spec.mount(VOLUME, PATH);
    spec.add_variable(VARIABLE, PATH);
    spec.set_property(&keys::EXECUTOR_HADOOP_CONFIG_MAP, name);
    Ok(spec)
}

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
