//! How much memory the real server takes, whatever pieces its clients send.

use std::net::SocketAddr;

use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::wire::{Wire, upload_head};

/// What one upload may take on top of what the server takes anyway. In ordinary pieces it is 6 MiB.
const MOST_MIB: u64 = 20;

/// Resident memory in MiB: `VmRSS` as it is now, `VmHWM` at its highest.
fn resident(server: &Cloakroom, which: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with(which)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

/// Sends one upload: how it begins, the same piece so many times, and how it ends.
async fn assert_costs_little(begin: &str, piece: &str, times: usize, end: &str, status: u16) {
    let folder = tempfile::tempdir().unwrap();
    let server = Cloakroom::serve(folder.path(), &["--no-kubernetes", "--min-free-space", "0b"]);
    let before = resident(&server, "VmRSS");
    let address: SocketAddr = server.address.parse().unwrap();
    let mut wire = Wire::connect(address).await;
    wire.send(begin).await;
    let many = piece.repeat(1 << 14);
    for _ in 0..times >> 14 {
        assert!(wire.send(&many).await, "the server closed");
    }
    wire.send(end).await;
    let answer = wire.answer().await;
    assert_eq!(answer.status, status, "{}", answer.text());
    let highest = resident(&server, "VmHWM");
    assert!(highest <= before + MOST_MIB, "{before} MiB before the upload, {highest} MiB at the highest");
}

// Invariant: the memory of an upload has a bound, however it is cut into pieces.
#[tokio::test]
async fn an_upload_in_chunks_of_one_byte_takes_no_more_memory_than_others() {
    let begin = upload_head("Transfer-Encoding: chunked\r\n");
    assert_costs_little(&begin, "1\r\nX\r\n", 1 << 14, "0\r\n\r\n", 201).await;
}

#[tokio::test]
async fn a_form_full_of_near_boundaries_takes_no_more_memory_than_others() {
    let begin = "POST /api/v0/resources HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
                 Content-Type: multipart/form-data; boundary=B\r\nContent-Length: LENGTH\r\n\r\n\
                 --B\r\nContent-Disposition: form-data; name=\"resources\"\r\n\r\n";
    let end = "\r\n--B\r\nContent-Disposition: form-data; name=\"resourcesOwner\"\r\n\r\n\
               {\"ownerNamespace\":\"demo\",\"ownerLabels\":{\"app\":\"demo\"},\"ownerType\":\"Pod\"}\r\n--B--\r\n";
    let (almost, times) = ("\r\n--Bx", 1 << 20);
    let head = begin.find("--B").unwrap();
    let length = begin.len() - head + almost.len() * times + end.len();
    assert_costs_little(&begin.replace("LENGTH", &length.to_string()), almost, times, end, 200).await;
}
