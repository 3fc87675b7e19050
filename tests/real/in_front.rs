//! A link that stands in front of the real Spark of this machine: what is not for Kubernetes runs as it did without it.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use cloakroom_testing::jobs::SHORT_LIVED_JAVA;
use cloakroom_testing::needs::{Need, path, trial};
use cloakroom_testing::process;
use libtest_mimic::Trial;
use tempfile::TempDir;

/// Names the folder that has `spark-VERSION` for each of [`VERSIONS`].
const SPARK_HOMES: &str = "CLOAKROOM_TEST_SPARK_HOMES";

const VERSIONS: [&str; 2] = ["4.3.0", "3.5.9"];

pub fn trials() -> Vec<Trial> {
    let each = VERSIONS.into_iter().flat_map(|version| {
        let libraries = format!("spark-{version}/python/lib/pyspark.zip");
        let needs = [Need::Below(SPARK_HOMES, libraries), Need::Program("python3")];
        let by_spark_submit =
            format!("in_front::a_job_with_a_local_master_is_done_by_the_real_spark_submit_{version}");
        let by_python = format!("in_front::a_python_program_starts_the_link_in_an_installation_of_{version}");
        [
            trial(&by_spark_submit, &needs, move || spark_submit(version)),
            trial(&by_python, &needs, move || python(version)),
        ]
    });
    each.collect()
}

/// Spark finds itself without `SPARK_HOME`, by the path that it is named by.
fn spark_submit(version: &str) {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("spark-submit");
    symlink(process::command().get_program(), &link).unwrap();
    let mut command = command(&link, version, &folder);
    command.args(["--master", "local[1]"]).arg(job()).arg("3");
    assert_counted(&command.output().unwrap(), "local[1]", version);
}

/// As a notebook does it, which starts `$SPARK_HOME/bin/spark-submit … pyspark-shell`.
fn python(version: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (real, home) = (path(SPARK_HOMES).join(format!("spark-{version}")), folder.path().join("spark"));
    std::fs::create_dir_all(home.join("bin")).unwrap();
    for file in std::fs::read_dir(real.join("bin")).unwrap().map(|entry| entry.unwrap()) {
        let own = PathBuf::from(process::command().get_program());
        let target = if file.file_name() == "spark-submit" { own } else { file.path() };
        symlink(target, home.join("bin").join(file.file_name())).unwrap();
    }
    symlink(real.join("jars"), home.join("jars")).unwrap();
    let libraries = std::fs::read_dir(real.join("python/lib")).unwrap().map(|entry| entry.unwrap().path());
    let mut command = command(Path::new("python3"), version, &folder);
    command.env("PYTHONPATH", std::env::join_paths(libraries).unwrap());
    command.env("SPARK_HOME", &home).arg(job()).arg("3");
    assert_counted(&command.output().unwrap(), "local[*]", version);
}

fn job() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/count.py")
}

fn command(program: &Path, version: &str, folder: &TempDir) -> Command {
    let mut command = Command::new("timeout");
    command.arg("120").arg(program).env_clear().stdin(Stdio::null()).current_dir(folder.path());
    command.env("HOME", folder.path()).env("PATH", std::env::var_os("PATH").unwrap());
    command.env("JAVA_TOOL_OPTIONS", SHORT_LIVED_JAVA).env("SPARK_LOCAL_IP", "127.0.0.1");
    command.env(
        "CLOAKROOM_SPARK_SUBMIT",
        path(SPARK_HOMES).join(format!("spark-{version}")).join("bin/spark-submit"),
    );
    command
}

fn assert_counted(output: &Output, master: &str, version: &str) {
    let said = String::from_utf8_lossy(&output.stdout);
    let expected = format!("counted 10 on {master} of {version}");
    assert!(said.contains(&expected), "no “{expected}”: {said}\n{}", process::stderr(output));
    assert_eq!(output.status.code(), Some(3), "{}", process::stderr(output));
}
