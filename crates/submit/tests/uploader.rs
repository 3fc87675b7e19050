//! Tokens for uploads, as they are requested, kept and replaced.

use cloakroom_cluster::Timeouts;
use cloakroom_reach::{RequestedTokens, UploadAccount};
use cloakroom_testing::api_server::{Call, FakeApiServer, Verb};
use cloakroom_testing::cluster::{Account, Cluster as _};
use cloakroom_testing::scripted::{Answer, Scripted};
use cloakroom_transfer::client::{
    Failure, HttpClient, ServerAddress, Timeouts as HttpTimeouts, TrustedCertificates, UploadTokens as _,
};
use serde_json::json;

use crate::submitter::Submitter;

const NAMESPACE: &str = "spark";

/// A staging server that says this of uploads.
async fn server_with(upload_auth: &str) -> Scripted {
    let info = json!({"version": "0.1.0", "uploadAuth": upload_auth}).to_string();
    Scripted::start(move |_, _| {
        Answer::new(200, info.clone()).header("content-type", "application/json").into()
    })
    .await
}

/// Tokens for a server of which nothing is known.
fn tokens(api_server: &FakeApiServer, address: &str) -> RequestedTokens {
    let http = HttpClient::trusting(&TrustedCertificates::default(), HttpTimeouts::default()).unwrap();
    let submitter = Submitter::with(api_server, &api_server.token(Account::Admin), Timeouts::default());
    let uploader = UploadAccount::to_server_in("cloakroom", None);
    let address = ServerAddress::parse(address).unwrap();
    RequestedTokens::new(&submitter.server, NAMESPACE, uploader, http, address)
}

fn start() -> FakeApiServer {
    let api_server = FakeApiServer::start();
    api_server.add_service_account(NAMESPACE, UploadAccount::ACCOUNT);
    api_server
}

fn requests(api_server: &FakeApiServer) -> usize {
    let calls = api_server.calls_to(Verb::Create);
    calls.iter().filter(|call: &&Call| call.path.ends_with("/cloakroom-uploader/token")).count()
}

#[tokio::test]
async fn a_token_that_was_taken_and_is_refused_is_replaced_once() {
    let (api_server, server) = (start(), server_with("kubernetes").await);
    let tokens = tokens(&api_server, &server.url());
    assert_eq!(tokens.credential().await, Ok(None), "it may want none");
    assert!(tokens.refused().await, "it wants one");
    let first = tokens.credential().await.unwrap().unwrap();
    assert_eq!(first.user.as_deref(), Some("admin"));
    assert!(!tokens.refused().await, "it was never good");
    assert_eq!(tokens.credential().await.unwrap().unwrap(), first);
    tokens.taken().await;
    assert!(tokens.refused().await);
    let second = tokens.credential().await.unwrap().unwrap();
    assert!(second != first && second.user == first.user);
    tokens.taken().await;
    assert!(!tokens.refused().await, "another one would be refused as well");
    assert_eq!((requests(&api_server), server.requests().len()), (2, 1));
    let shown = format!("{tokens:?} {first:?}");
    assert!(!shown.contains(first.token.expose()) && shown.contains("cloakroom.cloakroom"), "{shown}");
}

#[tokio::test]
async fn a_server_that_wants_no_token_of_the_cluster_is_shown_none() {
    for upload_auth in ["none", "token", "of-a-newer-version"] {
        let (api_server, server) = (start(), server_with(upload_auth).await);
        let tokens = tokens(&api_server, &server.url());
        assert!(!tokens.refused().await, "{upload_auth}");
        assert_eq!(tokens.credential().await, Ok(None), "{upload_auth}");
        assert_eq!(requests(&api_server), 0);
    }
}

#[tokio::test]
async fn a_token_never_travels_unencrypted() {
    let (api_server, server) = (start(), server_with("kubernetes").await);
    // Not an address that is known as one of this machine, although it leads there.
    let port = server.address().port();
    let tokens = tokens(&api_server, &format!("http://0.0.0.0:{port}"));
    assert!(tokens.refused().await);
    let refused = tokens.credential().await.unwrap_err();
    assert!(
        matches!(&refused, Failure::Unusable { why } if why.contains("would travel unencrypted")),
        "{refused}"
    );
    assert_eq!(requests(&api_server), 0);
}
