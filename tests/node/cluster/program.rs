//! Programs in the background, each with its output in a file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long a program has to end when it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// A running program. Asked to end, then killed, when dropped.
pub struct Program {
    child: Mutex<Child>,
    log: PathBuf,
}

impl Program {
    /// Starts it, with `NAME.log` in the folder.
    pub fn start(program: &Path, args: &[String], folder: &Path) -> Self {
        let log = folder.join(format!("{}.log", program.file_name().unwrap().to_str().unwrap()));
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        let child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        Self { child: Mutex::new(child), log }
    }

    /// Fails with the end of the log if the program has ended.
    pub fn assert_running(&self) {
        if let Some(status) = self.child.lock().unwrap().try_wait().unwrap() {
            let text = std::fs::read_to_string(&self.log).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let end = lines[lines.len().saturating_sub(15)..].join("\n");
            panic!("{} ended with {status}:\n{end}", self.log.display());
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap();
        let _ = Command::new("kill").arg(child.id().to_string()).status();
        let began = Instant::now();
        while began.elapsed() < GRACE {
            if child.try_wait().is_ok_and(|status| status.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}
