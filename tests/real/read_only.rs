//! File systems that take nothing more, by real mounts: one that becomes read-only under a running server, one without
//! inodes, and a full one with the ledger of a bucket.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cloakroom_core::protocol::problem::Problem;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::needs::{Need, trial};
use cloakroom_testing::process::{Cloakroom, command, stderr};
use cloakroom_testing::s3_gateway::{ACCESS_KEY, BUCKET, S3Gateway, SECRET_KEY};
use libtest_mimic::Trial;
use reqwest::{RequestBuilder, StatusCode};

const TOKEN: &str = "admin-horse-battery-staple";

pub fn trials() -> Vec<Trial> {
    let mut with_a_bucket = S3Gateway::needs();
    with_a_bucket.extend([Need::Root, Need::Namespaces, Need::Program("nsenter")]);
    vec![
        trial(
            "a_disk_that_becomes_read_only_is_named_and_what_is_staged_is_served",
            &[Need::Root, Need::Namespaces, Need::Program("nsenter")],
            a_disk_that_becomes_read_only_is_named_and_what_is_staged_is_served,
        ),
        trial(
            "a_disk_without_inodes_is_not_called_full",
            &[Need::Root, Need::Namespaces],
            a_disk_without_inodes_is_not_called_full,
        ),
        trial(
            "beside_a_bucket_a_full_disk_loses_nothing",
            &with_a_bucket,
            beside_a_bucket_a_full_disk_loses_nothing,
        ),
    ]
}

fn beside_a_bucket_a_full_disk_loses_nothing() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (gateway, folder) = (S3Gateway::start().await, tempfile::tempdir().unwrap());
        let (tokens, data) = prepared(folder.path());
        let with_the_bucket = |mut server: Command| {
            server.env("AWS_ACCESS_KEY_ID", ACCESS_KEY).env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
            server.args(["--store", &format!("s3://{BUCKET}/cloakroom"), "--store-endpoint", &gateway.url()]);
            server.args(["--store-allow-http", "--takeover-after", "1s"]);
            server
        };
        let mut server = serving(with_the_bucket(in_mount(&data, "size=16m")), &data, &tokens);
        let client = client();
        let bundles =
            || std::fs::read_dir(gateway.objects().join("cloakroom/blobs")).map_or(0, Iterator::count);
        let upload = || {
            client.put(server.url("/api/v1/resources/deps.tgz?namespace=demo&label=app%3Ddemo")).body("jars")
        };
        let ticket: Ticket =
            serde_json::from_str(&upload().send().await.unwrap().text().await.unwrap()).unwrap();
        in_its_mounts(&server, "dd if=/dev/zero of=\"$0/filler\" bs=4k 2>&1 | grep 'No space left'", &data);
        // The log of SQLite has some room in blocks that are its own already.
        let mut staged = 1;
        while upload().send().await.is_ok_and(|answer| answer.status() == StatusCode::CREATED) {
            staged += 1;
            assert!(staged < 1000, "the disk is not full");
        }
        // The bucket has what the ledger cannot take, and the next start makes that ledger anew.
        let delete = |server: &Cloakroom| {
            let bundle = server.url(&format!("/api/v1/resources/{}", ticket.resource_id));
            client.delete(bundle).bearer_auth(&ticket.resource_secret).send()
        };
        let refused = delete(&server).await.unwrap();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE, "{}", refused.text().await.unwrap());
        assert_eq!(server.wait().code(), Some(1));
        let said = server.log();
        assert!(said.contains("could not be written to the ledger in the data directory"), "{said}");
        let other = folder.path().join("other");
        std::fs::create_dir(&other).unwrap();
        let server = serving(with_the_bucket(in_mount(&other, "size=64m")), &other, &tokens);
        assert_eq!(delete(&server).await.unwrap().status(), StatusCode::NO_CONTENT);
        assert_eq!(bundles(), staged - 1);
    });
}

fn a_disk_without_inodes_is_not_called_full() {
    // The folder, those of the bundles, and one or two of the three files of the ledger.
    for inodes in [4, 5] {
        let folder = tempfile::tempdir().unwrap();
        let mut start = in_mount(folder.path(), &format!("size=64m,nr_inodes={inodes}"));
        start.args(["--no-kubernetes", "--data-dir"]).arg(folder.path());
        let said = stderr(&start.output().unwrap());
        assert!(said.contains("no inode left") && !said.contains("damaged"), "{inodes}: {said}");
    }
    const INODES: usize = 16;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let (tokens, data) = prepared(folder.path());
        let mut server = start(&data, &tokens, &format!("size=64m,nr_inodes={INODES}"));
        let mut staged = 0;
        let refused = loop {
            let url = server.url("/api/v1/resources/deps.tgz?namespace=demo&label=app%3Ddemo");
            let answer = client().put(url).body("jars").send().await.unwrap();
            if answer.status() != StatusCode::CREATED {
                break answer;
            }
            staged += 1;
            assert!(staged < INODES, "each bundle is a file");
        };
        let problem: Problem = serde_json::from_str(&refused.text().await.unwrap()).unwrap();
        assert_eq!((problem.status, problem.code.as_str()), (507, "insufficient-storage"), "{problem:?}");
        assert!(
            problem.detail.contains("no inode left") && !problem.detail.contains("is full"),
            "{problem:?}"
        );
        server.signal("TERM");
        assert!(server.wait().success());
    });
}

