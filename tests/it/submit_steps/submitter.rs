//! A cluster, a staging server and an application of which every kind of object is made, behind a checkpoint.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use cloakroom_testing::api_server::{FakeApiServer, NETWORK_POLICY, POD_GROUP, SECRET};
use cloakroom_testing::checkpoint::{Accident, Checkpoint, Extent, STAGING};
use cloakroom_testing::cluster::{CLAIM, CONFIG_MAP, Cluster as _, Kind, POD, SERVICE};
use cloakroom_testing::process::{Cloakroom, command, stderr};
use cloakroom_testing::workspace::Workspace;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The name of the gate to the API server.
pub const CLUSTER: &str = "cluster";
/// What is made beside the pod.
const KINDS: [Kind; 6] = [SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY, CLAIM, POD_GROUP];
const ADMIN_TOKEN: &str = "admin-horse-battery-staple";

/// How files of this machine travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Staged,
    /// To the folder of `spark.kubernetes.file.upload.path`.
    Copied,
}

pub struct Submitter {
    pub checkpoint: Checkpoint,
    pub api_server: FakeApiServer,
    server: Cloakroom,
    folder: Workspace,
    way: Way,
}

/// What there is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    /// `KIND NAME`, in the cluster.
    pub objects: Vec<String>,
    /// Ids of resources, in the server's ledger.
    pub resources: BTreeSet<String>,
    /// In the server's folders.
    pub bundles: usize,
    /// In the folder of `spark.kubernetes.file.upload.path`.
    pub copies: Vec<PathBuf>,
}

impl Submitter {
    pub fn new(way: Way) -> Self {
        let api_server = FakeApiServer::with("default", &KINDS);
        let files = [
            ("admin-token", ADMIN_TOKEN),
            ("app.jar", "the application"),
            ("dep.jar", "a dependency"),
            ("data.txt", "data"),
            ("executor.yaml", "spec:\n  containers:\n  - name: executor\n"),
            ("hadoop/core-site.xml", "<configuration/>"),
        ];
        let folder = Workspace::for_cluster(&api_server, &files);
        std::fs::create_dir(folder.path("shared")).unwrap();
        let tokens = folder.text("admin-token");
        let server =
            folder.serve(&["--fetch-image", "repo.example/cloakroom:1", "--admin-token-file", &tokens]);
        let addresses = [(CLUSTER, api_server.address()), (STAGING, server.address.parse().unwrap())];
        Self { checkpoint: Checkpoint::before(&addresses), api_server, server, folder, way }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    /// Nobody waits for the application's end, and not for long for an answer.
    pub fn submit(&self) -> Command {
        let claim = |key: &str| format!("driver.volumes.persistentVolumeClaim.data.{key}");
        let volcano = "org.apache.spark.deploy.k8s.features.VolcanoFeatureStep";
        let server = format!("http://{}", self.checkpoint.gate(1));
        // A folder that the submission makes.
        let shared = format!("file://{}", self.folder.text("shared/deep"));
        let mut conf = vec![
            ("driver.pod.name", "app-driver"),
            ("submission.waitAppCompletion", "false"),
            ("submission.requestTimeout", "1000"),
            ("cloakroom.retryTimeout", "2s"),
            ("executor.podTemplateFile", "executor.yaml"),
            ("driver.pod.featureSteps", volcano),
        ];
        match self.way {
            Way::Staged => conf.extend([
                ("resourceStagingServer.uri", server.as_str()),
                ("resourceStagingServer.internal.uri", server.as_str()),
                // Of a driver with a token of its own nobody asks what its service account may do.
                ("authenticate.driver.oauthToken", "the-drivers"),
            ]),
            Way::Copied => conf.push(("file.upload.path", shared.as_str())),
        }
        let claims = [
            ("mount.path", "/data"),
            ("options.claimName", "OnDemand"),
            ("options.storageClass", "fast"),
            ("options.sizeLimit", "1Gi"),
        ];
        let claims = claims.map(|(key, value)| (claim(key), value));
        conf.extend(claims.iter().map(|(key, value)| (key.as_str(), *value)));
        let mut command = self.folder.submit(self.checkpoint.gate(0), &conf);
        command.args(["--class", "org.example.App", "--jars", "dep.jar", "--files", "data.txt", "app.jar"]);
        command.env("HADOOP_CONF_DIR", self.path("hadoop"));
        command
    }

    pub fn submitted(&self) -> Output {
        self.submit().output().unwrap()
    }

    /// The same where the request `number` meets an accident.
    pub fn submitted_with(&self, number: usize, extent: Extent, accident: Accident) -> Output {
        self.checkpoint.plan(number, extent, accident);
        let output = self.submitted();
        assert!(self.checkpoint.accidents() > 0, "nothing went wrong at request {number}");
        output
    }

    /// The same where somebody sends `signal` once it has happened.
    pub fn stopped_with(&self, number: usize, accident: Accident, signal: Signal) -> Output {
        // Also where it is tried again before the signal comes.
        self.checkpoint.plan(number, Extent::EachTime, accident);
        let running = self.submit().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        self.checkpoint.until_accident();
        send(signal, &running);
        running.wait_with_output().unwrap()
    }

    pub fn state(&self) -> State {
        State {
            objects: self.api_server.everything_in("default"),
            resources: self.resources(),
            bundles: self.bundles(),
            copies: leaves(&self.path("shared")),
        }
    }

    fn bundles(&self) -> usize {
        let folders = ["server/bundles", "server/incoming"].map(|folder| leaves(&self.path(folder)));
        let is_bundle = |path: &PathBuf| path.is_file() && !path.ends_with("bundles/stamp");
        folders.concat().iter().filter(|path| is_bundle(path)).count()
    }

    /// What `cloakroom ls` says.
    fn resources(&self) -> BTreeSet<String> {
        let listed: Value = serde_json::from_slice(&self.admin(&["ls", "--output", "json"]).stdout).unwrap();
        let resources = listed["resources"].as_array().unwrap();
        resources.iter().map(|resource| resource["resourceId"].as_str().unwrap().to_owned()).collect()
    }

    fn admin(&self, args: &[&str]) -> Output {
        let mut command = command();
        command.args(args).args(["--admin-url", &self.server.url(""), "--admin-token-file"]);
        let output = command.arg(self.path("admin-token")).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        output
    }

    /// Takes an application away that was submitted, and what is on the server.
    pub fn clear(&self) {
        self.checkpoint.heal();
        for kind in [&[POD][..], &KINDS].concat() {
            for object in self.api_server.everything_in("default") {
                if let Some(name) = object.strip_prefix(&format!("{} ", kind.kind)) {
                    self.api_server.delete(kind, "default", name);
                }
            }
        }
        for id in self.resources() {
            self.admin(&["rm", "--yes", &id]);
        }
        std::fs::remove_dir_all(self.path("shared")).unwrap();
        std::fs::create_dir(self.path("shared")).unwrap();
        assert_eq!(self.state(), State::default());
    }
}

pub fn send(signal: Signal, to: &Child) {
    kill_process(Pid::from_child(to), signal).unwrap();
}

/// Everything below a folder, but for folders with something in them.
fn leaves(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let below = leaves(&path);
        if below.is_empty() { found.push(path) } else { found.extend(below) }
    }
    found
}
