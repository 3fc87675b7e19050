//! One submission, with its times and memory.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cloakroom_testing::cluster::{Account, Cluster as _, text};
use cloakroom_testing::files::settle;
use cloakroom_testing::needs::path;
use cloakroom_testing::spread::Spread;
use cloakroom_testing::wait::until;

use crate::bench::{BenchCluster, DRIVER_IMAGE, NAMESPACE};

const DRIVER: &str = "driver";

/// The program that submits, and the way of the jars.
#[derive(Clone, Copy, PartialEq)]
pub enum Way {
    /// `cloakroom submit`, through the server.
    Staged,
    /// `cloakroom submit`, through a folder that pods see as well.
    Copied,
    /// spark-submit, through such a folder.
    CopiedBySpark,
}

/// Time and memory of one run of a program.
pub struct Cost {
    cpu: Duration,
    peak_mib: f64,
}

/// Times and memory of one submission.
pub struct Taken {
    first_instruction: Duration,
    submitter: Cost,
    staging: Option<Staging>,
}

/// The costs of staging outside the submitter.
struct Staging {
    sent_bytes: f64,
    server_cpu: Duration,
    /// From the init-container's first instruction to the driver's.
    init: Duration,
    fetch: Duration,
    fetch_cost: Cost,
}

impl Way {
    pub const ALL: [Self; 3] = [Self::Staged, Self::Copied, Self::CopiedBySpark];

    pub fn name(self) -> &'static str {
        match self {
            Self::Staged => "cloakroom submit, through the server",
            Self::Copied => "cloakroom submit, file.upload.path on a local folder",
            Self::CopiedBySpark => "spark-submit 4.3.0, file.upload.path on a local folder",
        }
    }

    pub async fn run(self, bench: &BenchCluster) -> Taken {
        settle();
        let sent = bench.counter("cloakroom_upload_bytes_total").await;
        let server_cpu = bench.server_cpu();
        let report = bench.path("report");
        let mut command = self.command(bench, &report);
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let log = ended(bench).await;
        let first = nanoseconds(log.lines().next());
        let seen: usize = log.lines().nth(1).unwrap().trim().parse().unwrap();
        let (_, submitter) = cost(&std::fs::read_to_string(report).unwrap());
        let staging = if self == Self::Staged {
            assert_eq!(seen, bench.jars.len(), "the driver sees all jars");
            let log = bench.runner.log(NAMESPACE, DRIVER, "spark-init");
            let (fetch, fetch_cost) = cost(log.lines().last().unwrap());
            Some(Staging {
                sent_bytes: bench.counter("cloakroom_upload_bytes_total").await - sent,
                server_cpu: Duration::from_secs_f64(bench.server_cpu() - server_cpu),
                init: first - nanoseconds(log.lines().next()),
                fetch,
                fetch_cost,
            })
        } else {
            None
        };
        self.clear(bench).await;
        Taken { first_instruction: first - started, submitter, staging }
    }

    /// The submitter under GNU time, which writes a report.
    fn command(self, bench: &BenchCluster, report: &Path) -> Command {
        let home = path("CLOAKROOM_TEST_SPARK_HOMES").join("spark-4.3.0");
        let mut command = Command::new("time");
        command.args(["-f", "%e %U %S %M", "-o"]).arg(report);
        match self {
            Self::CopiedBySpark => command.arg(home.join("bin/spark-submit")).env("SPARK_HOME", home),
            _ => command.args([env!("CARGO_BIN_EXE_cloakroom"), "submit"]),
        };
        command.env("HOME", bench.path("node")).env_remove("KUBECONFIG").env_remove("SPARK_CONF_DIR");
        let master = format!("k8s://https://{}", bench.plane.address());
        command.args(["--master", &master, "--deploy-mode", "cluster", "--class", "org.example.App"]);
        let way = match self {
            Self::Staged => ("spark.kubernetes.resourceStagingServer.uri", bench.server.url("")),
            _ => ("spark.kubernetes.file.upload.path", format!("file://{}", bench.path("shared").display())),
        };
        for (key, value) in [
            ("spark.kubernetes.namespace", NAMESPACE.to_owned()),
            ("spark.kubernetes.container.image", DRIVER_IMAGE.to_owned()),
            ("spark.kubernetes.driver.pod.name", DRIVER.to_owned()),
            ("spark.kubernetes.driver.podTemplateFile", bench.path("driver.yaml").display().to_string()),
            ("spark.kubernetes.authenticate.submission.oauthToken", bench.plane.token(Account::Admin)),
            (
                "spark.kubernetes.authenticate.submission.caCertFile",
                bench.plane.ca().unwrap().display().to_string(),
            ),
            ("spark.kubernetes.submission.waitAppCompletion", "false".to_owned()),
            way,
        ] {
            command.args(["--conf", &format!("{key}={value}")]);
        }
        let jars: Vec<_> = bench.jars.iter().map(|jar| jar.display().to_string()).collect();
        command.args(["--jars", &jars[1..].join(","), &jars[0]]);
        command.stdin(Stdio::null());
        command
    }

    /// Removes everything of a run before the next one.
    async fn clear(self, bench: &BenchCluster) {
        let driver = format!("/api/v1/namespaces/{NAMESPACE}/pods/{DRIVER}");
        bench.admin.delete(&driver).await;
        until("the driver is gone", async || bench.admin.get(&driver).await.0 == 404).await;
        std::fs::remove_dir_all(bench.path("node/logs")).unwrap();
        let copies = std::fs::read_dir(bench.path("shared")).unwrap().map(|entry| entry.unwrap().path());
        let copies: Vec<_> = copies.collect();
        let expected = if self == Self::Staged { 0 } else { bench.jars.len() };
        assert_eq!(copies.len(), expected, "each jar has a folder of its own");
        copies.iter().for_each(|copy| std::fs::remove_dir_all(copy).unwrap());
    }
}

