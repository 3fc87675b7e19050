//! Credential plugins: what they give, and what happens if they fail, never end, or give what the API server rejects.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use cloakroom_cluster::{ApiFailure, ApiServer, ServicePort, Timeouts, Unanswered, within};
use cloakroom_testing::scripted::Scripted;
use cloakroom_testing::tls::server_config;
use cloakroom_testing::wait::{until, until_true};
use http_body_util::{BodyExt as _, Full};
use hyper::http::{Request, StatusCode};

use super::folder::{CredentialFolder, answer, quick, version};
use super::kubeconfig::{access, config, in_clear, last_token};
use super::refused;

/// A plugin that notes each of its runs in the file `runs`, beside a kubeconfig for a server.
fn plugin(folder: &CredentialFolder, cluster: &str, script: &str) {
    let script = format!("#!/bin/sh\ncd '{}'\necho run >>runs\n{script}\n", folder.path("").display());
    let path = folder.write("kube/plugin", &script);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let user = "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin}";
    folder.write("kube/config", &config(cluster, user));
}

/// Prints a credential, numbered by the run.
fn prints(status: &str) -> String {
    format!(
        "echo '{{\"kind\": \"ExecCredential\", \"status\": {{{status}}}}}' | sed \"s/NUMBER/$(wc -l <runs)/\""
    )
}

fn runs(folder: &CredentialFolder) -> usize {
    std::fs::read_to_string(folder.path("runs")).map_or(0, |runs| runs.lines().count())
}

fn of(server: &Scripted) -> String {
    format!("server: '{}'", server.url())
}

/// The failure of a call, and that no request was sent for it.
async fn no_credential(folder: &CredentialFolder, timeouts: Timeouts) -> String {
    let server = ApiServer::connect_with(&access(folder, None), timeouts).unwrap();
    let failure = version(&server).await.unwrap_err();
    assert!(matches!(failure, ApiFailure::NoCredential { .. }), "{failure:?}");
    failure.to_string()
}

#[tokio::test]
async fn a_plugin_gives_the_token_and_is_not_asked_before_the_first_call() {
    let folder = CredentialFolder::new();
    let server = in_clear().await;
    plugin(&folder, &of(&server), &prints("\"token\": \"t-NUMBER\""));
    let asked = ApiServer::connect_with(&access(&folder, None), quick()).unwrap();
    assert_eq!(runs(&folder), 0);
    for _ in 0..2 {
        version(&asked).await.unwrap();
        assert_eq!(last_token(&server).as_deref(), Some("Bearer t-1"));
    }
    assert_eq!(runs(&folder), 1);
}

