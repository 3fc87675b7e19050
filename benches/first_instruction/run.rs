//! A staging server on the node, the jars of an application, and one submission with its times and memory.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cloakroom_testing::dist;
use cloakroom_testing::files::settle;
use cloakroom_testing::needs::path;
use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::spread::Spread;

use crate::cluster::{Cluster, NODE_ADDRESS, cluster};
use crate::images::{CLOAKROOM, SPARK_HOMES, VERSIONS, spark};
use crate::shell::{At, run, until};
use crate::world;

/// It prints when it began, and how many jars it sees.
const DRIVER: &str = r#"{"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "spark-kubernetes-driver",
    "command": ["sh", "-c", "date +%s%N; find /var/spark-data/spark-jars -name '*.jar' 2>/dev/null | wc -l"]}]}}"#;

const INPUT_BYTES: u64 = 300_000_000;

pub struct Bench {
    server: Cloakroom,
    /// Real jars; the first one is the application's.
    pub jars: Vec<PathBuf>,
    pub bytes: u64,
    folder: PathBuf,
}

/// The program that submits, and the way of the jars.
#[derive(Clone, Copy, PartialEq)]
pub enum Way {
    /// `cloakroom submit`, through the server.
    Staged,
    /// `cloakroom submit`, through a folder that pods see as well.
    Copied,
    /// spark-submit, through such a folder.
    CopiedBySpark,
    /// spark-submit, through the server's WebHDFS.
    SentBySpark,
}

/// Times and memory of one submission.
pub struct Taken {
    first_instruction: Duration,
    cpu: Duration,
    peak_mib: f64,
    server_cpu: Duration,
    /// What the init-container says that it took.
    fetch: Option<Duration>,
}

impl Bench {
    pub fn prepare() -> Self {
        cluster();
        let folder = world::folder().join("bench");
        std::fs::create_dir_all(folder.join("shared")).unwrap();
        std::fs::write(folder.join("driver.yaml"), DRIVER).unwrap();
        let mut command = Command::new(dist::binary());
        command.env_clear().current_dir(&folder).args([
            "serve",
            "--upload-auth",
            "none",
            "--webhdfs",
            "--data-dir",
            "data",
        ]);
        command.args(["--listen", &format!("{NODE_ADDRESS}:10000"), "--fetch-image", CLOAKROOM]);
        command.args(["--min-free-space", "0b", "--kubeconfig", "../admin.kubeconfig"]);
        let server = Cloakroom::start(command);
        let (jars, bytes) = fill(&folder.join("jars"));
        Self { server, jars, bytes, folder }
    }

    /// User and system time of the server so far.
    fn server_cpu(&self) -> Duration {
        const TICKS_IN_A_SECOND: f64 = 100.0;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.server.pid())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
        Duration::from_secs_f64((ticks(11) + ticks(12)) / TICKS_IN_A_SECOND)
    }

    /// The peak of resident memory (VmHWM).
    pub fn server_peak_mib(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
    }
}

