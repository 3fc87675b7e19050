//! Sources that complete a command line: the environment, Spark's configuration folder, properties files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::hand_over;
use crate::commands::old_entrypoint;

use cloakroom_spark::arguments::{CommandLine, Purpose, Switch};
use cloakroom_spark::hadoop_user::{NoUser, short_name};
use cloakroom_spark::{Properties, properties_of_options};
use cloakroom_submit::plan::Submitter;

const PASSWORDS: &str = "/etc/passwd";
/// Hadoop's variable, and the property of the JVM that it falls back to.
const HADOOP_USER: &str = "HADOOP_USER_NAME";
/// Options of the JVM, in Spark's configuration folder.
const JAVA_OPTS: &str = "java-opts";
const DEFAULTS_FILE: &str = "spark-defaults.conf";

/// The submitter, from the environment of this process. Variables that are not UTF-8 are skipped: no setting reads
/// them.
pub fn submitter() -> anyhow::Result<Submitter> {
    let variables: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let working_folder = std::env::current_dir().context("cannot tell the current folder")?;
    let mut submitter =
        Submitter { system: system(&working_folder), variables, user: Ok(String::new()), working_folder };
    let java_opts = submitter.spark_conf_folder().map(|folder| folder.join(JAVA_OPTS));
    let java_opts = java_opts.and_then(|path| std::fs::read_to_string(path).ok());
    submitter.system.extend(properties_of_options(&submitter.variables, java_opts.as_deref()));
    submitter.user = user(&submitter.variables, &submitter.system);
    Ok(submitter)
}

/// `SPARK_USER` unchanged, else Hadoop's user name, else the user of this process.
fn user(variables: &BTreeMap<String, String>, system: &BTreeMap<String, String>) -> Result<String, NoUser> {
    if let Some(user) = variables.get("SPARK_USER") {
        return Ok(user.clone());
    }
    let named = |name: &str| variables.get(name).filter(|value| !value.is_empty());
    if let Some(name) = variables.get(HADOOP_USER).or(system.get(HADOOP_USER)).filter(|name| !name.is_empty())
    {
        return short_name(name, HADOOP_USER).map(str::to_owned);
    }
    let of_process = std::fs::read_to_string(PASSWORDS).ok().and_then(|text| user_of_process(&text));
    Ok(of_process
        .or_else(|| named("USER").cloned())
        .unwrap_or_else(|| rustix::process::getuid().as_raw().to_string()))
}

/// System properties that are the same in every JVM.
fn system(working_folder: &Path) -> BTreeMap<String, String> {
    let mut system = vec![
        ("SPARK_SUBMIT", "true"),
        ("file.separator", "/"),
        ("java.io.tmpdir", "/tmp"),
        ("line.separator", "\n"),
        ("os.name", "Linux"),
        ("path.separator", ":"),
    ];
    let folder = working_folder.display().to_string();
    system.push(("user.dir", &folder));
    let passwords = std::fs::read_to_string(PASSWORDS).unwrap_or_default();
    if let Some([name, .., home, _shell]) = entry_of_process(&passwords).as_deref() {
        system.extend([("user.name", *name), ("user.home", *home)]);
    }
    system.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The name of this process's user in a password file.
fn user_of_process(passwords: &str) -> Option<String> {
    entry_of_process(passwords)?.first().map(|name| (*name).to_owned())
}

fn entry_of_process(passwords: &str) -> Option<Vec<&str>> {
    let id = rustix::process::getuid().as_raw().to_string();
    let mut entries = passwords.lines().map(|line| line.split(':').collect::<Vec<_>>());
    entries.find(|fields| fields.get(2) == Some(&id.as_str()))
}

/// The properties files of a command line; earlier files win. Empty if the line alone shows that it is for a real
/// spark-submit, which reads its files itself.
pub fn properties_files(line: &CommandLine, submitter: &Submitter) -> anyhow::Result<Vec<Properties>> {
    if hand_over::is_decided_by(line, submitter) {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    let given = line.value(Purpose::PropertiesFile);
    if let Some(path) = given {
        let path = path.strip_prefix("file://").unwrap_or(path);
        files.push(read(&submitter.working_folder.join(path), path)?);
    }
    if given.is_none() || line.has(Switch::LoadSparkDefaults) {
        files.extend(defaults(submitter)?);
    }
    Ok(files)
}

/// `spark-defaults.conf`, if there is one.
pub fn defaults(submitter: &Submitter) -> anyhow::Result<Option<Properties>> {
    let path = submitter.spark_conf_folder().map(|folder| folder.join(DEFAULTS_FILE));
    let path = path.filter(|path| path.is_file());
    path.map(|path| read(&path, &path.display().to_string())).transpose()
}

fn read(path: &Path, shown: &str) -> anyhow::Result<Properties> {
    let text = old_entrypoint::read(path)?;
    Ok(Properties::parse(shown, &text)?)
}

/// The kubeconfig files, with their source for messages: the existing files of the JVM's property `kubeconfig` or of
/// `KUBECONFIG` (all of them if none exists, for the message), else `~/.kube/config`. The home folder is that of `HOME`,
/// or else of the JVM.
pub fn kubeconfig(submitter: &Submitter) -> Option<(Vec<PathBuf>, String)> {
    let set = |value: Option<&'_ String>| value.filter(|value| !value.trim().is_empty()).cloned();
    let property = set(submitter.system.get("kubeconfig")).map(|list| (list, "-Dkubeconfig"));
    let variable = || set(submitter.variables.get("KUBECONFIG")).map(|list| (list, "KUBECONFIG"));
    if let Some((list, setting)) = property.or_else(variable) {
        let paths = std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty());
        let mut paths = paths.map(|path| submitter.working_folder.join(path)).collect::<Vec<_>>();
        if paths.iter().any(|path| path.exists()) {
            paths.retain(|path| path.exists());
        }
        return (!paths.is_empty()).then(|| (paths, setting.to_owned()));
    }
    // As Spark's client library does, if the variable names no folder.
    let home = set(submitter.variables.get("HOME")).filter(|home| Path::new(home).is_dir());
    let home = home.or_else(|| set(submitter.system.get("user.home")))?;
    let path = PathBuf::from(home).join(".kube/config");
    path.exists().then(|| (vec![path], "kubeconfig".to_owned()))
}
