//! How the API server is reached: what goes over the wire, what changes with the files, and what is refused.
#![expect(clippy::pedantic, clippy::unwrap_used, reason = "tests are read for what they check")]

mod client_certificates;
mod folder;
mod kubeconfig;
mod plugins;
mod proxies;
mod service_account;
mod submission;

use std::path::Path;

use cloakroom_cluster::{Access, ApiFailure, ApiServer, ConnectError, Credentials, Timeouts};
use cloakroom_testing::scripted::{Reply, Scripted, closed_port};
use cloakroom_testing::tls::server_config;
use folder::{
    CredentialFolder, answer, ca, certificate, quick, token, token_file, version, without_credentials,
};

fn refused(access: &Access) -> String {
    cloakroom_core::text::chain(&ApiServer::connect(access).unwrap_err())
}

#[tokio::test]
async fn connecting_sends_nothing_and_works_before_the_api_server_is_up() {
    let folder = CredentialFolder::new();
    folder.write("token", "correct-horse-battery");
    let url = format!("http://127.0.0.1:{}", closed_port());
    let access = folder.access_without_account(&url, token_file(folder.path("token")));
    let server = ApiServer::connect(&access).unwrap();
    let failure = version(&server).await.unwrap_err();
    assert!(matches!(failure, ApiFailure::Unreachable { .. }), "{failure}");
}

#[tokio::test]
async fn what_the_other_end_speaks_and_shows_is_told_in_words() {
    let folder = CredentialFolder::new();
    folder.account("of-the-account", None);
    let (pem, other) = (folder.certificate("server"), folder.certificate("other"));
    let told = async |url: &str, trusted: &Path| {
        let server = ApiServer::connect_with(&folder.access(url, ca(trusted.to_owned())), quick()).unwrap();
        version(&server).await.unwrap_err()
    };
    let tls = Scripted::start_tls(server_config(&pem, None), |_, _| answer(200, "{}").into()).await;
    let untrusted = told(&tls.url(), &other.ca).await;
    assert!(matches!(untrusted, ApiFailure::Untrusted { .. }) && !untrusted.is_transient(), "{untrusted}");
    assert!(untrusted.to_string().ends_with("is not signed by a CA that is trusted here"), "{untrusted}");
    let plain = Scripted::start(|_, _| answer(200, "{}").into()).await;
    let no_tls = told(&plain.url().replace("http:", "https:"), &pem.ca).await;
    assert!(no_tls.to_string().contains("does not speak TLS; perhaps http"), "{no_tls}");
    let over_http = without_credentials(&tls.url().replace("https:", "http:"));
    let over_http = ApiServer::connect_with(&over_http, quick()).unwrap();
    let no_http = version(&over_http).await.unwrap_err();
    assert!(no_http.to_string().contains("does not speak HTTP (perhaps it speaks TLS: https)"), "{no_http}");
    let mutual = server_config(&pem, Some(&other.ca));
    let mutual = Scripted::start_tls(mutual, |_, _| answer(200, "{}").into()).await;
    let no_client = told(&mutual.url(), &pem.ca).await;
    assert!(no_client.to_string().contains("wants a client certificate"), "{no_client}");
}

#[tokio::test]
async fn a_call_without_an_answer_is_given_up_after_its_timeout() {
    let folder = CredentialFolder::new();
    let silent = Scripted::start(|_, _| Reply::Hang).await;
    let timeouts = Timeouts { call: std::time::Duration::from_millis(100), ..quick() };
    let server = ApiServer::connect_with(&folder.in_clear(&silent), timeouts).unwrap();
    let failure = version(&server).await.unwrap_err();
    assert_eq!(failure, ApiFailure::TimedOut { after: timeouts.call });
    silent.wait_for_requests(1).await;
    assert_eq!(silent.requests().len(), 1, "it was tried again");
}

#[tokio::test]
async fn an_answer_of_503_is_not_tried_again() {
    let folder = CredentialFolder::new();
    let failing = Scripted::start(|_, _| answer(503, "{}").into()).await;
    let server = ApiServer::connect_with(&folder.in_clear(&failing), quick()).unwrap();
    assert!(version(&server).await.is_err());
    assert_eq!(failing.requests().len(), 1);
}

