//! Credential plugins of the server's kubeconfig: one that fails, and one that never ends.

use std::path::{Path, PathBuf};

use cloakroom_testing::process::{Cloakroom, command, stderr};
use cloakroom_testing::wait::{until, until_true};
use cloakroom_testing::wire::ask;

/// A kubeconfig whose user has a shell's script as plugin.
fn kubeconfig(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join("kubeconfig");
    let config = serde_json::json!({
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "u", "user": {"exec": {"command": "sh", "args": ["-c", script]}}}],
    });
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

/// The first owner is what the API server is asked about.
const UPLOAD: &str =
    "POST /api/v1/resources?namespace=demo&label=app=x HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\njars";

/// A server that runs in the folder, with this script as plugin.
fn serve(folder: &Path, script: &str) -> Cloakroom {
    let mut serve = command();
    serve.current_dir(folder).args(["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"]);
    serve.args(["--min-free-space", "0b", "--kubeconfig"]).arg(kubeconfig(folder, script));
    Cloakroom::start(serve)
}

#[test]
fn the_check_runs_the_plugin_and_passes_on_what_it_says_to_people() {
    let folder = tempfile::tempdir().unwrap();
    let mut check = command();
    check.args(["serve", "--check", "--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.path().join("data"));
    let config = kubeconfig(folder.path(), "echo s3cret; echo 'log in first' >&2; exit 1");
    let output = check.arg("--kubeconfig").arg(config).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let names =
        "error: the API server cannot be asked about owners: the credential plugin “sh” of the user “u”";
    assert!(said.contains(names) && said.contains("log in first") && !said.contains("s3cret"), "{said}");
}

#[test]
fn the_check_shows_the_proxy_on_the_way_without_its_password() {
    let folder = tempfile::tempdir().unwrap();
    let mut check = command();
    check.args(["serve", "--check", "--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.path().join("data"));
    let config = kubeconfig(folder.path(), r#"echo '{"status": {"token": "t"}}'"#);
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("http://127.0.0.1:9", "https://192.0.2.1")).unwrap();
    let output = check
        .arg("--kubeconfig")
        .arg(config)
        .env("HTTPS_PROXY", "http://me:s3cret@proxy.example:3128")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let shown = String::from_utf8(output.stdout).unwrap();
    let way = "https://192.0.2.1 through the proxy http://proxy.example:3128 (HTTPS_PROXY)";
    assert!(shown.contains(way) && !shown.contains("s3cret"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_fails_is_told_once_for_both_watches_of_pods() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), "echo 'log in first' >&2; exit 1");
    let address = server.address.parse().unwrap();
    assert_eq!(ask(address, UPLOAD).await.status, 201);
    until("both watches fail", async || {
        let metrics = ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await.text();
        metrics.contains(r#"cloakroom_owner_watches{kind="Pod",state="failing"} 2"#)
    })
    .await;
    // The log is read by a thread of the test.
    until_true("the failure is told", || server.log().contains("owners cannot be watched")).await;
    let log = server.log();
    assert_eq!(log.matches("owners cannot be watched").count(), 1, "{log}");
    assert!(log.contains("log in first"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_hangs_holds_up_neither_the_start_nor_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = serve(folder.path(), "sleep 1000 & echo $! >plugin.new; mv plugin.new plugin; wait");
    assert_eq!(ask(server.address.parse().unwrap(), UPLOAD).await.status, 201);
    until_true("the plugin runs", || folder.path().join("plugin").exists()).await;
    let answer = ask(server.address.parse().unwrap(), "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(answer.status, 200);
    server.signal("TERM");
    assert!(server.wait().success());
    let process = std::fs::read_to_string(folder.path().join("plugin")).unwrap();
    let stat = Path::new("/proc").join(process.trim()).join("stat");
    // Its parent has ended, so it may stay a zombie.
    let has_ended = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
    until_true("the plugin has ended", has_ended).await;
}
