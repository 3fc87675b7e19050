//! The same in the clouds that do not speak the protocol of S3, by the commands of the page. Azure is an emulator, and Google a
//! stand-in.

use std::path::Path;
use std::process::Command;

use cloakroom_testing::azurite::{ACCOUNT, Azurite, KEY};
use cloakroom_testing::documentation::block;
use cloakroom_testing::google_storage::{BUCKET, GoogleStorage};
use cloakroom_testing::needs::trial;
use cloakroom_testing::process::{Cloakroom, binary, command, output_in_time, stderr};
use cloakroom_testing::scripted::closed_port;
use libtest_mimic::Trial;

use crate::buckets::{assert_fetched, at, staged};

pub fn trials() -> Vec<Trial> {
    let trial = |name, needs: Vec<_>, test: fn()| trial(name, &needs, test);
    vec![
        trial("clouds::the_commands_of_the_page_begin_a_server_in_azure", Azurite::needs(), || {
            block_on(in_azure());
        }),
        trial("clouds::the_commands_of_the_page_begin_a_server_at_google", GoogleStorage::needs(), || {
            block_on(at_google());
        }),
    ]
}

fn block_on(test: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().unwrap().block_on(test);
}

async fn in_azure() {
    let azurite = Azurite::start().await;
    let page = block("docs/buckets.md", "Begin", "export AZURE_STORAGE_ACCOUNT")
        .replace("AZURE_STORAGE_ACCOUNT=…", &format!("AZURE_STORAGE_ACCOUNT={ACCOUNT}"))
        .replace("AZURE_STORAGE_KEY=…", &format!("AZURE_STORAGE_KEY={KEY}"));
    let wrong = page.replace(KEY, "d3Jvbmc=");
    follow(&page, &wrong, "403 (AuthorizationFailure)", &azurite.url(), &["SharedKey", KEY, "d3Jvbmc="]);
}

async fn at_google() {
    let google = GoogleStorage::start().await;
    let file = google.credentials();
    let page = block("docs/buckets.md", "Begin", "export GOOGLE_APPLICATION_CREDENTIALS")
        .replace("…/credentials.json", file.to_str().unwrap())
        .replace("gs://team", &format!("gs://{BUCKET}"));
    let wrong = page.replace(BUCKET, "nowhere");
    without_credentials();
    follow(&page, &wrong, "404 (NoSuchBucket)", &google.url(), &["Bearer", "PRIVATE KEY"]);
}

/// A machine that is not at Google has nothing that gives out credentials. The library says its own about that.
fn without_credentials() {
    let mut check = command();
    check.args(["serve", "--store", "gs://team/cloakroom", "--check", "--data-dir"]);
    check.arg(tempfile::tempdir().unwrap().path());
    let nowhere = format!("127.0.0.1:{}", closed_port());
    check.env("GCE_METADATA_HOST", &nowhere).env("GCE_METADATA_IP", &nowhere);
    let said = stderr(&output_in_time(&mut check));
    assert!(said.contains("no credentials (docs/buckets.md") && said.contains("cannot be reached"), "{said}");
    assert!(!said.contains("fetching token"), "{said}");
}

/// Types the commands of a page: the check, and the start of a server that takes bundles, is killed, and still has them. Before that
/// come commands that are wrong, with what they say. `secrets` are in no output.
fn follow(page: &str, wrong: &str, says: &str, endpoint: &str, secrets: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let typed = |page: &str, number: usize| {
        let lines: Vec<&str> = page.lines().collect();
        let line = lines[number].replace("cloakroom serve", &format!("exec {} serve", binary().display()));
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("{}\n{line}", lines[0])]).env_clear().current_dir(folder.path());
        shell.env("CLOAKROOM_LISTEN", "127.0.0.1:0").env("CLOAKROOM_LOG", "debug");
        shell.env("CLOAKROOM_STORE_ENDPOINT", endpoint).env("CLOAKROOM_STORE_ALLOW_HTTP", "true");
        shell
    };
    let refused = output_in_time(&mut typed(wrong, 1));
    assert!(!refused.status.success() && stderr(&refused).contains(says), "{}", stderr(&refused));
    let checked = output_in_time(&mut typed(page, 1));
    assert!(checked.status.success(), "{}", stderr(&checked));
    for output in [refused, checked] {
        assert!(secrets.iter().all(|secret| !stderr(&output).contains(secret)), "{}", stderr(&output));
    }
    let files = [(1000, "small.jar"), (12 << 20, "large.jar")].map(|(bytes, name)| {
        let path = folder.path().join(name);
        std::fs::write(&path, (0..bytes).map(|at| (at / 255 + at) as u8).collect::<Vec<u8>>()).unwrap();
        path
    });
    let server = Cloakroom::start(typed(page, 2));
    let tickets = files.each_ref().map(|file| staged(&server, file));
    server.kill();
    let server = Cloakroom::start(typed(page, 2));
    for (ticket, file) in tickets.iter().zip(&files) {
        assert_fetched(&at(ticket, &server), file);
    }
    assert_deleted(&server, &files[0]);
}

/// A bundle that is removed is gone.
fn assert_deleted(server: &Cloakroom, file: &Path) {
    let ticket: serde_json::Value = serde_json::from_str(&staged(server, file)).unwrap();
    let (url, secret) = (ticket["url"].as_str().unwrap(), ticket["resourceSecret"].as_str().unwrap());
    let asked = |method: &str| {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--request", method]);
        curl.args(["--header", &format!("Authorization: Bearer {secret}"), url]);
        String::from_utf8(output_in_time(&mut curl).stdout).unwrap()
    };
    assert_eq!(["DELETE", "GET"].map(asked), ["204", "410"]);
}
