//! A link that stands in front of every master: what is for a real spark-submit goes there, untouched.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use cloakroom_testing::process::stderr;
use tempfile::TempDir;

const VARIABLE: &str = "CLOAKROOM_SPARK_SUBMIT";
const PROGRAM: &str = env!("CARGO_BIN_EXE_cloakroom");

/// What is handed over without a word on Kubernetes.
const LOCAL: [&str; 3] = ["--master", "local[1]", "app.py"];

/// Kubernetes in cluster mode, without a call.
const CLUSTER: [&str; 8] = [
    "--master",
    "k8s://http://127.0.0.1:1",
    "--deploy-mode",
    "cluster",
    "--conf",
    "spark.kubernetes.container.image=repo.example/spark:4",
    "--dry-run",
    "local:///app.py",
];

/// A folder with a link to this program, and with a program that tells how it was started and ends with 7.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { folder: tempfile::tempdir().unwrap() };
        symlink(PROGRAM, machine.path("spark3-submit")).unwrap();
        machine
            .script("real", "#!/bin/sh\necho $$\ncat /proc/$$/environ\necho\ncat /proc/$$/cmdline\nexit 7\n");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// By another process: what a thread of this one has open for writing cannot be started.
    fn script(&self, name: &str, text: &str) {
        std::fs::write(self.path("text-of-a-script"), text).unwrap();
        let mut install = Command::new("install");
        install.args(["-m", "755"]).arg(self.path("text-of-a-script")).arg(self.path(name));
        assert!(install.status().unwrap().success());
    }

    fn command<A: AsRef<OsStr>>(&self, program: &Path, arguments: &[A]) -> Command {
        let mut command = Command::new(program);
        command.env_clear().stdin(Stdio::null()).current_dir(self.folder.path()).args(arguments);
        command
    }

    /// By the link, with a real spark-submit named in the environment.
    fn run<A: AsRef<OsStr>>(&self, named: &str, arguments: &[A]) -> Output {
        let mut command = self.command(&self.path("spark3-submit"), arguments);
        command.env(VARIABLE, self.path(named)).output().unwrap()
    }

    /// Whether the real one was started.
    fn is_handed_over(&self, command: &mut Command) -> bool {
        command.output().unwrap().status.code() == Some(7)
    }
}

#[test]
fn the_real_spark_submit_gets_the_line_for_another_master_unchanged() {
    let machine = Machine::new();
    let odd = OsString::from_vec(b"--name=\xff\xfe".to_vec());
    let arguments: Vec<OsString> = ["--master", "local[1]", "--conf", "spark.x= y ", "", "--", "a\nb"]
        .into_iter()
        .map(OsString::from)
        .chain([odd])
        .collect();
    let mut command = machine.command(&machine.path("spark3-submit"), &arguments);
    command.env(VARIABLE, "real").env("SPARK_HOME", "/opt/spark").env("ODD", OsStr::from_bytes(b"\xff"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(7), String::new()));
    let mut parts = output.stdout.splitn(3, |byte| *byte == b'\n');
    assert_eq!(parts.next().unwrap(), pid.to_string().as_bytes(), "it is the same process");
    let environment = parts.next().unwrap();
    let mut variables: Vec<&[u8]> =
        environment.split(|byte| *byte == 0).filter(|one| !one.is_empty()).collect();
    variables.sort_unstable();
    assert_eq!(variables, [&b"CLOAKROOM_SPARK_SUBMIT=real"[..], b"ODD=\xff", b"SPARK_HOME=/opt/spark"]);
    let line: Vec<&[u8]> = parts.next().unwrap().split(|byte| *byte == 0).collect();
    // The interpreter and the script; there is a zero byte at the end.
    let expected: Vec<&[u8]> = arguments.iter().map(|argument| argument.as_bytes()).collect();
    assert_eq!(line[2..line.len() - 1], expected);
}

#[test]
fn a_line_that_names_another_master_is_handed_over_before_files_are_read() {
    let machine = Machine::new();
    let unread = ["--properties-file", "nope"];
    for line in [&LOCAL[..], &["--deploy-mode", "client", "app.py"], &["--version"]] {
        let output = machine.run("real", &[&unread[..], line].concat());
        assert_eq!(output.status.code(), Some(7), "{line:?}: {}", stderr(&output));
    }
    // A file may name Kubernetes, and then it is for this program.
    for line in [&["app.py"][..], &CLUSTER] {
        let output = machine.run("real", &[&unread[..], line].concat());
        assert_eq!(output.status.code(), Some(1), "{line:?}");
        assert!(stderr(&output).contains("nope"), "{}", stderr(&output));
    }
}

#[test]
fn the_real_spark_submit_may_be_in_a_setting_and_the_master_in_any_place() {
    let machine = Machine::new();
    std::fs::create_dir(machine.path("conf")).unwrap();
    let setting = "spark.kubernetes.cloakroom.sparkSubmit";
    std::fs::write(machine.path("conf/spark-defaults.conf"), format!("{setting} real\n")).unwrap();
    std::fs::write(machine.path("k8s.conf"), "spark.master k8s://http://127.0.0.1:1\n").unwrap();
    let link = machine.path("spark3-submit");
    let conf = format!("{setting}=real");
    let by_line = [&["--conf", &conf][..], &LOCAL].concat();
    assert!(machine.is_handed_over(&mut machine.command(&link, &by_line)));
    let by_defaults = |arguments: &[&str]| {
        let mut command = machine.command(&link, arguments);
        command.env("SPARK_CONF_DIR", "conf");
        command
    };
    assert!(machine.is_handed_over(&mut by_defaults(&["app.py"])), "Spark's default is a local master");
    assert!(machine.is_handed_over(by_defaults(&["app.py"]).env("MASTER", "yarn")));
    // A client on Kubernetes is the real one's; in cluster mode it is not, wherever that is said.
    let properties = ["--properties-file", "k8s.conf", "--load-spark-defaults"];
    assert!(machine.is_handed_over(&mut by_defaults(&[&properties[..], &["app.py"]].concat())));
    let cluster = [&properties[..], &CLUSTER[4..]].concat();
    assert!(!machine.is_handed_over(by_defaults(&cluster).env("DEPLOY_MODE", "cluster")));
}

