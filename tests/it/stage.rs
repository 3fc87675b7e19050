//! `cloakroom stage`, the real binary, against servers that refuse, break and lie.

mod lengths;
mod lost_answers;
mod tickets;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use async_trait::async_trait;
use cloakroom_core::resource::{Owner, OwnerKind};
use cloakroom_testing::process::{command, read_until, stderr};
use cloakroom_testing::scripted::{Answer, Reply, Scripted, closed_port};
use cloakroom_testing::workspace::Workspace;
use cloakroom_transfer::bundle::{Disk, PackPlan};
use cloakroom_transfer::client::{
    Credential, Failure, HttpClient, RetryNotice, RetryPolicy, ServerAddress, StageError, StageObserver,
    StageRequest, Timeouts, UploadTokens,
};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

const SECRET: &str = "s3cret-of-the-ticket";

/// A submitting machine with one file.
struct Stager {
    folder: Workspace,
}

impl Stager {
    fn with_file(size_bytes: usize) -> Self {
        let folder = Workspace::new();
        let content: Vec<u8> = (0..size_bytes).map(|i| (i * 31 % 251) as u8).collect();
        folder.write("app.jar", content);
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    fn stage(&self, server: &str) -> Command {
        let mut command = command();
        command.args(["stage", "--server", server, "--namespace", "demo", "--label", "app=demo"]);
        command.arg(self.path("app.jar"));
        command
    }
}

async fn output(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn ticket(size_bytes: u64, sha256: &str) -> Answer {
    ticket_of("4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1", size_bytes, sha256)
}

fn ticket_of(id: &str, size_bytes: u64, sha256: &str) -> Answer {
    let body = serde_json::json!({
        "resourceId": id, "resourceSecret": SECRET, "sizeBytes": size_bytes,
        "sha256": sha256, "createdAt": "2026-11-21T00:00:00Z", "expiresAt": "2026-11-21T00:30:00Z", "url": "http://h/x",
        "somethingNew": true
    });
    Answer::new(201, body.to_string()).header("content-type", "application/json")
}

/// Takes a bundle and gives the right ticket for it.
pub fn take() -> Reply {
    Reply::TakeBody(Box::new(ticket_for))
}

fn ticket_for(body: &[u8]) -> Answer {
    use sha2::Digest;
    let sha256 = cloakroom_core::protocol::digest::to_hex(&sha2::Sha256::digest(body).into());
    ticket(body.len() as u64, &sha256)
}

// Invariant: an id in a ticket is checked before it becomes a path.
#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_whose_id_would_lead_to_another_path_is_refused() {
    let stager = Stager::with_file(100);
    for id in ["../../admin/clusters/x", "x", "4C1A3C44-54D9-4A1F-9A6E-0B6F6FD7E7B1", ""] {
        // The size is another one, so that the resource would be released by its id.
        let answer = ticket_of(id, 1, "");
        let server = Scripted::start(move |_, _| {
            Reply::TakeBody(Box::new({
                let answer = answer.clone();
                move |_: &[u8]| answer.clone()
            }))
        })
        .await;
        let output = output(stager.stage(&server.url())).await;
        let said = stderr(&output);
        let expected = "the resourceId of the answer is not an id, so this is not a cloakroom server";
        assert!(said.contains(expected) && !said.contains(SECRET), "{id}: {said}");
        assert_eq!((output.status.code(), server.requests().len()), (Some(1), 1), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_too_large_for_the_server_is_refused_before_it_is_sent() {
    const QUESTION: &str = "GET /api/v1";
    const INFO: &str = r#"{"version": "9.9.9", "maxResourceSize": 67108864}"#;
    for (name, info, is_refused, requests) in [
        ("app.jar", (200, INFO), true, &[QUESTION][..]),
        // It may become as small as this server wants.
        ("app.csv", (200, INFO), false, &["POST /api/v1/resources"]),
        // Of an older server, and of another one.
        ("app.jar", (200, r#"{"version": "0.1.0"}"#), false, &[QUESTION, "POST /api/v1/resources"]),
        ("app.jar", (404, "nothing here"), false, &[QUESTION, "POST /api/v1/resources"]),
    ] {
        let stager = Stager { folder: Workspace::new() };
        std::fs::File::create(stager.path(name)).unwrap().set_len(65 << 20).unwrap();
        let server = Scripted::start(move |_, request| match request.method.as_str() {
            "GET" => Answer::new(info.0, info.1).header("content-type", "application/json").into(),
            _ => take(),
        })
        .await;
        let mut command = command();
        command.args(["stage", "--server", &server.url(), "--namespace", "demo", "--label", "app=demo"]);
        command.arg(stager.path(name));
        let output = output(command).await;
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(i32::from(is_refused)), "{name}, {info:?}: {said}");
        let is_told =
            said.contains("takes: at most 64 MiB (--max-resource-size)") && said.contains("have 65 MiB;");
        assert_eq!(is_told, is_refused, "{said}");
        let asked = server.requests();
        let asked: Vec<String> = asked
            .iter()
            .map(|request| format!("{} {}", request.method, request.target.split('?').next().unwrap()))
            .collect();
        assert_eq!(asked, requests);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_comes_while_the_body_is_sent_is_what_the_user_sees() {
    for (status, code) in [(413, "too-large"), (401, "unauthorized"), (507, "insufficient-storage")] {
        let stager = Stager::with_file(64 << 20);
        let server =
            Scripted::start(move |_, _| Answer::problem(status, code, "the server says no").into()).await;
        let output = output(stager.stage(&server.url())).await;
        assert_eq!(output.status.code(), Some(1));
        let expected =
            format!("error: could not stage to {}: the server says no ({status} {code})", server.url());
        assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_pass_is_tried_again_and_announced() {
    let stager = Stager::with_file(8 << 20);
    let server = Scripted::start(|number, _| match number {
        0 => Answer::problem(503, "overloaded", "too busy").header("retry-after", "1").into(),
        1 => Reply::BreakBody(2 << 20),
        2 => Answer::problem(408, "too-slow", "the upload was too slow").into(),
        _ => take(),
    })
    .await;
    let output = output(stager.stage(&server.url())).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told: Vec<String> = stderr(&output).lines().map(str::to_owned).collect();
    let says = format!(
        "the staging server at {} says: too busy (503 overloaded); trying again for up to 2m",
        server.url()
    );
    assert_eq!((told.len(), &told[1]), (4, &says), "once: {told:?}");
    let elsewhere = format!("warning: the ticket's url is http://h/x, and {} was asked", server.url());
    assert!(told[3].starts_with(&elsewhere), "{told:?}");
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_that_are_counted_are_told_one_by_one() {
    let stager = Stager::with_file(8 << 20);
    let server = Scripted::start(|number, _| match number {
        0 => Answer::problem(503, "overloaded", "too busy").header("retry-after", "1").into(),
        1 => Reply::BreakBody(2 << 20),
        _ => take(),
    })
    .await;
    let mut command = stager.stage(&server.url());
    command.args(["--attempts", "3"]);
    let output = output(command).await;
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("too busy (503 overloaded); attempt 2 of 3 in 1s\n"), "{said}");
    assert!(said.contains("the connection broke after ") && said.contains(" of about 8 MiB ("), "{said}");
    assert!(said.contains("; attempt 3 of 3 in "), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_named_after_the_last_attempt() {
    let (stager, port) = (Stager::with_file(1), closed_port());
    let mut command = stager.stage(&format!("http://127.0.0.1:{port}"));
    command.args(["--attempts", "2"]);
    let output = output(command).await;
    assert_eq!(output.status.code(), Some(1));
    let expected = format!(
        "error: could not stage to http://127.0.0.1:{port}: connection refused (2 attempts); \
         check that it is running and reachable from here\n"
    );
    assert!(stderr(&output).ends_with(&expected), "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_for_other_bytes_is_an_error() {
    let stager = Stager::with_file(1000);
    let server = Scripted::start(|_, request| match request.method.as_str() {
        "DELETE" => Answer::new(204, "").into(),
        _ => Reply::TakeBody(Box::new(|_| ticket(5, &"0".repeat(64)))),
    })
    .await;
    let output = output(stager.stage(&server.url())).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(stderr(&output).contains("stored 5 bytes with SHA-256 0000"), "{}", stderr(&output));
    let asked: Vec<String> = server.requests().into_iter().map(|request| request.method).collect();
    assert_eq!(asked, ["POST", "DELETE"], "what nobody asked for is released");
}

#[tokio::test(flavor = "multi_thread")]
async fn something_that_is_no_cloakroom_server_is_recognised() {
    let stager = Stager::with_file(1000);
    let server =
        Scripted::start(|_, _| Answer::new(200, "<html>").header("content-type", "text/html").into()).await;
    let output = output(stager.stage(&server.url())).await;
    assert!(stderr(&output).contains("this is not a cloakroom server"), "{}", stderr(&output));
}

// Invariant: a token and a ticket are sent only to the server that they are for.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_only_sent_where_nobody_can_read_it() {
    let stager = Stager::with_file(1000);
    std::fs::write(stager.path("token"), "t0ken\n").unwrap();
    let server = Scripted::start(|_, _| take()).await;
    let mut command = stager.stage("http://staging.example:10000");
    command.env("HTTP_PROXY", server.url()).arg("--token-file").arg(stager.path("token"));
    let refused = output(command).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused)
            .contains("the upload token would travel unencrypted to http://staging.example:10000"),
        "{}",
        stderr(&refused)
    );
    assert!(!stderr(&refused).contains("staging 1 file"), "{}", stderr(&refused));
    assert!(server.requests().is_empty());

    let mut command = stager.stage(&server.url());
    command.env("CLOAKROOM_UPLOAD_TOKEN_FILE", stager.path("token"));
    let accepted = output(command).await;
    assert_eq!(accepted.status.code(), Some(0), "{}", stderr(&accepted));
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer t0ken"));
    assert!(!stderr(&accepted).contains("t0ken"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_owner_or_a_missing_file_is_refused_before_anything_is_sent() {
    let stager = Stager::with_file(1000);
    let server = Scripted::start(|_, _| take()).await;
    let mut bad_owner = stager.stage(&server.url());
    bad_owner.args(["--label", "b@d=x"]);
    assert!(stderr(&output(bad_owner).await).contains("label key “b@d”"));
    let mut missing = stager.stage(&server.url());
    missing.arg(stager.path("nothing.jar"));
    assert!(stderr(&output(missing).await).contains("nothing.jar: no such file"));
    assert!(server.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_somebody_is_to_a_server_is_not_shown_where_its_address_is_refused() {
    let stager = Stager::with_file(1000);
    let refused = output(stager.stage("http://me:hunter2@127.0.0.1:1/")).await;
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said.contains("'http://…@127.0.0.1:1/' for '--server <URI>'"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_an_answer_is_told() {
    let stager = Stager::with_file(1000);
    let server = Scripted::start(|_, _| Reply::Hang).await;
    let mut child = stager.stage(&server.url()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = child.stderr.take().unwrap();
    let waiting = format!("waiting for the answer of {}\n", server.url());
    let told = tokio::task::spawn_blocking(move || read_until(&mut said, &waiting)).await.unwrap();
    assert!(told.starts_with("staging 1 file, "), "{told}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Tells nobody.
struct Silent;

fn request(stager: &Stager, server: &str) -> StageRequest {
    let kind = OwnerKind::parse("Pod").unwrap();
    StageRequest {
        server: ServerAddress::parse(server).unwrap(),
        owner: Owner::new(kind, "demo", vec![("app".to_owned(), "demo".to_owned())], None).unwrap(),
        ttl: None,
        unused_timeout: None,
        token: None,
        tokens: None,
        plan: Arc::new(PackPlan::new(&[stager.path("app.jar")]).unwrap()),
        sources: Arc::new(Disk),
        before: None,
    }
}

impl StageObserver for Silent {
    fn packed(&self, _: u64) {}
    fn retrying(&self, _: Option<&RetryNotice>) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_it_with_130() {
    let stager = Stager::with_file(1000);
    let server = Scripted::start(|_, _| Reply::Hang).await;
    let mut child = stager.stage(&server.url()).stderr(Stdio::null()).spawn().unwrap();
    server.wait_for_requests(1).await;
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let status = tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
    assert_eq!(status.code(), Some(130));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_is_complete_when_ctrl_c_comes_is_released() {
    let stager = Stager::with_file(1000);
    let (has_all, may_answer) = (CancellationToken::new(), CancellationToken::new());
    let (all, answer) = (has_all.clone(), may_answer.clone());
    let server = Scripted::start(move |_, request| {
        if request.method == "DELETE" {
            return Answer::new(204, "").into();
        }
        let (all, answer) = (all.clone(), answer.clone());
        Reply::TakeBody(Box::new(move |body| {
            all.cancel();
            tokio::task::block_in_place(|| Handle::current().block_on(answer.cancelled()));
            ticket_for(body)
        }))
    })
    .await;
    let mut command = stager.stage(&server.url());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    has_all.cancelled().await;
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ended = tokio::task::spawn_blocking(move || {
        let mut stderr = child.stderr.take().unwrap();
        read_until(&mut stderr, "\nstopping: what is under way has to end, and is taken back\n");
        may_answer.cancel();
        let said = read_until(&mut stderr, "\n");
        (child.wait_with_output().unwrap(), said)
    });
    let (output, said) = ended.await.unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(130), Vec::new()), "{said}");
    assert_eq!(said, "stopped: what was staged is released again\n");
    assert_eq!(server.requests().last().unwrap().method, "DELETE");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_may_be_there_twice_is_told() {
    let stager = Stager::with_file(1000);
    let server = Scripted::start(|number, _| match number {
        // A gateway that lost the answer.
        0 => Reply::TakeBody(Box::new(|_| Answer::new(502, ""))),
        _ => take(),
    })
    .await;
    for is_first in [true, false] {
        let output = output(stager.stage(&server.url())).await;
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        let told = format!("warning: {} perhaps has it a second time, because ", server.url());
        assert_eq!(said.lines().last().unwrap().starts_with(&told), is_first, "{said}");
    }
}

/// Tokens of a source that never says whether there is another one.
#[derive(Debug)]
struct Undecided;

#[async_trait]
impl UploadTokens for Undecided {
    async fn credential(&self) -> Result<Option<Credential>, Failure> {
        Ok(None)
    }

    async fn taken(&self) {}

    async fn refused(&self) -> bool {
        std::future::pending().await
    }

    async fn about_refused(&self) -> Option<String> {
        None
    }
}

#[tokio::test]
async fn a_stop_while_another_token_is_looked_for_ends_the_upload() {
    let stager = Stager::with_file(10);
    let server = Scripted::start(|_, _| Answer::problem(401, "unauthorized", "no token").into()).await;
    let (stop, http) = (CancellationToken::new(), HttpClient::new(&[], Timeouts::default()).unwrap());
    let request = StageRequest { tokens: Some(Arc::new(Undecided)), ..request(&stager, &server.url()) };
    let staging = http.stage(&stop, &request, RetryPolicy::default(), Arc::new(Silent));
    let stopping = async {
        server.wait_for_requests(1).await;
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(staging, stopping);
    assert!(matches!(ended, Err(StageError::Stopped { may_be_kept: false, .. })), "{ended:?}");
}
