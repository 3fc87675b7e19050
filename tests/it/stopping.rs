//! How the binary stops: signals, transfers in flight, the deadline.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use cloakroom_adapters::sqlite::SqliteLedger;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_storage::ledger::Ledger as _;
use cloakroom_testing::half::{half_an_upload, incoming, is_told_to_come_again, the_other_half};
use cloakroom_testing::process::{Cloakroom, command, stderr};
use cloakroom_testing::wait::{BOUND, until, until_true};
use cloakroom_testing::wire::{Wire, ask, download_request, upload_head};

const DEADLINE: Duration = Duration::from_millis(200);

fn serve(data_dir: &Path, flags: &[&str]) -> (Cloakroom, SocketAddr) {
    let server = Cloakroom::serve(data_dir, &[&["--min-free-space", "0b"], flags].concat());
    let address = server.address.parse().unwrap();
    (server, address)
}

/// Exit status and log of a server that was told to stop.
async fn ended(mut server: Cloakroom) -> (ExitStatus, String) {
    let ending = tokio::task::spawn_blocking(move || {
        server.wait_for_log("stopped");
        (server.wait(), server.log())
    });
    tokio::time::timeout(BOUND * 2, ending).await.expect("the server did not stop").unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_and_sigint_let_transfers_finish_and_end_the_binary_with_zero() {
    let folder = tempfile::tempdir().unwrap();
    for signal in ["TERM", "INT"] {
        let (mut server, address) = serve(folder.path(), &[]);
        let answer = ask(
            address,
            format!("{}{}", upload_head("Content-Length: 20000000\r\n"), "7".repeat(20_000_000)),
        )
        .await;
        let large: Ticket = serde_json::from_slice(&answer.body).unwrap();
        let mut download = Wire::connect(address).await;
        download.send(download_request(&large)).await;
        download.begins().await;
        let upload = half_an_upload(address, folder.path()).await;

        server.signal(signal);
        server.wait_for_log(&format!("got SIG{signal}"));
        until("requests are refused", async || is_told_to_come_again(address).await).await;
        assert_eq!(download.answer().await.body.len(), 20_000_000);
        let ticket = the_other_half(upload).await;
        let (status, log) = ended(server).await;
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(log.contains("all transfers are finished"), "{log}");
        assert!(!log.contains(&ticket.resource_secret) && !log.contains(&large.resource_secret));

        let (server, address) = serve(folder.path(), &[]);
        assert_eq!(ask(address, download_request(&ticket)).await.text(), "halfhalf");
        server.kill();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_binary_gives_up_at_the_deadline_and_keeps_no_part_of_an_upload() {
    let folder = tempfile::tempdir().unwrap();
    let (server, address) = serve(folder.path(), &["--shutdown-deadline", "200ms"]);
    let mut upload = half_an_upload(address, folder.path()).await;
    let start = Instant::now();
    server.signal("TERM");
    let (status, log) = ended(server).await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(start.elapsed() >= DEADLINE);
    assert!(
        log.contains("transfers in flight were cut off: unfinished uploads leave nothing behind"),
        "{log}"
    );
    // A reset or an end, but no ticket.
    let mut said = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut upload.0, &mut said).await;
    assert_eq!(String::from_utf8(said).unwrap(), "");

    // Cleaned up by the server that stopped, not by the next one.
    assert_eq!(incoming(folder.path()), 0);
    let bundles = std::fs::read_dir(folder.path().join("bundles")).unwrap();
    assert_eq!(bundles.filter(|entry| entry.as_ref().unwrap().path().is_dir()).count(), 0);
    let ledger = SqliteLedger::open(&folder.path().join("ledger.db")).await.unwrap();
    assert!(ledger.totals().await.unwrap().by_state.is_empty());
    ledger.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_stops_the_binary_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (mut server, address) = serve(folder.path(), &["--shutdown-deadline", "1h"]);
    let upload = half_an_upload(address, folder.path()).await;
    server.signal("INT");
    server.wait_for_log("got SIGINT");
    server.signal("INT");
    let (status, log) = ended(server).await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("transfers in flight were cut off"), "{log}");
    assert_eq!(incoming(folder.path()), 0);
    drop(upload);
}

#[test]
fn an_address_that_is_in_use_is_an_error_before_anything_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let (first, address) = serve(&folder.path().join("first"), &[]);
    let address = address.to_string();
    for flags in [
        ["--listen", address.as_str(), "--ops-listen", "127.0.0.1:0"],
        ["--ops-listen", address.as_str(), "--listen", "127.0.0.1:0"],
    ] {
        let second = folder.path().join("second");
        let output = command().args(["serve", "--data-dir"]).arg(&second).args(flags).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = stderr(&output);
        let expected = format!("error: cannot listen on {address} (another process listens there");
        let way_out = format!("choose another address with {})", flags[0]);
        assert!(said.contains(&expected) && said.contains(&way_out) && said.contains("in use"), "{said}");
        assert!(!second.exists());
    }
    first.kill();
}

#[tokio::test]
async fn a_log_without_a_reader_does_not_keep_the_server_from_stopping() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = command();
    server.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.path());
    let mut child = server.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(log.any(|line| line.unwrap().contains("serves on")));
    drop(log);
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    until_true("the server has stopped", || child.try_wait().unwrap().is_some()).await;
    assert!(child.wait().unwrap().success());
}
