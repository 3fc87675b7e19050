//! `cloakroom stage --for pods`: the Pod or Job is printed with the files in it, or nothing is.

use std::fs::File;
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

use cloakroom_core::text::harmless_json;
use cloakroom_testing::api_server::{FakeApiServer, SECRET};
use cloakroom_testing::cluster::{Cluster as _, kubeconfig};
use cloakroom_testing::known::rules_of_submitters;
use cloakroom_testing::process::{Cloakroom, output_in_time, read, stderr};
use cloakroom_testing::workspace::Workspace;
use serde_json::{Value, json};

const JOB: &str = "apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: ml}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: python, command: [python, main.py]}
";

/// How pods reach the server, which is on this machine here.
const FOR_PODS: &str = "http://staging.example:10000";

struct User {
    folder: Workspace,
    server: Cloakroom,
}

impl User {
    fn new() -> Self {
        let folder = Workspace::with(&[
            ("job.yaml", JOB),
            ("tree/main.py", "import lib.one"),
            ("tree/lib/one.py", "print('hello')"),
            ("tree/.gitignore", "*.log"),
            ("tree/a.log", "noise"),
        ]);
        let flags = ["--fetch-image", "repo.example/cloakroom:1", "--internal-url", FOR_PODS];
        let server = folder.serve(&flags);
        Self { folder, server }
    }

    fn stage(&self, arguments: &[&str]) -> Command {
        let mut command = self.folder.command();
        command.args(["stage", "--for", "pods", "--server", &self.server.url("")]).args(arguments);
        command
    }

    fn refusal(&self, arguments: &[&str]) -> String {
        let refused = output_in_time(&mut self.stage(arguments));
        assert_eq!((refused.status.success(), refused.stdout.len()), (false, 0), "{arguments:?}");
        stderr(&refused)
    }

    /// Fetches as the init-container does, from where the server is here. Returns the ticket's URL.
    fn fetches(&self, secret: &Value, to: &str) -> String {
        let ticket = base64(&secret["data"]["ticket.json"]);
        let read: Value = serde_json::from_str(&ticket).unwrap();
        self.folder.write("ticket.json", &ticket);
        let mut command = self.folder.command();
        command.args(["fetch", "--ticket", "ticket.json", "--server", &self.server.url(""), "--to", to]);
        let fetched = output_in_time(&mut command);
        assert!(fetched.status.success(), "{}", stderr(&fetched));
        read["url"].as_str().unwrap().to_owned()
    }

    fn bundles(&self) -> usize {
        let folders = std::fs::read_dir(self.folder.path("server/bundles")).unwrap();
        let folders = folders.map(|folder| folder.unwrap().path()).filter(|path| path.is_dir());
        folders.map(|folder| std::fs::read_dir(folder).unwrap().count()).sum()
    }
}

fn base64(text: &Value) -> String {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text.as_str().unwrap()).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// The documents of an output.
fn documents(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", stderr(output));
    let text = std::str::from_utf8(&output.stdout).unwrap();
    serde_saphyr::from_multiple(text).unwrap()
}

#[test]
fn a_job_is_printed_with_a_folder_in_it() {
    let user = User::new();
    let arguments = ["-f", "job.yaml", "--workdir", "tree"];
    let first = output_in_time(&mut user.stage(&arguments));
    let [secret, job] = &documents(&first)[..] else { panic!("{first:?}") };
    let id = job["metadata"]["labels"]["cloakroom-files"].as_str().unwrap();
    assert_eq!((id.len(), secret["metadata"]["namespace"].as_str()), (32, Some("ml")));
    let name = format!("train-job-files-{}", &id[..8]);
    let spec = &job["spec"]["template"]["spec"];
    assert_eq!(
        (&secret["metadata"]["name"], &spec["volumes"][1]["secret"]["secretName"]),
        (&json!(name), &json!(name))
    );
    assert_eq!(spec["initContainers"][0]["image"], "repo.example/cloakroom:1");
    assert_eq!(spec["containers"][0]["workingDir"], "/work");
    let told = stderr(&first);
    assert!(told.contains("left out 1 file by tree/.gitignore"), "{told}");
    assert!(told.contains(&format!("“kubectl delete -n ml job/train secret/{name}”")), "{told}");
    let ticket = base64(&secret["data"]["ticket.json"]);
    let token = serde_json::from_str::<Value>(&ticket).unwrap()["resourceSecret"].to_string();
    assert!(!told.contains(token.trim_matches('"')), "a secret is told");

    let copied = File::options().write(true).open(user.folder.path("tree/main.py")).unwrap();
    copied.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let again = output_in_time(&mut user.stage(&arguments));
    assert_eq!((&again.stdout, user.bundles()), (&first.stdout, 1), "{}", stderr(&again));
    assert!(stderr(&again).contains("nothing was sent"), "{}", stderr(&again));

    assert!(user.fetches(secret, "out").starts_with(FOR_PODS));
    assert_eq!(read(&user.folder.path("out/lib/one.py")), "print('hello')");
    assert!(!user.folder.path("out/a.log").exists());
    let later = documents(&output_in_time(&mut user.stage(&arguments)));
    assert_eq!((&later[1], later[0] == *secret), (job, false), "what was fetched is staged anew");
    user.folder.write("tree/main.py", "import lib");
    let other = documents(&output_in_time(&mut user.stage(&arguments)));
    assert_ne!(other[1]["metadata"]["labels"], job["metadata"]["labels"]);
}

