//! Proxies that want to know the length of a body.

use cloakroom_testing::process::stderr;
use cloakroom_testing::scripted::{Answer, Scripted};

use super::{Stager, output, take};

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_wants_the_length_of_the_bundle_gets_it() {
    let stager = Stager::with_file(8 << 20);
    stager.folder.write("notes.txt", "text ".repeat(1_000_000));
    let server = Scripted::start(|_, request| match request.header("content-length") {
        None => Answer::new(411, "<title>Length Required</title>").header("content-type", "text/html").into(),
        Some(_) => take(),
    })
    .await;
    let mut command = stager.stage(&server.url());
    command.arg(stager.path("notes.txt"));
    let output = output(command).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let requests = server.requests();
    assert_eq!(requests.len(), 2, "it is no failure that is waited for");
    assert_eq!(requests[1].header("content-length"), Some(&*printed["sizeBytes"].to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_wants_the_length_again_and_again_is_told_as_that() {
    let stager = Stager::with_file(1000);
    let server = Scripted::start(|_, _| Answer::new(411, "").into()).await;
    let output = output(stager.stage(&server.url())).await;
    let said = stderr(&output);
    let expected = format!(
        "error: could not stage to {}: length required (411); a proxy in between asks for a length that was sent: its admin",
        server.url()
    );
    assert!(said.contains(&expected) && said.contains("(--server, "), "{said}");
    assert_eq!((output.status.code(), server.requests().len()), (Some(1), 2));
    assert!(server.requests()[1].header("content-length").is_some());
}