/// Waits for the driver's end, and returns its log.
async fn ended(bench: &BenchCluster) -> String {
    let driver = format!("/api/v1/namespaces/{NAMESPACE}/pods/{DRIVER}");
    until("the driver has ended", async || {
        let (_, pod) = bench.admin.get(&driver).await;
        let phase = text(&pod["status"]["phase"]);
        assert_ne!(phase, "Failed", "{:?}", bench.runner.logs(NAMESPACE));
        phase == "Succeeded"
    })
    .await;
    bench.runner.log(NAMESPACE, DRIVER, "spark-kubernetes-driver")
}

fn nanoseconds(line: Option<&str>) -> Duration {
    Duration::from_nanos(line.unwrap().trim().parse().unwrap())
}

/// Reads the report of GNU time.
fn cost(report: &str) -> (Duration, Cost) {
    let figures: Vec<f64> = report.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let [wall, user, system, peak_kib] = figures[..] else { panic!("GNU time said: {report}") };
    let cpu = Duration::from_secs_f64(user + system);
    (Duration::from_secs_f64(wall), Cost { cpu, peak_mib: peak_kib / 1024.0 })
}

/// The figures of all runs of one kind.
#[derive(Default)]
pub struct Figures {
    first_instruction: Spread,
    cpu: Spread,
    peak_mib: f64,
    sent_bytes: f64,
    server_cpu: Spread,
    init: Spread,
    fetch: Spread,
    fetch_cpu: Spread,
    fetch_peak_mib: f64,
}

impl Figures {
    pub fn add(&mut self, taken: Taken) {
        self.first_instruction.add(taken.first_instruction);
        self.cpu.add(taken.submitter.cpu);
        self.peak_mib = self.peak_mib.max(taken.submitter.peak_mib);
        if let Some(staging) = taken.staging {
            self.sent_bytes = staging.sent_bytes;
            self.server_cpu.add(staging.server_cpu);
            self.init.add(staging.init);
            self.fetch.add(staging.fetch);
            self.fetch_cpu.add(staging.fetch_cost.cpu);
            self.fetch_peak_mib = self.fetch_peak_mib.max(staging.fetch_cost.peak_mib);
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  to the first instruction: {}", self.first_instruction)?;
        writeln!(f, "  the submitter: CPU {}, peak memory {:.1} MiB", self.cpu, self.peak_mib)?;
        if self.sent_bytes > 0.0 {
            writeln!(f, "  sent: {:.1} MB", self.sent_bytes / 1e6)?;
            writeln!(f, "  the init-container's beginning to the driver's: {}", self.init)?;
            writeln!(f, "  fetch: {}, CPU {}", self.fetch, self.fetch_cpu)?;
            writeln!(f, "  its peak memory: {:.1} MiB", self.fetch_peak_mib)?;
            writeln!(f, "  the server: CPU {}", self.server_cpu)?;
        }
        Ok(())
    }
}
