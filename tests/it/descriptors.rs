//! A server that may have few files open.

use std::net::SocketAddr;
use std::process::Command;

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::process::{command, run};
use cloakroom_testing::wait::until;
use cloakroom_testing::wire::{Wire, ask, download_request, upload_head};

/// The command line under a hard limit of open files.
fn limited(limit: usize, args: &[&str]) -> Command {
    let plain = command();
    let mut limited = Command::new("sh");
    limited
        .args(["-c", &format!("ulimit -n {limit} && exec \"$0\" \"$@\"")])
        .arg(plain.get_program())
        .args(args);
    limited.env_clear().stdin(std::process::Stdio::null());
    limited
}

async fn stage(address: SocketAddr, bytes: usize) -> Ticket {
    let mut wire = Wire::connect(address).await;
    wire.send(upload_head(&format!("Content-Length: {bytes}\r\n"))).await;
    wire.send(vec![7; bytes]).await;
    let answer = wire.answer().await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    serde_json::from_slice(&answer.body).unwrap()
}

async fn sample(address: SocketAddr, name: &str) -> u64 {
    let answer = ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let text = String::from_utf8(answer.body).unwrap();
    text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

fn serve(limit: usize, data_dir: &str, flags: &[&str]) -> (Cloakroom, SocketAddr) {
    let args = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--no-kubernetes",
        "--min-free-space",
        "0b",
        "--data-dir",
        data_dir,
    ];
    let server = Cloakroom::start(limited(limit, &[&args, flags].concat()));
    let address = server.address.parse().unwrap();
    (server, address)
}

fn open_files(server: &Cloakroom) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count()
}

/// More than the buffers of both sides of a connection hold.
const LARGE: usize = 24 << 20;

// Invariant: open connections leave requests the file descriptors that they need; with too few descriptors the server
// does not start.
#[tokio::test]
async fn with_1024_descriptors_and_495_slow_readers_others_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let (server, address) = serve(1024, folder.path().to_str().unwrap(), &[]);
    assert!(
        server.log().contains("the limit of open files is 1024, and the flags could need 2880"),
        "{}",
        server.log()
    );
    let large = stage(address, LARGE).await;
    let mut readers = Vec::new();
    for _ in 0..495 {
        let mut reader = Wire::connect(address).await;
        reader.send(download_request(&large)).await;
        readers.push(reader);
    }
    for reader in &mut readers {
        reader.begins().await;
    }
    let small = stage(address, 4).await;
    let answer = ask(address, download_request(&small)).await;
    assert_eq!((answer.status, answer.body), (200, vec![7; 4]));
    // 1024 without 64, 2 for each upload, and 64 for connections that wait are 768: a third is for bundles, and the rest
    // for connections.
    for (of, expected) in [("open-bundles", 1..=1), ("connections", 496..=505), ("open-files", 500..=620)] {
        let used = sample(address, &format!("cloakroom_limit_used{{of=\"{of}\"}} ")).await;
        assert!(expected.contains(&used), "{of}: {used}");
    }
    for (of, most) in [("open-bundles", 256), ("connections", 512), ("open-files", 1024)] {
        assert_eq!(sample(address, &format!("cloakroom_limit{{of=\"{of}\"}} ")).await, most, "{of}");
    }
    assert!(open_files(&server) < 1024 / 2 + 100, "one bundle is open once");
}

#[tokio::test]
async fn a_download_without_descriptors_is_told_to_retry_and_uploads_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--max-concurrent-uploads", "4"];
    let (server, address) = serve(128, folder.path().to_str().unwrap(), &flags);
    // 128 without 64, 2 for each upload, and 8 for connections that wait are 48: a third is for bundles.
    let mut tickets = Vec::new();
    for _ in 0..17 {
        tickets.push(stage(address, LARGE / 4).await);
    }
    let mut readers = Vec::new();
    for (number, ticket) in tickets.iter().enumerate() {
        let mut reader = Wire::connect(address).await;
        reader.send(download_request(ticket)).await;
        if number == 16 {
            let refused = reader.answer().await;
            assert_eq!((refused.status, refused.header("retry-after")), (503, "2"), "{}", refused.text());
            assert!(refused.text().contains("\"code\":\"overloaded\""), "{}", refused.text());
        } else {
            reader.begins().await;
            readers.push(reader);
        }
    }
    stage(address, 4).await;
    drop(readers);
    until("a descriptor is free again", async || {
        ask(address, download_request(&tickets[16])).await.status == 200
    })
    .await;
    assert!(!server.log().contains("request failed"), "{}", server.log());
}

#[test]
fn a_server_with_too_few_descriptors_does_not_start_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--no-kubernetes", "--data-dir", path.to_str().unwrap()];
    for args in [&[&serve[..], &["--check"]].concat()[..], &serve] {
        let refused = limited(128, args).output().unwrap();
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!((refused.status.code(), refused.stdout), (Some(1), vec![]), "{said}");
        for expected in
            ["limit of open files is 128", "needs 248 at least", "ulimit -n", "--max-concurrent-uploads"]
        {
            assert!(said.contains(expected), "“{expected}” is missing: {said}");
        }
        assert!(!path.exists(), "nothing was made");
    }
    let few = [&serve[..], &["--check", "--max-concurrent-uploads", "4"]].concat();
    let said = String::from_utf8(limited(128, &few).output().unwrap().stdout).unwrap();
    assert!(said.contains("32 of 2048: the limit of open files is too low"), "{said}");
}

#[test]
fn the_check_says_how_many_connections_the_limit_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let args = ["serve", "--check", "--listen", "127.0.0.1:0", "--no-kubernetes", "--data-dir", path];
    let checked = limited(1024, &args).output().unwrap();
    let said = String::from_utf8(checked.stdout).unwrap();
    assert!(said.contains("512 of 2048: the limit of open files is too low"), "{said}");
    let few = [&args[..], &["--max-connections", "100"]].concat();
    let said = String::from_utf8(limited(1024, &few).output().unwrap().stdout).unwrap();
    assert!(said.contains("connections           100\n"), "{said}");
    assert!(run(&few).status.success());
}
