//! Uploads that hold what others need for longer than an upload takes.

use std::time::Duration;

use cloakroom_core::protocol::problem::Problem;
use cloakroom_staging::{NewUpload, Upload, UploadError};
use cloakroom_testing::logs;
use cloakroom_testing::wait::until_true;
use cloakroom_testing::wire::{Answer, Wire};

use crate::limits::{begun, finish};
use crate::support::TestApp;
use crate::support::app::Options;

const SIX_MINUTES: Duration = Duration::from_mins(6);

fn assert_ended(answer: &Answer) {
    let problem: Problem = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((problem.status, problem.code.as_str()), (408, "too-slow"), "{}", problem.detail);
    assert!(problem.detail.contains("another upload needed its place"), "{}", problem.detail);
    assert_eq!(answer.header("connection"), "close");
}

#[tokio::test]
async fn a_stalled_upload_ends_only_when_it_has_had_its_time_and_another_one_needs_its_slot() {
    let mut options = Options::default();
    options.limits.max_concurrent_uploads = 2;
    let app = TestApp::start_with(options).await;
    let mut first = begun(&app, 9).await;
    app.clock.advance(SIX_MINUTES);
    app.stage("there is a slot left").await;
    let second = begun(&app, 4).await;
    app.stage("its slot is needed now").await;
    assert_ended(&first.answer().await);
    assert_eq!(app.put("", "the other one has time").send().await.unwrap().status(), 201);
    finish(&app, second, 4).await;
    assert!(!logs::lines_with("ended an upload that was too slow").is_empty());
}

#[tokio::test]
async fn announced_lengths_that_trickle_hold_the_room_only_until_it_is_needed() {
    let mut options = Options::default();
    options.limits.capacity.max_total_size = Some(1000);
    let app = TestApp::start_with(options).await;
    let mut hoard = begun(&app, 900).await;
    assert_eq!(app.put("", vec![7; 200]).send().await.unwrap().status(), 507);
    app.clock.advance(SIX_MINUTES);
    // Ending it would not be enough.
    assert_eq!(app.put("", vec![7; 1001]).send().await.unwrap().status(), 507);
    hoard.send("still there").await;
    app.stage(vec![7; 200]).await;
    assert_ended(&hoard.answer().await);
    until_true("nothing of it is left", || app.staging.in_flight() == (0, 0)).await;
    app.stage(vec![7; 800]).await;
}

#[tokio::test]
async fn an_upload_of_unknown_length_gets_the_room_of_an_overdue_one_too() {
    let mut options = Options::default();
    options.limits.capacity.max_total_size = Some(1000);
    let app = TestApp::start_with(options).await;
    let mut hoard = begun(&app, 900).await;
    app.clock.advance(SIX_MINUTES);
    let pieces = (0..5).map(|_| Ok::<_, std::io::Error>(vec![7; 100]));
    let body = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    let ticket = app.ticket(app.put("", body).send().await.unwrap()).await;
    assert_eq!(ticket.size_bytes, 500);
    assert_ended(&hoard.answer().await);
}

#[tokio::test]
async fn an_overdue_upload_of_the_old_protocol_ends_as_well() {
    let mut options = Options::default();
    options.limits.max_concurrent_uploads = 1;
    let app = TestApp::start_with(options).await;
    let mut wire = Wire::connect(app.address).await;
    wire.send(
        "POST /api/v0/resources/ HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=xyz\r\n\
         Content-Length: 100000\r\n\r\n--xyz\r\nContent-Disposition: form-data; name=\"resources\"\r\n\r\njars",
    )
    .await;
    until_true("the upload has begun", || app.staging.in_flight().0 == 1).await;
    app.clock.advance(SIX_MINUTES);
    app.stage("its slot is needed now").await;
    assert_ended(&wire.answer().await);
}

#[tokio::test]
async fn of_two_overdue_uploads_that_need_each_others_room_one_gets_it() {
    let mut options = Options::default();
    options.limits.capacity.max_total_size = Some(1000);
    let app = TestApp::start_with(options).await;
    let begin = async || {
        let mut upload = app.staging.begin_upload(NewUpload::default()).await.unwrap();
        upload.write(vec![7; 400].into()).await.unwrap();
        upload
    };
    let (one, other) = (begin().await, begin().await);
    app.clock.advance(SIX_MINUTES);
    let go_on = async |mut upload: Upload| match upload.write(vec![7; 300].into()).await {
        Ok(()) => Ok(upload),
        Err(error) => {
            upload.abandon().await;
            Err(error)
        }
    };
    let ends = tokio::join!(go_on(one), go_on(other));
    let (Ok(upload), Err(error)) = (if ends.0.is_ok() { ends } else { (ends.1, ends.0) }) else {
        panic!("both got room, or none did");
    };
    assert_eq!(upload.received_bytes(), 700);
    assert!(matches!(error, UploadError::Overdue { received: 400 }), "{error}");
}
