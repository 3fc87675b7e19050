//! Somebody who wants to submit an application: a namespace, a staging server, and a folder with the application in it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_testing::cluster::{Account, Api, Cluster as _, text};
use cloakroom_testing::port::ReservedPort;
use cloakroom_testing::process::{Cloakroom, command};
use cloakroom_testing::wait::until;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::page::Block;
use super::running::{Ended, Running};
use crate::shared::{ACCOUNT, CLOAKROOM, MACHINE, RunningCluster};

/// The name of the driver's pod.
pub const DRIVER: &str = "report-driver";

/// The container that the driver runs in.
const CONTAINER: &str = "spark-kubernetes-driver";

/// What an upload token, right or wrong, has in it.
pub const SECRET_MARK: &str = "a-token-that-nobody-may-see";

/// What a namespace keeps of a submission.
const KINDS: [&str; 4] = ["pods", "services", "configmaps", "secrets"];

pub struct TestNamespace<'a> {
    pub cluster: &'a RunningCluster,
    pub namespace: &'static str,
    /// The admin of the cluster.
    pub api: Api,
    port: ReservedPort,
    server: Option<Cloakroom>,
    folder: TempDir,
    /// What nobody may see, beside what is in the namespace's secrets now.
    secrets: Mutex<Vec<String>>,
}

impl<'a> TestNamespace<'a> {
    /// A new namespace, and a server that offers this project's image to init-containers.
    pub async fn new(cluster: &'a RunningCluster, namespace: &'static str) -> Self {
        let mut tested = Self::without_server(cluster, namespace).await;
        tested.serve("server", &[]);
        tested
    }

    /// A new namespace, and an application of a few megabytes that pack no smaller.
    pub async fn without_server(cluster: &'a RunningCluster, namespace: &'static str) -> Self {
        let api = cluster.namespace(namespace).await;
        let (port, folder) = (ReservedPort::new(), tempfile::tempdir().unwrap());
        let secrets = Mutex::new(vec![cluster.plane.token(Account::Admin), SECRET_MARK.to_owned()]);
        let tested = Self { cluster, namespace, api, port, server: None, folder, secrets };
        std::fs::write(tested.path("report.jar"), jar(3 << 20)).unwrap();
        std::fs::write(tested.path("cluster-token"), cluster.plane.token(Account::Admin)).unwrap();
        tested
    }

    /// Starts a server that keeps its data in a folder of this name, always at the same address.
    pub fn serve(&mut self, data: &str, flags: &[&str]) {
        let cluster = &self.cluster.plane;
        let kubeconfig = self.path("kubeconfig");
        std::fs::write(&kubeconfig, cluster.kubeconfig(Account::Cloakroom, cluster.address())).unwrap();
        let mut command = command();
        command.args(["serve", "--listen", &self.server_address().to_string(), "--fetch-image", CLOAKROOM]);
        command.arg("--kubeconfig").arg(kubeconfig).arg("--data-dir").arg(self.path(data)).args(flags);
        self.server = Some(Cloakroom::start(command));
    }

    /// `kill -9`
    pub fn kill_server(&mut self) {
        self.server.take().unwrap().kill();
    }

    pub fn server_address(&self) -> SocketAddr {
        self.port.address()
    }

    pub fn server_url(&self) -> String {
        format!("http://{}", self.server_address())
    }

