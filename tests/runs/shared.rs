//! What all tests here share: one control plane with a node that runs its pods, started by the first that needs it.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cloakroom_testing::cluster::{Account, Api, Cluster as _, text};
use cloakroom_testing::control_plane::{ASSETS, ControlPlane};
use cloakroom_testing::jobs::{self, Job};
use cloakroom_testing::needs::{Need, path, trial};
use cloakroom_testing::runner::{Image, Runner};
use cloakroom_testing::wait::until;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

/// Names the folder that has `spark-VERSION` for each of [`VERSIONS`].
const SPARK_HOMES: &str = "CLOAKROOM_TEST_SPARK_HOMES";

/// The versions of Spark that do the jobs.
pub const VERSIONS: [&str; 2] = ["4.3.0", "3.5.9"];

/// The service account of the drivers.
pub const ACCOUNT: &str = "spark";

/// Where an image of Spark shows the jobs of [`jobs`].
pub const JOBS: &str = "/opt/jobs";

/// An image with this machine's programs.
pub const MACHINE: &str = "cloakroom.test/machine";

/// This project's image.
pub const CLOAKROOM: &str = "cloakroom.test/cloakroom";

/// Longer than any application here takes, also on a busy machine.
const LONGEST_RUN: Duration = Duration::from_secs(400);

/// The runtime of all tests, and the world that they share.
pub struct SharedCluster {
    runtime: Runtime,
    cluster: OnceCell<RunningCluster>,
}

/// A control plane whose pods run.
pub struct RunningCluster {
    pub runner: Runner,
    pub plane: ControlPlane,
    folder: TempDir,
}

/// What the pages call the image of the latest version of Spark.
const OF_THE_PAGES: &str = "apache/spark:4.3.0";

/// The image of a version of Spark.
pub fn image(version: &str) -> String {
    format!("cloakroom.test/spark:{version}")
}

/// Where a version of Spark is on this machine.
pub fn spark_home(version: &str) -> PathBuf {
    path(SPARK_HOMES).join(format!("spark-{version}"))
}

impl SharedCluster {
    pub fn new() -> Self {
        Self { runtime: Runtime::new().unwrap(), cluster: OnceCell::new() }
    }

    /// A test that gets the world.
    pub fn trial<F: Future<Output = ()>>(
        self: &Arc<Self>,
        name: &str,
        test: impl FnOnce(Arc<Self>) -> F + Send + 'static,
    ) -> Trial {
        self.trial_that_needs(name, Vec::new(), test)
    }

    /// A test that gets the world, with what an application of a kind needs in it.
    pub fn trial_with<F: Future<Output = ()>>(
        self: &Arc<Self>,
        name: &str,
        job: Job,
        test: impl FnOnce(Arc<Self>) -> F + Send + 'static,
    ) -> Trial {
        let libraries = |version| Need::Below(SPARK_HOMES, format!("spark-{version}/python/lib/pyspark.zip"));
        let needs: Vec<Need> =
            if matches!(job, Job::Python) { VERSIONS.map(libraries).into() } else { Vec::new() };
        self.trial_that_needs(name, needs, test)
    }

    /// The same with more that it needs of the machine.
    pub fn trial_that_needs<F: Future<Output = ()>>(
        self: &Arc<Self>,
        name: &str,
        more: Vec<Need>,
        test: impl FnOnce(Arc<Self>) -> F + Send + 'static,
    ) -> Trial {
        let mut needs = vec![
            Need::Path(ASSETS, "a folder with etcd and kube-apiserver (tests/programs/build-control-plane)"),
            Need::Namespaces,
            Need::Program("setpriv"),
            Need::Program("javac"),
            Need::Program("python3"),
        ];
        needs.extend(
            VERSIONS.map(|version| Need::Below(SPARK_HOMES, format!("spark-{version}/bin/spark-submit"))),
        );
        needs.extend(more);
        let shared = Arc::clone(self);
        trial(name, &needs, move || {
            let bounded = async { tokio::time::timeout(LONGEST_RUN, test(Arc::clone(&shared))).await };
            let result = shared.runtime.block_on(bounded);
            assert!(result.is_ok(), "it took longer than {LONGEST_RUN:?}");
        })
    }

