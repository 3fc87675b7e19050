//! Handing over: what is not for Kubernetes in cluster mode goes to a real spark-submit, where one is named.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::asked::Asked;

use cloakroom::spark::{SettingError, SparkConf, keys};

const KEY: &str = keys::CLOAKROOM_SPARK_SUBMIT;

/// The spark-submit that a command line is for: none where it is for this program, or where none is named.
pub fn successor(asked: &Asked, conf: &SparkConf, folder: &Path) -> Result<Option<PathBuf>, SettingError> {
    let Some(named) = conf.get(KEY).filter(|path| !path.is_empty()) else { return Ok(None) };
    if asked.is_for_kubernetes(conf) {
        return Ok(None);
    }
    let path = folder.join(named);
    match problem(&path) {
        Some(problem) => Err(conf.refuse(KEY, problem)),
        None => Ok(Some(path)),
    }
}

/// Becomes that program, with the same arguments and the same environment. Gives why that failed, if it did.
pub fn hand_over(program: &Path, asked: &Asked, conf: &SparkConf) -> SettingError {
    let error = Command::new(program).args(&asked.arguments).exec();
    conf.refuse(KEY, format!("it cannot be started: {error}"))
}

fn problem(path: &Path) -> Option<String> {
    const NAME: &str =
        "name the spark-submit of an installation of Spark, such as /opt/spark/bin/spark-submit";
    const EXECUTABLE: u32 = 0o111;
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(error) => return Some(format!("there is no program: {error}; {NAME}")),
    };
    if !found.is_file() {
        return Some(format!("it is no program; {NAME}"));
    }
    if found.permissions().mode() & EXECUTABLE == 0 {
        return Some(format!("it is no program, for it is not executable; {NAME}"));
    }
    is_this_program(&found).then(|| format!("it leads back to cloakroom itself; {NAME}"))
}

/// Also by another link, or a hard link.
fn is_this_program(found: &Metadata) -> bool {
    let own = std::env::current_exe().and_then(std::fs::metadata);
    own.is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()))
}
