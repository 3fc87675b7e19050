use crate::support::TestApp;

#[tokio::test]
async fn what_was_staged_comes_back_byte_for_byte() {
    let app = TestApp::start().await;
    let bundle: Vec<u8> = (0..3_000_000_u32).map(|i| (i * 7 % 251) as u8).collect();
    let ticket = app.stage(bundle.clone()).await;
    let response = app.download(&ticket).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.bytes().await.unwrap(), bundle);
}
