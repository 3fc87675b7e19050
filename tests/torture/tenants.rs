//! A cluster with two tenants, and the server in the limits of its manifest.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cloakroom_testing::cluster::{Account, Api, Cluster as _, Object, POD};
use cloakroom_testing::control_group::ControlGroup;
use cloakroom_testing::control_plane::ControlPlane;
use cloakroom_testing::known;
use cloakroom_testing::port::ReservedPort;
use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::s3_gateway::{ACCESS_KEY, BUCKET, S3Gateway, SECRET_KEY};
use cloakroom_testing::wait::until;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::connection::{Answer, Connection};
use crate::secrets::Secrets;

/// The namespace of the tenant who must notice nothing.
pub const HONEST: &str = "honest";
/// The namespace of the other one.
pub const ABUSER: &str = "abuser";

/// The account that stages, in both.
const ACCOUNT: &str = "submitter";

/// Of the server.
const AUDIENCE: &str = "cloakroom.cloakroom";

/// Names another server than the one that the tests were built with, such as a release build.
const BINARY: &str = "CLOAKROOM_TEST_TORTURE_BINARY";

const ADMIN_TOKEN: &str = "admin-token-of-the-torture";

/// As many descriptors as a process has that is not told otherwise.
const SOFT_DESCRIPTORS: u32 = 1024;

/// What the manifest leaves to its user: all that the volume may hold. It is less than the disk of a small machine has, because
/// uploads can announce all that a namespace may have. A fourth of it is one bundle of the largest size.
const ROOM: &str = "8GiB";
const LARGEST: &str = "2GiB";

/// A probe's patience (`timeoutSeconds` of the manifest).
const PROBE: Duration = Duration::from_secs(5);

/// The API server, and who may do what there.
pub struct TwoTenants {
    plane: ControlPlane,
    pub honest_token: String,
    pub abuser_token: String,
}

impl TwoTenants {
    /// Two namespaces, each with an account that has a namespace admin's rights there, and a pod that owns bundles.
    pub async fn start() -> Self {
        // Otherwise the first pods of a namespace wait for a controller.
        let plane = ControlPlane::start(&["ServiceAccount"]).await;
        plane.apply("manifests/overlays/accept-cluster-tokens");
        let admin = plane.api(Account::Admin);
        let mut tokens = Vec::new();
        for namespace in [HONEST, ABUSER] {
            admin.create_namespace(namespace).await;
            admin.create(&Object::pod(namespace, "driver", &[("app", namespace)])).await;
            made_admin(&admin, namespace).await;
            let token = plane.token_of(namespace, ACCOUNT).await;
            until_in_force(&plane.api_with_token(&token), namespace).await;
            tokens.push(token);
        }
        plane.give_way().await;
        let (abuser_token, honest_token) = (tokens.pop().unwrap(), tokens.pop().unwrap());
        Self { plane, honest_token, abuser_token }
    }

    /// The API server, as the abuser.
    pub fn api_of_the_abuser(&self) -> Api {
        self.plane.api_with_token(&self.abuser_token)
    }

    /// A token of the honest tenant that no server has seen yet, for this server alone.
    pub async fn fresh_honest_token(&self) -> String {
        self.plane.token_for(HONEST, ACCOUNT, AUDIENCE).await
    }

    /// All tokens that a server sees.
    pub fn secrets(&self) -> Secrets {
        let secrets = Secrets::default();
        for token in [&self.honest_token, &self.abuser_token, &self.plane.token(Account::Cloakroom)] {
            secrets.keep_token(token);
        }
        secrets.keep_token(ADMIN_TOKEN);
        secrets
    }

    /// Takes the owners away that a tenant has.
    pub async fn remove_pods_of(&self, namespace: &str) {
        let path = format!("{}?gracePeriodSeconds=0", POD.path(Some(namespace)));
        let (status, answer) =
            self.plane.api(Account::Admin).call(Method::DELETE, &path, &[], None).await.unwrap();
        assert_eq!(status, 200, "{answer}");
    }

    /// Ends its processes.
    pub async fn end(&self) {
        self.plane.end().await;
    }
}

async fn made_admin(admin: &Api, namespace: &str) {
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    let account = json!({"metadata": {"name": ACCOUNT}});
    let bindings = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
    let binding = json!({
        "metadata": {"name": "admin"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    });
    for (path, object) in [(accounts, account), (bindings, binding)] {
        let (status, answer) = admin.post(&path, &object).await;
        assert_eq!(status, 201, "{answer}");
    }
}

/// The role `admin` is made of its parts by a controller, and RBAC follows its objects a moment later.
async fn until_in_force(api: &Api, namespace: &str) {
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    for (group, resource) in [("", "pods"), ("cloakroom.dev", "bundles")] {
        let asked = json!({"namespace": namespace, "verb": "create", "group": group, "resource": resource});
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        });
        until(&format!("a namespace's admin may create {resource}"), async || {
            api.post(path, &review).await.1["status"]["allowed"] == true
        })
        .await;
    }
}

/// Where a server keeps bundles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    Disk,
    /// Of a gateway that is its own.
    Bucket,
}

/// A server in a control group. Its data stays when it is killed and started again.
pub struct Server {
    // Ends before its group, its gateway and its data go.
    process: Mutex<Option<Cloakroom>>,
    gateway: Option<S3Gateway>,
    group: ControlGroup,
    limit_bytes: u64,
    staging: ReservedPort,
    operations: ReservedPort,
    environment: Vec<(String, String)>,
    folder: TempDir,
}

