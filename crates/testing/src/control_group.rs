//! A control group with the memory limit of a container in the manifests, and without swap.

use std::path::{Path, PathBuf};
use std::time::Duration;

const ROOT: &str = "/sys/fs/cgroup";

/// A control group. It is removed when dropped; its processes must have ended by then.
pub struct ControlGroup {
    folder: PathBuf,
    files: &'static Files,
}

/// The names of the files in one version of control groups.
struct Files {
    limit: &'static str,
    /// The limit of memory and swap together in version 1, of swap alone in version 2.
    swap: &'static str,
    swap_is_a_sum: bool,
    peak: &'static str,
    events: &'static str,
}

const FIRST: Files = Files {
    limit: "memory.limit_in_bytes",
    swap: "memory.memsw.limit_in_bytes",
    swap_is_a_sum: true,
    peak: "memory.max_usage_in_bytes",
    events: "memory.oom_control",
};

const SECOND: Files = Files {
    limit: "memory.max",
    swap: "memory.swap.max",
    swap_is_a_sum: false,
    peak: "memory.peak",
    events: "memory.events",
};

impl ControlGroup {
    /// Fails if this machine has no such groups, or does not let this user make one.
    pub fn make(name: &str, limit_bytes: u64) -> std::io::Result<Self> {
        let (parent, files) = parent().ok_or_else(|| std::io::Error::other("no memory controller"))?;
        let group = Self { folder: parent.join(format!("cloakroom-{name}-{}", std::process::id())), files };
        std::fs::create_dir(&group.folder)?;
        std::fs::write(group.folder.join(files.limit), limit_bytes.to_string())?;
        let swap = group.folder.join(files.swap);
        // The file is absent if the kernel does not count swap.
        if swap.exists() {
            let most = if files.swap_is_a_sum { limit_bytes } else { 0 };
            std::fs::write(swap, most.to_string())?;
        }
        Ok(group)
    }

    /// Whether a group can be made on this machine.
    pub fn can_be_made() -> bool {
        Self::make("probe", 64 << 20).is_ok()
    }

    /// The file into which a process writes its id to join the group.
    pub fn door(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// The peak of memory in use, page cache included; `None` if the kernel does not record it.
    pub fn peak_bytes(&self) -> Option<u64> {
        self.read(self.files.peak).trim().parse().ok()
    }

    /// How many processes were killed for lack of memory.
    pub fn killed(&self) -> u64 {
        let events = self.read(self.files.events);
        let line = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        line.and_then(|number| number.trim().parse().ok()).unwrap_or_default()
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.folder.join(file)).unwrap_or_default()
    }
}

impl Drop for ControlGroup {
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

/// The folder in which a group can be made, beside or below this process's own, and its file names.
fn parent() -> Option<(PathBuf, &'static Files)> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    for line in own.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let path = path.trim_start_matches('/');
        if controllers.split(',').any(|controller| controller == "memory") {
            return Some((Path::new(ROOT).join("memory").join(path), &FIRST));
        }
        // In version 2, a group contains either processes or other groups, so the new group is a sibling.
        let group = Path::new(ROOT).join(path);
        let beside = if path.is_empty() { group } else { group.parent()?.to_owned() };
        let controlled = std::fs::read_to_string(beside.join("cgroup.subtree_control")).unwrap_or_default();
        if controllers.is_empty() && controlled.split_whitespace().any(|controller| controller == "memory") {
            return Some((beside, &SECOND));
        }
    }
    None
}
