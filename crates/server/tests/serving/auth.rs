//! Who may upload.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cloakroom_core::protocol::{CHALLENGE, WRONG_SECRET};
use cloakroom_server::http::{TokenFile, TokenUse, UploadAuth};
use cloakroom_testing::logs;
use cloakroom_testing::wait::until;
use reqwest::Response;
use tempfile::TempDir;

use crate::support::TestApp;
use crate::support::app::{Options, problem};

const OLD: &str = "correct-horse-battery";
const NEW: &str = "staple-battery-horse";
const WRONG: &str = "wrong-horse-battery!";

struct Guarded {
    app: TestApp,
    tokens: PathBuf,
    _folder: TempDir,
}

/// A server with a token file.
async fn guarded(content: &str) -> Guarded {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, content).unwrap();
    let mut options = Options::default();
    options.settings.upload_auth = UploadAuth::Token(TokenFile::open(&tokens, TokenUse::Upload).unwrap());
    let app = TestApp::start_with(options).await;
    for token in [OLD, NEW, WRONG] {
        app.keep_secret(token);
    }
    Guarded { app, tokens, _folder: folder }
}

impl Guarded {
    async fn upload(&self, authorization: Option<&str>) -> Response {
        let request = authorization
            .iter()
            .fold(self.app.put("", "jars"), |request, value| request.header("authorization", *value));
        request.send().await.unwrap()
    }

    async fn accepts(&self, token: &str) -> bool {
        let response = self.upload(Some(&format!("Bearer {token}"))).await;
        match response.status().as_u16() {
            201 => self.app.ticket(response).await.size_bytes == 4,
            401 => false,
            other => panic!("an upload was answered with {other}"),
        }
    }

    /// Writes the file anew, with a time that no other version has.
    fn rotate(&self, content: &str, minutes: u64) {
        std::fs::write(&self.tokens, content).unwrap();
        let file = std::fs::File::options().write(true).open(&self.tokens).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_mins(minutes)).unwrap();
    }

    fn said(&self, what: &str) -> bool {
        self.lines(what) > 0
    }

    fn lines(&self, what: &str) -> usize {
        let path = self.tokens.display().to_string();
        logs::lines_with(what).iter().filter(|line| line.contains(&path)).count()
    }
}

#[tokio::test]
async fn behind_a_proxy_that_keeps_one_header_another_one_takes_its_place() {
    let server = guarded(OLD).await;
    let with = |request: reqwest::RequestBuilder, usual: Option<&str>, proxied: &str| {
        let request = request.header("x-cloakroom-authorization", proxied);
        usual.iter().fold(request, |request, usual| request.header("authorization", *usual)).send()
    };
    let bearer = format!("Bearer {OLD}");
    for (usual, proxied) in [(None, &*bearer), (None, OLD), (Some(OLD), &*bearer)] {
        let staged = with(server.app.put("", "jars"), usual, proxied).await.unwrap();
        let ticket = server.app.ticket(staged).await;
        let secret = format!("Bearer {}", ticket.resource_secret);
        let fetched = with(server.app.client.get(&ticket.url), None, &secret).await.unwrap();
        assert_eq!(fetched.text().await.unwrap(), "jars");
        let old = ticket.url.replace("/v1/", "/v0/");
        let fetched = with(server.app.client.get(&old), None, &ticket.resource_secret).await.unwrap();
        assert_eq!(fetched.text().await.unwrap(), "jars");
        let both = with(server.app.client.get(&ticket.url), Some(&bearer), &secret).await.unwrap();
        let refused = problem(both).await;
        assert_eq!((refused.status, refused.code.as_str()), (400, "invalid-header"));
    }
    let both = with(server.app.put("", "jars"), Some(WRONG), &bearer).await.unwrap();
    let refused = problem(both).await;
    assert!(refused.detail.contains("X-Cloakroom-Authorization"), "{}", refused.detail);
    let wrong = with(server.app.put("", "jars"), None, WRONG).await.unwrap();
    assert_eq!(wrong.status(), 401);
}

