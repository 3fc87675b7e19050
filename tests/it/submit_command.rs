//! `cloakroom submit`, the real binary, as somebody at a terminal or a scheduler has it.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::Instant;

use cloakroom_testing::api_server::{EVENT, FakeApiServer, NETWORK_POLICY, SECRET};
use cloakroom_testing::cluster::{CONFIG_MAP, Cluster as _, POD, SERVICE};
use cloakroom_testing::process::{command, ended_in_time, output_in_time, stderr};
use cloakroom_testing::wait::BOUND;
use cloakroom_testing::workspace::{self, Workspace};
use rustix::fs::OFlags;
use serde_json::{Value, json};

const JAR: &str = "local:///opt/spark/examples/jars/spark-examples.jar";

/// A cluster whose pods end as they are told to.
struct Submitter {
    api_server: FakeApiServer,
    folder: Workspace,
}

impl Submitter {
    fn new() -> Self {
        let api_server =
            FakeApiServer::with("default", &[SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY, EVENT]);
        let folder = Workspace::for_cluster(&api_server, &[]);
        Self { api_server, folder }
    }

    /// spark-submit's command line, under the name that it has here.
    fn submit(&self, more: &[&str]) -> Command {
        let mut command = self.folder.command();
        command.args(self.arguments()).args(more);
        command
    }

    /// The same, started by another program.
    fn submit_by(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.env_clear().stdin(Stdio::null()).args(arguments).arg(env!("CARGO_BIN_EXE_cloakroom"));
        command.args(self.arguments()).arg(JAR);
        command.env("HOME", self.folder.root()).current_dir(self.folder.root());
        command
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments =
            workspace::submit(self.api_server.address(), &[("driver.pod.name", "spark-pi-driver")]);
        let application = ["--name", "spark-pi", "--class", "org.apache.spark.examples.SparkPi"];
        arguments.extend(application.map(str::to_owned));
        arguments
    }

    fn driver(&self) -> Option<Value> {
        self.api_server.object(POD, "default", "spark-pi-driver")
    }

    /// Starts a submission, and lets the driver end so once it is there.
    fn runs_to(&self, code: i32, more: &[&str]) -> Output {
        let running = self.submit(more).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        self.until_driver();
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let state = json!({"terminated": {"exitCode": code, "reason": if code == 137 { "OOMKilled" } else { "Error" }}});
        let status = json!({"phase": phase, "containerStatuses":
            [{"name": "spark-kubernetes-driver", "image": "x", "ready": false, "restartCount": 0, "imageID": "", "state": state}]});
        self.api_server.set_status("default", "spark-pi-driver", &status);
        running.wait_with_output().unwrap()
    }

    fn until_driver(&self) {
        let started = Instant::now();
        while self.driver().is_none() {
            assert!(started.elapsed() < BOUND, "there is no driver pod");
            std::thread::yield_now();
        }
    }
}

fn until_it_waits(child: &mut Child) -> BufReader<ChildStderr> {
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("Waiting for application") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended");
    }
    said
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
}

/// What Kyuubi reports as the reason of a failure, by what was said (`ProcBuilder`, its thread that captures the log).
fn kyuubis_reason(said: &str) -> Option<String> {
    let has_exception = |line: &str| {
        let line = line.to_lowercase();
        line.contains("exception:") || line.contains("exception in thread")
    };
    let mut lines = said.lines();
    let mut reason = None;
    while let Some(line) = lines.next() {
        if !has_exception(line) || line.contains("at ") || line.starts_with("Caused by:") {
            continue;
        }
        let goes_on = |line: &&str| {
            has_exception(line) || ["\tat ", "Caused by: "].iter().any(|begin| line.starts_with(begin))
        };
        // The first line that does not go on is lost to it.
        let more: Vec<&str> = lines.by_ref().take_while(goes_on).collect();
        reason = Some([&[line], &more[..]].concat().join("\n"));
    }
    reason
}

#[test]
fn kyuubi_finds_one_line_that_says_why_an_application_failed() {
    for (code, words) in
        [(137, "(killed: the container went over its memory limit"), (1, "its log says more"), (50, "")]
    {
        let output = Submitter::new().runs_to(code, &["--name", "what is at work", JAR]);
        let said = stderr(&output);
        let reason = kyuubis_reason(&said).unwrap_or_default();
        let begins = format!(
            "SparkException: Application failed: its container spark-kubernetes-driver exited with code {code} "
        );
        assert!(reason.contains(&begins) && reason.contains(words), "{reason}\n{said}");
        assert_eq!((reason.lines().count(), said.matches("Exception:").count()), (1, 1), "{said}");
    }
    assert_eq!(kyuubis_reason(&stderr(&Submitter::new().runs_to(0, &[JAR]))), None);
}

