//! Journey 1, as the README shows it, with the real curl.

use std::process::{Command, Output};

use cloakroom_testing::needs::{Need, trial};
use cloakroom_testing::process::Cloakroom;
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    let curl = || [Need::Program("curl")];
    vec![
        trial("curl_stages_a_file_and_gets_it_back", &curl(), stage_and_get),
        trial("curl_stages_from_a_pipe", &curl(), stage_from_a_pipe),
        trial("curl_resumes_a_broken_download", &curl(), resume),
        trial("curl_sees_why_it_was_refused", &curl(), refused),
    ]
}

const OWNER: &str = "namespace=demo&label=app=demo";

fn curl(args: &[&str]) -> Output {
    Command::new("curl").args(["--silent", "--show-error", "--noproxy", "*"]).args(args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

struct Ticket {
    url: String,
    authorization: String,
}

fn ticket(json: &str) -> Ticket {
    let ticket: serde_json::Value = serde_json::from_str(json).unwrap();
    let secret = ticket["resourceSecret"].as_str().unwrap();
    Ticket {
        url: ticket["url"].as_str().unwrap().to_owned(),
        authorization: format!("Authorization: Bearer {secret}"),
    }
}

/// Bytes that do not compress and do not repeat.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(next).flatten().take(length).collect()
}

fn stage_and_get() {
    let folder = tempfile::tempdir().unwrap();
    let (bundle, copy) = (folder.path().join("deps.tgz"), folder.path().join("out.tgz"));
    std::fs::write(&bundle, noise(20_000_000)).unwrap();
    let server = Cloakroom::serve(&folder.path().join("data"), &[]);
    let url = server.url(&format!("/api/v1/resources/?{OWNER}"));
    let ticket = ticket(&stdout(&curl(&["-T", bundle.to_str().unwrap(), &url])));
    stdout(&curl(&["--fail", "-H", &ticket.authorization, "-o", copy.to_str().unwrap(), &ticket.url]));
    assert_eq!(std::fs::read(&copy).unwrap(), std::fs::read(&bundle).unwrap());
    assert!(
        !server.log().contains(ticket.authorization.rsplit(' ').next().unwrap()),
        "the secret was logged"
    );
}

fn stage_from_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let server = Cloakroom::serve(folder.path(), &[]);
    let url = server.url(&format!("/api/v1/resources?{OWNER}"));
    let script = format!("printf 'from a pipe' | curl --silent --show-error --noproxy '*' -T - '{url}'");
    let json = stdout(&Command::new("sh").args(["-c", &script]).output().unwrap());
    let ticket = ticket(&json);
    assert_eq!(stdout(&curl(&["-H", &ticket.authorization, &ticket.url])), "from a pipe");
}

fn resume() {
    let folder = tempfile::tempdir().unwrap();
    let (bundle, copy) = (folder.path().join("deps.tgz"), folder.path().join("out.tgz"));
    let bytes = noise(5_000_000);
    std::fs::write(&bundle, &bytes).unwrap();
    std::fs::write(&copy, &bytes[..1_234_567]).unwrap();
    let server = Cloakroom::serve(&folder.path().join("data"), &[]);
    let url = server.url(&format!("/api/v1/resources/?{OWNER}"));
    let ticket = ticket(&stdout(&curl(&["-T", bundle.to_str().unwrap(), &url])));
    let copy = copy.to_str().unwrap();
    stdout(&curl(&["--fail", "-C", "-", "-H", &ticket.authorization, "-o", copy, &ticket.url]));
    assert_eq!(std::fs::read(copy).unwrap(), bytes);
}

fn refused() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("deps.tgz");
    std::fs::write(&bundle, noise(30_000_000)).unwrap();
    let server = Cloakroom::serve(&folder.path().join("data"), &["--max-resource-size", "1MiB"]);
    let bundle = bundle.to_str().unwrap();
    let url = server.url(&format!("/api/v1/resources/?{OWNER}"));
    // The second one does not wait for `100 Continue`, and sends while it is refused.
    for args in [&["-T", bundle, &url][..], &["-H", "Expect:", "-T", bundle, &url]] {
        let answer = String::from_utf8_lossy(&curl(args).stdout).into_owned();
        assert!(answer.contains("\"code\":\"too-large\""), "{answer}");
    }
}
