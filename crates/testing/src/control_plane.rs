//! A real control plane on loopback: etcd, kube-apiserver with RBAC, kube-controller-manager.

mod files;
mod rights;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Mutex, OnceCell};

use crate::child::Program;
use crate::cluster::{Account, Api, Cluster, SPARK_APPLICATION, kubeconfig, text};
use crate::needs::path;
use crate::port::ReservedPort;
use crate::tls;
use crate::wait::until;

use files::{ADMIN_TOKEN, Files, LASTING_TOKEN};

/// Names the folder with the programs, as in Kubernetes' own controller tests.
pub const ASSETS: &str = "KUBEBUILDER_ASSETS";

/// The controllers that tests need. They empty deleted namespaces, create service accounts and the CA for their pods,
/// delete owned objects, and build the role `edit` from its parts. Up to Kubernetes 1.36 the proxy for Services reads Endpoints.
const CONTROLLERS: &str = "namespace-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,\
                           garbage-collector-controller,clusterrole-aggregation-controller,endpoints-controller";

/// Whether the API server keeps recent changes in memory. Without, etcd's compaction decides which versions are too
/// old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchCache {
    On,
    Off,
}

/// A running control plane. Its processes end with it.
pub struct ControlPlane {
    // Fields are dropped in this order: clients before servers.
    controllers: Mutex<Option<Program>>,
    api_server: Mutex<Option<Program>>,
    etcd: Mutex<Option<Program>>,
    ports: Ports,
    files: Files,
    /// Admission plugins that are turned off.
    without: &'static [&'static str],
    folder: TempDir,
    /// Tokens of the server's service account, and of one without rights.
    tokens: (String, String),
    /// Whether manifests/submitter was applied.
    shipped_roles: OnceCell<()>,
}

struct Ports {
    api_server: ReservedPort,
    etcd: ReservedPort,
    etcd_peers: ReservedPort,
}

impl ControlPlane {
    /// Starts it without some admission plugins, with the server's account and rights, and with the kind
    /// SparkApplication. It is ready when this returns.
    pub async fn start(without: &'static [&'static str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ports = Ports {
            api_server: ReservedPort::new(),
            etcd: ReservedPort::new(),
            etcd_peers: ReservedPort::new(),
        };
        let files = Files::write(folder.path(), ports.api_server.address());
        let etcd = start_etcd(&folder, &ports);
        let mut plane = Self {
            controllers: Mutex::new(None),
            api_server: Mutex::new(None),
            etcd: Mutex::new(Some(etcd)),
            ports,
            files,
            without,
            folder,
            tokens: (String::new(), String::new()),
            shipped_roles: OnceCell::new(),
        };
        plane.start_api_server(WatchCache::On).await;
        plane.start_controllers().await;
        let admin = plane.api(Account::Admin);
        plane.apply_manifests();
        rights::make_nobody(&admin).await;
        rights::define(&admin, &SPARK_APPLICATION).await;
        plane.tokens =
            (rights::token(&admin, Account::Cloakroom).await, rights::token(&admin, Account::Nobody).await);
        rights::until_in_force(&plane.api(Account::Cloakroom), true).await;
        plane
    }

    /// Starts the API server if it is not running, and waits until it is ready.
    pub async fn start_api_server(&self, watch_cache: WatchCache) {
        let mut running = self.api_server.lock().await;
        if running.is_none() {
            let program = path(ASSETS).join("kube-apiserver");
            *running =
                Some(Program::start(&program, &self.api_server_args(watch_cache), self.log("api-server")));
        }
        let admin = self.api(Account::Admin);
        let server = running.as_ref().unwrap();
        until("kube-apiserver is ready", async || {
            server.assert_running();
            self.etcd.lock().await.as_ref().unwrap().assert_running();
            let answer = admin.call(reqwest::Method::GET, "/readyz", &[], None).await;
            answer.is_ok_and(|(status, _)| status == 200)
        })
        .await;
    }

    /// Kills the API server. Everything that it acknowledged is in etcd.
    pub async fn stop_api_server(&self) {
        drop(self.api_server.lock().await.take());
    }

    fn api_server_args(&self, watch_cache: WatchCache) -> Vec<String> {
        let files = &self.files;
        let port = self.ports.api_server.address().port();
        let mut args = vec![
            format!("--etcd-servers=http://{}", self.ports.etcd.address()),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--tls-cert-file={}", files.cert.display()),
            format!("--tls-private-key-file={}", files.key.display()),
            format!("--client-ca-file={}", files.client_cas.display()),
            format!("--token-auth-file={}", files.tokens.display()),
            "--authorization-mode=RBAC".to_owned(),
            "--anonymous-auth=false".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", files.service_account_public_key.display()),
            format!("--service-account-signing-key-file={}", files.service_account_key.display()),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            format!("--disable-admission-plugins={}", self.without.join(",")),
            // No client uses this API server's service.
            "--endpoint-reconciler-type=none".to_owned(),
        ];
        if watch_cache == WatchCache::Off {
            args.push("--watch-cache=false".to_owned());
        }
        args
    }

