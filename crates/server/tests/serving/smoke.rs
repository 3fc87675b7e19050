use serde_json::Value;

use crate::support::TestApp;
use crate::support::app::Options;

// Invariant: a download has the same bytes as the upload.
#[tokio::test]
async fn what_was_staged_comes_back_byte_for_byte() {
    let app = TestApp::start().await;
    let bundle: Vec<u8> = (0..3_000_000_u32).map(|i| (i * 7 % 251) as u8).collect();
    let ticket = app.stage(bundle.clone()).await;
    let response = app.download(&ticket).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.bytes().await.unwrap(), bundle);
}

#[tokio::test]
async fn the_bare_address_says_in_a_browser_what_the_server_is() {
    let app = TestApp::start().await;
    let response = app.get("/").header("accept", "text/html").send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
    assert_eq!(response.headers()["cache-control"], "no-store");
    let info = app.get("/api/v1").send().await.unwrap().bytes().await.unwrap();
    let info: Value = serde_json::from_slice(&info).unwrap();
    let text = response.text().await.unwrap();
    let expected = format!(
        "cloakroom {}: files for pods on Kubernetes are staged here, and fetched with a ticket.\n\
         The API is at /api/v1, and its OpenAPI document at /api/openapi.json.\n\
         To fetch a file: cloakroom fetch --ticket ticket.json --to FOLDER\n",
        info["version"].as_str().unwrap()
    );
    assert_eq!(text, expected);
    assert_eq!(app.get("/api/openapi.json").send().await.unwrap().status(), 200);

    let head = app.client.head(app.url("/")).send().await.unwrap();
    assert_eq!(head.status(), 200);
    assert_eq!(head.headers()["content-type"], "text/plain; charset=utf-8");
    assert_eq!(head.bytes().await.unwrap(), "");
    app.assert_nothing_kept().await;
}

#[tokio::test]
async fn a_client_can_ask_for_the_servers_addresses_and_what_uploads_need() {
    let mut options = Options::default();
    options.settings.public_url = Some("https://jars.example.com/".parse().unwrap());
    options.settings.internal_url = Some("http://cloakroom.staging.svc:10000".parse().unwrap());
    let app = TestApp::start_with(options).await;
    let info = app.get("/api/v1").send().await.unwrap().bytes().await.unwrap();
    let info: Value = serde_json::from_slice(&info).unwrap();
    assert_eq!(info["publicUrl"], "https://jars.example.com");
    assert_eq!(info["internalUrl"], "http://cloakroom.staging.svc:10000");
    assert_eq!(info["uploadAuth"], "none");
    app.assert_nothing_kept().await;
}
