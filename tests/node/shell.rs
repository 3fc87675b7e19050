//! Commands as people type them, on the machine where they sit.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::world;

/// How a command ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Ran {
    /// Fails unless the command succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// Fails unless the command ended with this code.
    #[track_caller]
    pub fn ended_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }
}

/// Who types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// The node itself.
    Node,
    /// A machine of the same network, which sees the node's address and nothing of the cluster's own network.
    Laptop,
}

/// Runs a script of the shell, in the folder `home` below the world's folder, with `kubectl` and `cloakroom` on the PATH and an
/// admin's kubeconfig.
pub fn run(at: At, script: &str) -> Ran {
    let began = Instant::now();
    let output = command(at, script).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran {
        code: output.status.code(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
        took: began.elapsed(),
    }
}

/// The same on the laptop, which has to succeed.
#[track_caller]
pub fn laptop(script: &str) -> Ran {
    run(At::Laptop, script).ok()
}

/// A command that goes on in the background.
pub struct Background {
    child: Option<Child>,
    began: Instant,
}

/// Starts a script of the shell on the laptop.
pub fn start(script: &str) -> Background {
    let mut command = command(At::Laptop, script);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Background { child: Some(command.spawn().unwrap()), began: Instant::now() }
}

impl Background {
    /// Waits for its end.
    pub fn end(mut self) -> Ran {
        let output = self.child.take().unwrap().wait_with_output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            took: self.began.elapsed(),
        }
    }

    pub fn is_running(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_none()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Does something with each at once, and fails with the names of those that failed.
pub fn side_by_side<T: Sync>(all: &[T], name: impl Fn(&T) -> &'static str, act: impl Fn(&T) + Sync) {
    let act = &act;
    let failed: Vec<&str> = std::thread::scope(|scope| {
        let running: Vec<_> = all.iter().map(|one| (name(one), scope.spawn(move || act(one)))).collect();
        running.into_iter().filter_map(|(name, running)| running.join().err().map(|_| name)).collect()
    });
    assert!(failed.is_empty(), "{failed:?}, see above");
}

/// The most that one script takes, in seconds.
const LONGEST: &str = "240";

fn command(at: At, script: &str) -> Command {
    let folder = world::folder();
    let mut command = match at {
        At::Node => Command::new("timeout"),
        At::Laptop => {
            let mut command = Command::new("nsenter");
            command.arg(format!("--net={}", crate::cluster::LAPTOP)).arg("timeout");
            command
        }
    };
    command.args(["--kill-after=5", LONGEST, "bash"]);
    let home = folder.join("home");
    std::fs::create_dir_all(&home).unwrap();
    let path = format!(
        "{}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        folder.join("bin").display()
    );
    command.args(["-euo", "pipefail", "-c", script]).current_dir(&home).stdin(Stdio::null());
    command.env_clear().env("HOME", &home).env("PATH", path).env("LANG", "C.UTF-8");
    command.env("KUBECONFIG", folder.join("admin.kubeconfig"));
    command
}

/// Far more than anything here takes; reached only when a test fails.
pub const BOUND: Duration = Duration::from_secs(120);

/// Looks again and again until `condition` holds, and returns how long that took.
#[track_caller]
pub fn until(what: &str, condition: impl FnMut() -> bool) -> Duration {
    until_within(BOUND, what, condition)
}

/// [`until`] with another bound.
#[track_caller]
pub fn until_within(bound: Duration, what: &str, mut condition: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < bound, "waited {bound:?} in vain until {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
    began.elapsed()
}
