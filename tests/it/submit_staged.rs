//! `cloakroom submit` with files of this machine: they reach the pod through a real server, and a failure leaves nothing of
//! them.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_testing::api_server::{FakeApiServer, Fault, NETWORK_POLICY, SECRET, Verb};
use cloakroom_testing::cluster::{CONFIG_MAP, Cluster as _, Kind, POD, SERVICE};
use cloakroom_testing::front::{Front, STOPPING, Turn};
use cloakroom_testing::noise::noise;
use cloakroom_testing::process::{Cloakroom, command, read_until, stderr};
use cloakroom_testing::workspace::Workspace;
use serde_json::{Value, json};

const IMAGE: &str = "repo.example/cloakroom:1";
const DRIVER: &str = "app-driver";
/// More than a connection takes that is held after a little of it.
const LARGE: usize = 8 << 20;
const A_LITTLE: usize = 1 << 20;

/// A cluster, a server, and a folder with an application in it.
struct Submitter {
    api_server: FakeApiServer,
    server: Cloakroom,
    folder: Workspace,
}

impl Submitter {
    fn new() -> Self {
        Self::with_flags(&["--fetch-image", IMAGE])
    }

    fn with_flags(flags: &[&str]) -> Self {
        let api_server = FakeApiServer::with("default", &[SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY]);
        let files = [
            ("app.jar", "the application"),
            ("lib/dep one.jar", "a dependency"),
            ("data.txt", "data"),
            ("prod.conf", "settings"),
            ("env.tar.gz", "an archive"),
        ];
        let folder = Workspace::for_cluster(&api_server, &files);
        let server = folder.serve(flags);
        Self { api_server, server, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    /// An application whose every dependency is here. Nobody waits for its end.
    fn submit(&self, server: &str, more: &[&str]) -> Command {
        let conf = [
            ("driver.pod.name", DRIVER),
            ("submission.waitAppCompletion", "false"),
            ("resourceStagingServer.uri", server),
            ("resourceStagingServer.internal.uri", server),
            ("mountdependencies.jarsDownloadDir", &self.folder.text("pod/jars")),
            ("mountdependencies.filesDownloadDir", &self.folder.text("pod/files")),
        ];
        let mut command = self.folder.submit(self.api_server.address(), &conf);
        command.args(["--class", "org.example.App", "--jars", "lib/dep one.jar"]);
        command.args(["--files", "data.txt,prod.conf#app.conf", "--archives", "env.tar.gz#env"]);
        command.args(more).arg("app.jar");
        command
    }

    fn submitted(&self, more: &[&str]) -> Output {
        self.submit(&self.server.url(""), more).output().unwrap()
    }

    /// What the server keeps.
    fn kept(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in ["incoming", "bundles"] {
            walk(&self.path("server").join(folder), &mut found);
        }
        found.retain(|path| !path.ends_with("bundles/stamp"));
        found
    }

    fn object(&self, kind: Kind, end: &str) -> Value {
        let everything = self.api_server.everything_in("default");
        let name = everything.iter().find(|name| name.starts_with(kind.kind) && name.ends_with(end));
        let name = name.unwrap_or_else(|| panic!("no …{end} in {everything:?}"));
        self.api_server.object(kind, "default", name.split_once(' ').unwrap().1).unwrap()
    }

    /// Does what the kubelet does for the init-container, and gives its exit status.
    fn run_init_container(&self) -> Output {
        let pod = self.api_server.object(POD, "default", DRIVER).unwrap();
        let init = &pod["spec"]["initContainers"][0];
        assert_eq!(
            (&init["image"], &init["args"]),
            (&json!(IMAGE), &json!(["/etc/spark-init/spark-init.properties"]))
        );
        let secrets = self.path("pod/secrets");
        std::fs::create_dir_all(&secrets).unwrap();
        for (key, value) in self.object(SECRET, "-init-secret")["data"].as_object().unwrap() {
            std::fs::write(secrets.join(key), STANDARD.decode(value.as_str().unwrap()).unwrap()).unwrap();
        }
        let map = self.object(CONFIG_MAP, "-init-config");
        let text = map["data"]["download-submitted-files"].as_str().unwrap();
        let properties = self.path("pod/spark-init.properties");
        std::fs::write(&properties, text.replace("/mnt/secrets/spark-init", secrets.to_str().unwrap()))
            .unwrap();
        command().arg(&properties).output().unwrap()
    }

    fn assert_nothing_is_left(&self, said: &str) {
        assert_eq!(self.api_server.everything_in("default"), [""; 0], "{said}");
        assert_eq!(self.kept(), Vec::<PathBuf>::new(), "{said}");
    }
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path, found) } else { found.push(path) }
    }
}

