//! Settings that do nothing here, and that spark-submit refuses all the same where they cannot be right.

use super::folder;
use super::submitter::Submitter;
use crate::spark::keys::{IVY_SETTINGS, PYTHON_VERSION};
use crate::spark::version::SparkVersion;
use crate::spark::{DependencyUri, MainResource, SettingError, SparkConf};

pub(super) fn check(
    conf: &SparkConf,
    resource: &MainResource,
    submitter: &Submitter,
    version: SparkVersion,
) -> Result<(), SettingError> {
    check_ivy_settings(conf, submitter)?;
    let is_python = matches!(resource, MainResource::Python(_));
    match conf.get(&PYTHON_VERSION) {
        Some(given) if is_python && version.has_python_version() && given != "3" => {
            Err(conf.refuse(&PYTHON_VERSION, "it must be 3: Spark has no other Python since 3.1"))
        }
        _ => Ok(()),
    }
}

/// Spark reads them although the driver is the one that resolves packages (`MavenUtils.loadIvySettings`).
fn check_ivy_settings(conf: &SparkConf, submitter: &Submitter) -> Result<(), SettingError> {
    let Some(place) = conf.get(&IVY_SETTINGS) else { return Ok(()) };
    let refuse = |problem: String| conf.refuse(&IVY_SETTINGS, problem);
    match DependencyUri::parse(place).map_err(|error| refuse(error.to_string()))? {
        DependencyUri::Submitter(file) => {
            let path = submitter.working_folder.join(file.whole_path());
            std::fs::read(path).map(drop).map_err(|error| refuse(folder::unreadable(&error)))
        }
        _ => Err(refuse("it must be a path or a file: URI of the submitting machine".to_owned())),
    }
}
