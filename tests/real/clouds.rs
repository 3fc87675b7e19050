//! The same in stores that do not speak the protocol of S3, by the commands of the page. Azure is an emulator, and Google a
//! stand-in.

use std::path::Path;
use std::process::Command;

use cloakroom_testing::azurite::{ACCOUNT, Azurite, KEY};
use cloakroom_testing::documentation::block;
use cloakroom_testing::google_storage::{BUCKET, GoogleStorage};
use cloakroom_testing::hdfs::{Hdfs, TEAM, USER};
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
        trial("clouds::the_commands_of_the_page_begin_a_server_in_hdfs", Hdfs::needs(), in_hdfs),
        trial("clouds::a_server_whose_store_is_full_still_serves_its_bundles", Hdfs::needs(), full),
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
    let secrets = ["SharedKey", KEY, "d3Jvbmc="];
    follow(&page, &wrong, "403 (AuthorizationFailure)", Some(azurite.url()), &secrets);
}

async fn at_google() {
    let google = GoogleStorage::start().await;
    let file = google.credentials();
    let page = block("docs/buckets.md", "Begin", "export GOOGLE_APPLICATION_CREDENTIALS")
        .replace("…/credentials.json", file.to_str().unwrap())
        .replace("gs://team", &format!("gs://{BUCKET}"));
    let wrong = page.replace(BUCKET, "nowhere");
    without_credentials();
    follow(&page, &wrong, "404 (NoSuchBucket)", Some(google.url()), &["Bearer", "PRIVATE KEY"]);
}

fn in_hdfs() {
    let namenode = Hdfs::shared().namenode();
    let page = block("docs/buckets.md", "Begin", "cloakroom serve --store webhdfs")
        .replace("namenode.example.com:9870/apps", &format!("{namenode}/{TEAM}"));
    let wrong = page.replace("--store-user cloakroom", "--store-user ann");
    let [page, wrong] = [page, wrong].map(|page| format!("set -e\n{page}"));
    follow(&page, &wrong, "AccessControlException: Permission denied: user=ann", None, &[]);
}

fn full() {
    let (hdfs, folder) = (Hdfs::start(), tempfile::tempdir().unwrap());
    let start = || {
        let mut server = command();
        server.args(["serve", "--store", &format!("webhdfs://{}/{TEAM}/a", hdfs.namenode())]);
        server.args(["--store-user", USER, "--store-allow-http", "--listen", "127.0.0.1:0", "--data-dir"]);
        server.arg(folder.path().join("data")).args(["--takeover-after", "1s"]);
        Cloakroom::start(server)
    };
    let file = folder.path().join("a.jar");
    std::fs::write(&file, "jar").unwrap();
    let server = start();
    let ticket = staged(&server, &file);
    server.kill();
    hdfs.set_quota(1 << 20);
    let mut server = start();
    assert_fetched(&at(&ticket, &server), &file);
    let curl = |arguments: &[&str]| {
        let output = output_in_time(Command::new("curl").arg("--silent").args(arguments));
        String::from_utf8(output.stdout).unwrap()
    };
    let url = server.url("/api/v1/resources/?namespace=demo&label=a=b");
    let refused = curl(&["--upload-file", file.to_str().unwrap(), &url]);
    assert!(refused.contains("not-writable"), "{refused}");
    assert_eq!(asked(&at(&ticket, &server), "DELETE"), "503");
    let ready = curl(&[&server.url("/readyz")]);
    assert!(ready.starts_with("ready\nread-only: the bucket takes no writes"), "{ready}");
    hdfs.set_quota(1 << 40);
    assert_eq!(server.wait().code(), Some(1));
    assert!(server.log().contains("the bucket takes writes again"), "{}", server.log());
    let server = start();
    assert_fetched(&at(&ticket, &server), &file);
    assert_eq!(asked(&at(&ticket, &server), "DELETE"), "204");
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

/// Types the commands of a page: the first line sets variables, then come the check, and the start of a server that takes bundles, is killed, and still has them. Before that
/// come commands that are wrong, with what they say. `secrets` are in no output.
fn follow(page: &str, wrong: &str, says: &str, endpoint: Option<String>, secrets: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let typed = |page: &str, number: usize| {
        let lines: Vec<&str> = page.lines().collect();
        let line = lines[number].replace("cloakroom serve", &format!("exec {} serve", binary().display()));
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("{}\n{line}", lines[0])]).env_clear().current_dir(folder.path());
        shell.env("CLOAKROOM_LISTEN", "127.0.0.1:0").env("CLOAKROOM_LOG", "debug");
        shell.env("CLOAKROOM_STORE_ALLOW_HTTP", "true");
        shell.envs(endpoint.iter().map(|url| ("CLOAKROOM_STORE_ENDPOINT", url)));
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
    let ticket = staged(server, file);
    assert_eq!(["DELETE", "GET"].map(|method| asked(&ticket, method)), ["204", "410"]);
}

/// The status of the answer to a request with the ticket.
fn asked(ticket: &str, method: &str) -> String {
    let ticket: serde_json::Value = serde_json::from_str(ticket).unwrap();
    let (url, secret) = (ticket["url"].as_str().unwrap(), ticket["resourceSecret"].as_str().unwrap());
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--request", method]);
    curl.args(["--header", &format!("Authorization: Bearer {secret}"), url]);
    String::from_utf8(output_in_time(&mut curl).stdout).unwrap()
}
