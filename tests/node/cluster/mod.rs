//! The cluster: a control plane, one node, its network, and a laptop beside it.

mod config;
mod network;
mod program;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

use crate::shell::{At, BOUND, run, until, until_within};
use crate::{images, world};

use cloakroom_testing::dist;
use cloakroom_testing::needs::path;

use config::{API_SERVER, Config};
pub use network::{LAPTOP, NODE_ADDRESS};
use program::Program;

/// Names the folder with the programs; the convention of Kubernetes' controller tests.
pub const ASSETS: &str = "KUBEBUILDER_ASSETS";

/// Names the folder that `tests/programs/build-chart-tools` made: Helm and CoreDNS.
pub const CHART_TOOLS: &str = "CLOAKROOM_TEST_CHART_TOOLS";

/// The node's name.
pub const NODE: &str = "node-1";

/// Where Debian's package has the plugins.
pub const CNI_PLUGINS: &str = "/usr/lib/cni";

/// A running cluster.
pub struct Cluster {
    config: Config,
    api_server: Mutex<Option<Program>>,
    kubelet: Mutex<Option<Program>>,
    /// Who calls ends before who is called.
    others: Mutex<Vec<Program>>,
}

static CLUSTER: OnceLock<Result<Cluster, String>> = OnceLock::new();

/// The cluster that all tests share, started by the first that needs it.
pub fn cluster() -> &'static Cluster {
    let started = CLUSTER.get_or_init(|| {
        std::panic::catch_unwind(Cluster::start).map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            text.unwrap_or_else(|| "the cluster did not start".to_owned())
        })
    });
    started.as_ref().unwrap_or_else(|why| panic!("the cluster did not start: {why}"))
}

/// Ends all programs. Containers end with the namespaces.
pub fn end() {
    if let Some(Ok(cluster)) = CLUSTER.get() {
        cluster.kubelet.lock().unwrap().take();
        cluster.others.lock().unwrap().drain(..).rev().for_each(drop);
        cluster.api_server.lock().unwrap().take();
    }
}

impl Cluster {
    fn start() -> Self {
        let began = std::time::Instant::now();
        let step = |what: &str| eprintln!("node: {what} after {:.1} s", began.elapsed().as_secs_f64());
        network::make();
        let config = Config::write(&world::folder());
        programs_and_folders(&config.folder);
        let cluster = Self {
            api_server: Mutex::new(None),
            kubelet: Mutex::new(None),
            others: Mutex::new(vec![config.start_etcd(), config.start_containerd()]),
            config,
        };
        let images = std::thread::spawn(import_images);
        cluster.start_api_server();
        step("the API server is ready");
        let others = [
            cluster.config.start_controllers(),
            cluster.config.start_scheduler(),
            cluster.config.start_dns(),
        ];
        cluster.others.lock().unwrap().extend(others);
        images.join().unwrap();
        step("images are there");
        cluster.start_kubelet();
        until("the node is ready", || node_is("True"));
        // It ends when its node gets another address, and a node that it does not know yet has none.
        cluster.others.lock().unwrap().push(cluster.config.start_proxy());
        prepare(&cluster.config.folder);
        step("the node is ready");
        cluster
    }

    /// Starts the API server, and waits until it answers.
    pub fn start_api_server(&self) {
        let mut running = self.api_server.lock().unwrap();
        running.get_or_insert_with(|| self.config.start_api_server());
        let program = running.as_ref().unwrap();
        until("the API server is ready", || {
            program.assert_running();
            run(At::Node, "kubectl get --raw /readyz").code == Some(0)
        });
    }

    /// Kills the API server: what it acknowledged is in etcd.
    pub fn stop_api_server(&self) {
        drop(self.api_server.lock().unwrap().take());
    }

    /// Starts the kubelet.
    pub fn start_kubelet(&self) {
        self.kubelet.lock().unwrap().get_or_insert_with(|| self.config.start_kubelet());
    }

    /// Ends the kubelet; containers go on.
    pub fn stop_kubelet(&self) {
        drop(self.kubelet.lock().unwrap().take());
    }

    /// The kubeconfig of an account with a token of its own.
    pub fn kubeconfig(&self, token: &str) -> PathBuf {
        self.config.kubeconfig(token)
    }

    /// Where the API server is.
    pub fn api_server() -> &'static str {
        API_SERVER
    }
}

/// Whether the node's condition `Ready` has this status.
pub fn node_is(status: &str) -> bool {
    let query = "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
    run(At::Node, &format!("kubectl get node {NODE} -o '{query}'")).stdout == status
}

/// What users have: kubectl, cloakroom, and the folders of a release in the current one.
fn programs_and_folders(folder: &Path) {
    let bin = folder.join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(path(ASSETS).join("kubectl"), bin.join("kubectl")).unwrap();
    std::os::unix::fs::symlink(dist::binary(), bin.join("cloakroom")).unwrap();
    let home = folder.join("home");
    std::fs::create_dir_all(&home).unwrap();
    std::os::unix::fs::symlink(Path::new(env!("CARGO_MANIFEST_DIR")), home.join("project")).unwrap();
    let tree = dist::tree(folder);
    for name in ["manifests", "charts"] {
        std::os::unix::fs::symlink(tree.join(name), home.join(name)).unwrap();
    }
}

fn import_images() {
    let work = world::folder().join("images");
    std::fs::create_dir(&work).unwrap();
    let images = images::all(&work);
    until_within(BOUND, "containerd answers", || ctr().arg("version").output().unwrap().status.success());
    images.iter().for_each(|image| image.import(&work, ctr));
    images::import_archive(&dist::image(&work), ctr);
    std::fs::remove_dir_all(work).unwrap();
}

/// containerd's own client, in the namespace of the kubelet.
pub fn ctr() -> Command {
    let mut command = Command::new("ctr");
    command.args(["--address", config::CONTAINERD, "--namespace", "k8s.io"]);
    command
}

/// A default StorageClass with volumes of this node (`local` ones take `fsGroup`, as disks of a cloud do), and room for Spark.
fn prepare(folder: &Path) {
    let class = r#"{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "kubernetes.io/no-provisioner",
        "metadata": {"name": "local", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "volumeBindingMode": "WaitForFirstConsumer"}"#;
    let class = format!("kubectl apply -f - <<'END'\n{class}\nEND\n");
    run(At::Node, &class).ok();
    run(At::Node, "kubectl apply -f project/tests/node/small-requests.yaml").ok();
    for number in 0..4 {
        make_volume(folder, &format!("volume-{number}"), "local");
    }
}

/// A volume of 100 GiB that belongs to root.
pub fn make_volume(folder: &Path, name: &str, class: &str) {
    let place = folder.join("volumes").join(name);
    std::fs::create_dir_all(&place).unwrap();
    let volume = serde_json::json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "100Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "persistentVolumeReclaimPolicy": "Retain", "local": {"path": place},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions":
                [{"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}]}]}},
        },
    });
    run(At::Node, &format!("kubectl apply -f - <<'END'\n{volume}\nEND\n")).ok();
}