#[test]
fn the_variable_wins_over_the_setting_and_forbids_it_where_it_is_empty() {
    let machine = Machine::new();
    let by_setting = [&["--conf", "spark.kubernetes.cloakroom.sparkSubmit=nothing"][..], &LOCAL].concat();
    let link = machine.path("spark3-submit");
    assert!(machine.is_handed_over(machine.command(&link, &by_setting).env(VARIABLE, "real")));
    let real = by_setting.iter().map(|word| word.replace("=nothing", "=real")).collect::<Vec<_>>();
    assert!(machine.is_handed_over(&mut machine.command(&link, &real)));
    let forbidden = machine.command(&link, &real).env(VARIABLE, "").output().unwrap();
    assert!(stderr(&forbidden).contains("only Kubernetes is supported here"), "{forbidden:?}");
}

#[test]
fn kubernetes_in_cluster_mode_is_never_handed_over() {
    let machine = Machine::new();
    let output = machine.run("real", &CLUSTER);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("kind: Pod"), "{output:?}");
    let unreadable = [&["--bogus"], &CLUSTER[..]].concat();
    assert!(stderr(&machine.run("real", &unreadable)).contains("unrecognized option `--bogus`"));
    let kill = ["--kill", "spark:x", "--master", "k8s://http://127.0.0.1:1"];
    assert!(stderr(&machine.run("real", &kill)).contains("error: "));
}

#[test]
fn the_version_is_the_real_spark_submits_and_the_help_is_this_programs() {
    let machine = Machine::new();
    assert_eq!(machine.run("real", &["--version"]).status.code(), Some(7));
    let help = machine.run("real", &["--help"]);
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("--dry-run"), "{help:?}");
    assert_eq!(machine.run("real", &["--kill", "driver-1", "--master", "spark://h"]).status.code(), Some(7));
}

#[test]
fn a_program_that_leads_back_or_is_none_is_refused_with_its_setting() {
    let machine = Machine::new();
    symlink("spark3-submit", machine.path("through-two-links")).unwrap();
    std::fs::hard_link(PROGRAM, machine.path("hard-link"))
        .or_else(|_| std::fs::copy(PROGRAM, machine.path("hard-link")).map(drop))
        .unwrap();
    std::fs::create_dir(machine.path("folder")).unwrap();
    std::fs::write(machine.path("text"), "x").unwrap();
    machine.script("broken", "#!/no/such/interpreter\n");
    for (named, words) in [
        ("spark3-submit", "it leads back to cloakroom itself; name the spark-submit of"),
        ("through-two-links", "it leads back to cloakroom itself"),
        ("hard-link", "it leads back to cloakroom itself"),
        ("nothing", "there is no program: No such file"),
        ("folder", "it is no program; name"),
        ("text", "it is no program, because it is not executable"),
        ("broken", "it cannot be started: No such file"),
    ] {
        let output = machine.run(named, &LOCAL);
        let said = stderr(&output);
        let where_it_is = format!("the environment variable {VARIABLE} is");
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(!said.contains("spark.kubernetes.cloakroom.sparkSubmit"), "the key is not set: {said}");
        assert!(said.contains(&where_it_is) && said.contains(words), "{named}: {said}");
    }
}

#[test]
fn the_words_of_sparks_scripts_are_handed_over_or_told_what_they_are() {
    let machine = Machine::new();
    for (word, what) in [
        ("pyspark-shell-main", "bin/pyspark starts a Python shell"),
        ("sparkr-shell-main", "bin/sparkR starts an R shell"),
        ("run-example", "bin/run-example starts an example"),
    ] {
        let arguments = [&[word][..], &LOCAL].concat();
        assert_eq!(machine.run("real", &arguments).status.code(), Some(7));
        let output = machine.command(Path::new(PROGRAM), &arguments).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1));
        assert!(said.contains(what) && said.contains(VARIABLE), "{said}");
        let in_cluster = [&[word][..], &CLUSTER].concat();
        assert!(stderr(&machine.run("real", &in_cluster)).contains(what));
    }
}

#[test]
fn options_of_spark_submit_are_a_submission_without_the_subcommand() {
    let machine = Machine::new();
    let output = machine.command(Path::new(PROGRAM), &CLUSTER).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("kind: Pod"), "{output:?}");
    for (flag, begins) in [("--help", "A resource staging server"), ("--version", "cloakroom ")] {
        let output = machine.command(Path::new(PROGRAM), &[flag]).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).starts_with(begins), "{output:?}");
    }
    let help = machine.command(&machine.path("spark3-submit"), &["--help"]).output().unwrap();
    assert!(String::from_utf8_lossy(&help.stdout).starts_with("Usage: cloakroom submit"), "{help:?}");
}

#[test]
fn arguments_that_are_not_text_are_refused_if_they_would_go_into_objects() {
    let machine = Machine::new();
    let mut arguments: Vec<OsString> = CLUSTER.iter().map(OsString::from).collect();
    arguments.push(OsString::from_vec(b"hush\xe9".to_vec()));
    let output = machine.command(&machine.path("spark3-submit"), &arguments).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let place = format!("argument {} is not UTF-8", arguments.len());
    assert!(said.contains(&place) && !said.contains("hush"), "{said}");
}
