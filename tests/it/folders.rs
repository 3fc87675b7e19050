//! `cloakroom stage FOLDER` and `cloakroom fetch`, the real binary with a real server: what arrives, what is refused before
//! anything is sent, and what travels the second time.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Output;

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::front::{Front, Turn};
use cloakroom_testing::noise::noise;
use cloakroom_testing::process::{Cloakroom, output_in_time, stderr};
use cloakroom_testing::wire::{Answer, ask};
use cloakroom_testing::workspace::Workspace;

/// A machine with folders, and a proxy before the server that counts.
struct Stager {
    folder: Workspace,
    server: Cloakroom,
    front: Front,
}

impl Stager {
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = Workspace::with(files);
        let server = folder.serve(&[]);
        let front = Front::before(server.address.parse::<SocketAddr>().unwrap(), |_: &str| Turn::Pass);
        Self { folder, server, front }
    }

    fn stage(&self, arguments: &[&str]) -> Output {
        let mut command = self.folder.command();
        command.args(["stage", "--server", &self.front.url(), "--namespace", "demo", "--label", "app=demo"]);
        output_in_time(command.args(arguments))
    }

    /// Stages, and writes the ticket. Returns it, what was said, and how many bytes have passed.
    fn stages(&self, arguments: &[&str]) -> (Ticket, String, usize) {
        let before = self.front.passed_bytes();
        let output = self.stage(arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        self.folder.write("ticket.json", &output.stdout);
        let passed = self.front.passed_bytes() - before;
        (serde_json::from_slice(&output.stdout).unwrap(), stderr(&output), passed)
    }

    /// Fetches what was staged last.
    fn fetches(&self, to: &str) -> String {
        let mut command = self.folder.command();
        command.args(["fetch", "--ticket", "ticket.json", "--to", to]);
        let output = output_in_time(&mut command);
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    }

    /// The answer of the server to a GET without any header of ours.
    fn gets(&self, path: &str) -> Answer {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.server.address);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(ask(self.server.address.parse().unwrap(), request))
    }

    fn set_mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.folder.path(path), Permissions::from_mode(mode)).unwrap();
    }
}

/// The contents of all files below a folder with their modes, without what `fetch` writes for itself. A folder has no content.
fn tree(folder: &Path) -> BTreeMap<String, (Option<Vec<u8>>, u32)> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            let mode = fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777;
            let content = if path.is_dir() { None } else { Some(fs::read(&path).unwrap()) };
            if path.is_dir() {
                folders.push(path);
            }
            if !name.starts_with(".cloakroom-") {
                found.insert(name, (content, mode));
            }
        }
    }
    found
}

