//! Forms of kubespark's protocol whose content is full of what looks like a delimiter, beside the same number of zeros.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::spread::{Spread, ratio};

const CONTENT_BYTES: usize = 40_000_000;
const ROUNDS: usize = 7;
const LONGEST_BOUNDARY: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// For each pattern: its name, the text that fills the content, and the boundary of the form.
const PATTERNS: [(&str, &str, &str); 7] = [
    ("zeros", "\0", "B"),
    ("delimiters and a letter", "\r\n--Bx", "B"),
    ("closing delimiters without their last dash", "\r\n--B-x", "B"),
    ("delimiters without the boundary", "\r\n--x", "B"),
    ("carriage returns", "\r", "B"),
    ("line ends", "\r\n", "B"),
    (
        "the longest delimiter with another last letter",
        "\r\n--bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbx",
        LONGEST_BOUNDARY,
    ),
];

pub fn run() {
    let folder = tempfile::tempdir().unwrap();
    let server = Cloakroom::serve(folder.path(), &["--min-free-space", "0"]);
    let mut spreads: Vec<Spread> = PATTERNS.iter().map(|_| Spread::default()).collect();
    let forms: Vec<Vec<u8>> = PATTERNS.iter().map(|(_, pattern, boundary)| form(pattern, boundary)).collect();
    for _ in 0..ROUNDS {
        for ((spread, form), (_, _, boundary)) in spreads.iter_mut().zip(&forms).zip(PATTERNS) {
            spread.add(upload(&server, form, boundary));
        }
    }
    for ((name, _, _), spread) in PATTERNS.iter().zip(&spreads) {
        println!("40 MB of {name}: {spread}, {:.2} times zeros", ratio(&spreads[0], spread));
    }
}

fn form(pattern: &str, boundary: &str) -> Vec<u8> {
    let part = |name: &str| {
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n").into_bytes()
    };
    let owner = r#"{"ownerNamespace":"demo","ownerLabels":{"app":"demo"},"ownerType":"Pod"}"#;
    let end = format!("\r\n--{boundary}--\r\n");
    let content = pattern.as_bytes().repeat(CONTENT_BYTES / pattern.len());
    let parts =
        [part("resources"), content, b"\r\n".to_vec(), part("resourcesOwner"), owner.into(), end.into()];
    parts.concat()
}

fn upload(server: &Cloakroom, form: &[u8], boundary: &str) -> Duration {
    let address = server.url("").trim_start_matches("http://").to_owned();
    let mut socket = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /api/v0/resources HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Content-Type: multipart/form-data; boundary={boundary}\r\nContent-Length: {}\r\n\r\n",
        form.len()
    );
    let began = Instant::now();
    socket.write_all(head.as_bytes()).unwrap();
    socket.write_all(form).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    began.elapsed()
}
