//! The build script: it tells `cloakroom --version` the commit of a release build, unless `CLOAKROOM_REVISION` does. A
//! build for tests has none, so that a commit alone compiles nothing again.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=CLOAKROOM_REVISION");
    println!("cargo::rerun-if-changed=packaging/revision.rs");
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if !is_release || env::var_os("CLOAKROOM_REVISION").is_some() {
        return;
    }
    // A tree without a history of its own may lie inside another clone.
    let is_here = git(&["ls-files", "--error-unmatch", "packaging/revision.rs"]).is_some();
    let Some(commit) = git(&["rev-parse", "HEAD"]).filter(|_| is_here) else { return };
    let changes = git(&["status", "--porcelain", "--untracked-files=no"]);
    let mark = if changes.is_some_and(|changes| changes.is_empty()) { "" } else { "-dirty" };
    println!("cargo::rustc-env=CLOAKROOM_REVISION={commit}{mark}");
    // The first two change with a commit or a checkout. If one of these files were missing, cargo would run this script
    // each time.
    let history = ["HEAD", "logs/HEAD"].map(|name| git(&["rev-parse", "--git-path", name]));
    let tree = ["Cargo.toml", "Cargo.lock", "src", "crates", "migrations"].map(|name| Some(name.to_owned()));
    for path in history.into_iter().chain(tree).flatten().filter(|path| Path::new(path).exists()) {
        println!("cargo::rerun-if-changed={path}");
    }
}

/// The output of git; `None` if it fails, or is not there.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
