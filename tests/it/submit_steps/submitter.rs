//! A cluster, a staging server and an application of which every kind of object is made, behind a checkpoint.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use cloakroom_testing::api_server::{FakeApiServer, NETWORK_POLICY, POD_GROUP, SECRET};
use cloakroom_testing::checkpoint::{Accident, Checkpoint, Extent, STAGING};
use cloakroom_testing::cluster::{Account, CLAIM, CONFIG_MAP, Cluster as _, Kind, NAMESPACE, POD, SERVICE};
use cloakroom_testing::process::{Cloakroom, command, stderr};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

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
    folder: tempfile::TempDir,
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
        let api_server = FakeApiServer::start();
        KINDS.iter().for_each(|kind| api_server.define(*kind));
        api_server.add(NAMESPACE, "", json!({"metadata": {"name": "default"}}));
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in [
            ("token", api_server.token(Account::Admin).as_str()),
            ("admin-token", ADMIN_TOKEN),
            ("app.jar", "the application"),
            ("dep.jar", "a dependency"),
            ("data.txt", "data"),
            ("executor.yaml", "spec:\n  containers:\n  - name: executor\n"),
            ("hadoop/core-site.xml", "<configuration/>"),
        ] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        std::fs::create_dir(folder.path().join("shared")).unwrap();
        let tokens = folder.path().join("admin-token").display().to_string();
        let flags = ["--fetch-image", "repo.example/cloakroom:1", "--admin-token-file", &tokens];
        let server = Cloakroom::serve(&folder.path().join("server"), &flags);
        let addresses = [(CLUSTER, api_server.address()), (STAGING, server.address.parse().unwrap())];
        Self { checkpoint: Checkpoint::before(&addresses), api_server, server, folder, way }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Nobody waits for the application's end, and not for long for an answer.
    pub fn submit(&self) -> Command {
        let mut command = command();
        let master = format!("k8s://http://{}", self.checkpoint.gate(0));
        command.args([
            "submit",
            "--master",
            &master,
            "--deploy-mode",
            "cluster",
            "--class",
            "org.example.App",
        ]);
        let claim = "spark.kubernetes.driver.volumes.persistentVolumeClaim.data";
        let volcano = "org.apache.spark.deploy.k8s.features.VolcanoFeatureStep";
        for (key, value) in [
            ("spark.kubernetes.container.image", "repo.example/spark:4"),
            ("spark.kubernetes.driver.pod.name", "app-driver"),
            ("spark.kubernetes.submission.waitAppCompletion", "false"),
            ("spark.kubernetes.submission.requestTimeout", "1000"),
            ("spark.kubernetes.cloakroom.retryTimeout", "2s"),
            ("spark.kubernetes.authenticate.submission.oauthTokenFile", "token"),
            ("spark.kubernetes.executor.podTemplateFile", "executor.yaml"),
            ("spark.kubernetes.driver.pod.featureSteps", volcano),
            (&format!("{claim}.mount.path"), "/data"),
            (&format!("{claim}.options.claimName"), "OnDemand"),
            (&format!("{claim}.options.storageClass"), "fast"),
            (&format!("{claim}.options.sizeLimit"), "1Gi"),
        ] {
            command.args(["--conf", &format!("{key}={value}")]);
        }
        // A folder that the submission makes.
        let shared =
            format!("spark.kubernetes.file.upload.path=file://{}", self.path("shared/deep").display());
        let [server, internal] = ["uri", "internal.uri"].map(|key| {
            format!("spark.kubernetes.resourceStagingServer.{key}=http://{}", self.checkpoint.gate(1))
        });
        // Of a driver with a token of its own nobody asks what its service account may do.
        let token = "spark.kubernetes.authenticate.driver.oauthToken=the-drivers";
        match self.way {
            Way::Staged => command.args(["--conf", &server, "--conf", &internal, "--conf", token]),
            Way::Copied => command.args(["--conf", &shared]),
        };
        command.args(["--jars", "dep.jar", "--files", "data.txt", "app.jar"]);
        command.env("HOME", self.folder.path()).env("HADOOP_CONF_DIR", self.path("hadoop"));
        command.current_dir(self.folder.path());
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
        folders.concat().into_iter().filter(|path| path.is_file()).count()
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
