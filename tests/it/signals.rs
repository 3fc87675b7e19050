//! Signals that are no reason to end, and a data directory that is held whatever happens to its lock file.

use std::fs::File;
use std::path::Path;

use cloakroom_testing::process::{command, stderr};
use cloakroom_testing::wait::until_true;
use cloakroom_testing::wire::ask;
use cloakroom_testing::{process::Cloakroom, tls};

const OLD: &str = "correct-horse-battery";
const NEW: &str = "staple-battery-horse";

/// Writes other content with the same time, which is not seen by itself.
fn change_unseen(path: &Path, content: &str) {
    let modified = std::fs::metadata(path).unwrap().modified().unwrap();
    std::fs::write(path, content).unwrap();
    File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn sighup_reads_tokens_and_certificate_again() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, OLD).unwrap();
    let pem = tls::signed_by_ca(folder.path(), &["127.0.0.1"]);
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (file, cert, key) = (text(&tokens), text(&pem.cert), text(&pem.key));
    let flags =
        ["--upload-token-file", &file, "--tls-cert", &cert, "--tls-key", &key, "--min-free-space", "0b"];
    let mut server = Cloakroom::serve(&folder.path().join("data"), &flags);
    let client = reqwest::Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(tls::trusting(&pem.ca))
        .build()
        .unwrap();
    let upload = async |token: &str| {
        let url = server.url("/api/v1/resources?namespace=demo&label=app=x");
        client.post(url).bearer_auth(token).body("jars").send().await.unwrap().status().as_u16()
    };
    assert_eq!((upload(OLD).await, upload(NEW).await), (201, 401));
    change_unseen(&tokens, NEW);
    server.signal("HUP");
    until_true("the certificate was read", || server.log().contains("read the TLS certificate again")).await;
    assert_eq!((upload(OLD).await, upload(NEW).await), (401, 201));
    server.signal("TERM");
    assert!(server.wait().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_without_a_meaning_do_not_end_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Cloakroom::serve(folder.path(), &[]);
    for name in ["USR1", "USR2", "HUP"] {
        server.signal(name);
    }
    server.wait_for_log("got SIGHUP");
    let answer = ask(server.address.parse().unwrap(), "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(answer.status, 200);
    server.signal("TERM");
    assert!(server.wait().success());
}

// Invariant: a data directory belongs to one process until it ends, because the folder itself is locked.
#[test]
fn a_data_directory_is_in_use_until_its_server_ends() {
    let folder = tempfile::tempdir().unwrap();
    let first = Cloakroom::serve(folder.path(), &[]);
    let mut check = command();
    check.args(["serve", "--check", "--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.path());
    let output = check.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("is in use by another process"), "{}", stderr(&output));
    let mut second = command();
    second.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.path());
    let mut second = Cloakroom::launch(second);
    second.wait_for_log("waiting for the data directory");
    first.kill();
    second.wait_until_it_serves();
}

#[test]
fn an_address_is_no_data_directory() {
    let folder = tempfile::tempdir().unwrap();
    for (address, says) in [
        ("s3://bucket/prefix", "for bundles in a bucket give that address with --store"),
        ("az://bucket", "for bundles in a bucket give that address with --store"),
        ("gs://bucket", "for bundles in a bucket give that address with --store"),
        ("hdfs://host/folder", "(hdfs://…)"),
        ("file:///var/lib/x", "alone, without file://"),
    ] {
        for check in [&["--check"][..], &[]] {
            let mut serve = command();
            serve
                .current_dir(&folder)
                .args(["serve", "--listen", "127.0.0.1:0", "--data-dir", address])
                .args(check);
            let output = serve.output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
            assert!(stderr(&output).contains("--data-dir names an address"), "{}", stderr(&output));
            assert!(stderr(&output).contains(says), "{}", stderr(&output));
        }
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn the_check_says_which_address_is_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let server = Cloakroom::serve(&folder.path().join("data"), &[]);
    for (flag, other) in [("--listen", "--ops-listen"), ("--ops-listen", "--listen")] {
        let mut check = command();
        check.args(["serve", "--check", flag, &server.address, other, "127.0.0.1:0", "--data-dir"]);
        let output = check.arg(folder.path().join("other")).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let said = stderr(&output);
        assert!(said.contains(&format!("cannot listen on {}", server.address)), "{said}");
        assert!(said.contains("perhaps a running server") && said.contains(flag), "{said}");
    }
    let mut free = command();
    free.args(["serve", "--check", "--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.path().join("other"));
    assert!(free.output().unwrap().status.success());
}
