//! A server on one's own machine: it says what to type next, and its admin needs no token from anybody.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::process::{self, stderr};
use cloakroom_testing::wait::BOUND;
use cloakroom_testing::wire::ask;
use cloakroom_testing::workspace::Workspace;
use serde_json::Value;

/// A server as a person starts it, and the folder that this happens in.
struct TriedServer {
    folder: Workspace,
    server: Cloakroom,
}

impl TriedServer {
    fn new(flags: &[&str]) -> Self {
        let folder = Workspace::new();
        let server = start(folder.root(), flags);
        Self { folder, server }
    }

    fn token(&self) -> String {
        fs::read_to_string(self.folder.path("cloakroom-data/admin-token")).unwrap()
    }

    fn run(&self, args: &[&str]) -> Output {
        process::command().current_dir(self.folder.root()).args(args).output().unwrap()
    }
}

fn start(folder: &Path, flags: &[&str]) -> Cloakroom {
    start_in(folder, flags, &[])
}

fn start_in(folder: &Path, flags: &[&str], environment: &[(&str, &str)]) -> Cloakroom {
    let mut command = process::command();
    command.current_dir(folder).args(["serve", "--min-free-space", "0b"]).args(flags);
    if !flags.contains(&"--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    command.envs(environment.iter().copied());
    let mut server = Cloakroom::launch_with(command, Stdio::from(File::create(folder.join("said")).unwrap()));
    server.wait_until_it_serves();
    server
}

/// The commands that the server printed: they come right behind its last line.
fn printed(folder: &Path) -> String {
    let began = std::time::Instant::now();
    loop {
        let said = fs::read_to_string(folder.join("said")).unwrap();
        if said.contains(" ls ") || began.elapsed() > BOUND {
            return said
                .lines()
                .filter_map(|line| line.strip_prefix("    "))
                .map(|line| format!("{line}\n"))
                .collect();
        }
        std::thread::yield_now();
    }
}

#[test]
fn the_commands_that_a_server_prints_work_from_any_folder() {
    let tried = TriedServer::new(&[]);
    let commands = printed(tried.folder.root());
    let elsewhere = tempfile::tempdir().unwrap();
    let run = Command::new("sh").args(["-e", "-c", &commands]).current_dir(&elsewhere).output().unwrap();
    assert!(run.status.success(), "{commands}{}", stderr(&run));
    assert_eq!(fs::read_to_string(elsewhere.path().join("fetched/hello.txt")).unwrap(), "hello\n");
    let ticket: Value =
        serde_json::from_str(&fs::read_to_string(elsewhere.path().join("ticket.json")).unwrap()).unwrap();
    let mode = fs::metadata(elsewhere.path().join("ticket.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "the ticket is a secret");
    let listed = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(listed.contains(ticket["resourceId"].as_str().unwrap()), "{listed}");
    for said in [tried.server.log(), commands, listed, stderr(&run)] {
        assert!(!said.contains(tried.token().lines().next().unwrap()), "the token was shown");
    }
}

#[test]
fn a_tls_server_with_tokens_prints_commands_that_work_as_well() {
    let folder = Workspace::new();
    let path = |name: &str| folder.path(name).display().to_string();
    let key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    fs::write(path("it's.crt"), key.cert.pem()).unwrap();
    fs::write(path("tls.key"), key.signing_key.serialize_pem()).unwrap();
    fs::write(path("tokens"), "name=alice upload-horse-battery\n").unwrap();
    let (cert, key) = (path("it's.crt"), path("tls.key"));
    let server = start(
        folder.root(),
        &["--tls-cert", &cert, "--tls-key", &key, "--upload-token-file", &path("tokens")],
    );
    let commands = printed(folder.root());
    let elsewhere = tempfile::tempdir().unwrap();
    let run = Command::new("sh").args(["-e", "-c", &commands]).current_dir(&elsewhere).output().unwrap();
    assert!(run.status.success(), "{commands}{}", stderr(&run));
    assert!(
        String::from_utf8_lossy(&run.stdout).contains(" alice "),
        "{}",
        String::from_utf8_lossy(&run.stdout)
    );
    assert!(server.log().contains("by=\"alice\" peer=127.0.0.1"), "{}", server.log());
    assert!(!server.log().contains("upload-horse-battery"));
}

#[test]
fn the_token_of_a_local_server_is_its_users_alone_and_of_one_run() {
    let mut tried = TriedServer::new(&[]);
    let token = tried.token();
    let first_line = |text: &str| text.lines().next().unwrap().to_owned();
    assert_eq!(token.lines().nth(1), Some(&*tried.server.url("")));
    let mode = fs::metadata(tried.folder.path("cloakroom-data/admin-token")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let listed = tried.run(&["ls"]);
    assert_eq!(listed.status.code(), Some(0), "{}", stderr(&listed));
    // Coming from this machine is not enough.
    fs::write(tried.folder.path("guess"), "not-the-token-of-it\n").unwrap();
    let url = tried.server.url("");
    let guessed = tried.run(&["ls", "--admin-url", &url, "--admin-token-file", "guess"]);
    assert!(stderr(&guessed).contains("401 unauthorized"), "{}", stderr(&guessed));
    let says = "it has made one for this run, which cloakroom ls, show, rm and clean find by themselves";
    assert!(stderr(&guessed).contains(says), "{}", stderr(&guessed));
    // It is shown to the server that has left it alone.
    let elsewhere = tried.run(&["ls", "--admin-url", "http://127.0.0.1:1"]);
    assert!(stderr(&elsewhere).contains(&format!("is for {url}, and --admin-url")), "{}", stderr(&elsewhere));
    // What is written there does not change who is an admin.
    let path = tried.folder.path("cloakroom-data/admin-token");
    fs::write(&path, format!("another-token-of-mine\n{url}\n")).unwrap();
    let forged = tried.run(&["ls"]);
    assert!(stderr(&forged).contains("401 unauthorized"), "{}", stderr(&forged));
    tried.server.signal("TERM");
    tried.server.wait();
    assert!(!path.exists(), "the token outlived its run");
    tried.server = start(tried.folder.root(), &[]);
    assert_ne!(first_line(&tried.token()), first_line(&token));
    fs::write(tried.folder.path("guess"), first_line(&token)).unwrap();
    let url = tried.server.url("");
    let before = tried.run(&["ls", "--admin-url", &url, "--admin-token-file", "guess"]);
    assert!(stderr(&before).contains("401 unauthorized"), "{}", stderr(&before));
}

#[test]
fn commands_find_the_token_of_a_server_with_an_operational_listener() {
    for to in ["0.0.0.0:0", "[::]:0"] {
        let mut tried = TriedServer::new(&["--ops-listen", to]);
        let listed = tried.run(&["ls"]);
        assert_eq!(listed.status.code(), Some(0), "{to}: {}", stderr(&listed));
        // In a pod, the kubelet gives the volume to a group. Elsewhere that is another user's way to a token of its own.
        let data = tried.folder.path("cloakroom-data");
        fs::set_permissions(&data, fs::Permissions::from_mode(0o2775)).unwrap();
        tried.server.signal("TERM");
        tried.server.wait();
        tried.server = start(tried.folder.root(), &["--ops-listen", to]);
        assert!(!data.join("admin-token").exists());
        assert!(tried.server.log().contains("no admin token was made"), "{}", tried.server.log());
        let check = |data_dir: &str| {
            let flags = ["--listen", "127.0.0.1:0", "--ops-listen", to, "--data-dir", data_dir];
            let checked = tried.run(&[&["serve", "--check"][..], &flags].concat());
            String::from_utf8_lossy(&checked.stdout).into_owned()
        };
        assert!(check("other").contains("with administration, by a token of each run"));
        fs::create_dir_all(tried.folder.path("shared")).unwrap();
        fs::set_permissions(tried.folder.path("shared"), fs::Permissions::from_mode(0o775)).unwrap();
        assert!(check("shared").contains("without administration"));
        tried.server.signal("TERM");
        tried.server.wait();
        let environment = [("KUBERNETES_SERVICE_HOST", "127.0.0.1")];
        tried.server = start_in(tried.folder.root(), &["--ops-listen", to, "--no-kubernetes"], &environment);
        let listed = tried.run(&["ls"]);
        assert_eq!(listed.status.code(), Some(0), "{to}: {}", stderr(&listed));
    }
}

#[test]
fn tokens_of_ones_own_are_not_where_the_server_makes_its_own() {
    let folder = Workspace::new();
    folder.write("data/admin-token", "admin-horse-battery-staple\n");
    let args = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        "data",
        "--admin-token-file",
        "./data/admin-token",
    ];
    let refused = process::command().current_dir(folder.root()).args(args).output().unwrap();
    assert!(!refused.status.success());
    assert!(
        stderr(&refused).contains("is the server's own file for a token of each run"),
        "{}",
        stderr(&refused)
    );
    assert_eq!(fs::read_to_string(folder.path("data/admin-token")).unwrap(), "admin-horse-battery-staple\n");
}

#[test]
fn a_server_with_its_own_tokens_or_public_admins_leaves_no_admin_token() {
    let mut tried = TriedServer::new(&[]);
    let public = ["--listen", "0.0.0.0:0", "--upload-auth", "none"];
    for flags in [&public[..], &["--admin-token-file", "tokens"]] {
        fs::write(tried.folder.path("tokens"), "admin-horse-battery-staple\n").unwrap();
        tried.server.signal("TERM");
        tried.server.wait();
        tried.server = start(tried.folder.root(), flags);
        assert!(!tried.folder.path("cloakroom-data/admin-token").exists(), "{flags:?}");
        let refused = tried.run(&["ls"]);
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        let says = "no server has left an admin token in the data directory ./cloakroom-data";
        assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
    }
}

#[tokio::test]
async fn an_uploader_can_name_its_address_only_through_a_trusted_proxy() {
    for (flags, expected) in [(&[][..], "127.0.0.1"), (&["--trusted-proxies", "127.0.0.0/8"], "203.0.113.9")]
    {
        let tried = TriedServer::new(flags);
        let request = "PUT /api/v1/resources?namespace=demo&label=app=x HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\
             X-Forwarded-For: 198.51.100.1, 203.0.113.9\r\n\r\njars";
        assert_eq!(ask(tried.server.address.parse().unwrap(), request).await.status, 201);
        let listed = tried.run(&["ls", "-o", "json"]);
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
        assert_eq!(listed["resources"][0]["uploadedBy"], expected, "{flags:?}");
        let proxy = if flags.is_empty() { "" } else { " proxy=127.0.0.1" };
        let line = format!("by=\"{expected}\" peer={expected}{proxy}\n");
        assert!(tried.server.log().contains(&line), "{line} {}", tried.server.log());
        let id = listed["resources"][0]["resourceId"].as_str().unwrap().to_uppercase();
        let removed = tried.run(&["rm", "--yes", &id]);
        assert!(removed.status.success(), "{}", stderr(&removed));
    }
}

#[test]
fn a_ticket_is_fetched_from_stdin_as_well() {
    let tried = TriedServer::new(&[]);
    fs::write(tried.folder.path("a.txt"), "a").unwrap();
    let url = tried.server.url("");
    let staged = tried.run(&["stage", "-q", "--server", &url, "-n", "demo", "-l", "app=x", "a.txt"]);
    fs::write(tried.folder.path("ticket.json"), &staged.stdout).unwrap();
    let fetched = process::command()
        .current_dir(tried.folder.root())
        .args(["fetch", "--ticket", "-", "--to", "there"])
        .stdin(File::open(tried.folder.path("ticket.json")).unwrap())
        .output()
        .unwrap();
    assert!(fetched.status.success(), "{}", stderr(&fetched));
    assert_eq!(fs::read(tried.folder.path("there/a.txt")).unwrap(), b"a");
    let typed = String::from_utf8_lossy(&staged.stdout).into_owned();
    let typed = tried.run(&["fetch", "--ticket", &typed, "--to", "there"]);
    assert!(
        stderr(&typed).contains("and not the ticket itself") && !stderr(&typed).contains("resourceSecret")
    );
    let both = tried.run(&["fetch", "--ticket", "ticket.json", "--id", "x", "--to", "there"]);
    assert_eq!(both.status.code(), Some(2), "{}", stderr(&both));
}
