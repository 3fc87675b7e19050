//! Bundles that have parts of another one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cloakroom_core::protocol::digest;
use cloakroom_core::protocol::problem::Problem;
use cloakroom_core::protocol::recipe::{RECIPE_LENGTH, Recipe, RecipePart};
use cloakroom_core::protocol::v1::{Ticket, spliced_path};
use cloakroom_testing::logs;
use cloakroom_testing::noise::noise;
use cloakroom_testing::wait::until_true;
use cloakroom_testing::wire::Wire;
use futures_util::future::join_all;
use reqwest::{RequestBuilder, Response};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

use crate::support::TestApp;
use crate::support::app::{Options, problem};

use RecipePart::{Copy, Send};

const SIZE: usize = 300_000;
const KIB_64: u64 = 64 << 10;

fn sha256(bytes: &[u8]) -> String {
    digest::to_hex(&Sha256::digest(bytes).into())
}

/// What the parts make of a source and of what is sent.
fn spliced(source: &[u8], parts: &[RecipePart], mut sent: &[u8]) -> Vec<u8> {
    let index = |number: u64| usize::try_from(number).unwrap();
    let mut whole = Vec::new();
    for part in parts {
        match *part {
            Send(length) => whole.extend_from_slice(sent.split_off(..index(length)).unwrap()),
            Copy([first, length]) => whole.extend_from_slice(&source[index(first)..index(first + length)]),
        }
    }
    whole
}

fn recipe(ticket: &Ticket, parts: &[RecipePart], whole: &[u8]) -> Recipe {
    Recipe {
        source_secret: ticket.resource_secret.clone(),
        parts: parts.to_vec(),
        size_bytes: whole.len() as u64,
        sha256: sha256(whole),
    }
}

/// The request with this recipe, which may be none, and these bytes behind it.
fn request_of(app: &TestApp, source: &str, recipe: &[u8], sent: &[u8]) -> RequestBuilder {
    let path = format!("{}?namespace=demo&label=app%3Ddemo", spliced_path(source));
    let request = app.client.post(app.url(&path)).header(RECIPE_LENGTH, recipe.len());
    request.body([recipe, sent].concat())
}

async fn splice(app: &TestApp, ticket: &Ticket, recipe: &Recipe, sent: &[u8]) -> Response {
    let json = serde_json::to_vec(recipe).unwrap();
    request_of(app, &ticket.resource_id, &json, sent).send().await.unwrap()
}

/// It has no part of the request, which has a secret.
async fn refused(response: Response, status: u16, code: &str) -> String {
    assert_eq!(response.status().as_u16(), status);
    let Problem { code: found, detail, .. } = problem(response).await;
    assert_eq!(found.as_str(), code, "{detail}");
    detail
}

#[tokio::test]
async fn a_bundle_is_put_together_of_what_is_sent_and_what_is_there() {
    let app = TestApp::start().await;
    let source = noise(SIZE);
    let ticket = app.stage(source.clone()).await;
    let size = SIZE as u64;
    for parts in [
        &[Copy([0, size])][..],
        &[Send(7), Copy([1000, KIB_64]), Send(1), Copy([1000, KIB_64]), Copy([size - KIB_64, KIB_64])],
        &[Copy([150_000, 100_000]), Copy([0, 100_000]), Send(200_000)],
        &[Send(5)],
    ] {
        let sent_bytes =
            parts.iter().filter(|part| part.copied().is_none()).map(|part| part.length()).sum::<u64>();
        let sent = vec![7; usize::try_from(sent_bytes).unwrap()];
        let whole = spliced(&source, parts, &sent);
        let made = app.ticket(splice(&app, &ticket, &recipe(&ticket, parts, &whole), &sent).await).await;
        assert_eq!((made.size_bytes, &made.sha256), (whole.len() as u64, &sha256(&whole)));
        assert!(app.download(&made).send().await.unwrap().bytes().await.unwrap() == whole, "{parts:?}");
        let row = app.ready_row(&made.resource_id).await;
        assert_eq!(row.data.arrival.uploaded_by.as_deref(), Some("127.0.0.1"));
    }
    let history = app.ready_row(&ticket.resource_id).await.data.history;
    assert_eq!(history.first_used_at, None, "that is no use of the source");
    assert_eq!(app.rows().await, BTreeMap::from([("ready", 5)]));
    let copied = size + 3 * KIB_64 + 200_000;
    assert_eq!(app.metric("copied_bytes_total").await, copied.to_string());
    assert_eq!(app.metric("upload_bytes_total").await, (size + 8 + 200_000 + 5).to_string());
    assert!(logs::text().contains(&format!("copied_bytes={size}")));
}

