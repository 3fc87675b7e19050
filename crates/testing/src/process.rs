//! The real binary as a process.

use std::io::{BufRead as _, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::wait::BOUND;

/// The binary that cargo built for the tests of the root package.
pub fn binary() -> PathBuf {
    let path = std::env::var_os("CARGO_BIN_EXE_cloakroom");
    path.expect("cargo says where the binary is to those that it runs: cargo test, cargo bench").into()
}

/// The binary with a clean environment.
pub fn command() -> Command {
    let mut command = Command::new(binary());
    command.env_clear().stdin(Stdio::null());
    command
}

/// Runs the binary to its end.
pub fn run(args: &[&str]) -> Output {
    command().args(args).output().unwrap()
}

/// Runs a command that has to end in time. Its output must fit into a pipe.
pub fn output_in_time(command: &mut Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    ended_in_time(child)
}

/// The same command with a closed stdout, as a shell's `>&-` leaves it.
pub fn with_closed_stdout(command: &Command) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", r#"exec "$@" >&-"#, "sh"]).arg(command.get_program()).args(command.get_args());
    shell.env_clear().stdin(Stdio::null());
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    shell
}

/// The output of a process that has to end in time.
pub fn ended_in_time(mut child: Child) -> Output {
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > BOUND {
            child.kill().unwrap();
            panic!("it did not end: {}", stderr(&child.wait_with_output().unwrap()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

/// The part of a help text about flags, without the examples and notes after it.
pub fn flags_in(help: &str) -> &str {
    let ends = ["\nLocal files:\n", "\nExamples:\n", "\nExample:\n"].map(|heading| help.find(heading));
    &help[..ends.into_iter().flatten().min().unwrap_or(help.len())]
}

/// The stderr of a finished command.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Reads the output of a process until it contains `needle`.
pub fn read_until(from: &mut impl Read, needle: &str) -> String {
    let (mut text, mut bytes) = (Vec::new(), [0; 4096]);
    loop {
        let read = from.read(&mut bytes).unwrap();
        text.extend_from_slice(&bytes[..read]);
        let said = String::from_utf8_lossy(&text).into_owned();
        if said.contains(needle) {
            return said;
        }
        assert!(read > 0, "it ended without “{needle}”: {said}");
    }
}

/// A running `cloakroom serve`. Killed when dropped.
pub struct Cloakroom {
    child: Child,
    log: Arc<(Mutex<String>, Condvar)>,
    scheme: &'static str,
    pub address: String,
}

impl Cloakroom {
    /// Starts `cloakroom serve` on a free port of the loopback interface with this data directory and these flags, and
    /// waits until it serves.
    pub fn serve(data_dir: &Path, flags: &[&str]) -> Self {
        Self::serve_at(SocketAddr::from(([127, 0, 0, 1], 0)), data_dir, flags)
    }

    /// The same at a given address, which must be free.
    pub fn serve_at(address: SocketAddr, data_dir: &Path, flags: &[&str]) -> Self {
        let mut command = command();
        command.args(["serve", "--listen", &address.to_string(), "--data-dir"]).arg(data_dir).args(flags);
        Self::start(command)
    }

    /// Starts any command line that serves, and waits until it serves.
    pub fn start(command: Command) -> Self {
        let mut server = Self::launch(command);
        server.wait_until_it_serves();
        server
    }

    /// Starts any command line that serves, and does not wait for its address.
    pub fn launch(command: Command) -> Self {
        Self::launch_with(command, Stdio::null())
    }

    /// The same, with this stdout.
    pub fn launch_with(mut command: Command, stdout: Stdio) -> Self {
        let mut child = command.stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::new((Mutex::new(String::new()), Condvar::new()));
        let stderr = child.stderr.take().unwrap();
        std::thread::spawn({
            let log = Arc::clone(&log);
            move || {
                let mut stderr = BufReader::new(stderr);
                let mut line = String::new();
                while stderr.read_line(&mut line).is_ok_and(|read| read > 0) {
                    log.0.lock().unwrap().push_str(&std::mem::take(&mut line));
                    log.1.notify_all();
                }
            }
        });
        Self { child, log, scheme: "http", address: String::new() }
    }

    /// Waits for the log line with its address.
    pub fn wait_until_it_serves(&mut self) {
        let line = self.wait_for_log("serves on http");
        if line.contains("serves on https") {
            self.scheme = "https";
        }
        let address = line.rsplit_once("://").unwrap().1.trim();
        self.address = address.trim_end_matches("\u{1b}[0m").to_owned();
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything on stderr so far.
    pub fn log(&self) -> String {
        self.log.0.lock().unwrap().clone()
    }

    /// Waits for a log line that contains `needle`, and returns it.
    pub fn wait_for_log(&mut self, needle: &str) -> String {
        let text = self.log.0.lock().unwrap();
        let found = |text: &str| text.lines().find(|line| line.contains(needle)).map(str::to_owned);
        let (text, timeout) =
            self.log.1.wait_timeout_while(text, BOUND, |text| found(text).is_none()).unwrap();
        assert!(!timeout.timed_out(), "the log has no “{needle}”:\n{text}");
        found(&text).unwrap()
    }

    /// Sends a signal by name, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    /// Waits for the end, which has to come in time.
    pub fn wait(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < BOUND, "it did not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// `kill -9`, at once.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Cloakroom {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a whole file as text.
pub fn read(path: &Path) -> String {
    let mut text = String::new();
    std::fs::File::open(path).unwrap().read_to_string(&mut text).unwrap();
    text
}