#[tokio::test]
async fn an_upload_without_the_token_is_refused_before_its_body() {
    let guarded = guarded(&format!("{OLD}\n")).await;
    let short = &OLD[1..];
    let (long, upper) = (format!("Bearer {OLD}x"), format!("Bearer {}", OLD.to_uppercase()));
    for (authorization, says) in [
        (None, "need its upload token"),
        (Some(""), "need its upload token"),
        (Some("Bearer"), "need its upload token"),
        (Some("Bearer wrong-horse-battery!"), "not an upload token of this server"),
        (Some(short), "not an upload token"),
        (Some(&long), "not an upload token"),
        (Some(&upper), "not an upload token"),
        (Some("Basic Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5"), "not an upload token"),
    ] {
        let response = guarded.upload(authorization).await;
        let challenge = if says.starts_with("need") { CHALLENGE } else { WRONG_SECRET };
        assert_eq!(response.headers()["www-authenticate"], challenge);
        let refused = problem(response).await;
        assert_eq!((refused.status, refused.code.as_str()), (401, "unauthorized"), "{authorization:?}");
        assert!(refused.detail.contains(says), "{authorization:?}: {}", refused.detail);
        guarded.app.assert_nothing_kept().await;
    }
}

#[tokio::test]
async fn every_way_in_needs_the_token_and_no_way_out_does() {
    let guarded = guarded(OLD).await;
    let app = &guarded.app;
    for (method, path) in [
        (reqwest::Method::PUT, "/api/v1/resources/deps.tgz"),
        (reqwest::Method::PUT, "/api/v1/resources"),
        (reqwest::Method::PUT, "/api/v1/resources/"),
        (reqwest::Method::POST, "/api/v1/resources"),
        (reqwest::Method::POST, "/api/v1/resources/"),
        (reqwest::Method::POST, "/api/v0/resources"),
        (reqwest::Method::POST, "/api/v0/resources/"),
    ] {
        let request =
            app.client.request(method.clone(), app.url(&format!("{path}?namespace=demo&label=app=x")));
        let refused = problem(request.body("jars").send().await.unwrap()).await;
        assert_eq!(refused.status, 401, "{method} {path}");
        app.assert_nothing_kept().await;
    }
    let ticket = app.ticket(guarded.upload(Some(OLD)).await).await;
    assert_eq!(app.download(&ticket).send().await.unwrap().text().await.unwrap(), "jars");
    let with_token = app.client.get(&ticket.url).bearer_auth(OLD).send().await.unwrap();
    assert_eq!(with_token.status(), 404, "the upload token opens no bundle");
    assert_eq!(app.delete(&ticket).send().await.unwrap().status(), 204);
    for path in ["/healthz", "/readyz", "/api/openapi.json", "/api/v0/ping"] {
        assert_eq!(app.get(path).send().await.unwrap().status(), 200, "{path}");
    }
}

#[tokio::test]
async fn any_line_of_the_file_is_a_token() {
    let guarded = guarded(&format!("{OLD}\r\n\n  {NEW}  \n")).await;
    for (token, accepted) in [(OLD, true), (NEW, true), (WRONG, false)] {
        assert_eq!(guarded.accepts(token).await, accepted, "{token}");
    }
    let joined = format!("{OLD} {NEW}");
    assert!(!guarded.accepts(&joined).await);
    // As editors of Windows write it, and with a tab.
    let guarded = self::guarded(&format!("\u{feff}{OLD}\r\nname=ci\t{NEW}\r\n")).await;
    assert!(guarded.accepts(OLD).await && guarded.accepts(NEW).await);
}

#[tokio::test]
async fn a_file_that_changes_is_read_again() {
    let guarded = guarded(OLD).await;
    assert!(guarded.accepts(OLD).await && !guarded.accepts(NEW).await);
    guarded.rotate(NEW, 1);
    until("the new token is known", async || guarded.accepts(NEW).await).await;
    assert!(!guarded.accepts(OLD).await);
    assert!(guarded.said("read the upload tokens again"));
    // As Kubernetes changes a mounted secret: another file takes the name.
    let other = guarded.tokens.with_extension("new");
    std::fs::write(&other, format!("{OLD}\n{NEW}\n")).unwrap();
    std::fs::rename(&other, &guarded.tokens).unwrap();
    until("the old token is back", async || guarded.accepts(OLD).await).await;
    assert!(guarded.accepts(NEW).await);
}

