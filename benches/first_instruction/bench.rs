//! A cluster with a node, a staging server, and the jars of an application.

use std::path::PathBuf;

use cloakroom_testing::cluster::{Account, Api, Cluster as _};
use cloakroom_testing::control_plane::ControlPlane;
use cloakroom_testing::needs::path;
use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::runner::image::Entrypoint;
use cloakroom_testing::runner::{Image, Runner};
use cloakroom_testing::wait::until;
use serde_json::json;
use tempfile::TempDir;

pub const NAMESPACE: &str = "bench";

/// The driver's image: this machine's programs.
pub const DRIVER_IMAGE: &str = "bench/machine";

/// The init-container's image: this program, and GNU time around it.
const FETCH_IMAGE: &str = "bench/cloakroom";

/// The driver's script: it prints when it began, and how many jars it sees.
const DRIVER_SCRIPT: &str = "date +%s%N; find /var/spark-data/spark-jars -name '*.jar' 2>/dev/null | wc -l";

/// The init-container's script, with its only argument as `$0`.
const FETCH_SCRIPT: &str = "date +%s%N; exec time -f '%e %U %S %M' /opt/cloakroom \"$0\"";

const INPUT_BYTES: u64 = 300_000_000;

pub struct BenchCluster {
    pub runner: Runner,
    pub server: Cloakroom,
    pub plane: ControlPlane,
    pub admin: Api,
    /// Real jars; the first one is the application's.
    pub jars: Vec<PathBuf>,
    pub bytes: u64,
    folder: TempDir,
}

impl BenchCluster {
    pub async fn prepare() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["images", "node", "shared"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        let machine = Image::of_this_machine(DRIVER_IMAGE, &at("images"));
        let machine = machine.showing(&at("shared"), at("shared").to_str().unwrap());
        let binary = PathBuf::from(env!("CARGO_BIN_EXE_cloakroom"));
        let mut fetching =
            Image::of_this_machine(FETCH_IMAGE, &at("images")).showing(&binary, "/opt/cloakroom");
        fetching.entrypoint = Entrypoint::Program(["sh", "-c", FETCH_SCRIPT].map(str::to_owned).to_vec());
        (fetching.user, fetching.group) = (65532, 65532);
        let plane = ControlPlane::start(&[]).await;
        let runner = Runner::start(&plane, vec![machine, fetching], &at("node")).await;
        let admin = plane.api(Account::Admin);
        admin.create_namespace(NAMESPACE).await;
        let account = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default");
        until("the default account is there", async || admin.get(&account).await.0 == 200).await;
        let flags = ["--min-free-space", "0b", "--fetch-image", FETCH_IMAGE];
        let server = Cloakroom::serve(&at("data"), &flags);
        std::fs::write(at("driver.yaml"), template()).unwrap();
        let (jars, bytes) = fill(&at("jars"));
        Self { runner, server, plane, admin, jars, bytes, folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// User and system time of the server so far, in seconds.
    pub fn server_cpu(&self) -> f64 {
        const TICKS_IN_A_SECOND: f64 = 100.0;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.server.pid())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
        (ticks(11) + ticks(12)) / TICKS_IN_A_SECOND
    }

    /// The peak of resident memory (VmHWM).
    pub fn server_peak_mib(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
    }

    /// The value of one of the server's counters.
    pub async fn counter(&self, name: &str) -> f64 {
        let answer = reqwest::Client::builder()
            .no_proxy()
            .tls_backend_preconfigured(cloakroom_testing::tls::no_roots())
            .build()
            .unwrap();
        let text = answer.get(self.server.url("/metrics")).send().await.unwrap().text().await.unwrap();
        let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }
}

/// JSON is YAML.
fn template() -> String {
    let container = json!({"name": "spark-kubernetes-driver", "command": ["sh", "-c", DRIVER_SCRIPT]});
    json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]}}).to_string()
}

/// Copies jars of the Spark distribution until they have enough bytes.
fn fill(folder: &std::path::Path) -> (Vec<PathBuf>, u64) {
    std::fs::create_dir(folder).unwrap();
    let source = path("CLOAKROOM_TEST_SPARK_HOMES").join("spark-4.3.0/jars");
    let mut names: Vec<_> = std::fs::read_dir(source).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let (mut jars, mut bytes) = (Vec::new(), 0);
    for path in names.into_iter().filter(|path| path.extension().is_some_and(|end| end == "jar")) {
        if bytes < INPUT_BYTES {
            jars.push(folder.join(path.file_name().unwrap()));
            bytes += std::fs::copy(&path, &jars[jars.len() - 1]).unwrap();
        }
    }
    (jars, bytes)
}
