//! One run of a program: a fresh folder with the files of the call, a server, a clean environment, a bound in time.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;

use crate::api_server::{self, ApiServer};
use crate::sets::{Call, Content};

/// Longer than any run takes on a busy machine; what is slower hangs.
const BOUND: Duration = Duration::from_secs(180);

/// Who submits, where a set does not say.
const USER: &str = "analyst";

/// What a program did.
pub struct Run {
    pub exit: i32,
    pub calls: Vec<api_server::Call>,
    pub stdout: String,
    pub stderr: String,
    /// Files below `{dir}/upload`, with their sizes.
    pub uploads: BTreeMap<String, u64>,
    /// What is different each time, and its name in normal form.
    pub literals: Vec<(String, &'static str)>,
}

/// What is about to run.
pub enum Program<'a> {
    /// spark-submit of the distribution in this folder.
    Spark(&'a Path),
    /// `cloakroom submit`, told which version of Spark to follow.
    Cloakroom(&'a str),
}

/// Runs it to its end.
pub fn run(program: &Program, call: &Call) -> Run {
    let folder = TempDir::new().unwrap();
    let server = ApiServer::start(&call.faults, call.life.clone());
    let literals = vec![
        (folder.path().display().to_string(), "<dir>"),
        (server.address(), "<server>"),
        (server.address().replace(':', "\\:"), "<server>"),
    ];
    let machine = SubmittingMachine { folder: folder.path().to_owned(), server: server.address() };
    machine.write(&call.files);
    let mut command = machine.command(program, call);
    let (stdout, stderr) = (machine.folder.join(".stdout"), machine.folder.join(".stderr"));
    command.stdin(Stdio::null());
    command.stdout(File::create(&stdout).unwrap()).stderr(File::create(&stderr).unwrap());
    let exit = wait(command.spawn().unwrap(), &call.arguments);
    let read = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    Run {
        exit,
        calls: server.calls(),
        stdout: read(&stdout),
        stderr: read(&stderr),
        uploads: uploads(&machine.folder.join("upload")),
        literals,
    }
}

struct SubmittingMachine {
    folder: PathBuf,
    server: String,
}

impl SubmittingMachine {
    fn fill_in(&self, text: &str) -> String {
        let master = format!("k8s://http://{}", self.server);
        let folder = self.folder.display().to_string();
        text.replace("{master}", &master).replace("{server}", &self.server).replace("{dir}", &folder)
    }

    fn write(&self, files: &BTreeMap<String, Content>) {
        std::fs::create_dir_all(self.folder.join("home")).unwrap();
        for (name, content) in files {
            let path = self.folder.join(name);
            if name.ends_with('/') {
                std::fs::create_dir_all(path).unwrap();
                continue;
            }
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let bytes = match content {
                Content::Text(text) => self.fill_in(text).into_bytes(),
                Content::Base64 { base64 } => STANDARD.decode(base64).unwrap(),
                Content::Size { size } => vec![b'x'; *size],
            };
            std::fs::write(path, bytes).unwrap();
        }
    }

    fn command(&self, program: &Program, call: &Call) -> Command {
        let mut command = match program {
            Program::Spark(home) => self.spark(home),
            Program::Cloakroom(version) => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_cloakroom"));
                command.env_clear().arg("submit");
                if !call.arguments.is_empty() {
                    command.args(["--conf", &format!("spark.kubernetes.cloakroom.sparkVersion={version}")]);
                }
                command
            }
        };
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder.join("home"));
        command.env("HADOOP_USER_NAME", USER).env("LC_ALL", "C.UTF-8").env("TZ", "UTC");
        for (name, value) in &call.environment {
            match value {
                Some(value) => command.env(name, self.fill_in(value)),
                None => command.env_remove(name),
            };
        }
        command.current_dir(&self.folder);
        command.args(call.arguments.iter().map(|argument| self.fill_in(argument)));
        command
    }

    fn spark(&self, home: &Path) -> Command {
        // A set may bring a SPARK_HOME with a `conf` of its own.
        let own = self.folder.join("spark-home");
        if own.is_dir() {
            for part in ["bin", "jars"] {
                std::os::unix::fs::symlink(home.join(part), own.join(part)).unwrap();
            }
        }
        let mut command = Command::new(home.join("bin/spark-submit"));
        // Or it says what the machine is called.
        command.env_clear().env("SPARK_HOME", home).env("SPARK_LOCAL_IP", "127.0.0.1");
        if let Some(java) = std::env::var_os("JAVA_HOME") {
            command.env("JAVA_HOME", java);
        }
        // Short runs: no second compiler, no parallel collector, classes as `install-spark` left them. An archive that does
        // not fit, or is not there, is passed over, which must not be said on stdout.
        let quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";
        let classes = home.join("classes.jsa");
        let submit =
            format!("{quick} -Xshare:auto -XX:SharedArchiveFile={} -Xlog:disable", classes.display());
        command.env("SPARK_SUBMIT_OPTS", submit).env("SPARK_LAUNCHER_OPTS", quick);
        command
    }
}

fn wait(mut child: Child, arguments: &[String]) -> i32 {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        if started.elapsed() > BOUND {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("still runs after {BOUND:?}: {}", arguments.join(" "));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn uploads(folder: &Path) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(next) else { continue };
        for entry in entries {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                let name = entry.path().strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, entry.metadata().unwrap().len());
            }
        }
    }
    found
}
