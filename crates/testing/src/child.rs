//! Programs that end with this process, even if it is killed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};

use rustix::process::{Pid, setpriority_process};

/// The niceness, in the scale of `nice`.
const LOWEST_PRIORITY: i32 = 19;

/// A program that runs in the background, with its output in a file. Killed when dropped.
pub struct Program {
    child: Mutex<Child>,
    log: PathBuf,
}

impl Program {
    pub fn start(path: &Path, args: &[String], log: PathBuf) -> Self {
        let mut command = tied_to_this_process(path);
        let file = File::create(&log).unwrap();
        command.args(args).stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        Self { child: Mutex::new(spawn(command)), log }
    }

    /// Fails with the end of the log if the program has ended.
    pub fn assert_running(&self) {
        if let Some(status) = self.child.lock().unwrap().try_wait().unwrap() {
            panic!("ended with {status}: {}", self.last_words());
        }
    }

    /// Lowers the priority of the program: of its present threads, and of those that they start.
    pub fn give_way(&self) {
        let process = self.child.lock().unwrap().id();
        for thread in std::fs::read_dir(format!("/proc/{process}/task")).unwrap() {
            let thread = thread.unwrap().file_name().into_string().unwrap().parse().unwrap();
            // A thread may have ended meanwhile.
            let _ = setpriority_process(Pid::from_raw(thread), LOWEST_PRIORITY);
        }
    }

    /// The end of the log.
    pub fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        format!("{}:\n{}", self.log.display(), lines[lines.len().saturating_sub(15)..].join("\n"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap();
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// If setpriv (util-linux) is present, the kernel kills the program when its parent ends, even by SIGKILL.
fn tied_to_this_process(path: &Path) -> Command {
    let setpriv = Path::new("/usr/bin/setpriv");
    if setpriv.exists() {
        let mut command = Command::new(setpriv);
        command.args(["--pdeathsig", "KILL"]).arg(path);
        command
    } else {
        Command::new(path)
    }
}

type Order = (Command, Sender<std::io::Result<Child>>);

/// Starts it on a thread that lasts as long as this process. For the kernel the parent is a thread, and threads of
/// tests end early.
fn spawn(command: Command) -> Child {
    static PARENT: OnceLock<Mutex<Sender<Order>>> = OnceLock::new();
    let parent = PARENT.get_or_init(|| {
        let (sender, orders) = channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, answer) in orders {
                answer.send(command.spawn()).unwrap();
            }
        });
        Mutex::new(sender)
    });
    let (sender, answer) = channel();
    parent.lock().unwrap().send((command, sender)).unwrap();
    answer.recv().unwrap().unwrap()
}