#[tokio::test]
async fn a_file_that_cannot_be_used_any_more_leaves_the_tokens_as_they_were() {
    let guarded = guarded(OLD).await;
    for (minutes, content) in [(1, Some("")), (2, Some("short\n")), (3, Some("\u{0}")), (4, None)] {
        match content {
            Some(content) => guarded.rotate(content, minutes),
            None => std::fs::remove_file(&guarded.tokens).unwrap(),
        }
        let looks = guarded.lines("the upload tokens stay as they were");
        until("the file was looked at", async || {
            assert!(guarded.accepts(OLD).await, "{content:?}");
            guarded.lines("the upload tokens stay as they were") > looks
        })
        .await;
        assert!(!guarded.accepts("short").await && !guarded.accepts(NEW).await, "{content:?}");
    }
    guarded.rotate(NEW, 5);
    until("the new token is known", async || guarded.accepts(NEW).await).await;
    assert!(!guarded.accepts(OLD).await);
}

// Invariant: a hanging file system with token files does not delay requests.
#[tokio::test]
async fn a_file_that_cannot_be_read_to_its_end_keeps_no_request_waiting() {
    let guarded = guarded(OLD).await;
    std::fs::remove_file(&guarded.tokens).unwrap();
    // Its reader waits for a writer, as on a file system that does not answer.
    assert!(std::process::Command::new("mkfifo").arg(&guarded.tokens).status().unwrap().success());
    let opened = || {
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        std::fs::File::options().write(true).custom_flags(flags).open(&guarded.tokens).ok()
    };
    let writer = std::cell::RefCell::new(None);
    until("the file is being read", async || {
        let accepted = tokio::time::timeout(Duration::from_secs(5), guarded.accepts(OLD)).await;
        assert!(accepted.expect("a request waits for the file"));
        *writer.borrow_mut() = opened();
        writer.borrow().is_some()
    })
    .await;
    // The next reading finds an ordinary file, which does not wait.
    std::fs::remove_file(&guarded.tokens).unwrap();
    std::fs::write(&guarded.tokens, NEW).unwrap();
    // With a content, so that the thread ends.
    writer.take().unwrap().write_all(NEW.as_bytes()).unwrap();
    until("the new token is known", async || guarded.accepts(NEW).await).await;
}

fn refused(path: &Path) -> String {
    cloakroom_core::text::chain(&TokenFile::open(path, TokenUse::Upload).unwrap_err())
}

#[test]
fn a_token_file_that_cannot_be_used_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    let name = path.display().to_string();
    let missing = refused(&path);
    assert!(
        missing.starts_with(&format!("cannot read the upload token file {name}: No such file")),
        "{missing}"
    );
    for (content, says) in [
        (
            "",
            format!("the upload token file {name} is empty: put a token of at least 16 characters on a line"),
        ),
        (" \n\n", format!("the upload token file {name} is empty")),
        (
            "long-enough-to-pass\nname=not-so-this\n",
            format!(
                "{name} cannot be understood in line 2: a line that begins with “name=” is read as name=NAME TOKEN"
            ),
        ),
        (
            "name=alice not-so-this-token\nname=bob not-so-this-token\n",
            format!("{name} has in line 2 the upload token of an earlier line, with another name"),
        ),
        ("name=alice not-so-this\n", format!("{name} has a token of less than 16 characters in line 1")),
        (
            "long-enough-to-pass\n\nnot-so-this\n",
            format!("{name} has a token of less than 16 characters in line 3"),
        ),
        (
            "not-so-this-wörd-or-that\n",
            format!("{name} has a token in line 1 that no client can send: it must be printable ASCII"),
        ),
        (&"not-so-this-".repeat(1400), format!("{name} has a token in line 1 that no client can send")),
    ] {
        std::fs::write(&path, content).unwrap();
        let refused = refused(&path);
        assert!(refused.contains(&says), "{refused}");
        assert!(!refused.contains("not-so-this"), "{refused}");
    }
}