impl Server {
    pub async fn start(tenants: &TwoTenants, store: Store, flags: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = tenants.plane.kubeconfig(Account::Cloakroom, tenants.plane.address());
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig).unwrap();
        std::fs::write(folder.path().join("admin-token"), ADMIN_TOKEN).unwrap();
        let container = container();
        let limit_bytes = bytes_of(known::text(&container["resources"]["limits"]["memory"]));
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("torture-{number}");
        let server = Self {
            process: Mutex::default(),
            gateway: match store {
                Store::Disk => None,
                Store::Bucket => Some(S3Gateway::start().await),
            },
            group: ControlGroup::make(&name, limit_bytes).unwrap(),
            limit_bytes,
            staging: ReservedPort::new(),
            operations: ReservedPort::new(),
            environment: environment(&container),
            folder,
        };
        server.launch(flags);
        server
    }

    /// Kills it and starts it again with its data, in the same limits; returns when it serves.
    pub fn restart(&self, flags: &[&str]) {
        let running = self.process.lock().unwrap().take();
        running.unwrap().kill();
        self.launch(flags);
    }

    fn launch(&self, flags: &[&str]) {
        let file = |name: &str| self.folder.path().join(name);
        let into_the_group = "ulimit -Sn $1 && echo $$ >\"$2\" && shift 2 && exec \"$@\"";
        let mut command = Command::new("sh");
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env("CLOAKROOM_LISTEN", self.address().to_string());
        command.env("CLOAKROOM_OPS_LISTEN", self.operations.address().to_string());
        command.env("CLOAKROOM_UPLOAD_AUTH", "kubernetes");
        command.env("CLOAKROOM_ACCEPT_CLUSTER_TOKENS", "true");
        command.env("CLOAKROOM_ADMIN_TOKEN_FILE", file("admin-token"));
        command.env("CLOAKROOM_KUBECONFIG", file("kubeconfig"));
        command.env("CLOAKROOM_DATA_DIR", file("data"));
        command.env("CLOAKROOM_MAX_TOTAL_SIZE", ROOM);
        command.env("CLOAKROOM_MAX_RESOURCE_SIZE", LARGEST);
        if let Some(gateway) = &self.gateway {
            command.env("CLOAKROOM_STORE", format!("s3://{BUCKET}/torture"));
            command.env("CLOAKROOM_STORE_ENDPOINT", gateway.url()).env("CLOAKROOM_STORE_ALLOW_HTTP", "true");
            command.env("AWS_ACCESS_KEY_ID", ACCESS_KEY).env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
            // A restart waits for that long, and its sweeps for four times as long.
            command.env("CLOAKROOM_TAKEOVER_AFTER", "2s");
        }
        command.args(["-c", into_the_group, "sh", &SOFT_DESCRIPTORS.to_string()]);
        command.arg(self.group.door()).arg(binary()).arg("serve").args(flags);
        let mut process = Cloakroom::launch(command);
        process.wait_for_log("serves on http");
        *self.process.lock().unwrap() = Some(process);
    }

    pub fn address(&self) -> SocketAddr {
        self.staging.address()
    }

    /// Everything that it has said since it was started last.
    pub fn log(&self) -> String {
        self.process.lock().unwrap().as_ref().unwrap().log()
    }

    /// Asks where operators ask, as patiently as a probe.
    pub async fn ask_operations(&self, path: &str) -> std::io::Result<Answer> {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\r\n");
        let asking = async {
            Connection::open(Ipv4Addr::LOCALHOST, self.operations.address()).await?.ask(request).await
        };
        tokio::time::timeout(PROBE, asking).await?
    }

    /// How many resources owners of a namespace have.
    pub async fn resources_of(&self, namespace: &str) -> std::io::Result<usize> {
        let (mut count, mut after) = (0, String::new());
        loop {
            let list = format!("/admin/v1/resources?namespace={namespace}{after}");
            let answer = self.ask_operations(&list).await?;
            assert_eq!(answer.head.status, 200, "{}", answer.outcome());
            let page: Value = serde_json::from_slice(&answer.body)?;
            count += known::list(&page["resources"]).len();
            // A page ends early if others have very many resources.
            let Some(next) = page["next"].as_str() else { return Ok(count) };
            after = format!("&after={next}");
        }
    }

    /// The most memory that the process ever had, without what the kernel keeps for it.
    pub fn peak_bytes(&self) -> u64 {
        let pid = self.process.lock().unwrap().as_ref().unwrap().pid();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: Option<u64> = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        kib.unwrap_or_default() << 10
    }

    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    pub fn group(&self) -> &ControlGroup {
        &self.group
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A control group goes once it is empty.
        self.process.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    }
}

/// The container of the shipped Deployment.
fn container() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/base/deployment.yaml");
    let deployment = known::parse(&std::fs::read_to_string(path).unwrap()).remove(0);
    deployment["spec"]["template"]["spec"]["containers"][0].clone()
}

/// Its environment, less the tokens that upload auth `kubernetes` does without.
fn environment(container: &Value) -> Vec<(String, String)> {
    let pairs = known::list(&container["env"]).iter();
    let pairs =
        pairs.map(|pair| (known::text(&pair["name"]).to_owned(), known::text(&pair["value"]).to_owned()));
    pairs.filter(|(name, _)| name != "CLOAKROOM_UPLOAD_TOKEN_FILE").collect()
}

/// `512Mi`, as the manifest has it.
fn bytes_of(quantity: &str) -> u64 {
    quantity.strip_suffix("Mi").unwrap().parse::<u64>().unwrap() << 20
}

fn binary() -> PathBuf {
    std::env::var_os(BINARY).map_or_else(|| env!("CARGO_BIN_EXE_cloakroom").into(), PathBuf::from)
}