// Invariant: staged files reach the pod through the created objects, and real Spark finds them.
#[test]
fn everything_reaches_the_pod_by_the_very_objects_that_were_made() {
    let submitter = Submitter::new();
    let output = submitter.submitted(&[]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    for line in ["INFO Staging: Staged the jars, ", "INFO Staging: Staged the files, ", "staging 2 files, "] {
        assert!(said.contains(line), "{line:?} is not in\n{said}");
    }
    assert_eq!(submitter.kept().len(), 2, "one bundle of jars, one of files");
    let fetched = submitter.run_init_container();
    assert!(fetched.status.success(), "{}", stderr(&fetched));
    for (name, content) in [
        ("jars/app.jar", "the application"),
        ("jars/dep one.jar", "a dependency"),
        ("files/data.txt", "data"),
        ("files/app.conf", "settings"),
        ("files/env.tar.gz", "an archive"),
    ] {
        assert_eq!(std::fs::read_to_string(submitter.path("pod").join(name)).unwrap(), content);
    }
    let map = submitter.object(CONFIG_MAP, "-conf-map");
    let properties = map["data"]["spark.properties"].as_str().unwrap().replace('\\', "");
    let pod = submitter.path("pod").display().to_string();
    for line in [
        format!("spark.jars=file://{pod}/jars/dep%20one.jar,file://{pod}/jars/app.jar\n"),
        format!("spark.files=file://{pod}/files/data.txt,file://{pod}/files/app.conf\n"),
        format!("spark.archives=file://{pod}/files/env.tar.gz#env\n"),
    ] {
        assert!(properties.contains(&line), "{line} is not in\n{properties}");
    }
    let owner = &submitter.object(SECRET, "-init-secret")["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["name"]), (&json!("Pod"), &json!(DRIVER)));
}

#[test]
fn a_second_submission_sends_only_what_changed() {
    let submitter = Submitter::new();
    submitter.folder.write("lib/dep one.jar", noise(2 << 20));
    let said = |name: &str, more: &[&str]| {
        let pod = format!("spark.kubernetes.driver.pod.name={name}");
        let output = submitter.submitted(&[&["--conf", &pod], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    assert!(!said("first", &[]).contains("travel"));
    submitter.folder.write("app.jar", "the application, built again");
    let second = said("second", &[]);
    assert!(second.contains(" of it travelled: the server had the rest since "), "{second}");
    let no_reuse = ["--conf", "spark.kubernetes.cloakroom.noReuse=true"];
    assert!(!said("third", &no_reuse).contains("travel"));
}

// Invariant: tickets, and addresses that may be secrets, are in a Secret and nowhere else.
#[test]
fn secrets_of_tickets_are_in_the_secret_and_nowhere_else() {
    let submitter = Submitter::new();
    let output = submitter.submitted(&["--verbose"]);
    let said = stderr(&output);
    let data = submitter.object(SECRET, "-init-secret")["data"].clone();
    let secrets = data.as_object().unwrap();
    assert_eq!(secrets.len(), 2);
    let pod = submitter.api_server.object(POD, "default", DRIVER).unwrap().to_string();
    let maps = submitter.object(CONFIG_MAP, "-init-config").to_string()
        + &submitter.object(CONFIG_MAP, "-conf-map").to_string();
    for secret in secrets.values() {
        let secret = String::from_utf8(STANDARD.decode(secret.as_str().unwrap()).unwrap()).unwrap();
        for text in [&said, &pod, &maps, &submitter.server.log()] {
            assert!(secret.len() > 20 && !text.contains(&secret));
        }
    }
}

#[test]
fn a_failure_after_each_step_leaves_nothing_behind() {
    for (kind, verb, skip) in [
        (POD, Verb::Create, 0),
        (POD, Verb::Create, 1),
        (SERVICE, Verb::Patch, 0),
        (CONFIG_MAP, Verb::Patch, 0),
        (SECRET, Verb::Patch, 0),
        (CONFIG_MAP, Verb::Patch, 1),
    ] {
        let submitter = Submitter::new();
        submitter.api_server.fail_some(kind, verb, skip, usize::MAX, Fault::Status(422));
        let output = submitter.submitted(&[]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(
            said.contains("Staged the files"),
            (kind, skip) != (POD, 0),
            "the dry run comes first: {said}"
        );
        submitter.assert_nothing_is_left(&said);
    }
}

#[test]
fn an_upload_that_is_refused_takes_the_others_with_it() {
    let submitter = Submitter::with_flags(&["--fetch-image", IMAGE, "--max-resource-size", "64KiB"]);
    std::fs::write(submitter.path("data.txt"), noise(200_000)).unwrap();
    let output = submitter.submitted(&[]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("Staged the jars") && said.contains("the files were not staged: could not stage to"),
        "{said}"
    );
    assert!(said.ends_with(" (nothing is left on the server)\n"), "{said}");
    submitter.assert_nothing_is_left(&said);
}

#[test]
fn a_server_without_an_image_is_an_error_before_anything_is_sent() {
    let submitter = Submitter::with_flags(&[]);
    let output = submitter.submitted(&[]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1));
    let line = "set `spark.kubernetes.initContainer.image` to the image of this program, or start the server of \
                `spark.kubernetes.resourceStagingServer.uri` with --fetch-image";
    assert!(said.contains(line), "{said}");
    assert_eq!(submitter.api_server.calls(), []);
    submitter.assert_nothing_is_left(&said);
}

#[test]
fn an_unknown_image_is_told_with_its_reason_and_without_a_password() {
    let submitter = Submitter::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let uri = format!("http://127.0.0.1:{port}");
    let at_once = ["--conf", "spark.kubernetes.cloakroom.retryTimeout=0s"];
    let said = stderr(&submitter.submit(&uri, &at_once).output().unwrap());
    let line = format!(
        "Caused by: the staging server at {uri} does not say which image the init-container is to have: \
                        connection refused; check the address (`spark.kubernetes.resourceStagingServer.uri`)"
    );
    assert!(said.contains(&line), "{said}");
    let elsewhere =
        stderr(&submitter.submit(&format!("{}/elsewhere", submitter.server.url("")), &[]).output().unwrap());
    assert!(elsewhere.contains("(404 no-such-path)"), "{elsewhere}");
    let named = stderr(&submitter.submit("http://me:hunter2@127.0.0.1:1", &["--verbose"]).output().unwrap());
    assert!(named.contains("`http://…@127.0.0.1:1`") && !named.contains("hunter2"), "{named}");
    submitter.assert_nothing_is_left(&said);
}

#[test]
fn a_server_that_is_not_there_is_an_error_after_the_dry_run() {
    let submitter = Submitter::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let image = format!("spark.kubernetes.initContainer.image={IMAGE}");
    let uri = format!("http://127.0.0.1:{port}");
    let time = "spark.kubernetes.cloakroom.retryTimeout=1s";
    let output = submitter.submit(&uri, &["--conf", &image, "--conf", time]).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1));
    let line = format!(
        "the jars were not staged: could not stage to {uri}: connection refused (tried for 1s); check the address"
    );
    assert!(said.contains(&line), "{said}");
    let waiting = format!(
        "the staging server at {uri} does not answer (connection refused): waiting up to 1s for it\n"
    );
    assert_eq!(said.matches(&waiting).count(), 1, "{said}");
    submitter.assert_nothing_is_left(&said);
}

/// The old server is killed in the middle of an upload, and its successor has its address and its data. It is about to
/// stop as well when it is asked whether all is still there.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_replaced_in_the_middle_of_a_submission_is_waited_for() {
    let mut submitter = Submitter::new();
    std::fs::write(submitter.path("app.jar"), noise(LARGE)).unwrap();
    let address: SocketAddr = submitter.server.address.parse().unwrap();
    let (uploads, questions) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let is_first = |count: &AtomicUsize| count.fetch_add(1, Ordering::Relaxed) == 0;
    let front = Front::before(address, move |request| match request.split(' ').next() {
        Some("POST") if is_first(&uploads) => Turn::Hold { after: A_LITTLE },
        _ if request.contains("/metadata") && is_first(&questions) => STOPPING,
        _ => Turn::Pass,
    });
    let mut running = submitter.submit(&front.url(), &[]).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = running.stderr.take().unwrap();
    front.holds().await;
    let data = submitter.path("server");
    let successor = tokio::task::spawn_blocking(move || {
        submitter.server.kill();
        front.let_go();
        let mut said = read_until(&mut told, "trying again for up to 2m\n");
        submitter.server = Cloakroom::serve_at(address, &data, &["--fetch-image", IMAGE]);
        told.read_to_string(&mut said).unwrap();
        assert!(running.wait().unwrap().success(), "{said}");
        (submitter, said)
    });
    let (submitter, said) = successor.await.unwrap();
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("for up to")).collect();
    assert_eq!(lines.len(), 2, "one for the upload, one for the question: {said}");
    assert!(lines[0].starts_with("the connection broke after ") && !said.contains("attempt "), "{said}");
    assert!(lines[1].contains(" is being replaced (503 shutting-down): trying again for up to 2m"), "{said}");
    assert_eq!(submitter.kept().len(), 2, "one bundle of jars, one of files");
}

#[test]
fn ctrl_c_during_an_upload_leaves_nothing_behind() {
    let submitter = Submitter::new();
    // It takes connections, and says nothing.
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let image = format!("spark.kubernetes.initContainer.image={IMAGE}");
    let uri = format!("http://{}", deaf.local_addr().unwrap());
    let mut command = submitter.submit(&uri, &["--conf", &image]);
    let mut running = command.stderr(Stdio::piped()).spawn().unwrap();
    let connection = deaf.accept().unwrap();
    assert!(Command::new("kill").args(["-s", "INT", &running.id().to_string()]).status().unwrap().success());
    let said: Vec<String> =
        BufReader::new(running.stderr.take().unwrap()).lines().map(Result::unwrap).collect();
    assert_eq!(running.wait().unwrap().code(), Some(130));
    assert!(said.join("\n").contains("stopped before the application was submitted"), "{said:?}");
    drop(connection);
    submitter.assert_nothing_is_left(&said.join("\n"));
}

/// A pod whose creation never has an answer, and somebody who has waited long enough.
#[test]
fn ctrl_c_while_the_pod_is_made_releases_what_was_staged() {
    let submitter = Submitter::new();
    submitter.api_server.fail_some(POD, Verb::Create, 1, usize::MAX, Fault::Hang);
    let timeout = "spark.kubernetes.submission.requestTimeout=1500";
    let mut command = submitter.submit(&submitter.server.url(""), &["--conf", timeout]);
    let mut running = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(running.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("Staged the files") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended");
    }
    assert_eq!(submitter.kept().len(), 2);
    assert!(Command::new("kill").args(["-s", "INT", &running.id().to_string()]).status().unwrap().success());
    let rest: Vec<String> = said.lines().map(Result::unwrap).collect();
    assert_eq!(running.wait().unwrap().code(), Some(130), "{rest:?}");
    submitter.assert_nothing_is_left(&rest.join("\n"));
}

#[test]
fn a_server_that_wants_a_token_gets_that_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens").display().to_string();
    std::fs::write(&tokens, "a-token-that-is-long-enough\n").unwrap();
    let auth = ["--upload-auth", "token", "--upload-token-file", &tokens];
    let submitter = Submitter::with_flags(&[&["--fetch-image", IMAGE][..], &auth].concat());
    let refused = stderr(&submitter.submitted(&[]));
    assert!(refused.contains("the jars were not staged: could not stage to"), "{refused}");
    submitter.assert_nothing_is_left(&refused);
    let key = format!("spark.kubernetes.cloakroom.uploadTokenFile={tokens}");
    let output = submitter.submitted(&["--conf", &key]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(submitter.kept().len(), 2);
}

/// The resource is removed while the submitter asks for it.
#[test]
fn a_ticket_that_is_gone_is_noticed_before_the_pod_is_made() {
    let tokens = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&tokens, "admin-horse-battery-staple\n").unwrap();
    let tokens = tokens.into_temp_path();
    let admin = ["--fetch-image", IMAGE, "--admin-token-file", tokens.to_str().unwrap()];
    let submitter = Submitter::with_flags(&admin);
    let admin_url = submitter.server.url("");
    let front = Front::before(submitter.server.address.parse().unwrap(), move |request| {
        if let Some((path, _)) = request.split_once("/metadata ") {
            let id = path.rsplit_once('/').unwrap().1;
            let mut remove = command();
            remove.args(["rm", "--yes", id, "--admin-url", &admin_url, "--admin-token-file"]).arg(&tokens);
            assert!(remove.output().unwrap().status.success());
        }
        Turn::Pass
    });
    let output = submitter.submit(&front.url(), &[]).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let lost = said.lines().find(|line| line.contains("the jars were staged as ")).unwrap();
    assert!(lost.contains(" no longer has them: "), "{lost}");
    assert!(said.ends_with(" (nothing is left on the server)\n"), "{said}");
    assert_no_pod_was_made(&submitter);
    submitter.assert_nothing_is_left(&said);
}

