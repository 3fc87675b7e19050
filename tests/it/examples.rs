//! The scripts in `examples` do what they say, against a real server.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use cloakroom_testing::process::{Cloakroom, stderr};
use cloakroom_testing::scripted::closed_port;
use cloakroom_testing::tls::{self, Pem};
use serde_json::Value;
use tempfile::TempDir;

const BUNDLE: &[u8] = b"the bytes of a bundle are opaque to the server";

const TOKEN: &str = "upload-horse-battery";

/// A folder with a bundle, and with a certificate for a server on this machine.
fn folder() -> (TempDir, Pem) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tokens"), format!("name=alice {TOKEN}\n")).unwrap();
    fs::write(folder.path().join("deps.tgz"), BUNDLE).unwrap();
    let certificate = tls::self_signed(folder.path(), &["127.0.0.1"]);
    (folder, certificate)
}

/// A server that wants an upload token.
fn serve(folder: &Path, more: &[&str]) -> Cloakroom {
    let tokens = folder.join("tokens").display().to_string();
    let flags = ["--min-free-space", "0b", "--upload-token-file", &tokens];
    Cloakroom::serve(&folder.join("data"), &[&flags[..], more].concat())
}

/// An example without the variables of this machine.
fn example(script: &str, folder: &Path) -> Command {
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(script));
    command.current_dir(folder);
    for name in ["CLOAKROOM_SERVER", "CLOAKROOM_CA_FILE", "UPLOAD_TOKEN", "SSL_CERT_FILE"] {
        command.env_remove(name);
    }
    command
}

fn run(script: &str, folder: &Path, server: &Cloakroom, token: &str) -> Output {
    let mut command = example(script, folder);
    command.arg("deps.tgz").env("CLOAKROOM_SERVER", server.url("")).env("UPLOAD_TOKEN", token);
    command.output().unwrap()
}

/// What a pod gets with the ticket of a Secret that the example for Python printed.
fn fetched(secret: &Value, server: &Cloakroom, more: &[&str]) -> Vec<u8> {
    let ticket = |key: &str| secret["stringData"][key].as_str().unwrap().to_owned();
    let fetched = Command::new("curl")
        .args(["-fsS", "-H", &format!("Authorization: Bearer {}", ticket("secret"))])
        .args(more)
        .arg(server.url(&format!("/api/v1/resources/{}", ticket("id"))))
        .output()
        .unwrap();
    assert!(fetched.status.success(), "{}", stderr(&fetched));
    fetched.stdout
}

#[test]
fn the_example_for_curl_stages_shows_fetches_and_deletes() {
    let (folder, _) = folder();
    let server = serve(folder.path(), &[]);
    let ran = run("curl/bundle.sh", folder.path(), &server, TOKEN);
    assert!(ran.status.success(), "{}", stderr(&ran));
    let said = String::from_utf8(ran.stdout).unwrap();
    let lines: Vec<_> = said.lines().collect();
    assert!(lines[0].starts_with("staged "), "{said}");
    let metadata: Value = serde_json::from_str(lines[1]).unwrap();
    assert_eq!(metadata["sizeBytes"], BUNDLE.len(), "{said}");
    assert_eq!(lines[2..], ["fetched the same bytes", "deleted"]);
}

#[test]
fn the_python_example_prints_a_secret_whose_ticket_fetches_the_bundle() {
    let (folder, _) = folder();
    let server = serve(folder.path(), &[]);
    let ran = run("python/stage.py", folder.path(), &server, TOKEN);
    assert!(ran.status.success(), "{}", stderr(&ran));
    let secret: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(fetched(&secret, &server, &[]), BUNDLE);
    assert_eq!(secret["stringData"].as_object().unwrap().len(), 2, "there is no CA to hand on: {secret}");
}

#[test]
fn the_python_examples_secret_has_the_servers_ca_and_no_other_roots() {
    let (folder, pem) = folder();
    let [cert, key] = [&pem.cert, &pem.key].map(|path| path.to_str().unwrap());
    let server = serve(folder.path(), &["--tls-cert", cert, "--tls-key", key]);
    // It names all the roots that a machine trusts.
    let roots = folder.path().join("roots.pem");
    fs::write(&roots, "# a hundred root certificates\n".repeat(7000)).unwrap();
    let mut command = example("python/stage.py", folder.path());
    command.arg("deps.tgz").env("CLOAKROOM_SERVER", server.url("")).env("UPLOAD_TOKEN", TOKEN);
    command.env("SSL_CERT_FILE", &roots);
    let refused = command.output().unwrap();
    assert!(!refused.status.success() && refused.stdout.is_empty(), "the certificate was not checked");
    let ran = command.env("CLOAKROOM_CA_FILE", cert).output().unwrap();
    assert!(ran.status.success(), "{}", stderr(&ran));
    let secret: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(secret["stringData"]["ca.crt"], fs::read_to_string(cert).unwrap());
    assert_eq!(fetched(&secret, &server, &["--cacert", cert]), BUNDLE);
}

#[test]
fn the_example_for_python_names_what_is_missing_in_one_line() {
    let (folder, _) = folder();
    for (bundle, says) in
        [(Some("deps.tgz"), "CLOAKROOM_SERVER is not set"), (None, "name the bundle to stage")]
    {
        let ran = example("python/stage.py", folder.path()).args(bundle).output().unwrap();
        let said = stderr(&ran);
        assert_eq!((ran.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.starts_with(&format!("error: {says}")), "{said}");
        assert!(ran.stdout.is_empty());
    }
}

#[test]
fn the_examples_fail_if_the_server_refuses_the_upload() {
    let (folder, _) = folder();
    let server = serve(folder.path(), &[]);
    for script in ["curl/bundle.sh", "python/stage.py"] {
        let ran = run(script, folder.path(), &server, "guess");
        assert!(!ran.status.success(), "{script}");
        assert!(ran.stdout.is_empty(), "{script}");
    }
}

#[test]
fn the_example_for_python_tells_a_failure_in_one_line() {
    let (folder, _) = folder();
    let server = serve(folder.path(), &[]);
    let of_server = server.url("");
    let closed = format!("http://127.0.0.1:{}", closed_port());
    for (address, bundle, says) in [
        (of_server.as_str(), "deps.tgz", "error: the server answered 401: "),
        (&of_server, "absent.tgz", "error: [Errno 2] No such file or directory: 'absent.tgz'"),
        (&closed, "deps.tgz", "error: [Errno 111] Connection refused"),
        ("127.0.0.1:10000", "deps.tgz", "error: "),
    ] {
        let mut command = example("python/stage.py", folder.path());
        let ran = command.arg(bundle).env("CLOAKROOM_SERVER", address).output().unwrap();
        let said = stderr(&ran);
        assert_eq!((ran.status.code(), said.lines().count()), (Some(1), 1), "{address}: {said}");
        assert!(said.starts_with(says), "{address}: {said}");
        assert!(ran.stdout.is_empty());
    }
}