#[tokio::test]
async fn a_recipe_that_does_not_hold_is_refused_and_nothing_is_kept() {
    let app = TestApp::start().await;
    let source = noise(SIZE);
    let ticket = app.stage(source.clone()).await;
    let files = app.files();
    let parts = [Send(4), Copy([0, KIB_64])];
    let whole = spliced(&source, &parts, b"jars");
    let right = recipe(&ticket, &parts, &whole);
    let changed = |change: fn(&mut Recipe)| {
        let mut recipe = right.clone();
        change(&mut recipe);
        recipe
    };
    for (recipe, code, says) in [
        (
            changed(|recipe| recipe.size_bytes += 1),
            "invalid-recipe",
            "sizeBytes is 65541, and the parts have 65540",
        ),
        (changed(|recipe| recipe.sha256 = "00".repeat(32)), "digest-mismatch", "another SHA-256"),
        (changed(|recipe| recipe.parts[1] = Copy([0, 5])), "invalid-recipe", "parts[1] copies 5 bytes"),
        (
            changed(|recipe| recipe.parts[1] = Copy([300_000 - (64 << 10) + 1, 64 << 10])),
            "invalid-recipe",
            "parts[1] copies up to byte 300001, and the source has 300000 bytes",
        ),
        (
            changed(|recipe| (recipe.parts[0], recipe.size_bytes) = (Send(3), 65_539)),
            "invalid-recipe",
            "the body has 4 bytes behind the recipe, whose parts send 3",
        ),
        (changed(|recipe| recipe.parts = vec![Send(1); 4097]), "invalid-recipe", "parts has 4097 entries"),
    ] {
        let detail = refused(splice(&app, &ticket, &recipe, b"jars").await, 400, code).await;
        assert!(detail.contains(says), "{detail}");
        assert_eq!(app.files(), files, "{says}");
    }
    let wrong = changed(|recipe| recipe.source_secret = "wrong".to_owned());
    refused(splice(&app, &ticket, &wrong, b"jars").await, 404, "not-found").await;
    let other = app.stage("another bundle").await;
    refused(splice(&app, &other, &right, b"jars").await, 404, "not-found").await;
    assert_eq!(app.rows().await, BTreeMap::from([("ready", 2)]));
    app.ticket(splice(&app, &ticket, &right, b"jars").await).await;
}

#[tokio::test]
async fn a_request_that_is_no_splice_is_refused_by_its_header() {
    let app = TestApp::start().await;
    let ticket = app.stage(noise(SIZE)).await;
    let secret = &ticket.resource_secret;
    for json in ["", "{", &format!("{{\"sourceSecret\":\"{secret}\",\"{secret}\":1}}"), "[]", "null"] {
        let request = request_of(&app, &ticket.resource_id, json.as_bytes(), b"");
        let (code, says) = match json {
            "" => ("invalid-header", "x-cloakroom-recipe-length: it must be there once"),
            _ => ("invalid-recipe", "the recipe is not written as the API describes it, at line 1, column "),
        };
        let detail = refused(request.send().await.unwrap(), 400, code).await;
        assert!(detail.starts_with(says) && !detail.contains(secret), "{detail}");
    }
    let large = request_of(&app, &ticket.resource_id, &vec![b' '; (256 << 10) + 1], b"");
    let detail = refused(large.send().await.unwrap(), 400, "invalid-header").await;
    assert!(detail.contains("1 to 262144 bytes"), "{detail}");
    let short = request_of(&app, &ticket.resource_id, b"{}", b"").header("content-digest", "sha-256=:AAAA:");
    refused(short.send().await.unwrap(), 400, "invalid-header").await;
    let path = format!("{}?namespace=demo&label=a%3Db", spliced_path(&ticket.resource_id));
    let chunked = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\n{RECIPE_LENGTH}: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"
    );
    let mut wire = Wire::connect(app.address).await;
    wire.send(chunked).await;
    let answer = wire.answer().await;
    assert!(
        answer.status == 400 && answer.text().contains("a splice needs a Content-Length"),
        "{}",
        answer.text()
    );
    assert_eq!(app.rows().await, BTreeMap::from([("ready", 1)]));
}

/// The beginning of a request, up to the end of the recipe: one more byte is to come.
async fn begun(app: &TestApp, ticket: &Ticket, source: &[u8]) -> Wire {
    let parts = [Copy([0, KIB_64]), Send(1), Copy([KIB_64, KIB_64])];
    let recipe = serde_json::to_string(&recipe(ticket, &parts, &spliced(source, &parts, b"x"))).unwrap();
    let (path, length) = (spliced_path(&ticket.resource_id), recipe.len());
    let mut wire = Wire::connect(app.address).await;
    let head = format!(
        "POST {path}?namespace=demo&label=a%3Db HTTP/1.1\r\nHost: x\r\n{RECIPE_LENGTH}: {length}\r\nContent-Length: {}\r\n\r\n",
        length + 1
    );
    wire.send(head + &recipe).await;
    until_true("the source is being read", || app.staging.in_flight() == (1, 1)).await;
    wire
}