    /// A file of the submitting machine.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A pod template in which the driver's container runs a shell script, whatever the arguments are.
    pub fn template(&self, script: &str, spec: Value) -> (&'static str, String) {
        let mut template = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec});
        template["spec"]["containers"] = json!([{"name": CONTAINER, "command": ["sh", "-c", script]}]);
        let path = self.path("driver.yaml");
        std::fs::write(&path, template.to_string()).unwrap();
        ("spark.kubernetes.driver.podTemplateFile", path.display().to_string())
    }

    /// The setting that has files staged.
    pub fn staging(&self) -> (&'static str, String) {
        ("spark.kubernetes.resourceStagingServer.uri", self.server_url())
    }

    /// Submits `report.jar` with these settings beyond those that all have, and waits for the end of that.
    pub async fn submitted(&self, settings: &[(&str, String)]) -> Ended {
        self.submit(settings, &["--class", "org.example.Report", "report.jar"]).end().await
    }

    pub fn submit(&self, settings: &[(&str, String)], arguments: &[&str]) -> Running {
        let mut command = command();
        let master = format!("k8s://https://{}", self.cluster.plane.address());
        command.args(["submit", "--master", &master, "--deploy-mode", "cluster", "--name", "report"]);
        for (key, value) in self.common().iter().map(|(key, value)| (*key, value)) {
            command.args(["--conf", &format!("{key}={value}")]);
        }
        for (key, value) in settings {
            command.args(["--conf", &format!("{key}={value}")]);
        }
        command.args(arguments).env("HOME", self.folder.path()).current_dir(self.folder.path());
        Running::start(command)
    }

    fn common(&self) -> Vec<(&'static str, String)> {
        vec![
            ("spark.kubernetes.namespace", self.namespace.to_owned()),
            ("spark.kubernetes.container.image", MACHINE.to_owned()),
            ("spark.kubernetes.authenticate.driver.serviceAccountName", ACCOUNT.to_owned()),
            ("spark.kubernetes.authenticate.submission.oauthTokenFile", "cluster-token".to_owned()),
            ("spark.kubernetes.authenticate.submission.caCertFile", self.ca()),
            ("spark.kubernetes.driver.pod.name", DRIVER.to_owned()),
            ("spark.driver.memory", "512m".to_owned()),
            // Here pods have the loopback interface in common with the server.
            ("spark.kubernetes.resourceStagingServer.internal.uri", self.server_url()),
        ]
    }

    fn ca(&self) -> String {
        self.cluster.plane.ca().unwrap().display().to_string()
    }

    /// The path of something in the namespace, or of the list of all of a kind.
    pub fn object(&self, kind: &str, name: &str) -> String {
        format!("/api/v1/namespaces/{}/{kind}/{name}", self.namespace).trim_end_matches('/').to_owned()
    }

    /// All of a kind, but for what every namespace has.
    pub async fn objects(&self, kind: &str) -> Vec<Value> {
        let (_, list) = self.api.get(&self.object(kind, "")).await;
        let mut objects = list["items"].as_array().unwrap().clone();
        objects.retain(|object| object["metadata"]["name"] != "kube-root-ca.crt");
        objects
    }

    /// Waits until there is an object whose name ends so.
    pub async fn appeared(&self, kind: &str, end: &str) -> Value {
        let found = async || {
            let objects = self.objects(kind).await;
            objects.into_iter().find(|object| text(&object["metadata"]["name"]).ends_with(end))
        };
        until(&format!("there is …{end} in {}", self.namespace), async || found().await.is_some()).await;
        found().await.unwrap()
    }

    /// What the init-container has said.
    pub fn init_log(&self) -> String {
        self.cluster.runner.log(self.namespace, DRIVER, "spark-init")
    }

    /// What the driver has said.
    pub fn driver_log(&self) -> String {
        self.cluster.runner.log(self.namespace, DRIVER, CONTAINER)
    }

    /// Nothing in the cluster, nothing on the server.
    pub async fn assert_nothing_is_left(&self) {
        for kind in KINDS {
            // Whoever deletes a pod waits for its node.
            until(&format!("no {kind} are in {}", self.namespace), async || {
                self.objects(kind).await.is_empty()
            })
            .await;
        }
        assert_eq!(self.kept(), Vec::<PathBuf>::new());
    }

    /// What was made is the pod's, and goes with it.
    pub async fn assert_all_goes_with_the_pod(&self) {
        for kind in &KINDS[1..] {
            for object in self.objects(kind).await {
                let owner = &object["metadata"]["ownerReferences"][0];
                assert_eq!((&owner["kind"], &owner["name"]), (&json!("Pod"), &json!(DRIVER)), "{object}");
            }
        }
        self.api.delete(&self.object("pods", DRIVER)).await;
        for kind in KINDS {
            let is_gone = async || self.objects(kind).await.is_empty();
            until(&format!("the {kind} of {} are gone", self.namespace), is_gone).await;
        }
    }

    /// Neither the submitter nor the pod's containers nor the server have said what they must keep to themselves.
    pub async fn assert_no_secret_in(&self, told: &str) {
        let logs = self.cluster.runner.logs(self.namespace).into_iter().map(|(_, log)| log);
        let server = self.server.as_ref().map(Cloakroom::log);
        let pods = self.objects("pods").await.into_iter().map(|pod| pod.to_string());
        let said: Vec<String> = logs.chain(server).chain(pods).chain([told.to_owned()]).collect();
        self.learn_secrets().await;
        for secret in self.secrets.lock().unwrap().iter() {
            assert!(said.iter().all(|text| !text.contains(secret.as_str())), "{secret} is in {said:#?}");
        }
    }

    /// To be called before secrets of the namespace go.
    pub async fn learn_secrets(&self) {
        for object in self.objects("secrets").await {
            let values = object["data"].as_object().cloned().unwrap_or_default();
            let decoded = values.values().map(|value| STANDARD.decode(text(value)).unwrap());
            let texts = decoded.filter_map(|value| String::from_utf8(value).ok());
            self.secrets.lock().unwrap().extend(texts.filter(|text| !text.is_empty()));
        }
    }

    /// What was told is what the page shows, once what is random is replaced. That pods take the server's address for
    /// themselves is warned of, and does not come true here.
    pub fn assert_shown(&self, block: Block, told: &str) {
        let is_shown = |line: &&str| !line.contains("which a pod takes for itself");
        let told: Vec<&str> = told.lines().filter(is_shown).collect();
        let told = told
            .join("\n")
            .replace(&self.server_url(), "http://NODE:31000")
            .replace(&self.cluster.plane.address().to_string(), "APISERVER:6443")
            .replace(self.namespace, "spark");
        block.assert_shows(&told);
    }

    fn kept(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in ["incoming", "bundles"] {
            walk(&self.path("server").join(folder), &mut found);
        }
        found.retain(|path| !path.ends_with("bundles/stamp"));
        found
    }
}

/// A jar of this many bytes that pack no smaller. No class is in it.
fn jar(size_bytes: usize) -> Vec<u8> {
    let mut end_of_zip = [0; 22];
    end_of_zip[..4].copy_from_slice(b"PK\x05\x06");
    [noise(size_bytes - end_of_zip.len()), end_of_zip.to_vec()].concat()
}

/// Bytes that look random: xorshift64.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let noise = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    });
    noise.take(count).collect()
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path, found) } else { found.push(path) }
    }
}