/// Nobody has its ticket, so nobody may be given it.
#[test]
fn what_was_not_printed_is_released_and_not_given_again() {
    let user = User::new();
    let mut unprinted = user.stage(&["-f", "job.yaml", "tree"]);
    let output = unprinted.stdout(File::create("/dev/full").unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("No space left on device"), "{}", stderr(&output));
    assert!(stderr(&output).trim_end().ends_with("what was staged is released again"), "{}", stderr(&output));
    assert_eq!(user.bundles(), 0);
    let first = output_in_time(&mut user.stage(&["-f", "job.yaml", "tree"]));
    let second =
        user.stage(&["-f", "job.yaml", "tree"]).stdout(File::create("/dev/full").unwrap()).output().unwrap();
    assert!(stderr(&second).contains("what an earlier run has staged stays"), "{}", stderr(&second));
    user.fetches(&documents(&first)[0], "out");
}

#[test]
fn what_kubectl_reads_otherwise_is_printed_as_json() {
    let user = User::new();
    for (text, is_json) in
        [("a\n\tb\n", false), ("\tset -e\n\tb\n", true), ("\n\ta", true), ("a\u{7f}\u{85}", true)]
    {
        let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        map["data"]["script"] = json!(text);
        user.folder.write("both.yaml", format!("{}\n---\n{JOB}", harmless_json(&map.to_string())));
        let output = output_in_time(&mut user.stage(&["-f", "both.yaml", "tree"]));
        let printed = String::from_utf8(output.stdout.clone()).unwrap();
        assert_eq!(printed.starts_with("---\n{"), is_json, "{printed}");
        assert!(!printed.contains(['\u{7f}', '\u{85}']), "{printed}");
        assert_eq!(documents(&output)[0]["data"]["script"], text);
    }
}

#[test]
fn what_cannot_have_the_files_is_refused_before_anything_is_sent() {
    let user = User::new();
    user.folder.write("map.yaml", "kind: ConfigMap");
    let no_namespace = JOB.replace(", namespace: ml", "");
    user.folder.write("bare.yaml", &no_namespace);
    user.folder.write("tree2/.env", "A=1");
    for (arguments, said) in [
        (
            &["-f", "map.yaml", "tree"][..],
            "has no Pod and no Job of batch/v1 in it, but ConfigMap without an apiVersion",
        ),
        (&["-f", "bare.yaml", "tree"], "bare.yaml: metadata.namespace is missing"),
        (&["-f", "job.yaml", "-n", "other", "tree"], "is ml, and --namespace is other"),
        (&["-f", "job.yaml"], "no files are named"),
        (&["-n", "ml", "tree"], "--for pods needs -f"),
        (&["-f", "job.yaml", "--jars", "a.jar", "tree"], "--jars is for a Spark application"),
        (&["-f", "job.yaml", "--container", "x", "tree"], "has no x (--container); it has main"),
        (&["-f", "job.yaml", "--mount", "work", "tree"], "it begins with a slash"),
        (&["-f", "job.yaml", "--name", "x", "tree"], "has no Pod and no Job x"),
        (&["-f", "job.yaml", "tree2"], "look like private keys or credentials: tree2/.env"),
    ] {
        let refused = user.refusal(arguments);
        assert!(refused.contains(said), "{said}: {refused}");
    }
    let mut command = user.stage(&["-f", "-", "tree"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"kind: Service").unwrap();
    let refused = child.wait_with_output().unwrap();
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(1), 0), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("stdin has no Pod and no Job"), "{}", stderr(&refused));
    assert_eq!(user.bundles(), 0);
    user.server.kill();
    let folder = Workspace::with(&[("job.yaml", JOB), ("tree/a", "a")]);
    for (flags, arguments, said) in [
        (&[][..], &[][..], "no pod reaches http://127.0.0.1"),
        (&["--internal-url", FOR_PODS], &[], "the server names no image for the init-container"),
        (&["--internal-url", FOR_PODS], &["--fetch-image", "x", "--ca-file", "job.yaml"], "job.yaml"),
    ] {
        let server = folder.serve(flags);
        let mut command = folder.command();
        command.args(["stage", "--for", "pods", "--server", &server.url(""), "-f", "job.yaml", "tree"]);
        let refused = output_in_time(command.args(arguments));
        assert_eq!((refused.status.success(), refused.stdout.len()), (false, 0));
        assert!(stderr(&refused).contains(said), "{said}: {}", stderr(&refused));
    }
}