    pub async fn cluster(&self) -> &RunningCluster {
        self.cluster.get_or_init(RunningCluster::start).await
    }

    /// Ends all processes, then removes their files.
    pub fn end(self) {
        self.runtime.shutdown_timeout(Duration::from_secs(5));
        drop(self.cluster);
    }
}

impl RunningCluster {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_owned();
        let images = tokio::task::spawn_blocking(move || images(&place));
        let plane = ControlPlane::start(&[]).await;
        let images = images.await.unwrap();
        let kept = folder.path().join("node");
        std::fs::create_dir(&kept).unwrap();
        let runner = Runner::start(&plane, images, &kept).await;
        Self { runner, plane, folder }
    }

    /// A new namespace, in which drivers may do what they have to.
    pub async fn namespace(&self, name: &str) -> Api {
        let admin = self.plane.api(Account::Admin);
        admin.create_namespace(name).await;
        let default = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
        until("the default account is there", async || admin.get(&default).await.0 == 200).await;
        let accounts = format!("/api/v1/namespaces/{name}/serviceaccounts");
        created(admin.post(&accounts, &json!({"metadata": {"name": ACCOUNT}})).await);
        let binding = json!({
            "metadata": {"name": ACCOUNT},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": name}],
        });
        let bindings = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{name}/rolebindings");
        created(admin.post(&bindings, &binding).await);
        admin
    }

    /// A folder that Spark's images show at the very same path.
    pub fn shared(&self) -> PathBuf {
        shared_of(self.folder.path())
    }

    /// The files of the jobs, for a version of Spark.
    pub fn jobs(&self, version: &str) -> PathBuf {
        jobs_of(self.folder.path(), version)
    }

    /// Waits until a pod has ended, and returns it.
    pub async fn ended(&self, namespace: &str, pod: &str) -> Value {
        let admin = self.plane.api(Account::Admin);
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}");
        until(&format!("{pod} has ended"), async || {
            let (_, pod) = admin.get(&path).await;
            ["Succeeded", "Failed"].contains(&&*text(&pod["status"]["phase"]))
        })
        .await;
        admin.get(&path).await.1
    }
}

fn created((status, answer): (u16, Value)) {
    assert_eq!(status, 201, "{answer}");
}

fn jobs_of(folder: &Path, version: &str) -> PathBuf {
    folder.join("jobs").join(version)
}

fn shared_of(folder: &Path) -> PathBuf {
    folder.join("shared")
}

/// The examples are in Spark's image and in no package: a jar of that name, without a class.
fn examples(folder: &Path) -> PathBuf {
    const EMPTY_ZIP: [u8; 22] = [b'P', b'K', 5, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let examples = folder.join("examples");
    std::fs::create_dir_all(examples.join("jars")).unwrap();
    std::fs::write(examples.join("jars/spark-examples.jar"), EMPTY_ZIP).unwrap();
    examples
}

/// This machine, this project, and each version of Spark with its jobs.
fn images(folder: &Path) -> Vec<Image> {
    let shared = shared_of(folder);
    std::fs::create_dir(&shared).unwrap();
    let layers = folder.join("images");
    let mut images = vec![Image::of_this_machine(MACHINE, &layers), Image::cloakroom(CLOAKROOM, &layers)];
    let of_the_pages = Image::spark(OF_THE_PAGES, &spark_home(VERSIONS[0]), &layers);
    images.push(of_the_pages.showing(&examples(folder), "/opt/spark/examples"));
    for version in VERSIONS {
        let jobs = jobs_of(folder, version);
        jobs::prepare(&spark_home(version), &jobs);
        let spark = Image::spark(&image(version), &spark_home(version), &layers);
        images.push(spark.showing(&jobs, JOBS).showing(&shared, shared.to_str().unwrap()));
    }
    images
}
