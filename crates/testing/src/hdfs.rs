//! A cluster of HDFS in one process. It needs seconds to start, so all tests of a process share one, unless they stop parts of it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock};

use tempfile::TempDir;

use crate::needs::{Need, path};

/// The variable that names the folder with the jars.
const FOLDER: &str = "CLOAKROOM_TEST_HDFS";

/// Little memory, and little time for compiling what runs for seconds.
const JAVA: [&str; 3] = ["-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];

/// The folder that it has from the start, which is this user's.
pub const TEAM: &str = "team";
pub const USER: &str = "cloakroom";

/// A running cluster of a namenode and a datanode. It ends when this is dropped.
pub struct Hdfs {
    child: Child,
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    /// The host and the port of the namenode.
    namenode: String,
    _folder: TempDir,
}

impl Hdfs {
    pub fn needs() -> Vec<Need> {
        vec![Need::Below(FOLDER, "hdfs.jar".to_owned()), Need::Program("java")]
    }

    /// That of this process. It ends with the process, because then its input ends.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Hdfs> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// One of its own.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let jars = path(FOLDER);
        let jars = format!("{0}/hdfs.jar:{0}/lib/*", jars.display());
        let mut command = Command::new("java");
        command.args(JAVA).args(["-cp", &jars, "cloakroom.hdfs.Main"]).arg(folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut output = BufReader::new(output);
        let ready = line(&mut output);
        let port =
            ready.strip_prefix("ready http://localhost:").unwrap_or_else(|| panic!("no cluster: {ready}"));
        let namenode = format!("127.0.0.1:{port}");
        Self { child, pipes: Mutex::new((input, output)), namenode, _folder: folder }
    }

    /// The host and the port of the namenode's HTTP interface.
    pub fn namenode(&self) -> &str {
        &self.namenode
    }

    /// Limits the bytes of all files in the folder.
    pub fn set_quota(&self, bytes: u64) {
        self.run(&format!("quota {bytes}"));
    }

    /// Lets the namenode refuse all changes, or no more.
    pub fn set_safe_mode(&self, is_on: bool) {
        self.run(if is_on { "safe-mode ENTER" } else { "safe-mode LEAVE" });
    }

    /// The names of all files and folders in a folder, which need not be there.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let found = self.run(&format!("list /{folder}"));
        found.split_whitespace().map(str::to_owned).collect()
    }

    /// Sets the time of change of a file, in seconds since 1970.
    pub fn touch(&self, path: &str, seconds: u64) {
        self.run(&format!("touch {path} {seconds}"));
    }

    /// Does a command, and returns what it says.
    fn run(&self, command: &str) -> String {
        let (input, output) = &mut *self.pipes.lock().unwrap();
        writeln!(input, "{command}").unwrap();
        let line = line(output);
        line.strip_prefix("done").unwrap_or_else(|| panic!("{command}: {line}")).to_owned()
    }
}

fn line(output: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

impl Drop for Hdfs {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