/// A file system with open files does not become read-only on demand. So what the store writes to is mounted over itself,
/// read-only: the server's open ledger can still be written, but no bundle can be made or removed.
fn a_disk_that_becomes_read_only_is_named_and_what_is_staged_is_served() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let (tokens, data) = prepared(folder.path());
        let mut server = start(&data, &tokens, "size=64m");
        let client = client();
        let upload = || {
            client.put(server.url("/api/v1/resources/deps.tgz?namespace=demo&label=app%3Ddemo")).body("jars")
        };
        let staged = upload().send().await.unwrap();
        assert_eq!(staged.status(), StatusCode::CREATED);
        let ticket: Ticket = serde_json::from_str(&staged.text().await.unwrap()).unwrap();
        let bundle = server.url(&format!("/api/v1/resources/{}", ticket.resource_id));
        let with_ticket = |request: RequestBuilder| request.bearer_auth(&ticket.resource_secret);

        let read_only = "for name in incoming bundles reserve; do \
                         mount --bind \"$0/$name\" \"$0/$name\" && mount -o remount,bind,ro \"$0/$name\" || exit 1; done";
        in_its_mounts(&server, read_only, &data);
        for request in [upload(), with_ticket(client.delete(&bundle))] {
            let answer = request.send().await.unwrap();
            let problem: Problem = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
            assert_eq!((problem.status, problem.code.as_str()), (503, "not-writable"), "{problem:?}");
            assert!(problem.detail.contains("storage, which is read-only"), "{problem:?}");
        }
        let cleaned = administer(&server, &tokens, &["clean"]);
        assert!(stderr(&cleaned).contains("storage, which is read-only"), "{}", stderr(&cleaned));
        let listed = administer(&server, &tokens, &["ls"]);
        assert_eq!(listed.status.code(), Some(0), "{}", stderr(&listed));
        let shown = administer(&server, &tokens, &["show", &ticket.resource_id]);
        assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
        assert!(server.log().contains("the storage cannot be written"), "{}", server.log());

        in_its_mounts(&server, "umount -l \"$0/incoming\" \"$0/bundles\" \"$0/reserve\"", &data);
        let cleaned = administer(&server, &tokens, &["clean"]);
        assert_eq!(cleaned.status.code(), Some(0), "{}", stderr(&cleaned));
        let gone = with_ticket(client.get(&bundle)).send().await.unwrap();
        assert_eq!(gone.status(), StatusCode::GONE, "the deletion was written down, and is finished");
        assert_eq!(upload().send().await.unwrap().status(), StatusCode::CREATED);
        server.signal("TERM");
        assert!(server.wait().success());
    });
}

/// A file with the admin token, and an empty data directory.
fn prepared(folder: &Path) -> (PathBuf, PathBuf) {
    let [tokens, data] = ["tokens", "data"].map(|name| folder.join(name));
    std::fs::write(&tokens, TOKEN).unwrap();
    std::fs::create_dir(&data).unwrap();
    (tokens, data)
}

/// In a mount namespace of its own, so that the mount goes with it.
fn start(data: &Path, tokens: &Path, options: &str) -> Cloakroom {
    serving(in_mount(data, options), data, tokens)
}

fn serving(mut server: Command, data: &Path, tokens: &Path) -> Cloakroom {
    server
        .args(["--no-kubernetes", "--min-free-space", "0b", "--admin-token-file"])
        .arg(tokens)
        .arg("--data-dir")
        .arg(data);
    Cloakroom::start(server)
}

/// `serve` with a file system of its own in this folder.
fn in_mount(data: &Path, options: &str) -> Command {
    let mut server = Command::new("unshare");
    let script = format!("mount -t tmpfs -o {options} tmpfs \"$0\" && exec \"$@\"");
    server.args(["--mount", "--propagation", "private", "sh", "-c", &script]).arg(data);
    server.arg(command().get_program()).args(["serve", "--listen", "127.0.0.1:0"]);
    server
}

fn in_its_mounts(server: &Cloakroom, script: &str, data: &Path) {
    let mut nsenter = Command::new("nsenter");
    nsenter.args(["--mount", "--target", &server.pid().to_string(), "sh", "-c", script]).arg(data);
    let output = nsenter.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

fn administer(server: &Cloakroom, tokens: &Path, args: &[&str]) -> Output {
    command()
        .args(args)
        .args(["--admin-url", &server.url(""), "--admin-token-file"])
        .arg(tokens)
        .output()
        .unwrap()
}

fn client() -> reqwest::Client {
    let tls = cloakroom_testing::tls::no_roots();
    reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls).build().unwrap()
}
