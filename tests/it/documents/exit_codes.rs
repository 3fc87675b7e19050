//! Each page's table of exit codes, held against what the program ends with.

use std::collections::BTreeSet;
use std::path::PathBuf;

use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::process::{self, stderr};
use cloakroom_testing::scripted::closed_port;
use cloakroom_testing::workspace::Workspace;

use super::page;

const ID: &str = "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1";

/// Files that the commands below read, and a server that takes them.
struct CommandLine {
    folder: Workspace,
    server: Cloakroom,
}

impl CommandLine {
    fn new() -> Self {
        let folder = Workspace::new();
        let server = Cloakroom::serve(&folder.path("cloakroom-data"), &["--min-free-space", "0b"]);
        folder.write("app.jar", "app");
        folder.write("init.properties", "spark.kubernetes.mountdependencies.mountTimeout=1\n");
        folder.write("no-ticket", "{}");
        Self { folder, server }
    }

    /// What a command line, of words, ends with.
    fn ends_with(&self, line: &str) -> i32 {
        let line = line.replace("{server}", &self.server.url(""));
        let args: Vec<&str> = line.split(' ').collect();
        let output = process::command().current_dir(self.folder.root()).args(&args).output().unwrap();
        if line.starts_with("stage") && output.status.success() {
            std::fs::write(self.path("ticket.json"), &output.stdout).unwrap();
        }
        assert!(!stderr(&output).contains("panicked"), "{line}: {}", stderr(&output));
        output.status.code().unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }
}

/// Signals are not sent here.
fn documented(path: &str, heading: &str) -> BTreeSet<i32> {
    let rows = page(path).rows_below(heading, "exit code");
    rows.iter()
        .flat_map(|row| row[0].split(", "))
        .filter_map(|code| code.parse().ok())
        .filter(|code| *code < 100)
        .collect()
}

// Invariant: bad arguments end with exit code 2, and each page's table of exit codes is correct.
#[test]
fn the_tables_of_exit_codes_are_what_the_program_ends_with() {
    let (command_line, closed) = (CommandLine::new(), format!("http://127.0.0.1:{}", closed_port()));
    let to_nothing = format!("--server {closed} --attempts 1 -n demo -l a=b");
    let stage = [
        (0, "stage -q --server {server} -n demo -l a=b app.jar".to_owned()),
        (1, format!("stage {to_nothing} app.jar")),
        (1, format!("stage {to_nothing} missing.jar")),
        (1, format!("stage {to_nothing} --token-file missing app.jar")),
        (2, "stage --nonsense".to_owned()),
        (2, "stage -n demo -l a=b".to_owned()),
        (2, "stage -n demo app.jar".to_owned()),
        (2, "stage -n Demo -l a=b app.jar".to_owned()),
        (2, "stage --server nowhere -n demo -l a=b app.jar".to_owned()),
        (2, "stage --for spark-operator -n demo app.jar".to_owned()),
        (2, "stage --for spark-submit -n demo -f app.yaml".to_owned()),
        (2, "stage --for spark-submit -n demo --ca-file a --ca-file b app.jar".to_owned()),
    ];
    let flags = format!("--server {closed} --id {ID} --secret-file missing --to there");
    let fetch = [
        (0, "fetch --ticket ticket.json --to fetched".to_owned()),
        (0, "fetch ./init.properties".to_owned()),
        (1, "fetch --ticket missing --to there".to_owned()),
        (1, "fetch --ticket no-ticket --to there".to_owned()),
        (1, format!("fetch {flags}")),
        (2, "fetch".to_owned()),
        (2, "fetch --ticket ticket.json".to_owned()),
        (2, "fetch --timeout soon ./init.properties".to_owned()),
        (2, "fetch --ticket ticket.json ./init.properties".to_owned()),
        (2, "fetch --ticket ticket.json --server nowhere --to there".to_owned()),
        (2, format!("fetch {}", flags.replace(ID, "x"))),
    ];
    let admin = [
        (0, "ls".to_owned()),
        (0, "clean".to_owned()),
        (1, format!("show {ID}")),
        (1, format!("ls --admin-url {closed} --admin-token-file app.jar")),
        (2, "ls --data-dir elsewhere".to_owned()),
        (2, "ls --why foo".to_owned()),
        (2, "rm --yes --why foo".to_owned()),
        (2, "rm --yes".to_owned()),
        (2, format!("rm {ID}")),
        (2, "show x".to_owned()),
        (2, "clean --accept-cluster /".to_owned()),
    ];
    let check = "serve --check --listen 127.0.0.1:0 --min-free-space 0b --data-dir";
    let serve = [
        (0, format!("{check} free")),
        (1, format!("{check} cloakroom-data")),
        (1, format!("{check} free --upload-token-file missing")),
        (2, format!("{check} free --nonsense")),
        (2, format!("{check} s3://bucket")),
        (2, format!("{check} free --log ===")),
        (2, format!("{check} free --idle-timeout 0s")),
        (2, format!("{check} free --max-resource-size 0b")),
        (2, format!("{check} free --upload-auth token")),
        (2, format!("{check} free --upload-auth none --upload-token-file app.jar")),
        (2, format!("{check} free --no-kubernetes --kubeconfig app.jar")),
        (2, "serve --check --listen 0.0.0.0:0 --data-dir free".to_owned()),
    ];
    for (path, heading, lines) in [
        ("docs/clients.md", "Progress, retries, exit codes", &stage[..]),
        ("docs/clients.md", "Retries and a second run", &fetch),
        ("docs/administer.md", "Exit codes and JSON", &admin),
        ("docs/run.md", "Start, stop, upgrade", &serve),
    ] {
        for (code, line) in lines {
            assert_eq!(command_line.ends_with(line), *code, "{line}");
        }
        let seen: BTreeSet<i32> = lines.iter().map(|(code, _)| *code).collect();
        assert_eq!(documented(path, heading), seen, "{path}, {heading}");
    }
    assert!(!command_line.path("there").exists(), "something was fetched");
}