#[test]
fn a_folder_arrives_with_its_paths_bits_and_empty_folders() {
    let stager = Stager::with(&[
        ("tree/main.py", "print()"),
        ("tree/bin/run.sh", "#!/bin/sh"),
        ("tree/Readme", "1"),
        ("tree/readme", "2"),
        ("tree/.config/x", "dot files travel"),
        ("tree/.gitignore", "*.log\n.env\n/build/\n"),
        ("tree/.env", "TOKEN=1"),
        ("tree/a.log", ""),
        ("tree/build/deep/x", ""),
        ("tree/.git/config", "a token"),
        ("tree/tmp.swp", ""),
    ]);
    fs::create_dir(stager.folder.path("tree/logs")).unwrap();
    stager.set_mode("tree/bin/run.sh", 0o755);
    let (_, said, _) = stager.stages(&["--exclude", "*.swp", "tree"]);
    assert!(said.starts_with("staging 6 files, "), "{said}");
    let left_out =
        "left out 1 file by --exclude, 2 files and 1 folder by tree/.gitignore, 1 folder named .git\n";
    assert!(said.contains(left_out), "{said}");
    assert!(stager.fetches("out").contains(": 6 files, "));
    for path in ["tree/.env", "tree/a.log", "tree/tmp.swp"] {
        fs::remove_file(stager.folder.path(path)).unwrap();
    }
    for path in ["tree/build", "tree/.git"] {
        fs::remove_dir_all(stager.folder.path(path)).unwrap();
    }
    let (sent, arrived) = (tree(&stager.folder.path("tree")), tree(&stager.folder.path("out")));
    assert_eq!(arrived, sent);
    assert!(arrived["logs"].0.is_none() && arrived["bin/run.sh"].1 == 0o755 && arrived["main.py"].1 == 0o644);
    assert!(stager.fetches("out").ends_with("6 files, in place since an earlier run\n"));

    // The ticket may be written into the folder, and is not in its own bundle.
    let (first, second) = (stager.stages(&["tree"]).0, stager.stage(&["--ticket-to", "tree/t.json", "tree"]));
    assert!(second.status.success(), "{}", stderr(&second));
    let second: Ticket =
        serde_json::from_slice(&fs::read(stager.folder.path("tree/t.json")).unwrap()).unwrap();
    assert_eq!(second.sha256, first.sha256);
    fs::remove_file(stager.folder.path("tree/t.json")).unwrap();

    // A link is a copy of what it names.
    symlink("bin/run.sh", stager.folder.path("tree/run")).unwrap();
    symlink("../tree/bin", stager.folder.path("tree/tools")).unwrap();
    let (_, said, _) = stager.stages(&["--top", "app", "tree"]);
    assert!(said.contains("left out nothing\n"), "{said}");
    stager.fetches("under");
    let arrived = tree(&stager.folder.path("under/app"));
    for path in ["run", "tools/run.sh"] {
        assert_eq!(arrived[path], arrived["bin/run.sh"], "{path}");
        let found = fs::symlink_metadata(stager.folder.path("under/app").join(path)).unwrap();
        assert!(found.is_file(), "{path}");
    }
}

#[test]
fn what_must_not_travel_is_refused_before_anything_is_sent() {
    let stager = Stager::with(&[
        ("secret/a.py", ""),
        ("secret/deep/id_rsa", "hush"),
        ("out/a.py", ""),
        ("one/x", "1"),
        ("two/x", "2"),
        ("none/.gitignore", "*"),
        ("rules/.gitignore", "a\0"),
    ]);
    symlink("/etc/passwd", stager.folder.path("out/users")).unwrap();
    for (arguments, code, expected) in [
        (
            &["secret"][..],
            1,
            "error: not packed, because they look like private keys or credentials: secret/deep/id_rsa; ",
        ),
        (&["out"], 1, "error: cannot pack out/users: it is a link that leads out of out; "),
        (&["one", "two"], 1, "error: cannot pack one/x and two/x together: both become x in the bundle; "),
        (
            &["none"],
            1,
            "error: there is no file to pack in the folders: 1 file by none/.gitignore left out; ",
        ),
        (&["rules"], 1, "error: cannot use the rules of rules/.gitignore: it has a zero byte in it, "),
        (
            &["one", "--exclude", "[a"],
            2,
            "error: invalid value '[a' for '--exclude <GLOB>': in a .gitignore ",
        ),
        (
            &["one", "--key-ttl", "0s"],
            2,
            "error: invalid value '0s' for '--key-ttl <DURATION>': a key is good for a second at least",
        ),
        (
            &["one", "--top", "a/b"],
            2,
            "error: invalid value 'a/b' for '--top <NAME>': it is the name of one folder",
        ),
        (
            &["one", "--top", ".."],
            2,
            "error: invalid value '..' for '--top <NAME>': the name leads out of its folder",
        ),
    ] {
        let output = stager.stage(arguments);
        let said = stderr(&output);
        assert!(said.contains(expected) && !said.contains("hush"), "{arguments:?}: {said}");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{arguments:?}: {said}");
    }
    assert_eq!(stager.front.passed_bytes(), 0);
    stager.stages(&["--include-secrets", "secret"]);
    stager.fetches("got");
    assert_eq!(fs::read(stager.folder.path("got/deep/id_rsa")).unwrap(), b"hush");
    stager.stages(&["--exclude", "users", "out"]);
}

