//! Handing over to a real spark-submit, if one is named: it gets everything but Kubernetes in cluster mode.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::invocation::Invocation;

use cloakroom_spark::arguments::{CommandLine, Defaults, Purpose, Settings, Switch};
use cloakroom_spark::conf::Surroundings;
use cloakroom_spark::{Origin, SettingError, SparkConf, keys};
use cloakroom_submit::plan::Submitter;

const KEY: &str = keys::CLOAKROOM_SPARK_SUBMIT.name();
/// Wins over the key, because properties may come from users who may not start programs here. If it is empty, nothing
/// is handed over.
const VARIABLE: &str = "CLOAKROOM_SPARK_SUBMIT";

/// A real spark-submit.
pub struct Successor {
    program: PathBuf,
    /// The settings that name the program, for messages.
    conf: SparkConf,
}

impl Successor {
    /// The spark-submit that a command line is for; `None` if the line is for this program, or if no spark-submit is
    /// named.
    pub fn new(
        invocation: &Invocation,
        conf: &SparkConf,
        submitter: &Submitter,
    ) -> Result<Option<Self>, SettingError> {
        let mut conf = conf.clone();
        if let Some(path) = submitter.variables.get(VARIABLE) {
            conf.set(KEY, path, Origin::Variable(VARIABLE));
        }
        let Some(named) = conf.get(KEY).filter(|path| !path.is_empty()) else { return Ok(None) };
        if invocation.is_for_kubernetes(&conf) {
            return Ok(None);
        }
        let program = submitter.working_folder.join(named);
        match problem(&program) {
            Some(problem) => Err(conf.refuse(KEY, problem)),
            None => Ok(Some(Self { program, conf })),
        }
    }

    /// Replaces this process by that program, with the same arguments and the same environment. It returns only after a
    /// failure.
    pub fn take_over(&self, invocation: &Invocation) -> SettingError {
        let error = Command::new(&self.program).args(&invocation.arguments).exec();
        self.conf.refuse(KEY, format!("it cannot be started: {error}"))
    }
}

/// Whether a line is for a real spark-submit, no matter what properties files say: the line names another master or
/// deploy mode, and the line or the environment names the real spark-submit.
pub fn is_decided_by(line: &CommandLine, submitter: &Submitter) -> bool {
    // Files win over the environment, so no variable counts here but this program's own.
    let (variables, system) = (BTreeMap::new(), BTreeMap::new());
    let surroundings =
        Surroundings { variables: &variables, system: &system, folder: &submitter.working_folder };
    let conf = Settings::resolve(line, &Defaults { files: Vec::new(), surroundings }).conf;
    let named = submitter.variables.get(VARIABLE).map(String::as_str).or(conf.get(KEY));
    named.is_some_and(|path| !path.is_empty()) && is_elsewhere(line, &conf)
}

fn is_elsewhere(line: &CommandLine, conf: &SparkConf) -> bool {
    let is_another =
        |key: &str, is_ours: fn(&str) -> bool| conf.get(key).is_some_and(|value| !is_ours(value));
    let is_job = [Purpose::Kill, Purpose::Status].into_iter().any(|purpose| line.value(purpose).is_some());
    line.has(Switch::Version)
        || is_another(&keys::MASTER, |master| master.starts_with("k8s"))
        || !is_job && is_another(&keys::DEPLOY_MODE, |mode| mode == "cluster")
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
        return Some(format!("it is no program, because it is not executable; {NAME}"));
    }
    is_this_program(&found).then(|| format!("it leads back to cloakroom itself; {NAME}"))
}

/// Compares inodes, so that links and hard links are found too.
fn is_this_program(found: &Metadata) -> bool {
    let own = std::env::current_exe().and_then(std::fs::metadata);
    own.is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()))
}
