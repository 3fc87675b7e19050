//! Files to transfer, and the programs that measurements run.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Writes `bytes` of noise, which no layer below can compress.
pub fn noise(path: &Path, bytes: u64) {
    let mut random = File::open("/dev/urandom").unwrap().take(bytes);
    std::io::copy(&mut random, &mut File::create(path).unwrap()).unwrap();
    File::open(path).unwrap().sync_all().unwrap();
}

/// Runs a shell command to its end and times it.
pub fn time(script: &str) -> Duration {
    let started = Instant::now();
    let status =
        Command::new("bash").args(["-o", "pipefail", "-ec", script]).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "failed: {script}");
    started.elapsed()
}

/// Waits until the disk has written what earlier runs left, so that no run pays for another.
pub fn settle() {
    assert!(Command::new("sync").status().unwrap().success());
}

/// Whether all programs are installed; prints those that are missing.
pub fn have(programs: &[&str]) -> bool {
    let missing: Vec<&&str> = programs.iter().filter(|program| !is_on_path(program)).collect();
    if !missing.is_empty() {
        println!("skipped: {missing:?} not installed");
    }
    std::io::stdout().flush().unwrap();
    missing.is_empty()
}

/// Whether a program can be started by its name.
pub fn is_on_path(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}