#[test]
fn the_second_time_only_what_changed_of_a_folder_travels() {
    const MODULES: usize = 3000;
    let stager = Stager::with(&[]);
    // No two of them have anything in common.
    let content = noise(MODULES * 6000);
    for number in 0..MODULES {
        let length = 1 + number * 7 % 6000;
        stager
            .folder
            .write(&format!("tree/pkg{}/m{number}.py", number % 30), &content[number * 6000..][..length]);
    }
    stager.folder.write("tree/lib/dep.jar", noise(2_000_000));
    let (first, said, all) = stager.stages(&["tree"]);
    assert!(!said.contains("travel") && first.size_bytes > 10_000_000, "{said}");
    let stages = |most: usize| {
        let (spliced, said, passed) = stager.stages(&["tree"]);
        assert!(said.contains(" of it travelled: the server had the rest since "), "{said}");
        let (whole, ..) = stager.stages(&["--no-reuse", "tree"]);
        assert_eq!((&spliced.sha256, spliced.size_bytes), (&whole.sha256, whole.size_bytes));
        assert!(passed < most, "{passed} of {all}");
    };
    stages(20_000);
    stager.folder.write("tree/pkg3/m33.py", "changed");
    stages(all / 3);
    stager.folder.write("tree/pkg7/new.py", "new");
    fs::remove_file(stager.folder.path("tree/pkg20/m50.py")).unwrap();
    stages(all / 3);
    stager.folder.write("tree/lib/dep.jar", noise(1_000_000));
    stages(all / 2);
    stager.fetches("out");
    assert_eq!(tree(&stager.folder.path("tree")), tree(&stager.folder.path("out")));
}

#[test]
fn a_url_with_a_key_is_all_that_another_program_needs() {
    let stager = Stager::with(&[("tree/job.py", "print()")]);
    let arguments =
        ["--top", "app", "--print", "url-with-key", "--key-ttl", "1h", "--ticket-to", "t.json", "tree"];
    let output = stager.stage(&arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("whoever has the URL can read the bundle until "),
        "{}",
        stderr(&output)
    );
    let url = String::from_utf8(output.stdout.clone()).unwrap();
    let ticket: Ticket = serde_json::from_slice(&fs::read(stager.folder.path("t.json")).unwrap()).unwrap();
    let (path, key) = url.trim_end().split_once("?token=").unwrap();
    assert_eq!(path, format!("{}/content/app.tar.gz", ticket.url));
    let path = format!("/{}?token={key}", path.splitn(4, '/').last().unwrap());
    let answer = stager.gets(&path);
    assert_eq!((answer.status, answer.body.len() as u64), (200, ticket.size_bytes));
    let metrics = stager.gets("/metrics").text();
    assert!(metrics.contains("cloakroom_"), "{metrics}");
    for (place, text) in [("log", stager.server.log()), ("metrics", metrics), ("stderr", stderr(&output))] {
        assert!(!text.contains(key), "the key is in the {place}");
    }
    symlink("t.json", stager.folder.path("link")).unwrap();
    let linked = stager.stage(&["--ticket-to", "link", "tree"]);
    assert_eq!(linked.status.code(), Some(2), "{}", stderr(&linked));
    assert!(fs::symlink_metadata(stager.folder.path("link")).unwrap().is_symlink());
    let without = stager.stage(&["--key-ttl", "1h", "tree"]);
    assert_eq!((without.status.code(), without.stdout.len()), (Some(2), 0), "{}", stderr(&without));
    let refused = stager.stage(&["--print", "url-with-key", "--key-ttl", "30d", "tree"]);
    let said = stderr(&refused);
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0), "{said}");
    assert!(said.contains("good for 7d at most") && !said.contains("staging"), "{said}");
    what_gets_no_key_is_released_again(&stager);
}

fn what_gets_no_key_is_released_again(stager: &Stager) {
    let server = stager.server.address.parse().unwrap();
    let front = Front::before(server, |head: &str| {
        let is_for_key = head.lines().next().unwrap().contains("/keys ");
        if is_for_key { Turn::Answer(409, "text/plain", "no more") } else { Turn::Pass }
    });
    let mut command = stager.folder.command();
    command.args([
        "stage",
        "--server",
        &front.url(),
        "-n",
        "demo",
        "-l",
        "app=demo",
        "--print",
        "url-with-key",
    ]);
    let refused = output_in_time(command.arg("tree"));
    let said = stderr(&refused);
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(1), 0), "{said}");
    assert!(said.contains("no key; what was staged is released again"), "{said}");
}
