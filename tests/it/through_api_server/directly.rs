//! A server that names an address outside of the cluster: where this machine reaches it, it is the way.

use cloakroom_testing::process::stderr;
use cloakroom_testing::scripted::{Answer, Reply, Scripted};
use cloakroom_testing::tls;
use tempfile::TempDir;

use super::Far;
use crate::stage::take;

const THROUGH: &str = "staging by the Service cloakroom in the namespace cloakroom, through the API server";

/// A server at an address outside of the cluster, and the certificate that it shows.
async fn outside(answers: bool) -> (Scripted, TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let pem = tls::self_signed(folder.path(), &["127.0.0.1"]);
    let server = Scripted::start_tls(tls::server_config(&pem, None), move |_, request| {
        match request.method.as_str() {
            _ if !answers => Reply::Hang,
            "GET" => {
                Answer::new(200, r#"{"version": "0.1.0"}"#).header("content-type", "application/json").into()
            }
            _ => take(),
        }
    });
    (server.await, folder, pem.cert.display().to_string())
}

/// The messages of `cloakroom stage`, and whether the server in the cluster got the bundle.
fn staged(url: &str, more: &[&str]) -> (String, bool) {
    let far = Far::new(&["--public-url", url]).with_the_service();
    let token = far.user.text("token");
    let output = far.stage(&[&["--server-namespace", "cloakroom", "--token-file", &token], more].concat());
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    let ticket = String::from_utf8(output.stdout).unwrap();
    assert!(ticket.contains("http://cloakroom.cloakroom.svc:10000/api/v1/resources/"), "{ticket}");
    let is_inside = far.server.log().contains("staged");
    (said, is_inside)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_verifies_is_the_way() {
    let (outside, _folder, certificate) = outside(true).await;
    let (said, is_inside) = staged(&outside.url(), &["--ca-file", &certificate]);
    let way = format!("staging by the Service cloakroom in the namespace cloakroom, at {}", outside.url());
    assert!(said.contains(&way) && !is_inside, "{said}");
    let uploads = outside.requests().into_iter().filter(|request| request.method == "POST").count();
    assert_eq!(uploads, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_does_not_verify_is_warned_of_and_gets_no_token() {
    let (outside, _folder, _) = outside(true).await;
    let (said, is_inside) = staged(&outside.url(), &[]);
    assert!(said.contains(THROUGH) && is_inside, "{said}");
    let warning = format!("warning: the server is not asked at {}", outside.url());
    assert!(said.contains(&warning) && said.contains("not signed by a CA that is trusted here"), "{said}");
    assert!(outside.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_silent_or_not_https_is_passed_over() {
    let (silent, _folder, certificate) = outside(false).await;
    let (said, is_inside) = staged(&silent.url(), &["--ca-file", &certificate]);
    assert!(said.contains(THROUGH) && is_inside && !said.contains("warning"), "{said}");
    assert_eq!(silent.requests().len(), 1);

    let plain = Scripted::start(|_, _| take()).await;
    let (said, is_inside) = staged(&plain.url(), &[]);
    assert!(said.contains(THROUGH) && is_inside && !said.contains("warning"), "{said}");
    assert!(plain.requests().is_empty(), "a server that is not verified is asked nothing");
}
