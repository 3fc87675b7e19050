//! How the API server is reached: what goes over the wire, what changes with the files, and what is refused.

mod client_certificates;
mod kubeconfig;
pub mod place;
mod service_account;
mod submission;

use cloakroom_cluster::{Access, ApiFailure, ApiServer, ConnectError, Timeouts};
use cloakroom_spark::ApiServerProperties;
use place::{Place, answer, properties, quick, version};

use crate::support::scripted::{Reply, Scripted, closed_port};

fn refused(access: &Access) -> String {
    cloakroom_core::text::chain(&ApiServer::connect(access).unwrap_err())
}

#[tokio::test]
async fn nothing_is_sent_at_connect_and_an_api_server_that_is_down_may_come_later() {
    let place = Place::new();
    place.write("token", "correct-horse-battery");
    let url = format!("http://127.0.0.1:{}", closed_port());
    let access = Access::Properties {
        url,
        properties: ApiServerProperties { oauth_token_file: Some(place.path("token")), ..properties() },
        folder: place.path("nowhere"),
    };
    let server = ApiServer::connect(&access).unwrap();
    let failure = version(&server).await.unwrap_err();
    assert!(matches!(failure, ApiFailure::Unreachable { .. }), "{failure}");
}

#[tokio::test]
async fn a_call_without_an_answer_is_given_up_after_its_timeout() {
    let place = Place::new();
    let silent = Scripted::start(|_, _| Reply::Hang).await;
    let timeouts = Timeouts { call: std::time::Duration::from_millis(100), ..quick() };
    let server = ApiServer::connect_with(&place.in_clear(&silent), timeouts).unwrap();
    let failure = version(&server).await.unwrap_err();
    assert_eq!(failure, ApiFailure::TimedOut { after: timeouts.call });
    silent.wait_for_requests(1).await;
    assert_eq!(silent.requests().len(), 1, "it was tried again");
}

#[tokio::test]
async fn an_answer_of_503_is_not_tried_again() {
    let place = Place::new();
    let failing = Scripted::start(|_, _| answer(503, "{}").into()).await;
    let server = ApiServer::connect_with(&place.in_clear(&failing), quick()).unwrap();
    assert!(version(&server).await.is_err());
    assert_eq!(failing.requests().len(), 1);
}

#[tokio::test]
async fn explicit_credentials_win_over_the_service_account() {
    let place = Place::new();
    place.account("of-the-account", None);
    place.write("explicit", "  of-the-file\n");
    let server = Scripted::start(|_, _| answer(200, "{}").into()).await;
    let shown = async |properties| {
        let access = Access::Properties { url: server.url(), properties, folder: place.path("account") };
        version(&ApiServer::connect_with(&access, quick()).unwrap()).await.unwrap();
        server.requests().last().unwrap().header("authorization").map(str::to_owned)
    };
    assert_eq!(shown(properties()).await.as_deref(), Some("Bearer of-the-account"));
    let of_file = ApiServerProperties { oauth_token_file: Some(place.path("explicit")), ..properties() };
    assert_eq!(shown(of_file).await.as_deref(), Some("Bearer of-the-file"));
    assert_eq!(shown(place::with_token("given-in-clear")).await.as_deref(), Some("Bearer given-in-clear"));
    let nobody = ApiServerProperties { use_service_account_credentials: false, ..properties() };
    assert_eq!(shown(nobody).await, None);
    let pem = place.certificate("client");
    let certificate = ApiServerProperties {
        client_cert_file: Some(pem.cert),
        client_key_file: Some(pem.key),
        ..properties()
    };
    assert_eq!(shown(certificate).await, None, "a client certificate is a credential of its own");
}

#[tokio::test]
async fn a_credential_never_travels_in_clear() {
    let place = Place::new();
    place.account("of-the-account", Some(&place.certificate("server").ca));
    let access = |properties| Access::Properties {
        url: "http://192.0.2.1:8080".to_owned(),
        properties,
        folder: place.path("account"),
    };
    for (access, setting) in [
        (access(place::with_token("s3cret-s3cret")), "oauthToken`"),
        (access(properties()), "the mounted service account"),
        (
            Access::ServiceAccount { url: "http://192.0.2.1:8080".to_owned(), folder: place.path("account") },
            "the mounted service account",
        ),
    ] {
        let said = refused(&access);
        assert!(said.contains("http://192.0.2.1:8080") && said.contains(setting), "{said}");
        assert!(!said.contains("s3cret-s3cret") && !said.contains("of-the-account"), "{said}");
    }
    let nobody = ApiServerProperties { use_service_account_credentials: false, ..properties() };
    ApiServer::connect(&access(nobody)).unwrap();
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named_with_their_property() {
    let place = Place::new();
    let (one, other) = (place.certificate("one"), place.certificate("other"));
    place.write("empty", "\n");
    place.write("words", "two words");
    let missing = || Some(place.path("missing"));
    for (properties, key, why) in [
        (ApiServerProperties { ca_cert_file: missing(), ..properties() }, "caCertFile", "No such file"),
        (
            ApiServerProperties { ca_cert_file: Some(place.path("words")), ..properties() },
            "caCertFile",
            "no certificate",
        ),
        (
            ApiServerProperties { oauth_token_file: missing(), ..properties() },
            "oauthTokenFile",
            "No such file",
        ),
        (
            ApiServerProperties { oauth_token_file: Some(place.path("empty")), ..properties() },
            "oauthTokenFile",
            "is empty",
        ),
        (
            ApiServerProperties { oauth_token_file: Some(place.path("words")), ..properties() },
            "oauthTokenFile",
            "no bearer token",
        ),
        (place::with_token("two words"), "oauthToken`", "no bearer token"),
        (
            ApiServerProperties {
                client_cert_file: Some(one.cert.clone()),
                client_key_file: Some(other.key),
                ..properties()
            },
            "clientKeyFile",
            "does not fit the certificate in",
        ),
        (
            ApiServerProperties {
                client_cert_file: Some(one.cert.clone()),
                client_key_file: Some(one.cert),
                ..properties()
            },
            "clientKeyFile",
            "no private key",
        ),
        (properties(), "useServiceAccountCredentials", "oauthTokenFile"),
    ] {
        let access = Access::Properties {
            url: "https://192.0.2.1".to_owned(),
            properties,
            folder: place.path("nowhere"),
        };
        let said = refused(&access);
        assert!(said.contains(key) && said.contains(why), "{key}, {why}: {said}");
        assert!(!said.contains("two words"), "{said}");
    }
}

#[tokio::test]
async fn nothing_secret_is_in_debug_output() {
    let place = Place::new();
    let access = Access::Properties {
        url: "https://192.0.2.1".to_owned(),
        properties: place::with_token("s3cret-s3cret"),
        folder: place.path("nowhere"),
    };
    let server = ApiServer::connect(&access).unwrap();
    let shown = format!("{access:?} {server:?} {access}");
    assert!(shown.contains("192.0.2.1") && !shown.contains("s3cret"), "{shown}");
}

#[tokio::test]
async fn a_pod_without_a_service_account_is_told_the_three_ways_out() {
    let place = Place::new();
    let access =
        Access::ServiceAccount { url: "https://10.0.0.1:443".to_owned(), folder: place.path("nowhere") };
    let error = ApiServer::connect(&access).unwrap_err();
    assert!(matches!(error, ConnectError::NoServiceAccount { .. }));
    let said = error.to_string();
    for way_out in ["automountServiceAccountToken", "--kubeconfig", "--no-kubernetes", "nowhere/token"] {
        assert!(said.contains(way_out), "{said}");
    }
}