#[test]
fn a_secret_of_a_chosen_name_goes_into_the_cluster_by_itself() {
    const TOKEN: &str = "of-the-stager";
    let user = User::new();
    let api_server = FakeApiServer::with("ml", &[SECRET]);
    api_server.know_token(TOKEN, "stager", &[]);
    api_server.grant_rules("stager", Some("ml"), rules_of_submitters(&["stager.yaml"]));
    user.folder.write("kubeconfig", kubeconfig(None, api_server.address(), TOKEN));
    let stage_as = |file: &str| {
        let mut command = user.stage(&["-f", file, "--secret", "code", "tree"]);
        command.env("KUBECONFIG", user.folder.path("kubeconfig"));
        command
    };
    let stage = || output_in_time(&mut stage_as("job.yaml"));
    let unprinted = stage_as("job.yaml").stdout(File::create("/dev/full").unwrap()).output().unwrap();
    assert!(stderr(&unprinted).contains("removed again: secret code"), "{}", stderr(&unprinted));
    assert_eq!((api_server.object(SECRET, "ml", "code"), user.bundles()), (None, 0));
    let printed = documents(&stage());
    let [job] = &printed[..] else { panic!("{printed:?}") };
    assert_eq!(job["spec"]["template"]["spec"]["volumes"][1]["secret"]["secretName"], "code");
    let secret = api_server.object(SECRET, "ml", "code").unwrap();
    user.fetches(&secret, "out");
    assert_eq!(documents(&stage()), printed);
    assert_ne!(api_server.object(SECRET, "ml", "code"), Some(secret), "it has the new ticket");

    let bundles = user.bundles();
    let unprinted = stage_as("job.yaml").stdout(File::create("/dev/full").unwrap()).output().unwrap();
    assert!(
        stderr(&unprinted).contains("the Secret code has the new ticket already"),
        "{}",
        stderr(&unprinted)
    );
    user.fetches(&api_server.object(SECRET, "ml", "code").unwrap(), "later");
    assert_eq!(user.bundles(), bundles, "the earlier ticket was given again, and is not released");
    user.folder.write("other.yaml", JOB.replace("train", "other"));
    user.folder.write("each.yaml", JOB.replace("name: train", "generateName: train-"));
    for (file, code, said) in [
        ("other.yaml", 1, "there is secret code in namespace ml already, for Job train: choose another name"),
        ("each.yaml", 2, "--secret is one name, and each.yaml has a generateName"),
    ] {
        let refused = output_in_time(&mut stage_as(file));
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(code), 0));
        assert!(stderr(&refused).contains(said), "{said}: {}", stderr(&refused));
    }

    api_server.delete(SECRET, "ml", "code");
    let foreign =
        json!({"metadata": {"name": "code", "managedFields": [{"manager": "helm"}]}, "data": {"a": "YQ=="}});
    api_server.add(SECRET, "ml", foreign);
    let (bundles, refused) = (user.bundles(), stage());
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(1), 0));
    assert!(
        stderr(&refused).contains("there is secret code in namespace ml already, made by helm"),
        "{}",
        stderr(&refused)
    );
    assert_eq!(user.bundles(), bundles);
    assert_eq!(api_server.object(SECRET, "ml", "code").unwrap()["data"], json!({"a": "YQ=="}));
}
