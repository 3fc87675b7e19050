//! A control group with the memory of a pod.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A control group of one's own, in either version of the kernel's interface. Removed when dropped, once it is empty.
pub struct MemoryGroup {
    folder: PathBuf,
}

impl MemoryGroup {
    /// Makes one with so much memory and no swap.
    pub fn new(limit_bytes: u64) -> std::io::Result<Self> {
        let (parent, is_first_version) =
            parent().ok_or_else(|| std::io::Error::other("no memory controller"))?;
        let folder = parent.join(format!("cloakroom-test-{}-{limit_bytes}", std::process::id()));
        std::fs::create_dir(&folder)?;
        let group = Self { folder };
        let limit = limit_bytes.to_string();
        if is_first_version {
            group.write("memory.limit_in_bytes", &limit)?;
            group.write("memory.swappiness", "0")?;
        } else {
            group.write("memory.max", &limit)?;
            group.write("memory.swap.max", "0")?;
        }
        Ok(group)
    }

    /// The same command line, in this group from its first moment on.
    pub fn command(&self, command: &Command) -> Command {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""]).arg(&self.folder);
        shell.arg(command.get_program()).args(command.get_args()).env_clear();
        shell
    }

    fn write(&self, file: &str, value: &str) -> std::io::Result<()> {
        std::fs::write(self.folder.join(file), value)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // The kernel may take a moment to see that its last process has ended.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Where a group can be made beside or below this process's own, and whether it is one of the first version.
fn parent() -> Option<(PathBuf, bool)> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    for line in own.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let path = path.trim_start_matches('/');
        if controllers.split(',').any(|controller| controller == "memory") {
            return Some((Path::new("/sys/fs/cgroup/memory").join(path), true));
        }
        // Of the second version, a group has either processes or groups: so it is made beside.
        let group = Path::new("/sys/fs/cgroup").join(path);
        let beside = if path.is_empty() { group } else { group.parent()?.to_owned() };
        let controlled = std::fs::read_to_string(beside.join("cgroup.subtree_control")).unwrap_or_default();
        if controllers.is_empty() && controlled.split_whitespace().any(|controller| controller == "memory") {
            return Some((beside, false));
        }
    }
    None
}
