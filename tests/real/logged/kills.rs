//! `kill -9` under load, and each time another server with an empty data directory: the bucket has all that was acknowledged.

use std::sync::atomic::{AtomicUsize, Ordering};

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::tls;
use cloakroom_testing::wait::until_true;
use futures_util::{StreamExt as _, stream};
use rand::{RngExt as _, rng};
use reqwest::{Client, RequestBuilder};
use tokio::task::JoinSet;

use super::beside;
use crate::buckets::Bucket;

/// How many servers are killed. By hand, give a larger number.
const KILLS: &str = "CLOAKROOM_TEST_KILLS";
const DEFAULT_KILLS: usize = 15;

const CLIENTS: usize = 4;

/// A server is killed after so many acknowledgements or fewer.
const MOST_ACKNOWLEDGED: usize = 24;

/// The answers that clients have got.
static ACKNOWLEDGED: AtomicUsize = AtomicUsize::new(0);

/// What the client knows of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Staged,
    Downloaded,
    /// Its deletion was asked for, and no answer came: it may be there or not.
    DeletionAsked,
    Deleted,
}

struct Bundle {
    number: usize,
    ticket: Ticket,
    known: Known,
}

impl Bundle {
    fn url(&self, server: &str) -> String {
        format!("{server}/api/v1/resources/{}", self.ticket.resource_id)
    }
}

/// None to some ten thousand.
fn bytes(number: usize) -> Vec<u8> {
    (0..number.wrapping_mul(7919) % 30_000).map(|at| (at.wrapping_mul(number) >> 3) as u8).collect()
}

/// Status and body; `None` if they do not come whole.
async fn answer(request: RequestBuilder) -> Option<(u16, Vec<u8>)> {
    let response = request.send().await.ok()?;
    Some((response.status().as_u16(), response.bytes().await.ok()?.into()))
}

/// The body of what must be acknowledged with this status; `None` if the server is no more.
async fn acknowledged(request: RequestBuilder, status: u16) -> Option<Vec<u8>> {
    let answer = answer(request).await?;
    assert_eq!(answer.0, status, "{}", String::from_utf8_lossy(&answer.1));
    ACKNOWLEDGED.fetch_add(1, Ordering::Relaxed);
    Some(answer.1)
}

/// Stages one bundle after another until the server is no more. Of four it downloads one, and deletes one.
async fn load(client: Client, server: String, mut number: usize) -> Vec<Bundle> {
    let mut bundles = Vec::new();
    let upload = format!("{server}/api/v1/resources?namespace=jobs&label=app%3Da");
    while let Some(ticket) = acknowledged(client.put(&upload).body(bytes(number)), 201).await {
        let ticket = serde_json::from_slice(&ticket).unwrap();
        let mut bundle = Bundle { number, ticket, known: Known::Staged };
        let (url, secret) = (bundle.url(&server), &bundle.ticket.resource_secret);
        let (download, deletion) =
            (client.get(&url).bearer_auth(secret), client.delete(&url).bearer_auth(secret));
        match number / CLIENTS % 4 {
            0 if acknowledged(download, 200).await.is_some() => bundle.known = Known::Downloaded,
            1 if acknowledged(deletion, 204).await.is_some() => bundle.known = Known::Deleted,
            1 => bundle.known = Known::DeletionAsked,
            _ => {}
        }
        bundles.push(bundle);
        number += CLIENTS;
    }
    bundles
}

/// Asks a later server for a bundle, and says what is not as it was acknowledged. What it finds must be so for ever.
async fn lost(bundle: &mut Bundle, server: &str, client: &Client) -> Option<String> {
    let url = bundle.url(server);
    let get = |url: &str| answer(client.get(url).bearer_auth(&bundle.ticket.resource_secret));
    let (_, metadata) = get(&format!("{url}/metadata")).await.unwrap();
    let is_used = String::from_utf8_lossy(&metadata).contains("\"firstUsedAt\":\"");
    let (status, body) = get(&url).await.unwrap();
    let is_right = match (bundle.known, status) {
        (Known::Downloaded, 200) => is_used && body == bytes(bundle.number),
        (Known::Staged | Known::DeletionAsked, 200) => body == bytes(bundle.number),
        (Known::Deleted | Known::DeletionAsked, 410) => true,
        _ => false,
    };
    let (id, known) = (&bundle.ticket.resource_id, bundle.known);
    let said = format!("{id} was {known:?}, and now its status is {status}, used: {is_used}");
    bundle.known = if status == 200 { Known::Downloaded } else { Known::Deleted };
    (!is_right).then_some(said)
}

async fn assert_none_lost(bundles: impl Iterator<Item = &mut Bundle>, server: &Cloakroom, client: &Client) {
    let url = &server.url("");
    let checks = stream::iter(bundles).map(|bundle| lost(bundle, url, client)).buffer_unordered(CLIENTS);
    let lost: Vec<String> = checks.filter_map(async |lost| lost).collect().await;
    assert!(lost.is_empty(), "{} are lost:\n{}\n{}", lost.len(), lost.join("\n"), server.log());
}

pub(super) async fn what_was_acknowledged_outlives_every_kill_without_a_data_directory(bucket: Bucket) {
    let kills = std::env::var(KILLS).map_or(DEFAULT_KILLS, |kills| kills.parse().unwrap());
    let client = Client::builder().no_proxy().tls_backend_preconfigured(tls::no_roots()).build().unwrap();
    let launch = || Cloakroom::launch(beside(&bucket, "data", &["--takeover-after", "100ms"]));
    let stamp = || std::fs::read(bucket.gateway.objects().join("cloakroom/stamp")).ok();
    let mut rounds: Vec<Vec<Bundle>> = Vec::new();
    for kill in 0..=kills {
        let _ = std::fs::remove_dir_all(bucket.data_dir());
        let claimed = stamp();
        let mut server = launch();
        // One of four is killed once it has claimed an epoch, while it makes its ledger or soon after that.
        if kill < kills && rng().random_ratio(1, 4) {
            until_true("it has claimed an epoch", || stamp() != claimed).await;
            server.kill();
            continue;
        }
        server.wait_until_it_serves();
        let checked = if kill == kills { rounds.len() } else { 2 };
        assert_none_lost(rounds.iter_mut().rev().take(checked).flatten(), &server, &client).await;
        if kill == kills {
            break;
        }
        let enough = ACKNOWLEDGED.load(Ordering::Relaxed) + rng().random_range(1..=MOST_ACKNOWLEDGED);
        let clients = (0..CLIENTS).map(|lane| load(client.clone(), server.url(""), kill * 1_000_000 + lane));
        let clients: JoinSet<_> = clients.collect();
        until_true("clients have answers", || ACKNOWLEDGED.load(Ordering::Relaxed) >= enough).await;
        server.kill();
        rounds.push(clients.join_all().await.into_iter().flatten().collect());
    }
    let (answers, bundles) =
        (ACKNOWLEDGED.load(Ordering::Relaxed), rounds.iter().map(Vec::len).sum::<usize>());
    println!("{kills} kills, {answers} acknowledged for {bundles} bundles: none is lost");
}