#[tokio::test]
async fn explicit_credentials_win_over_the_service_account() {
    let folder = CredentialFolder::new();
    folder.account("of-the-account", None);
    folder.write("explicit", "  of-the-file\n");
    let server = Scripted::start(|_, _| answer(200, "{}").into()).await;
    let shown = async |access| {
        version(&ApiServer::connect_with(&access, quick()).unwrap()).await.unwrap();
        server.requests().last().unwrap().header("authorization").map(str::to_owned)
    };
    let with = |credentials| folder.access(&server.url(), credentials);
    let of_account = shown(with(Credentials::default())).await;
    assert_eq!(of_account.as_deref(), Some("Bearer of-the-account"));
    let of_file = shown(with(token_file(folder.path("explicit")))).await;
    assert_eq!(of_file.as_deref(), Some("Bearer of-the-file"));
    let given = shown(with(token("given-in-clear"))).await;
    assert_eq!(given.as_deref(), Some("Bearer given-in-clear"));
    assert_eq!(shown(without_credentials(&server.url())).await, None);
    let pem = folder.certificate("client");
    let of_certificate = shown(with(certificate(pem.cert, pem.key))).await;
    assert_eq!(of_certificate, None, "a client certificate is a credential of its own");
}

// Invariant: a credential for the API server never travels in clear text.
#[tokio::test]
async fn a_credential_never_travels_in_clear() {
    let folder = CredentialFolder::new();
    folder.account("of-the-account", Some(&folder.certificate("server").ca));
    let url = "http://192.0.2.1:8080".to_owned();
    let access = |credentials| folder.access(&url, credentials);
    for (access, setting) in [
        (access(token("s3cret-s3cret")), "oauthToken`"),
        (access(Credentials::default()), "the mounted service account"),
        (
            Access::ServiceAccount { url: url.clone(), folder: folder.path("account") },
            "the mounted service account",
        ),
    ] {
        let said = refused(&access);
        assert!(said.contains("http://192.0.2.1:8080") && said.contains(setting), "{said}");
        assert!(!said.contains("s3cret-s3cret") && !said.contains("of-the-account"), "{said}");
    }
    ApiServer::connect(&without_credentials(&url)).unwrap();
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named_with_their_property() {
    let folder = CredentialFolder::new();
    let (one, other) = (folder.certificate("one"), folder.certificate("other"));
    folder.write("empty", "\n");
    folder.write("words", "two words");
    let missing = || folder.path("missing");
    for (credentials, key, why) in [
        (ca(missing()), "caCertFile", "No such file"),
        (ca(folder.path("words")), "caCertFile", "no certificate"),
        (token_file(missing()), "oauthTokenFile", "No such file"),
        (token_file(folder.path("empty")), "oauthTokenFile", "is empty"),
        (token_file(folder.path("words")), "oauthTokenFile", "no bearer token"),
        (token("two words"), "oauthToken`", "no bearer token"),
        (certificate(one.cert.clone(), other.key), "clientKeyFile", "does not fit the certificate in"),
        (certificate(one.cert.clone(), one.cert), "clientKeyFile", "no private key"),
        (Credentials::default(), "useServiceAccountCredentials", "oauthTokenFile"),
    ] {
        let access = folder.access_without_account("https://192.0.2.1", credentials);
        let said = refused(&access);
        assert!(said.contains(key) && said.contains(why), "{key}, {why}: {said}");
        assert!(!said.contains("two words"), "{said}");
    }
}

#[tokio::test]
async fn nothing_secret_is_in_debug_output() {
    let folder = CredentialFolder::new();
    let access = folder.access_without_account("https://192.0.2.1", token("s3cret-s3cret"));
    let server = ApiServer::connect(&access).unwrap();
    let shown = format!("{access:?} {server:?} {access}");
    assert!(shown.contains("192.0.2.1") && !shown.contains("s3cret"), "{shown}");
}

#[tokio::test]
async fn a_pod_without_a_service_account_is_told_the_three_ways_out() {
    let folder = CredentialFolder::new();
    let access =
        Access::ServiceAccount { url: "https://10.0.0.1:443".to_owned(), folder: folder.path("nowhere") };
    let error = ApiServer::connect(&access).unwrap_err();
    assert!(matches!(error, ConnectError::NoServiceAccount { .. }));
    let said = error.to_string();
    for way_out in ["automountServiceAccountToken", "--kubeconfig", "--no-kubernetes", "nowhere/token"] {
        assert!(said.contains(way_out), "{said}");
    }
}
