//! The mounted service account over TLS, and what happens when files rotate.

use cloakroom_cluster::{Access, ApiFailure, ApiServer, Credentials};
use cloakroom_testing::logs;
use cloakroom_testing::scripted::Scripted;
use cloakroom_testing::tls::server_config;

use super::folder::{CredentialFolder, answer, ca, certificate, quick, version};

/// A server with a certificate of a CA of its own.
async fn api_server(folder: &CredentialFolder, name: &str) -> Scripted {
    Scripted::start_tls(server_config(&folder.certificate(name), None), |_, _| answer(200, "{}").into()).await
}

fn account(folder: &CredentialFolder, server: &Scripted) -> Access {
    Access::ServiceAccount { url: server.url(), folder: folder.path("account") }
}

fn last_token(server: &Scripted) -> String {
    server.requests().last().unwrap().header("authorization").unwrap().to_owned()
}

#[tokio::test]
async fn the_service_accounts_token_goes_to_a_server_that_its_ca_signed() {
    let folder = CredentialFolder::new();
    let server = api_server(&folder, "server").await;
    folder.account("first-token\n", Some(&folder.path("server/ca.pem")));
    let asked = ApiServer::connect(&account(&folder, &server)).unwrap();
    version(&asked).await.unwrap();
    assert_eq!(last_token(&server), "Bearer first-token");
    assert_eq!((asked.address(), asked.credentials()), (server.url().as_str(), "the pod's service account"));
}

#[tokio::test]
async fn a_server_that_another_ca_signed_never_sees_the_token() {
    let folder = CredentialFolder::new();
    let server = api_server(&folder, "server").await;
    folder.account("first-token", Some(&folder.certificate("other").ca));
    let asked = ApiServer::connect(&account(&folder, &server)).unwrap();
    let failure = version(&asked).await.unwrap_err();
    assert!(matches!(failure, ApiFailure::Untrusted { .. }), "{failure}");
    assert!(failure.to_string().contains("certificate"), "{failure}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_token_that_rotates_is_read_again_and_a_broken_one_leaves_the_old() {
    logs::capture();
    let folder = CredentialFolder::new();
    let server = api_server(&folder, "server").await;
    folder.account("first-token", Some(&folder.path("server/ca.pem")));
    let asked = ApiServer::connect_with(&account(&folder, &server), quick()).unwrap();
    for (content, expected) in [
        (None, "first-token"),
        (Some("second-token-which-is-longer"), "second-token-which-is-longer"),
        (Some(""), "second-token-which-is-longer"),
        (Some("third-token"), "third-token"),
    ] {
        if let Some(content) = content {
            folder.replace("account/token", content);
        }
        version(&asked).await.unwrap();
        assert_eq!(last_token(&server), format!("Bearer {expected}"));
    }
    let path = folder.path("account/token").display().to_string();
    let said = logs::lines_with("the credentials for the API server stay as they were");
    assert!(said.iter().any(|line| line.contains(&path) && line.contains("is empty")), "{said:?}");
    logs::assert_free_of(&["second-token-which".to_owned(), "third-token".to_owned()]);
}

#[tokio::test]
async fn files_are_not_looked_at_more_often_than_agreed() {
    let folder = CredentialFolder::new();
    let server = api_server(&folder, "server").await;
    folder.account("first-token", Some(&folder.path("server/ca.pem")));
    let asked = ApiServer::connect(&account(&folder, &server)).unwrap();
    folder.replace("account/token", "second-token");
    version(&asked).await.unwrap();
    assert_eq!(last_token(&server), "Bearer first-token");
}

#[tokio::test]
async fn a_ca_that_rotates_is_read_again() {
    let folder = CredentialFolder::new();
    let server = api_server(&folder, "server").await;
    folder.account("first-token", Some(&folder.certificate("other").ca));
    let asked = ApiServer::connect_with(&account(&folder, &server), quick()).unwrap();
    version(&asked).await.unwrap_err();
    let ca = std::fs::read_to_string(folder.path("server/ca.pem")).unwrap();
    folder.replace("account/ca.crt", &ca);
    version(&asked).await.unwrap();
}

#[tokio::test]
async fn a_client_certificate_is_shown_and_read_again_when_it_rotates() {
    let folder = CredentialFolder::new();
    let (server_pem, old, new) =
        (folder.certificate("server"), folder.certificate("client"), folder.certificate("next"));
    let config = server_config(&server_pem, Some(&new.ca));
    let server = Scripted::start_tls(config, |_, _| answer(200, "{}").into()).await;
    let of_client = certificate(old.cert, old.key);
    let credentials = Credentials { ca_cert: ca(server_pem.ca).ca_cert, ..of_client };
    let access = folder.access_without_account(&server.url(), credentials);
    let asked = ApiServer::connect_with(&access, quick()).unwrap();
    let failure = version(&asked).await.unwrap_err();
    assert!(matches!(failure, ApiFailure::Unreachable { .. }), "{failure}");
    assert!(server.requests().is_empty());
    // One after the other: in between they do not fit, and the old pair stays.
    for (name, new) in [("client/cert.pem", &new.cert), ("client/key.pem", &new.key)] {
        version(&asked).await.unwrap_err();
        folder.replace(name, &std::fs::read_to_string(new).unwrap());
    }
    version(&asked).await.unwrap();
    assert_eq!(server.requests().len(), 1);
}