// Invariant: the exit code of `submit` is the application's.
#[test]
fn a_submission_is_waited_for_and_its_exit_code_is_the_applications() {
    let submitter = Submitter::new();
    let output = submitter.runs_to(0, &[JAR, "100"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(output.stdout.is_empty());
    for line in [
        "\t pod name: spark-pi-driver\n",
        "LoggingPodStatusWatcherImpl: Waiting for application spark-pi with application ID spark-",
        "\t phase: Succeeded\n",
        "\t exit code: 0\n",
    ] {
        assert!(said.contains(line), "{line:?} is not in\n{said}");
    }
    let args = &submitter.driver().unwrap()["spec"]["containers"][0]["args"];
    assert_eq!((&args[5], &args[6]), (&json!(JAR), &json!("100")), "{args}");
}

#[test]
fn a_driver_that_is_killed_for_its_memory_is_a_failure_in_words() {
    let output = Submitter::new().runs_to(137, &[JAR]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(137), "{said}");
    assert!(said.contains("raise spark.driver.memoryOverhead"), "{said}");
    let as_spark = ["--conf", "spark.kubernetes.cloakroom.exitCode=spark", JAR];
    assert_eq!(Submitter::new().runs_to(137, &as_spark).status.code(), Some(0));
}

#[test]
fn nobody_waits_where_it_was_not_asked_for() {
    let submitter = Submitter::new();
    let output = submitter
        .submit(&["-c", "spark.kubernetes.submission.waitAppCompletion=false", JAR])
        .output()
        .unwrap();
    assert!(output.status.success() && submitter.driver().is_some());
    let said = stderr(&output);
    assert!(said.contains("INFO Client: Deployed Spark application spark-pi with application ID"), "{said}");
    assert!(said.ends_with(" into Kubernetes\n\t pod name: spark-pi-driver\n"), "{said}");
}

/// The Spark Operator takes it for a submission that it has made before.
#[test]
fn a_driver_that_exists_already_is_told_with_the_code_of_the_api_server() {
    let submitter = Submitter::new();
    let no_wait = ["-c", "spark.kubernetes.submission.waitAppCompletion=false", JAR];
    assert!(submitter.submit(&no_wait).output().unwrap().status.success());
    let again = submitter.submit(&no_wait).output().unwrap();
    let said = stderr(&again);
    assert_eq!((again.status.code(), said.matches("code=409").count()), (Some(1), 1), "{said}");
    assert!(said.contains("the pod spark-pi-driver exists already"), "{said}");
}

#[test]
fn under_the_name_of_spark_submit_it_is_spark_submit() {
    let submitter = Submitter::new();
    let link = submitter.folder.path("spark-submit");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_cloakroom"), &link).unwrap();
    let mut command = Command::new(&link);
    command.env_clear().env("HOME", submitter.folder.root()).current_dir(submitter.folder.root());
    // Without the word submit.
    command.args(&submitter.arguments()[1..]);
    command.args(["--conf=spark.kubernetes.submission.waitAppCompletion=false", JAR]);
    assert!(command.output().unwrap().status.success());
    assert!(submitter.driver().is_some());
    let version = Command::new(&link).arg("--version").output().unwrap();
    assert!(stderr(&version).contains("version 4.") && version.stdout.is_empty());
}

#[test]
fn ctrl_c_leaves_the_application_running_and_says_how_to_go_on() {
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let submitter = Submitter::new();
        // Whoever runs the tests may ignore it.
        let mut running =
            submitter.submit_by("env", &["--default-signal=HUP"]).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = until_it_waits(&mut running);
        signal(&running, name);
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        assert_eq!(running.wait().unwrap().code(), Some(code), "{rest}");
        assert!(rest.contains("--status default:spark-pi-driver"), "{rest}");
        assert!(rest.contains("--kill default:spark-pi-driver") && submitter.driver().is_some(), "{rest}");
    }
}

#[test]
fn ctrl_c_ends_it_while_a_file_is_waited_for() {
    let submitter = Submitter::new();
    let pipe = submitter.folder.path("pod.yaml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let template = ["--conf", "spark.kubernetes.driver.podTemplateFile=pod.yaml", JAR];
    let running = submitter.submit(&template).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Open from the moment that it reads, and nothing is ever written.
    let _writer = writer_of(&pipe);
    signal(&running, "INT");
    let output = ended_in_time(running);
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("stopped before the application was submitted"), "{}", stderr(&output));
    assert!(submitter.driver().is_none());
}

/// Waits until something else has opened the pipe to read from it.
fn writer_of(pipe: &Path) -> File {
    let started = Instant::now();
    loop {
        // Without a reader this fails, and does not wait.
        let flags = OFlags::NONBLOCK.bits().try_into().unwrap();
        match File::options().write(true).custom_flags(flags).open(pipe) {
            Ok(writer) => return writer,
            Err(error) => assert!(started.elapsed() < BOUND, "the pipe is not read: {error}"),
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_pipe_as_the_application_is_refused_and_not_waited_for() {
    let submitter = Submitter::new();
    let pipe = submitter.folder.path("pipe.jar");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (class, expected) in [
        (&["--class", "a.Main"][..], "pipe.jar is a pipe, a socket or a device"),
        (&[], "it is a pipe, a socket or a device"),
    ] {
        let mut command = submitter.folder.submit(submitter.api_server.address(), &[]);
        let output = output_in_time(command.args(class).arg("pipe.jar"));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn under_nohup_a_closed_terminal_ends_nothing() {
    let submitter = Submitter::new();
    let mut running =
        submitter.submit_by("nohup", &[]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = until_it_waits(&mut running);
    signal(&running, "HUP");
    let mut line = String::new();
    while !line.contains("Application status for") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended");
    }
    signal(&running, "TERM");
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(143), "{rest}");
}

#[test]
fn a_dry_run_prints_the_objects_and_sends_nothing() {
    let submitter = Submitter::new();
    let output = submitter.submit(&["--dry-run", JAR]).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let kinds: Vec<_> = printed.lines().filter_map(|line| line.strip_prefix("kind: ")).collect();
    assert_eq!(kinds, ["Pod", "Service", "NetworkPolicy", "ConfigMap"], "{printed}");
    assert_eq!(submitter.api_server.calls().len(), 0);
}

#[test]
fn a_dry_run_that_only_checks_may_discard_what_it_prints() {
    let submitter = Submitter::new();
    // Other programs discard a stdout with a /dev/null that is open for reading as well.
    let null = std::fs::File::options().read(true).write(true).open("/dev/null").unwrap();
    let discarded = submitter.submit(&["--dry-run", JAR]).stdout(null).output().unwrap();
    assert_eq!(discarded.status.code(), Some(0), "{}", stderr(&discarded));
}

#[test]
fn a_driver_is_looked_at_and_killed_by_its_submission_id() {
    let submitter = Submitter::new();
    let job = |option: &str, id: &str| {
        let output = submitter.submit(&[option, id]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    assert!(job("--status", "default:spark-pi-driver").ends_with("Application not found.\n"));
    let wait = ["-c", "spark.kubernetes.submission.waitAppCompletion=false", JAR];
    assert!(submitter.submit(&wait).output().unwrap().status.success());
    assert!(job("--status", "default:spark-pi*").contains("\t pod name: spark-pi-driver\n"));
    assert!(job("--kill", "default:spark-pi*").contains("Deleting driver pod: spark-pi-driver."));
    assert!(submitter.driver().is_none());
}

// Invariant: mistakes are reported before anything is created.
#[test]
fn what_is_wrong_is_said_once_and_nothing_is_created() {
    let submitter = Submitter::new();
    submitter.folder.write("broken.conf", "spark.x=\\u12");
    for (more, words) in [
        (
            &["--driver-memroy=2g", JAR][..],
            "unrecognized option `--driver-memroy`; did you mean `--driver-memory`?",
        ),
        (&["--deploy-mode", "client", JAR], "write --deploy-mode cluster"),
        (
            &["--master", "yarn", JAR],
            "--master (`spark.master`) is `yarn`: only Kubernetes is supported here",
        ),
        (&["--properties-file", "nope.conf", JAR], "cannot read the properties file"),
        (&["--properties-file", "broken.conf", JAR], "broken.conf, line 1: `\\u` is not followed by"),
        (&["--conf", "spark.x", JAR], "invalid argument to --conf: `spark.x` has no `=`"),
        (&["--driver-memory", "lots", JAR], "--driver-memory (`spark.driver.memory`) is `lots`"),
        (&["nope.jar"], "/nope.jar does not exist on this machine"),
        (&[], "missing application resource"),
    ] {
        let output = submitter.submit(more).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let (first, why) = said.split_once('\n').unwrap();
        assert_eq!(first, "error: SparkException: the application was not submitted");
        assert!(why.starts_with("Caused by: ") && why.contains(words) && why.lines().count() == 1, "{said}");
        assert_eq!(kyuubis_reason(&said).as_deref(), Some(said.trim_end()));
    }
    assert_eq!(submitter.api_server.calls().len(), 0);
}

#[test]
fn the_page_to_try_shows_a_refusal_as_it_is() {
    let submitter = Submitter::new();
    let said =
        stderr(&submitter.submit(&["--driver-memory", "lots", "local:///opt/app.py"]).output().unwrap());
    let why = said.lines().nth(1).unwrap();
    let page = std::fs::read_to_string("docs/try.md").unwrap();
    assert!(page.contains(&format!("\n    {why}\n")), "{why}");
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let mut child =
        command().args(["submit", "--help"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    let submitter = Submitter::new();
    let mut running = submitter.submit(&[JAR]).stderr(Stdio::piped()).spawn().unwrap();
    drop(running.stderr.take());
    submitter.until_driver();
    submitter.api_server.set_status("default", "spark-pi-driver", &json!({"phase": "Succeeded"}));
    assert_eq!(running.wait().unwrap().code(), Some(0));
}

#[test]
fn a_token_is_in_nothing_that_is_said() {
    let submitter = Submitter::new();
    let secret = "correct-horse-battery";
    submitter.api_server.know_token(secret, "somebody", &["system:masters"]);
    let token = format!("spark.kubernetes.authenticate.driver.oauthToken={secret}");
    for more in [&["--verbose"][..], &["--verbose", "--dry-run"], &["--verbose", "--driver-memory", "x"]] {
        let arguments: Vec<_> = more
            .iter()
            .copied()
            .chain([
                "--conf",
                &token,
                "-c",
                "spark.my.password=hunter2",
                "-c",
                "spark.kubernetes.submission.waitAppCompletion=false",
                JAR,
            ])
            .collect();
        let output = submitter.submit(&arguments).output().unwrap();
        let said = format!("{}{}", stderr(&output), String::from_utf8_lossy(&output.stdout));
        assert!(said.contains("spark.my.password=*********(redacted)") && !said.contains(secret), "{said}");
    }
}

#[test]
fn signed_addresses_for_the_init_container_are_in_no_message() {
    let submitter = Submitter::new();
    let settings = [
        "--conf",
        "spark.kubernetes.cloakroom.fetchRemote=true",
        "--conf",
        "spark.kubernetes.initContainer.image=repo.example/cloakroom:1",
    ];
    let lists =
        ["--files", "https://h/a.txt?sig=hush,https://h/a.txt2?sig=hush&x=y", "--verbose", "--dry-run"];
    let application = ["https://u:hush@h/main.py?sig=hush"];
    let arguments = [&settings[..], &lists, &application].concat();
    let output = submitter.submit(&arguments).output().unwrap();
    let said = format!("{}{}", stderr(&output), String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{said}");
    assert!(said.contains("spark.files=https://h/a.txt,https://h/a.txt2\n"), "{said}");
    assert!(!said.contains("hush"), "{said}");
}

#[test]
fn what_is_wrong_with_credentials_is_said_by_the_keys_of_their_settings() {
    let said = |master: &str, settings: &[&str]| {
        let mut submit = command();
        submit.args(["submit", "--master", master, "--deploy-mode", "cluster", "--class", "A"]);
        submit.args(["--conf", "spark.kubernetes.container.image=repo.example/spark:4"]);
        for setting in settings {
            submit.args(["--conf", &format!("spark.kubernetes.{setting}")]);
        }
        stderr(&submit.arg(JAR).output().unwrap())
    };
    let token = "authenticate.submission.oauthToken=hunter2";
    let clear = said("k8s://http://192.0.2.1:6443", &[token]);
    assert!(
        clear.contains("`spark.kubernetes.authenticate.submission.oauthToken` would travel in clear"),
        "{clear}"
    );
    let anybody = said("k8s://https://192.0.2.1:6443", &[token, "trust.certificates=true"]);
    assert!(anybody.contains("`spark.kubernetes.trust.certificates` is true"), "{anybody}");
    let ca = "name the API server's CA with `spark.kubernetes.authenticate.submission.caCertFile` instead";
    assert!(anybody.contains(ca), "{anybody}");
    assert!([clear, anybody].iter().all(|text| !text.contains("hunter2")));
}
