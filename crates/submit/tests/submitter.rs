//! Somebody who submits an application that was planned by hand.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloakroom_cluster::{Access, ApiServer, Proxies, Timeouts};
use cloakroom_core::clock::SystemClock;
use cloakroom_core::retry::Backoff;
use cloakroom_submit::create::{CreateError, Created};
use cloakroom_submit::follow::{FollowError, FollowIntervals, Outcome};
use cloakroom_submit::inputs::Local;
use cloakroom_submit::run::{Run, RunError};
use cloakroom_submit::stage::NamedServer;
use cloakroom_submit::{ExitCodeRule, FollowSettings, Log, Submission};
use cloakroom_testing::cluster::{Account, Cluster};
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

pub const APP_ID: &str = "spark-0123456789abcdef0123456789abcdef";
pub const DRIVER: &str = "my-app-0123456789abcdef-driver";

/// What was said so far.
#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    pub fn log(&self) -> Log {
        let lines = self.clone();
        let clock = Arc::new(SystemClock::new());
        Log::with_clock(clock, TimeZone::UTC, move |line| lines.0.lock().unwrap().push(line.to_owned()))
    }

    /// Every text, a block being one of them.
    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Those with `needle` in them.
    pub fn with(&self, needle: &str) -> Vec<String> {
        self.all().into_iter().filter(|line| line.contains(needle)).collect()
    }
}

/// A connection to a cluster, as one account, with a log.
pub struct Submitter {
    pub server: ApiServer,
    pub lines: Lines,
    pub stop: CancellationToken,
    _folder: TempDir,
}

impl Submitter {
    pub fn new(cluster: &dyn Cluster) -> Self {
        Self::with(cluster, &cluster.token(Account::Admin), Timeouts::default())
    }

    pub fn with(cluster: &dyn Cluster, token: &str, timeouts: Timeouts) -> Self {
        Self::at(cluster.address(), cluster.ca(), token, timeouts)
    }

    /// A connection to whatever answers there, over TLS where there is a CA.
    pub fn at(address: SocketAddr, ca: Option<&Path>, token: &str, timeouts: Timeouts) -> Self {
        Self::by(&cloakroom_testing::cluster::kubeconfig(ca, address, token), timeouts)
    }

    /// A connection by a kubeconfig with this text.
    pub fn by(kubeconfig: &str, timeouts: Timeouts) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        std::fs::write(&path, kubeconfig).unwrap();
        let access = Access::Kubeconfig {
            paths: vec![path],
            context: None,
            setting: "--kubeconfig".to_owned(),
            proxies: Proxies::default(),
        };
        let server = ApiServer::connect_with(&access, timeouts).unwrap();
        Self { server, lines: Lines::default(), stop: CancellationToken::new(), _folder: folder }
    }

    fn run<'a>(&'a self, log: &'a Log, intervals: FollowIntervals) -> Run<'a> {
        let (server, stop) = (&self.server, &self.stop);
        Run { server, inputs: &Local, stager: &NamedServer::BY_ADDRESS, log, stop, intervals }
    }

    pub async fn create(&self, submission: &Submission) -> Result<Created, CreateError> {
        let created = self.run(&self.lines.log(), hurried()).create(submission).await;
        created.map_err(|error| match error {
            RunError::Create(error) => error,
            error => panic!("{error}"),
        })
    }

    pub async fn follow(
        &self,
        intervals: FollowIntervals,
        submission: &Submission,
        created: &Created,
    ) -> Result<Outcome, FollowError> {
        self.run(&self.lines.log(), intervals).follow(submission, created).await
    }
}

/// As [`FollowIntervals::default`], in a hurry.
pub fn hurried() -> FollowIntervals {
    FollowIntervals {
        backoff: Backoff {
            first: Duration::from_millis(20),
            longest: Duration::from_millis(100),
            longest_asked: Duration::from_secs(1),
        },
        look: Duration::from_secs(30),
        poll: Duration::from_millis(20),
        events: Duration::from_millis(50),
        credentials: Duration::from_millis(300),
    }
}

/// What Spark makes for a small application, without what does not matter here.
pub fn submission(namespace: &str) -> Submission {
    let metadata = |name: &str| json!({"name": name});
    Submission {
        namespace: namespace.to_owned(),
        app_name: "My App".to_owned(),
        app_id: APP_ID.to_owned(),
        pod_name: DRIVER.to_owned(),
        pod: driver_pod(),
        driver_account: None,
        before_pod: Vec::new(),
        uploads: Vec::new(),
        staging: None,
        after_pod: vec![
            json!({
                "apiVersion": "v1", "kind": "Service", "metadata": metadata("my-app-driver-svc"),
                "spec": {"clusterIP": "None", "ports": [{"name": "driver-rpc-port", "port": 7078}]},
            }),
            claim("my-app-driver-pvc-0"),
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("spark-drv-conf-map"),
                "data": {"spark.properties": "spark.app.name=My App"}, "immutable": true,
            }),
        ],
        follow: FollowSettings {
            wait: true,
            report_interval: Duration::from_secs(1),
            executor_poll_interval: Duration::from_secs(30),
            missing_pod_detect_delta: Duration::from_secs(30),
            exit_code: ExitCodeRule::Application,
        },
        warnings: Vec::new(),
    }
}

fn driver_pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": DRIVER,
            "labels": {"spark-app-selector": APP_ID, "spark-role": "driver", "spark-version": "4.3.0"},
        },
        "spec": {
            "containers": [{"name": "spark-kubernetes-driver", "image": "repo.example/spark:4"}],
            "restartPolicy": "Never",
        },
    })
}

/// A claim, which a user may have made before.
pub fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "none",
        },
    })
}

/// Volcano's object, which must be there before the pod.
pub fn pod_group() -> Value {
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": format!("{APP_ID}-podgroup")}, "spec": {"minMember": 1},
    })
}
