//! What a test needs of the machine: programs, paths, rights.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libtest_mimic::Trial;

/// Something that a machine may lack.
pub enum Need {
    /// A program on the PATH.
    Program(&'static str),
    /// A path in an environment variable.
    Path(&'static str, &'static str),
    /// A path below the one in an environment variable.
    Below(&'static str, String),
    /// A file of this machine, and the package that contains it.
    File(&'static str, &'static str),
    /// kubectl, on the PATH or in `KUBEBUILDER_ASSETS`.
    Kubectl,
    /// Root, for mounts and chroot.
    Root,
    /// New namespaces of the kernel, which containers are made of.
    Namespaces,
    /// Anything else, with a check whether it works.
    Working(&'static str, fn() -> bool),
}

impl Need {
    fn missing(&self) -> Option<String> {
        match self {
            Self::Program(name) if !is_on_path(name) => Some(format!("{name} is not installed")),
            Self::Path(variable, what) if !path(variable).exists() => {
                Some(format!("{variable} does not name {what}"))
            }
            Self::Below(variable, below) if !path(variable).join(below).exists() => {
                Some(format!("{variable} does not name a folder that has {below}"))
            }
            Self::File(file, package) if !Path::new(file).exists() => {
                Some(format!("there is no {file} ({package})"))
            }
            Self::Kubectl if kubectl().is_none() => {
                Some("kubectl is neither on the PATH nor in $KUBEBUILDER_ASSETS".to_owned())
            }
            Self::Root if user_id() != "0" => Some("it needs root, for mounts and chroot".to_owned()),
            Self::Namespaces if !may_unshare() => {
                Some("no namespaces to be had here: it takes unshare, and root with CAP_SYS_ADMIN".to_owned())
            }
            Self::Working(what, works) if !works() => Some(format!("{what} cannot be had here")),
            _ => None,
        }
    }
}

/// The path in an environment variable.
pub fn path(variable: &str) -> PathBuf {
    std::env::var_os(variable).map(PathBuf::from).unwrap_or_default()
}

/// A test that runs if its needs are met. Otherwise it fails if they are required, and is skipped with a message if
/// not.
pub fn trial(name: &str, needs: &[Need], test: impl FnOnce() + Send + 'static) -> Trial {
    let missing = missing(needs);
    let run = move || {
        test();
        Ok(())
    };
    if missing.is_empty() {
        return Trial::test(name, run);
    }
    let why = missing.join("; ");
    if is_all_required() {
        return Trial::test(name, move || Err(format!("cannot run: {why}").into()));
    }
    eprintln!("SKIPPED {name}: {why}");
    Trial::test(name, run).with_ignored_flag(true)
}

/// Says that a test does not run, and why. With `CLOAKROOM_TEST_REQUIRE` it fails instead: `programs` requires what
/// Debian's packages have, `all` requires everything.
pub fn skip(why: &str) {
    assert!(std::env::var_os("CLOAKROOM_TEST_REQUIRE").is_none(), "cannot run: {why}");
    eprintln!("SKIPPED: {why}");
}

/// [`skip`] for what is not in Debian's packages, so only `all` requires it.
pub fn skip_unless_all(why: &str) {
    assert!(!is_all_required(), "cannot run: {why}");
    eprintln!("SKIPPED: {why}");
}

fn is_all_required() -> bool {
    std::env::var("CLOAKROOM_TEST_REQUIRE").is_ok_and(|required| required == "all")
}

/// The needs that are not met, in words.
pub fn missing(needs: &[Need]) -> Vec<String> {
    needs.iter().filter_map(Need::missing).collect()
}

/// kubectl: that of $KUBEBUILDER_ASSETS, else that of the machine.
pub fn kubectl() -> Option<PathBuf> {
    let beside = path("KUBEBUILDER_ASSETS").join("kubectl");
    if beside.is_absolute() && beside.is_file() {
        return Some(beside);
    }
    is_on_path("kubectl").then(|| PathBuf::from("kubectl"))
}

fn is_on_path(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

fn may_unshare() -> bool {
    let namespaces = ["--mount", "--pid", "--fork", "--ipc", "--uts", "--net", "true"];
    let tried = Command::new("unshare").args(namespaces).stdin(Stdio::null()).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}

fn user_id() -> String {
    let id = Command::new("id").arg("-u").stderr(Stdio::null()).output();
    id.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}
