//! One container's process, in namespaces of its own (tests/runs/run-container).

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::environment::Environment;

/// The process to start.
pub struct Plan {
    /// The container's folder, with its root file system and the runner's notes.
    pub folder: PathBuf,
    pub user: u32,
    pub group: u32,
    pub groups: Vec<u32>,
    pub host_name: String,
    pub working_folder: String,
    pub is_read_only: bool,
    pub binds: Vec<Bind>,
    pub environment: Environment,
    pub command: Vec<String>,
    pub log: PathBuf,
}

/// A file or folder of this machine, and where the container sees it.
pub struct Bind {
    pub source: PathBuf,
    pub target: String,
    pub is_writable: bool,
}

/// The stop signal of a pod, with its grace period. It can also mean that the containers took too much memory.
#[derive(Default)]
pub struct Stop {
    asked: CancellationToken,
    grace_seconds: AtomicU64,
    out_of_memory: CancellationToken,
}

impl Stop {
    /// Asks for the end.
    pub fn now(&self, grace_seconds: u64) {
        self.grace_seconds.store(grace_seconds, Ordering::Relaxed);
        self.asked.cancel();
    }

    /// Returns when the pod is asked to end.
    pub async fn asked(&self) {
        self.asked.cancelled().await;
    }

    /// Kills the running containers, as the kernel does for lack of memory.
    pub fn out_of_memory(&self) {
        self.out_of_memory.cancel();
    }

    pub fn was_out_of_memory(&self) -> bool {
        self.out_of_memory.is_cancelled()
    }

    pub fn is_asked(&self) -> bool {
        self.asked.is_cancelled()
    }

    fn grace(&self) -> Duration {
        Duration::from_secs(self.grace_seconds.load(Ordering::Relaxed))
    }
}

/// The process of a running container. It is killed when dropped.
pub struct Process {
    pid: u32,
    pid_file: PathBuf,
    /// The exit code, as a container runtime counts.
    ended: oneshot::Receiver<i32>,
    has_ended: bool,
}

impl Plan {
    /// The container's root file system.
    pub fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    pub fn start(&self) -> Process {
        let pid_file = self.folder.join("pid");
        let script = crate::project().join("tests/runs/run-container");
        let mut command = Command::new(script);
        let groups: Vec<String> = self.groups.iter().map(u32::to_string).collect();
        command
            .arg(self.root())
            .arg(&pid_file)
            .args([self.user.to_string(), self.group.to_string(), groups.join(",")])
            .args([&self.host_name, &self.working_folder]);
        for bind in &self.binds {
            let mode = if bind.is_writable { "rw" } else { "ro" };
            command.arg("bind").arg(&bind.source).args([&bind.target, mode]);
        }
        for (name, value) in &self.environment {
            command.args(["env", &format!("{name}={value}")]);
        }
        if self.is_read_only {
            command.env("CONTAINER_READ_ONLY", "yes");
        }
        let log = File::options().create(true).append(true).open(&self.log).unwrap();
        command.arg("--").args(&self.command);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let (pid, ended) = spawn(command);
        Process { pid, pid_file, ended, has_ended: false }
    }
}

/// Starts it on a thread that lasts as long as the process, because for the kernel the parent is a thread.
fn spawn(mut command: Command) -> (u32, oneshot::Receiver<i32>) {
    let (started, pid) = std::sync::mpsc::channel();
    let (ending, ended) = oneshot::channel();
    std::thread::spawn(move || {
        let mut child = command.spawn().unwrap();
        started.send(child.id()).unwrap();
        // The receiver may be gone.
        let _ = ending.send(code(child.wait().unwrap()));
    });
    (pid.recv().unwrap(), ended)
}

impl Process {
    /// Waits for the end, and returns the exit code. On `stop` it sends SIGTERM, and SIGKILL after the grace period.
    pub async fn end(&mut self, stop: &Stop) -> i32 {
        let code = tokio::select! {
            code = &mut self.ended => code.unwrap(),
            () = stop.asked() => self.insist(stop.grace()).await,
            () = stop.out_of_memory.cancelled() => self.kill().await,
        };
        self.has_ended = true;
        code
    }

    async fn insist(&mut self, grace: Duration) -> i32 {
        self.signal("TERM");
        if let Ok(code) = tokio::time::timeout(grace, &mut self.ended).await {
            return code.unwrap();
        }
        self.kill().await
    }

    /// Kills through the container's first process, which survives and reports: unshare reports no exit code if that
    /// process itself is killed.
    async fn kill(&mut self) -> i32 {
        self.signal("USR1");
        (&mut self.ended).await.unwrap()
    }

    /// Sends a signal, by name, to the first process of the container.
    fn signal(&self, name: &str) {
        let pid = std::fs::read_to_string(&self.pid_file).unwrap_or_else(|_| self.pid.to_string());
        let _ = Command::new("kill").args([&format!("-{name}"), pid.trim()]).stderr(Stdio::null()).status();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.has_ended {
            self.signal("KILL");
        }
    }
}

fn code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap()
}
