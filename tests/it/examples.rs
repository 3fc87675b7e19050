//! The scripts in `examples` do what they say, against a real server.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use cloakroom_testing::process::{Cloakroom, stderr};
use serde_json::Value;
use tempfile::TempDir;

const BUNDLE: &[u8] = b"the bytes of a bundle are opaque to the server";

/// A server that wants an upload token, and a folder with a bundle.
fn server() -> (TempDir, Cloakroom) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tokens"), "name=alice upload-horse-battery\n").unwrap();
    fs::write(folder.path().join("deps.tgz"), BUNDLE).unwrap();
    fs::write(folder.path().join("ca.crt"), "the CA").unwrap();
    let tokens = folder.path().join("tokens").display().to_string();
    let flags = ["--min-free-space", "0b", "--upload-token-file", &tokens];
    let server = Cloakroom::serve(&folder.path().join("data"), &flags);
    (folder, server)
}

fn run(script: &str, folder: &Path, server: &Cloakroom, token: &str) -> Output {
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(script))
        .arg("deps.tgz")
        .current_dir(folder)
        .env("CLOAKROOM_SERVER", server.url(""))
        .env("UPLOAD_TOKEN", token)
        // Python reads it for https only, and the example puts it into the Secret.
        .env("SSL_CERT_FILE", folder.join("ca.crt"))
        .output()
        .unwrap()
}

#[test]
fn the_example_for_curl_stages_shows_fetches_and_deletes() {
    let (folder, server) = server();
    let ran = run("curl/bundle.sh", folder.path(), &server, "upload-horse-battery");
    assert!(ran.status.success(), "{}", stderr(&ran));
    let said = String::from_utf8(ran.stdout).unwrap();
    let lines: Vec<_> = said.lines().collect();
    assert!(lines[0].starts_with("staged "), "{said}");
    let metadata: Value = serde_json::from_str(lines[1]).unwrap();
    assert_eq!(metadata["sizeBytes"], BUNDLE.len(), "{said}");
    assert_eq!(lines[2..], ["fetched the same bytes", "deleted"]);
}

#[test]
fn the_example_for_python_prints_a_secret_whose_ticket_fetches_the_bundle() {
    let (folder, server) = server();
    let ran = run("python/stage.py", folder.path(), &server, "upload-horse-battery");
    assert!(ran.status.success(), "{}", stderr(&ran));
    let secret: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let ticket = |key: &str| secret["stringData"][key].as_str().unwrap().to_owned();
    assert_eq!(ticket("ca.crt"), "the CA");
    let fetched = Command::new("curl")
        .args(["-fsS", "-H", &format!("Authorization: Bearer {}", ticket("secret"))])
        .arg(server.url(&format!("/api/v1/resources/{}", ticket("id"))))
        .output()
        .unwrap();
    assert_eq!(fetched.stdout, BUNDLE, "{}", stderr(&fetched));
}

#[test]
fn the_examples_fail_if_the_server_refuses_the_upload() {
    let (folder, server) = server();
    for script in ["curl/bundle.sh", "python/stage.py"] {
        let ran = run(script, folder.path(), &server, "guess");
        assert!(!ran.status.success(), "{script}");
        assert!(ran.stdout.is_empty(), "{script}");
    }
}