    async fn start_controllers(&self) {
        let kubeconfig = self.files.admin_kubeconfig.display();
        let args = [
            format!("--kubeconfig={kubeconfig}"),
            format!("--controllers={CONTROLLERS}"),
            format!("--service-account-private-key-file={}", self.files.service_account_key.display()),
            format!("--root-ca-file={}", self.files.ca.display()),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        let program = path(ASSETS).join("kube-controller-manager");
        let controllers = Program::start(&program, &args, self.log("controller-manager"));
        *self.controllers.lock().await = Some(controllers);
    }

    /// Tells etcd to forget all versions but the present one.
    pub async fn compact(&self) {
        let etcd = Api::new(&format!("http://{}", self.ports.etcd.address()), "", tls::no_roots());
        let (status, answer) = etcd.post("/v3/kv/range", &json!({"key": "Lw=="})).await;
        assert_eq!(status, 200, "{answer}");
        let revision = text(&answer["header"]["revision"]);
        let (status, answer) =
            etcd.post("/v3/kv/compaction", &json!({"revision": revision, "physical": true})).await;
        assert_eq!(status, 200, "{answer}");
    }

    /// Lowers its priority, because in a real cluster it has processors of its own.
    pub async fn give_way(&self) {
        for program in [&self.controllers, &self.api_server, &self.etcd] {
            program.lock().await.iter().for_each(Program::give_way);
        }
    }

    /// Replaces it by another cluster: an empty one at the same address, with the same certificates and tokens, and
    /// with the manifests applied. It has no controllers.
    pub async fn replace(&self) {
        self.end().await;
        std::fs::remove_dir_all(self.folder.path().join("etcd")).unwrap();
        *self.etcd.lock().await = Some(start_etcd(&self.folder, &self.ports));
        self.start_api_server(WatchCache::On).await;
        self.apply_manifests();
    }

    /// A kubeconfig of the server's account for this cluster and for those that replace it.
    pub fn lasting_kubeconfig(&self) -> String {
        kubeconfig(Some(&self.files.ca), self.address(), LASTING_TOKEN)
    }

    /// Ends all of it.
    pub async fn end(&self) {
        drop(self.controllers.lock().await.take());
        self.stop_api_server().await;
        drop(self.etcd.lock().await.take());
    }

    /// Applies the manifests as an admin does: the server's namespace, account, role and Deployment. This control plane
    /// makes no pods of the Deployment.
    pub fn apply_manifests(&self) {
        self.apply("manifests/base");
    }

    /// Applies a kustomization of this project.
    pub fn apply(&self, folder: &str) {
        let folder = crate::project().join(folder);
        let output = self.kubectl(&["apply", "--server-side", "-k", folder.to_str().unwrap()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// A token of a service account, for the API server.
    pub async fn token_of(&self, namespace: &str, account: &str) -> String {
        rights::token_of(&self.api(Account::Admin), namespace, account, &[]).await
    }

    /// A token of a service account, for `audience` only.
    pub async fn token_for(&self, namespace: &str, account: &str, audience: &str) -> String {
        rights::token_of(&self.api(Account::Admin), namespace, account, &[audience]).await
    }

    /// A token of one of the accounts that the shipped roles are bound to, in the namespace `spark`, where it may list these.
    pub async fn token_with_a_shipped_role(&self, account: &str, lists: &str) -> String {
        let make = async || {
            self.api(Account::Admin).create_namespace("spark").await;
            self.apply("manifests/submitter");
        };
        self.shipped_roles.get_or_init(make).await;
        let token = self.token_of("spark", account).await;
        let (api, path) = (self.api_with_token(&token), format!("/api/v1/namespaces/spark/{lists}"));
        until("the rights are in force", async || api.get(&path).await.0 == 200).await;
        token
    }

    /// The rules of the role that the manifests gave the server.
    pub async fn rules(&self) -> Value {
        rights::rules(&self.api(Account::Admin)).await
    }

    /// The admin's kubeconfig.
    pub fn admin_kubeconfig(&self) -> &Path {
        &self.files.admin_kubeconfig
    }

    /// Runs `kubectl` as the admin.
    pub fn kubectl(&self, args: &[&str]) -> Output {
        let mut command = Command::new(path(ASSETS).join("kubectl"));
        command.env_clear().env("HOME", self.folder.path());
        command.arg("--kubeconfig").arg(&self.files.admin_kubeconfig).args(args).output().unwrap()
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.log"))
    }
}

fn start_etcd(folder: &TempDir, ports: &Ports) -> Program {
    let (clients, peers) =
        (format!("http://{}", ports.etcd.address()), format!("http://{}", ports.etcd_peers.address()));
    let args = [
        format!("--data-dir={}", folder.path().join("etcd").display()),
        // The data need not survive the test.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=error".to_owned(),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=default={peers}"),
    ];
    Program::start(&path(ASSETS).join("etcd"), &args, folder.path().join("etcd.log"))
}

#[async_trait]
impl Cluster for ControlPlane {
    fn address(&self) -> SocketAddr {
        self.ports.api_server.address()
    }

    fn ca(&self) -> Option<&Path> {
        Some(&self.files.ca)
    }

    fn token(&self, account: Account) -> String {
        let token = match account {
            Account::Admin => ADMIN_TOKEN,
            Account::Cloakroom => &self.tokens.0,
            Account::Nobody => &self.tokens.1,
        };
        token.to_owned()
    }

    async fn revoke(&self) {
        rights::unbind(&self.api(Account::Admin)).await;
        rights::until_in_force(&self.api(Account::Cloakroom), false).await;
    }

    async fn grant(&self) {
        self.apply_manifests();
        rights::until_in_force(&self.api(Account::Cloakroom), true).await;
    }

    async fn stop(&self) {
        self.stop_api_server().await;
    }

    async fn start(&self) {
        self.start_api_server(WatchCache::On).await;
        rights::until_in_force(&self.api(Account::Cloakroom), true).await;
    }

    /// The watch cache of a new process knows nothing from before its start.
    async fn forget_the_past(&self) {
        // Makes a version that no watch has seen yet.
        let mark = Timestamp::now().as_millisecond().to_string();
        let patch = json!({"metadata": {"annotations": {"cloakroom.test/mark": mark}}});
        let (status, answer) = self.api(Account::Admin).merge("/api/v1/namespaces/default", &patch).await;
        assert_eq!(status, 200, "{answer}");
        self.stop().await;
        self.start().await;
    }
}