/// Copies jars of the Spark distribution until they have enough bytes.
fn fill(folder: &Path) -> (Vec<PathBuf>, u64) {
    std::fs::create_dir(folder).unwrap();
    let source = spark_home().join("jars");
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

fn spark_home() -> PathBuf {
    path(SPARK_HOMES).join(format!("spark-{}", VERSIONS[0]))
}

impl Way {
    pub const ALL: [Self; 4] = [Self::Staged, Self::Copied, Self::CopiedBySpark, Self::SentBySpark];

    pub fn name(self) -> &'static str {
        match self {
            Self::Staged => "cloakroom submit, through the server",
            Self::Copied => "cloakroom submit, file.upload.path on a local folder",
            Self::CopiedBySpark => "spark-submit 4.3.0, file.upload.path on a local folder",
            Self::SentBySpark => "spark-submit 4.3.0, file.upload.path on the server (WebHDFS)",
        }
    }

    pub fn run(self, bench: &Bench) -> Taken {
        settle();
        let server_cpu = bench.server_cpu();
        let mut command = self.command(bench);
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        until("the driver has ended", || {
            kubectl("get pod driver -o jsonpath={.status.phase}") == "Succeeded"
        });
        let log = kubectl("logs driver -c spark-kubernetes-driver");
        let (first, seen) = log.trim().split_once('\n').unwrap();
        let report = std::fs::read_to_string(bench.folder.join("report")).unwrap();
        let figures: Vec<f64> = report.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [user, system, peak_kib] = figures[..] else { panic!("GNU time said: {report}") };
        let server_cpu = bench.server_cpu() - server_cpu;
        let fetch = (self == Self::Staged).then(|| {
            assert_eq!(seen.trim(), bench.jars.len().to_string(), "the driver sees all jars");
            fetch_time(&kubectl("logs driver -c spark-init"))
        });
        self.clear(bench);
        Taken {
            first_instruction: Duration::from_nanos(first.parse().unwrap()) - started,
            cpu: Duration::from_secs_f64(user + system),
            peak_mib: peak_kib / 1024.0,
            server_cpu,
            fetch,
        }
    }

    /// The submitter under GNU time, which writes a report.
    fn command(self, bench: &Bench) -> Command {
        let mut command = Command::new("time");
        command.current_dir(&bench.folder).args(["-f", "%U %S %M", "-o", "report"]);
        match self {
            Self::CopiedBySpark | Self::SentBySpark => {
                command.arg(spark_home().join("bin/spark-submit")).env("SPARK_HOME", spark_home())
            }
            Self::Staged | Self::Copied => command.arg(dist::binary()).arg("submit"),
        };
        command.env("HOME", &bench.folder).env_remove("SPARK_CONF_DIR");
        command.env("KUBECONFIG", world::folder().join("admin.kubeconfig"));
        let master = format!("k8s://{}", Cluster::api_server());
        command.args(["--master", &master, "--deploy-mode", "cluster", "--class", "org.example.App"]);
        let way = match self {
            Self::Staged => format!("resourceStagingServer.uri={}", bench.server.url("")),
            Self::SentBySpark => format!("file.upload.path=webhdfs://{}/default", bench.server.address),
            Self::Copied | Self::CopiedBySpark => {
                format!("file.upload.path=file://{}", bench.folder.join("shared").display())
            }
        };
        for setting in [
            &format!("container.image={}", spark(VERSIONS[0])),
            "driver.pod.name=driver",
            &format!("driver.podTemplateFile={}", bench.folder.join("driver.yaml").display()),
            "submission.waitAppCompletion=false",
            &way,
        ] {
            command.args(["--conf", &format!("spark.kubernetes.{setting}")]);
        }
        let jars: Vec<_> = bench.jars.iter().map(|jar| jar.display().to_string()).collect();
        command.args(["--jars", &jars[1..].join(","), &jars[0]]).stdin(Stdio::null());
        command
    }

    /// Removes everything of a run before the next one.
    fn clear(self, bench: &Bench) {
        kubectl("delete pod driver");
        let copies = std::fs::read_dir(bench.folder.join("shared")).unwrap();
        let copies: Vec<_> = copies.map(|entry| entry.unwrap().path()).collect();
        let is_through_server = matches!(self, Self::Staged | Self::SentBySpark);
        let expected = if is_through_server { 0 } else { bench.jars.len() };
        assert_eq!(copies.len(), expected, "each jar has a folder of its own");
        copies.iter().for_each(|copy| std::fs::remove_dir_all(copy).unwrap());
    }
}

fn kubectl(arguments: &str) -> String {
    run(At::Node, &format!("kubectl {arguments}")).ok().stdout
}

/// The last words of the init-container: `… in 640ms` or `… in 1.2s`.
fn fetch_time(log: &str) -> Duration {
    let said = log.trim().rsplit(' ').next().unwrap();
    let (number, unit) = said.split_at(said.find(|c: char| c.is_ascii_alphabetic()).unwrap());
    let seconds: f64 = number.parse().unwrap();
    Duration::from_secs_f64(if unit == "ms" { seconds / 1000.0 } else { seconds })
}

/// The figures of all runs of one kind.
#[derive(Default)]
pub struct Figures {
    first_instruction: Spread,
    cpu: Spread,
    peak_mib: f64,
    server_cpu: Spread,
    fetch: Option<Spread>,
}

impl Figures {
    pub fn add(&mut self, taken: Taken) {
        self.first_instruction.add(taken.first_instruction);
        self.cpu.add(taken.cpu);
        self.peak_mib = self.peak_mib.max(taken.peak_mib);
        self.server_cpu.add(taken.server_cpu);
        if let Some(fetch) = taken.fetch {
            self.fetch.get_or_insert_default().add(fetch);
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  to the first instruction: {}", self.first_instruction)?;
        writeln!(f, "  the submitter: CPU {}, peak memory {:.1} MiB", self.cpu, self.peak_mib)?;
        writeln!(f, "  the server: CPU {}", self.server_cpu)?;
        if let Some(fetch) = &self.fetch {
            writeln!(f, "  fetch: {fetch}")?;
        }
        Ok(())
    }
}