#[tokio::test]
async fn a_source_that_is_deleted_stays_readable_for_a_while() {
    let source = noise(SIZE);
    for (deletion_wait, status) in [(Duration::from_mins(10), 201), (Duration::ZERO, 410)] {
        let mut options = Options::default();
        options.limits.deletion_wait = deletion_wait;
        let app = TestApp::start_with(options).await;
        let ticket = app.stage(source.clone()).await;
        let mut wire = begun(&app, &ticket, &source).await;
        let deletion = tokio::spawn(app.delete(&ticket).send());
        let id = ticket.resource_id.clone();
        while app.row(&id).await.unwrap().into_ready().is_some() {
            tokio::task::yield_now().await;
        }
        if status == 410 {
            assert_eq!(deletion.await.unwrap().unwrap().status(), 204);
            until_true("the source is cut off", || app.staging.in_flight() == (1, 0)).await;
        }
        wire.send("x").await;
        let answer = wire.answer().await;
        assert_eq!(answer.status, status, "{}", answer.text());
        until_true("all has ended", || app.staging.in_flight() == (0, 0)).await;
        if status == 201 {
            let made: Ticket = serde_json::from_slice(&answer.body).unwrap();
            app.keep_secret(&made.resource_secret);
        } else {
            assert!(answer.text().contains("the source was deleted while it was read"), "{}", answer.text());
            assert_eq!(app.files(), Vec::<String>::new());
        }
    }
}

/// Sends the head of a splice from an address of its own, and no recipe. Counts itself in `asked` when the server wants to read that.
/// Returns the answer.
async fn silent(app: &TestApp, ticket: &Ticket, asked: &AtomicUsize) -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 2], 0).into()).unwrap();
    let mut client = socket.connect(app.address).await.unwrap();
    let path = spliced_path(&ticket.resource_id);
    let head = format!(
        "POST {path}?namespace=demo&label=a%3Db HTTP/1.1\r\nHost: x\r\n{RECIPE_LENGTH}: 100\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n"
    );
    client.write_all(head.as_bytes()).await.unwrap();
    let (mut answer, mut bytes) = (String::new(), [0; 4096]);
    while !answer.contains("\"detail\"") {
        let read = client.read(&mut bytes).await.unwrap();
        assert!(read > 0, "{answer}");
        let is_first = answer.is_empty();
        answer.push_str(&String::from_utf8_lossy(&bytes[..read]));
        if is_first && answer.starts_with("HTTP/1.1 100 ") {
            asked.fetch_add(1, Ordering::Relaxed);
        }
    }
    answer
}

/// One client may have four recipes on their way.
#[tokio::test]
async fn recipes_that_do_not_come_keep_no_other_client_out() {
    let app = TestApp::start().await;
    let source = noise(SIZE);
    let ticket = app.stage(source.clone()).await;
    let asked = AtomicUsize::new(0);
    let all = join_all((0..40).map(|_| silent(&app, &ticket, &asked)));
    let whole = recipe(&ticket, &[Copy([0, SIZE as u64])], &source);
    let mut all = std::pin::pin!(all);
    let are_there = until_true("the server waits for four recipes", || asked.load(Ordering::Relaxed) == 4);
    tokio::select! {
        answers = &mut all => panic!("they have ended: {answers:?}"),
        () = are_there => {}
    }
    let made = tokio::select! {
        answers = &mut all => panic!("the other client has waited for them: {answers:?}"),
        made = splice(&app, &ticket, &whole, b"") => made,
    };
    app.ticket(made).await;
    let answers = all.await;
    let slow = answers.iter().filter(|answer| answer.contains("the recipe took longer than 10 s")).count();
    let refused = answers.iter().filter(|answer| answer.contains("reads as many recipes as it may")).count();
    assert_eq!((slow, refused), (4, 36));
}

#[tokio::test]
async fn a_source_counts_as_a_download_and_the_bundle_for_its_whole_size() {
    let source = noise(SIZE);
    let mut options = Options::default();
    options.limits.max_concurrent_downloads = 1;
    options.limits.capacity.max_total_size = Some(2 * SIZE as u64 - 1);
    let app = TestApp::start_with(options).await;
    let ticket = app.stage(source.clone()).await;
    let parts = [Copy([0, SIZE as u64])];
    let whole = recipe(&ticket, &parts, &source);
    refused(splice(&app, &ticket, &whole, b"").await, 507, "insufficient-storage").await;
    let small = recipe(&ticket, &[Copy([0, KIB_64])], &source[..1 << 16]);
    let mut wire = begun(&app, &ticket, &source).await;
    let detail = refused(splice(&app, &ticket, &small, b"").await, 503, "overloaded").await;
    assert!(detail.contains("--max-concurrent-downloads"), "{detail}");
    wire.send("x").await;
    let answer = wire.answer().await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let made: Ticket = serde_json::from_slice(&answer.body).unwrap();
    app.keep_secret(&made.resource_secret);
}

#[tokio::test]
async fn a_server_that_stops_in_the_middle_keeps_nothing_of_a_splice() {
    let source = noise(SIZE);
    let app = TestApp::start().await;
    let ticket = app.stage(source.clone()).await;
    let wire = begun(&app, &ticket, &source).await;
    drop(wire);
    until_true("the splice has ended", || app.staging.in_flight() == (0, 0)).await;
    let app = app.crash_and_restart().await;
    assert_eq!(app.rows().await, BTreeMap::from([("ready", 1)]));
    assert_eq!(app.files().len(), 1);
}
