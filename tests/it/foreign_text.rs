//! Text of a server, of what stands in between, and of bundles: how the commands show it.

use std::path::PathBuf;
use std::process::{Command, Output};

use cloakroom_core::protocol::digest;
use cloakroom_testing::bundles::{header, octal, tgz, tgz_with_raw_header};
use cloakroom_testing::process::{command, stderr};
use cloakroom_testing::scripted::{Answer, Reply, Request, Scripted};
use cloakroom_testing::workspace::Workspace;
use sha2::{Digest as _, Sha256};

const ID: &str = "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1";
const SECRET: &str = "s3cret-of-the-ticket-or-the-token";
/// Turned round, an escape sequence, a line and a paragraph of its own, a C1 control, an invisible tag.
const NASTY: &str =
    "\u{202e}txet\u{202c} \u{1b}]0;x\u{7} \u{2028}error: all is well\u{2029} \u{9b}31m \u{e0041}";

/// Counted here by hand, so that a hole in the filter is seen.
const COMMANDS: &[char] =
    &['\u{202e}', '\u{202c}', '\u{1b}', '\u{7}', '\u{2028}', '\u{2029}', '\u{9b}', '\u{e0041}'];

struct Fetcher {
    folder: Workspace,
}

impl Fetcher {
    fn new() -> Self {
        let folder = Workspace::new();
        let fetcher = Self { folder };
        std::fs::write(fetcher.path("secret"), SECRET).unwrap();
        std::fs::write(fetcher.path("last-words"), "").unwrap();
        std::fs::write(fetcher.path("app.jar"), "app").unwrap();
        fetcher
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    fn fetch(&self, server: &Scripted) -> Command {
        let mut command = command();
        command.args(["fetch", "--server", &server.url(), "--id", ID, "--secret-file"]);
        command.arg(self.path("secret")).arg("--to").arg(self.path("jars"));
        command.arg("--termination-log").arg(self.path("last-words"));
        command
    }

    /// What was said on stderr, without the ends of its lines, and in the termination log.
    async fn said(&self, mut command: Command) -> (Output, String) {
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let last_words = std::fs::read_to_string(self.path("last-words")).unwrap();
        let said = stderr(&output).replace('\n', " ") + &last_words;
        assert!(!said.contains(COMMANDS), "{said:?}");
        assert!(!said.contains(SECRET) && !said.contains("s1gnature"), "{said}");
        (output, said)
    }
}

/// As a proxy answers that shows what it could not pass on.
fn echo(request: &Request) -> String {
    format!("{NASTY} {} {}", request.target, request.header("authorization").unwrap_or_default())
}

// Invariant: text of servers, proxies and bundles is shown without secrets and without terminal control characters.
#[tokio::test(flavor = "multi_thread")]
async fn a_proxys_echo_shows_no_ticket_and_no_terminal_commands_anywhere() {
    let plain = Scripted::start(|_, request| {
        Answer::new(403, echo(request)).header("content-type", "text/plain").into()
    })
    .await;
    let problem =
        Scripted::start(|_, request| Answer::problem(403, "forbidden", &echo(request)).into()).await;
    let page = Scripted::start(|_, request| {
        Answer::new(403, format!("<title>{}</title>", echo(request)))
            .header("content-type", "text/html")
            .into()
    })
    .await;
    for server in [plain, problem, page] {
        let fetcher = Fetcher::new();
        let (output, said) = fetcher.said(fetcher.fetch(&server)).await;
        assert_eq!(output.status.code(), Some(1));
        assert!(said.contains("Bearer [hidden]") && said.contains("txet"), "{said}");

        let mut stage = command();
        stage.args([
            "stage",
            "--server",
            &server.url(),
            "--namespace",
            "ns",
            "--label",
            "a=b",
            "--token-file",
        ]);
        stage.arg(fetcher.path("secret")).arg(fetcher.path("app.jar"));
        let (output, said) = fetcher.said(stage).await;
        assert_eq!(output.status.code(), Some(1));
        assert!(said.contains("Bearer [hidden]"), "{said}");

        let mut ls = command();
        ls.args(["ls", "--admin-url", &server.url(), "--admin-token-file"]).arg(fetcher.path("secret"));
        let (output, said) = fetcher.said(ls).await;
        assert_eq!(output.status.code(), Some(1));
        assert!(said.contains("Bearer [hidden]"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_signature_of_an_address_is_not_shown_where_a_server_echoes_it() {
    let server = Scripted::start(|_, request| {
        Answer::new(403, echo(request)).header("content-type", "text/plain").into()
    })
    .await;
    let fetcher = Fetcher::new();
    let properties = format!(
        "spark.kubernetes.initcontainer.remoteJars={}/a.jar?sig=s1gnature\n\
         spark.kubernetes.mountdependencies.jarsDownloadDir={}\n",
        server.url(),
        fetcher.path("jars").display()
    );
    std::fs::write(fetcher.path("init.properties"), properties).unwrap();
    let mut fetch = command();
    fetch.arg("fetch").arg(fetcher.path("init.properties"));
    fetch.arg("--termination-log").arg(fetcher.path("last-words"));
    let (output, said) = fetcher.said(fetch).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("/a.jar?[hidden]"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_in_a_bundle_are_shown_without_what_turns_text_round() {
    let name = "\u{202e}raj.evil";
    let raw = tgz_with_raw_header(&header(format!("../{name}").as_bytes(), b'0', octal(0)), b"");
    for bundle in [raw, tgz(&[(name, b"x")])] {
        let fetcher = Fetcher::new();
        std::fs::create_dir(fetcher.path("jars")).unwrap();
        std::fs::write(fetcher.path("jars").join(name), "their own").unwrap();
        let server = Scripted::start(move |_, _| Answer::new(200, bundle.clone()).into()).await;
        let (output, said) = fetcher.said(fetcher.fetch(&server)).await;
        assert_eq!(output.status.code(), Some(1));
        assert!(said.contains("raj.evil"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ticket_on_stdout_is_the_servers_without_terminal_commands() {
    let take = || {
        Reply::TakeBody(Box::new(|body| {
            let ticket = serde_json::json!({
                "resourceId": ID, "resourceSecret": "t1cket", "sizeBytes": body.len(),
                "sha256": digest::to_hex(&Sha256::digest(body).into()), "createdAt": "2026-11-21T00:00:00Z",
                "expiresAt": "2026-11-21T00:30:00Z", "url": "http://h/x", "later": NASTY,
            });
            Answer::new(201, ticket.to_string()).header("content-type", "application/json")
        }))
    };
    let (fetcher, server) = (Fetcher::new(), Scripted::start(move |_, _| take()).await);
    let mut stage = command();
    stage.args(["stage", "--server", &server.url(), "--namespace", "ns", "--label", "a=b"]);
    stage.arg(fetcher.path("app.jar"));
    let (output, said) = fetcher.said(stage).await;
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(!shown.trim_end().contains(COMMANDS), "{shown:?}");
    let ticket: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert!(ticket["later"].as_str().unwrap().starts_with("\u{202e}txet"), "{ticket}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_for_programs_escape_terminal_commands_and_keep_the_values() {
    let server = Scripted::start(|_, request| {
        let body = if request.target.ends_with("/status") {
            serde_json::json!({
                "version": "1", "now": "2026-01-01T12:03:00Z", "ownersAsked": false, "storedBytes": 0, "watches": [],
                "limits": {"maxResourceSize": 1, "minFreeSpace": 0, "maxConcurrentUploads": 1, "maxConcurrentDownloads": 1},
                "uploadsInFlight": 0, "downloadsInFlight": 0,
            })
        } else {
            serde_json::json!({"now": "2026-01-01T12:03:00Z", "resources": [{
                "resourceId": ID, "sizeBytes": 4, "createdAt": "2026-01-01T12:00:00Z", "uploadedBy": NASTY,
                "owner": {"kind": "Pod", "namespace": "ns", "labels": {NASTY: "x"}},
            }]})
        };
        Answer::new(200, body.to_string()).header("content-type", "application/json").into()
    })
    .await;
    let fetcher = Fetcher::new();
    let mut ls = command();
    ls.args(["ls", "-o", "json", "--admin-url", &server.url(), "--admin-token-file"]);
    let (output, said) = fetcher
        .said({
            ls.arg(fetcher.path("secret"));
            ls
        })
        .await;
    assert!(output.status.success(), "{said}");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(!shown.contains(COMMANDS), "{shown:?}");
    let list: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(list["resources"][0]["uploadedBy"], NASTY, "{shown}");
    assert_eq!(list["resources"][0]["owner"]["labels"][NASTY], "x", "{shown}");
}