#[tokio::test]
async fn what_a_plugin_says_to_people_is_passed_on_and_nothing_else() {
    let folder = CredentialFolder::new();
    let server = in_clear().await;
    for (script, why) in [
        ("echo s3cret; exit 3", "failed (exit status: 3): run it by hand"),
        ("echo s3cret; echo 'log in first' >&2; exit 3", "failed (exit status: 3): log in first"),
        ("echo '{s3cret'", "printed something else than an ExecCredential"),
        ("echo '{\"spec\": {}}'", "printed an ExecCredential without a credential"),
        (r#"echo '{"status": {"token": "two s3cret words"}}'"#, "gave holds no bearer token"),
        (r#"echo '{"status": {"token": ""}}'"#, "gave neither a token nor a certificate"),
        (r#"echo '{"status": {"clientCertificateData": "s3cret"}}'"#, "gave a certificate without its key"),
        (r#"echo '{"status": {"clientKeyData": "s3cret"}}'"#, "gave a key without its certificate"),
        (
            r#"echo '{"status": {"clientCertificateData": "s3cret", "clientKeyData": "s3cret"}}'"#,
            "gave has no certificate in PEM form",
        ),
        ("yes s3cret", "printed more than 1 MiB: run it by hand"),
        ("yes s3cret >&2", "printed more than 1 MiB: run it by hand"),
    ] {
        plugin(&folder, &of(&server), script);
        let said = no_credential(&folder, quick()).await;
        assert!(said.contains("the credential plugin “") && said.contains("” of the user “u” in "), "{said}");
        assert!(said.contains(why) && !said.contains("s3cret") && !said.contains("API server"), "{said}");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_plugin_that_is_not_installed_is_named_with_its_hint() {
    let folder = CredentialFolder::new();
    for (command, hint) in [("cloakroom-no-such-plugin", "brew install it"), ("./none", "")] {
        let user = format!("exec: {{command: {command}, installHint: '{hint}'}}");
        folder.write("kube/config", &config("server: 'https://192.0.2.1'", &user));
        let said = refused(&access(&folder, None));
        assert!(said.contains(command.trim_start_matches("./")), "{said}");
        assert!(said.contains("is not installed") && said.contains(hint), "{said}");
        assert_eq!(said.contains("Its hint"), !hint.is_empty(), "{said}");
    }
}

#[tokio::test]
async fn a_plugin_that_never_ends_is_ended_at_its_limit() {
    let folder = CredentialFolder::new();
    let server = in_clear().await;
    // Without a limit it would end, and the failure would be another one.
    plugin(&folder, &of(&server), "exec sleep 20");
    let timeouts = Timeouts { plugin: Duration::from_millis(300), ..quick() };
    let said = no_credential(&folder, timeouts).await;
    assert!(said.contains("did not end within 300ms: run it by hand"), "{said}");
}

#[tokio::test]
async fn a_process_that_a_plugin_leaves_behind_is_not_waited_for() {
    let folder = CredentialFolder::new();
    let server = in_clear().await;
    let script = format!("sleep 20 & echo $! >left; {}", prints("\"token\": \"t\""));
    plugin(&folder, &of(&server), &script);
    version(&ApiServer::connect_with(&access(&folder, None), quick()).unwrap()).await.unwrap();
    assert_eq!(last_token(&server).as_deref(), Some("Bearer t"));
    let left = std::fs::read_to_string(folder.path("left")).unwrap();
    // A process that has ended is a zombie, or gone.
    let stat = std::fs::read_to_string(Path::new("/proc").join(left.trim()).join("stat")).unwrap();
    assert!(stat.contains("(sleep) S"), "{stat}");
}

#[test]
fn a_plugin_that_still_runs_ends_with_the_program() {
    let folder = CredentialFolder::new();
    let process = folder.path("process");
    plugin(
        &folder,
        "server: 'http://127.0.0.1:9'",
        "echo $$ >process.new; mv process.new process; exec sleep 1000",
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = ApiServer::connect(&access(&folder, None)).unwrap();
        tokio::spawn(async move { version(&server).await });
        until_true("the plugin runs", || process.exists()).await;
    });
    drop(runtime);
    let process = std::fs::read_to_string(process).unwrap();
    let stat = Path::new("/proc").join(process.trim()).join("stat");
    // An ended process that was not waited for is a zombie, which sleeps no more.
    let has_ended =
        || std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") Z ")) || !stat.exists();
    let waiting = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    waiting.block_on(until_true("the plugin has ended", has_ended));
}

#[tokio::test]
async fn a_call_that_gives_up_does_not_end_the_plugin() {
    let folder = CredentialFolder::new();
    let server = in_clear().await;
    let waits = "while [ ! -e go ]; do sleep 0.01; done";
    plugin(&folder, &of(&server), &format!("{waits}\n{}", prints("\"token\": \"t-NUMBER\"")));
    let asked = ApiServer::connect_with(&access(&folder, None), quick()).unwrap();
    let client = asked.client();
    let given_up = within(Duration::from_millis(50), client.apiserver_version()).await;
    assert!(matches!(given_up, Err(ApiFailure::TimedOut { .. })), "{given_up:?}");
    folder.write("go", "");
    version(&asked).await.unwrap();
    assert_eq!((last_token(&server).as_deref(), runs(&folder)), (Some("Bearer t-1"), 1));
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires() {
    let folder = CredentialFolder::new();
    let server = in_clear().await;
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(30);
    let prints = prints(&format!("\"token\": \"t-NUMBER\", \"expirationTimestamp\": \"{soon}\""));
    plugin(&folder, &of(&server), &prints);
    let asked = ApiServer::connect_with(&access(&folder, None), quick()).unwrap();
    // The old token counts until the plugin has given the next one.
    until("the next token is sent", async || {
        version(&asked).await.unwrap();
        last_token(&server).is_some_and(|token| token != "Bearer t-1")
    })
    .await;
    plugin(&folder, &of(&server), "exit 1");
    let before = runs(&folder);
    until("the plugin fails", async || {
        version(&asked).await.unwrap();
        runs(&folder) > before
    })
    .await;
    version(&asked).await.unwrap();
    assert!(last_token(&server).unwrap().starts_with("Bearer t-"));
}

/// The plugin of the renewal never ends, and the old token still counts.
#[tokio::test]
async fn a_renewal_that_hangs_holds_no_call_up() {
    let folder = CredentialFolder::new();
    let server = in_clear().await;
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(50);
    let prints = prints(&format!("\"token\": \"t-NUMBER\", \"expirationTimestamp\": \"{soon}\""));
    plugin(&folder, &of(&server), &format!("[ $(wc -l <runs) = 1 ] || exec sleep 1000\n{prints}"));
    let asked = ApiServer::connect_with(&access(&folder, None), quick()).unwrap();
    until("the second run has begun", async || {
        version(&asked).await.unwrap();
        runs(&folder) == 2
    })
    .await;
    version(&asked).await.unwrap();
    assert_eq!(last_token(&server).as_deref(), Some("Bearer t-1"));
}

/// Rejects what a plugin gives in its first run.
async fn knowing_the_second_token() -> Scripted {
    Scripted::start(|_, request| {
        let is_known = request.header("authorization") == Some("Bearer t-2");
        answer(if is_known { 200 } else { 401 }, "{}").into()
    })
    .await
}

#[tokio::test]
async fn after_a_401_the_plugin_is_asked_again_once() {
    let folder = CredentialFolder::new();
    let server = knowing_the_second_token().await;
    plugin(&folder, &of(&server), &prints("\"token\": \"t-NUMBER\""));
    let asked = ApiServer::connect_with(&access(&folder, None), quick()).unwrap();
    version(&asked).await.unwrap();
    assert_eq!((server.requests().len(), runs(&folder)), (2, 2));

    let status = r#"{"kind": "Status", "status": "Failure", "code": 401, "message": "Unauthorized"}"#;
    let strict = Scripted::start(|_, _| answer(401, status).into()).await;
    plugin(&folder, &of(&strict), &prints("\"token\": \"t-NUMBER\""));
    std::fs::remove_file(folder.path("runs")).unwrap();
    let asked = ApiServer::connect_with(&access(&folder, None), quick()).unwrap();
    for requests in [2, 3] {
        let failure = version(&asked).await.unwrap_err();
        assert!(matches!(failure, ApiFailure::Unauthorized { .. }), "{failure:?}");
        assert_eq!((strict.requests().len(), runs(&folder)), (requests, 2));
    }
}

#[tokio::test]
async fn a_plugin_may_give_a_certificate() {
    let folder = CredentialFolder::new();
    let pem = folder.certificate("kube");
    let client = folder.certificate("kube/client");
    let server =
        Scripted::start_tls(server_config(&pem, Some(&client.ca)), |_, _| answer(200, "{}").into()).await;
    let text = |path| serde_json::Value::from(std::fs::read_to_string(path).unwrap());
    let status = serde_json::json!({"status": {
        "clientCertificateData": text(&client.cert), "clientKeyData": text(&client.key),
    }});
    folder.write("credential", &status.to_string());
    plugin(&folder, &format!("{}, certificate-authority: ca.pem", of(&server)), "cat credential");
    version(&ApiServer::connect(&access(&folder, None)).unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_token_that_is_rejected_on_the_way_to_a_service_is_renewed() {
    for (body, is_answered) in [("", true), ("a bundle, which can be sent once", false)] {
        let folder = CredentialFolder::new();
        let server = knowing_the_second_token().await;
        plugin(&folder, &of(&server), &prints("\"token\": \"t-NUMBER\""));
        let asked = ApiServer::connect_with(&access(&folder, None), quick()).unwrap();
        let (namespace, name) = ("cloakroom".to_owned(), "cloakroom".to_owned());
        let way = asked.service_proxy(ServicePort { namespace, name, port: 10_000, has_tls: false }).unwrap();
        let request = || {
            Request::new(
                Full::new(Bytes::from_static(body.as_bytes())).map_err(|never| match never {}).boxed(),
            )
        };
        let answer = way.send(request()).await.map(|answer| answer.status());
        assert_eq!(answer, if is_answered { Ok(StatusCode::OK) } else { Err(Unanswered::Renewed) });
        assert_eq!(way.send(request()).await.unwrap().status(), StatusCode::OK);
        assert_eq!((last_token(&server).as_deref(), runs(&folder)), (Some("Bearer t-2"), 2));
    }
}
