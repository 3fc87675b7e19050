//! Bundles whose answer does not come, or is none.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_testing::scripted::{Answer, Reply, Scripted};
use cloakroom_transfer::client::{HttpClient, RetryPolicy, ServerAddress, Timeouts};
use tokio_util::sync::CancellationToken;

use super::{Silent, Stager, request, take, ticket_for};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_is_not_waited_for_again_and_again() {
    let stager = Stager::with_file(1000);
    let server = Scripted::start(|_, _| Reply::Hang).await;
    let short = Duration::from_millis(300);
    let http =
        HttpClient::new(&[], Timeouts { request: short, answer: short, ..Timeouts::default() }).unwrap();
    let address = ServerAddress::parse(&server.url()).unwrap();
    let asked = async || http.server_info(&address).await;
    let silent = http.retried(&address, RetryPolicy::default(), &|_| {}, asked).await;
    assert_eq!(silent.unwrap_err().to_string(), "no answer within 300ms (3 attempts)");
    assert_eq!(server.requests().len(), 3);

    let request = request(&stager, &server.url());
    let silent = http
        .stage(&CancellationToken::new(), &request, RetryPolicy::default(), Arc::new(Silent))
        .await
        .unwrap_err();
    assert!(silent.may_be_kept(), "{silent}");
    let said = silent.to_string();
    assert!(said.contains("no answer within 300ms after all of it was sent, "), "{said}");
    assert!(said.contains(" (2 attempts); check the network"), "{said}");
    assert_eq!(server.requests().len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_that_breaks_off_is_retried_and_the_bundle_may_be_there_twice() {
    let stager = Stager::with_file(1000);
    let server = Scripted::start(|count, request| match request.method.as_str() {
        "POST" if count == 0 => Reply::TakeBody(Box::new(|body| ticket_for(body).cut_after(20))),
        _ => take(),
    })
    .await;
    let request = request(&stager, &server.url());
    let http = HttpClient::new(&[], Timeouts::default()).unwrap();
    let staged =
        http.stage(&CancellationToken::new(), &request, RetryPolicy::default(), Arc::new(Silent)).await;
    assert!(staged.unwrap().may_be_twice);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_counts_as_perhaps_kept_if_no_ticket_answers_all_of_it() {
    let stager = Stager::with_file(1000);
    for (status, body) in [(200, "<html>welcome</html>"), (500, "an error of a proxy")] {
        let answer = move |_: &[u8]| Answer::new(status, body).header("content-type", "text/html");
        let server = Scripted::start(move |_, _| Reply::TakeBody(Box::new(answer))).await;
        let request = request(&stager, &server.url());
        let http = HttpClient::new(&[], Timeouts::default()).unwrap();
        let staged =
            http.stage(&CancellationToken::new(), &request, RetryPolicy::default(), Arc::new(Silent)).await;
        let error = staged.unwrap_err();
        assert!(error.may_be_kept(), "{error}");
    }
}
