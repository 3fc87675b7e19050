//! The commit that `--version` of a release build tells: packaging/revision.rs, compiled and run as cargo does.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cloakroom_testing::needs::{Need, missing, skip};

#[test]
fn a_release_build_from_a_clone_knows_its_commit_and_changed_files() {
    let Some(clone) = Clone::make() else { return };
    let commit = clone.git(&["rev-parse", "HEAD"]);
    let set = format!("cargo::rustc-env=CLOAKROOM_REVISION={commit}");
    assert!(clone.told("release", &[]).lines().any(|line| line == set), "{}", clone.told("release", &[]));
    std::fs::write(clone.tree.join("Cargo.toml"), "# changed\n").unwrap();
    let changed = format!("{set}-dirty");
    assert!(clone.told("release", &[]).lines().any(|line| line == changed));
}

#[test]
fn debug_builds_given_revisions_and_trees_in_other_clones_ask_nothing() {
    let Some(clone) = Clone::make() else { return };
    let is_set = |told: String| told.contains("rustc-env");
    assert!(!is_set(clone.told("debug", &[])));
    assert!(!is_set(clone.told("release", &[("CLOAKROOM_REVISION", "of the release's script")])));
    clone.git(&["rm", "-q", "--cached", "-r", "packaging"]);
    assert!(!is_set(clone.told("release", &[])));
}

/// A small clone with the build script in it.
struct Clone {
    /// Removed at the end.
    _folder: tempfile::TempDir,
    tree: PathBuf,
    script: PathBuf,
}

impl Clone {
    /// `None`, loudly, without git or Rust.
    fn make() -> Option<Self> {
        let missing = missing(&[Need::Program("git"), Need::Program("rustc")]);
        if !missing.is_empty() {
            skip(&missing.join("; "));
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let (tree, script) = (folder.path().join("tree"), folder.path().join("script"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/revision.rs");
        std::fs::create_dir_all(tree.join("packaging")).unwrap();
        std::fs::copy(&source, tree.join("packaging/revision.rs")).unwrap();
        std::fs::write(tree.join("Cargo.toml"), "").unwrap();
        ran(Command::new("rustc").args(["--edition", "2024", "-o"]).args([&script, &source]));
        let clone = Self { _folder: folder, tree, script };
        clone.git(&["init", "-q"]);
        clone.git(&["add", "."]);
        let who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
        clone.git(&[&who[..], &["commit", "-q", "-m", "A tree"]].concat());
        Some(clone)
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = ran(Command::new("git").args(arguments).current_dir(&self.tree));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// What the build script says to cargo.
    fn told(&self, profile: &str, variables: &[(&str, &str)]) -> String {
        let mut script = Command::new(&self.script);
        script.current_dir(&self.tree).env_remove("CLOAKROOM_REVISION").env("PROFILE", profile);
        String::from_utf8(ran(script.envs(variables.iter().copied())).stdout).unwrap()
    }
}

fn ran(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}