#[test]
fn a_server_that_does_not_answer_is_not_said_to_have_lost_tickets() {
    let submitter = Submitter::new();
    let uploads = AtomicUsize::new(0);
    let front = Front::before(submitter.server.address.parse().unwrap(), move |request| {
        let is_upload = request.starts_with("POST ");
        if is_upload && uploads.fetch_add(1, Ordering::Relaxed) == 1 { Turn::Last } else { Turn::Pass }
    });
    let at_once = ["--conf", "spark.kubernetes.cloakroom.retryTimeout=0s"];
    let output = submitter.submit(&front.url(), &at_once).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let line = format!(
        ", and {} does not say whether they are still there: connection refused; check the address (",
        front.url()
    );
    assert!(said.contains(&line) && !said.contains("replaced"), "{said}");
    assert!(said.contains(" (still there: the staged jars (resource "), "{said}");
    assert_no_pod_was_made(&submitter);
    assert_eq!(submitter.api_server.everything_in("default"), [""; 0]);
    assert_eq!(submitter.kept().len(), 2, "one bundle of jars, one of files");
}

/// The dry run tries the pod once.
fn assert_no_pod_was_made(submitter: &Submitter) {
    assert_eq!(submitter.api_server.calls_to(Verb::Create).len(), 1);
}

#[test]
fn a_dry_run_shows_the_init_container_and_stages_nothing() {
    let submitter = Submitter::new();
    let output = submitter.submit("http://127.0.0.1:1", &["--dry-run"]).output().unwrap();
    let yaml = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    for part in [
        "name: spark-init\n",
        "image: (what the staging server advertises)\n",
        "(given when it is staged)",
        "downloadSubmittedJarsSecret: KG5vdCBzaG93bik=",
    ] {
        assert!(yaml.contains(part), "{part:?} is not in\n{yaml}");
    }
    let warning =
        "Warning: the init-container's image is what http://127.0.0.1:1 says, which a dry run does not ask";
    assert!(stderr(&output).contains(warning), "{}", stderr(&output));
    assert_eq!(submitter.api_server.calls(), []);
    submitter.assert_nothing_is_left(&yaml);
}
