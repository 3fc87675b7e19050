//! Proxies before the API server, such as those of a portal for many clusters.

use cloakroom_core::protocol::{CHALLENGE, REQUEST_ID, WRONG_SECRET};
use cloakroom_testing::process::stderr;
use cloakroom_testing::scripted::{Answer, Reply, Scripted};

use super::Far;

/// What a user is told if the upload is answered like this.
async fn told(answer: Answer) -> String {
    let proxy = Scripted::start(move |_, request| match request.method.as_str() {
        "GET" => {
            Answer::new(200, r#"{"version": "0.1.0"}"#).header("content-type", "application/json").into()
        }
        _ => {
            let answer = answer.clone();
            Reply::TakeBody(Box::new(move |_| answer.clone()))
        }
    })
    .await;
    let far = Far::new(&[]).with_the_way(proxy.address());
    let token = far.user.text("token");
    tokio::task::spawn_blocking(move || {
        stderr(&far.stage(&["--server-namespace=cloakroom", "--token-file", &token]))
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_that_no_api_server_gives_is_told_as_a_proxys() {
    for (status, expected) in [
        (403, "a proxy before the API server does not let this request pass (403"),
        (404, "a proxy before the API server does not let this request pass (404"),
        (411, "a proxy before the API server asks for a length that was sent (411"),
        (413, "a proxy before the API server takes no body as large as this bundle (413"),
    ] {
        let page = "<html><title>Sorry</title></html>";
        let said = told(Answer::new(status, page).header("content-type", "text/html")).await;
        assert!(said.contains(expected) && said.contains("name an address of the server"), "{said}");
        assert!(!said.contains("rolebinding") && !said.contains("there is no Service"), "{said}");
    }
    let status = r#"{"kind": "Status", "message": "users \"ann\" cannot create"}"#;
    let said = told(Answer::new(403, status).header("content-type", "application/json")).await;
    assert!(said.contains("the API server does not let you reach"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_drops_the_token_is_told_from_a_wrong_token() {
    let refused = |challenge: &str| {
        let answer = Answer::problem(401, "unauthorized", "the words of the server");
        answer.header(REQUEST_ID, "1").header("www-authenticate", challenge)
    };
    let said = told(refused(CHALLENGE)).await;
    assert!(said.contains("drops the header X-Cloakroom-Authorization"), "{said}");
    let said = told(refused(WRONG_SECRET)).await;
    assert!(said.contains("the words of the server") && !said.contains("drops"), "{said}");
}
