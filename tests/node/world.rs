//! The namespaces that everything runs in: network, mounts and processes of their own. When they end, nothing of it is left.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cloakroom_testing::needs::{self, Need};
use libtest_mimic::Arguments;

use crate::cluster::{ASSETS, CHART_TOOLS, CNI_PLUGINS};
use crate::images::{SPARK_HOMES, SPARK_ROOT, VERSIONS};

/// Names the folder that everything is written to. Set inside only.
const FOLDER: &str = "CLOAKROOM_TEST_NODE_FOLDER";

/// The folder that everything is written to; inside only.
pub fn folder() -> PathBuf {
    PathBuf::from(std::env::var_os(FOLDER).unwrap())
}

/// The control group that all pods are below, as the kubelet names it.
pub fn control_group() -> String {
    format!("/{}", folder().file_name().unwrap().to_str().unwrap())
}

/// What a node needs of a machine.
pub fn needs() -> Vec<Need> {
    let programs = [
        "containerd",
        "ctr",
        "runc",
        "iptables",
        "ip",
        "nsenter",
        "setpriv",
        "openssl",
        "curl",
        "jq",
        "javac",
        "python3",
    ];
    let mut needs: Vec<Need> = programs.map(Need::Program).into();
    needs.extend([
        Need::Root,
        Need::Namespaces,
        Need::File(CNI_PLUGINS, "containernetworking-plugins"),
        Need::File("/bin/busybox", "busybox-static"),
        Need::Below(SPARK_ROOT, "opt/spark/work-dir".to_owned()),
        Need::Working(
            "2 GiB of free disk space for pods (the images of this tier need 5 GiB before that)",
            has_room,
        ),
    ]);
    let assets = [
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kube-proxy",
        "kubelet",
        "kubectl",
    ];
    needs.extend(assets.map(|program| Need::Below(ASSETS, program.to_owned())));
    needs.push(Need::Below(CHART_TOOLS, "coredns".to_owned()));
    needs.extend(
        VERSIONS.map(|version| Need::Below(SPARK_HOMES, format!("spark-{version}/bin/spark-submit"))),
    );
    needs
}

/// Whether pods have room on the disk. Without it, pods get evicted, and the tests fail for reasons that they do not show.
fn has_room() -> bool {
    let folder = std::env::var_os(FOLDER).map_or_else(std::env::temp_dir, PathBuf::from);
    let output = Command::new("df").args(["--output=avail", "--block-size=1M"]).arg(folder).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().nth(1).unwrap().trim().parse::<u64>().unwrap() >= 2048
}

/// Whether this is the outer process and tests are to be run.
pub fn is_wanted(arguments: &Arguments) -> bool {
    !arguments.list && std::env::var_os(FOLDER).is_none() && needs::missing(&needs()).is_empty()
}

/// Runs this program once more, with the same arguments, in namespaces of its own, and returns its exit code.
pub fn run_this_program_inside() -> i32 {
    remove_leftovers();
    let prefix = format!("{PREFIX}{}-", std::process::id());
    let folder = tempfile::Builder::new().prefix(&prefix).tempdir().unwrap();
    let groups = ControlGroups::make(folder.path().file_name().unwrap().to_str().unwrap());
    let init = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node/init");
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"]);
    command.args(["--propagation", "private", "--"]).arg(init).arg(std::env::current_exe().unwrap());
    command.args(std::env::args_os().skip(1)).env(FOLDER, folder.path()).stdin(Stdio::null());
    let status = command.status().unwrap();
    // In this order: processes have ended, control groups are empty, files are free.
    drop(groups);
    status.code().unwrap_or(1)
}

/// What the names of folder and control groups begin with; the number of the process that made them follows.
const PREFIX: &str = "cloakroom-node-";

/// Removes what an interrupted run left.
fn remove_leftovers() {
    for entry in std::fs::read_dir(std::env::temp_dir()).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let Some((process, _)) = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')) else {
            continue;
        };
        if !Path::new("/proc").join(process).exists() {
            drop(ControlGroups::make(&name));
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A control group of one name in each hierarchy of this machine. Removed when dropped.
struct ControlGroups(Vec<PathBuf>);

impl ControlGroups {
    fn make(name: &str) -> Self {
        let root = Path::new("/sys/fs/cgroup");
        let hierarchies = if root.join("cgroup.controllers").exists() {
            vec![root.to_owned()]
        } else {
            std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect()
        };
        let groups: Vec<PathBuf> = hierarchies.iter().map(|hierarchy| hierarchy.join(name)).collect();
        for group in &groups {
            // A link to a hierarchy of another name has it already.
            std::fs::create_dir_all(group).unwrap();
        }
        Self(groups)
    }
}

impl Drop for ControlGroups {
    fn drop(&mut self) {
        for group in &self.0 {
            remove(group);
        }
    }
}

/// The kernel removes a group's files with it; its processes are gone, or on their way.
fn remove(group: &Path) {
    let folders = std::fs::read_dir(group).into_iter().flatten().flatten();
    for folder in folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove(&folder.path());
    }
    let _ = std::fs::remove_dir(group);
}
