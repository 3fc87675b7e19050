//! A control group with as much memory as a container of the manifests may have, and no swap.

use std::path::{Path, PathBuf};

const ROOT: &str = "/sys/fs/cgroup";

/// Removed when dropped; its processes must have ended then.
pub struct ControlGroup {
    folder: PathBuf,
    files: &'static Files,
}

/// What the files of one version of control groups are called.
struct Files {
    limit: &'static str,
    /// Of memory and swap in version 1, of swap alone in version 2.
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
    /// Fails where this machine has no such groups, or lets nobody make any.
    pub fn make(name: &str, limit_bytes: u64) -> std::io::Result<Self> {
        let root = Path::new(ROOT);
        let is_second = root.join("cgroup.controllers").exists();
        let (parent, files) =
            if is_second { (root.to_owned(), &SECOND) } else { (root.join("memory"), &FIRST) };
        if is_second {
            std::fs::write(root.join("cgroup.subtree_control"), "+memory")?;
        } else if !parent.join(FIRST.limit).exists() {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        let group = Self { folder: parent.join(name), files };
        std::fs::create_dir_all(&group.folder)?;
        std::fs::write(group.folder.join(files.limit), limit_bytes.to_string())?;
        let swap = group.folder.join(files.swap);
        // Absent where the kernel does not count swap.
        if swap.exists() {
            let most = if files.swap_is_a_sum { limit_bytes } else { 0 };
            std::fs::write(swap, most.to_string())?;
        }
        Ok(group)
    }

    /// Where a process writes its id to get in.
    pub fn door(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// The most that was ever in use, page cache included; nothing where the kernel does not keep it.
    pub fn peak_bytes(&self) -> Option<u64> {
        self.read(self.files.peak).trim().parse().ok()
    }

    /// How many processes were killed because there was not enough.
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
        let _ = std::fs::remove_dir(&self.folder);
    }
}
