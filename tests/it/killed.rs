//! `kill -9` at any moment: what was acknowledged is there, and nothing else.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloakroom_adapters::disk::{DataDirectory, DiskStore};
use cloakroom_adapters::sqlite::SqliteLedger;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::BlobKey;
use cloakroom_storage::ledger::Ledger as _;
use cloakroom_storage::store::{BlobFacts, BlobStore as _, LocalDisk as _};
use cloakroom_testing::{process::Cloakroom, tls};
use futures_util::TryStreamExt as _;
use rand::RngExt as _;
use reqwest::Client;

const ROUNDS: usize = 15;
const UPLOADERS: u64 = 4;

fn client() -> Client {
    Client::builder().no_proxy().tls_backend_preconfigured(tls::no_roots()).build().unwrap()
}

/// The bundle of a number: some bytes to some hundred thousand.
fn bundle(number: u64) -> Vec<u8> {
    let length = number.wrapping_mul(7919) % 300_000;
    (0..length).map(|at| (at.wrapping_mul(number) >> 3) as u8).collect()
}

/// Uploads one bundle after another until the server is no more.
async fn upload(url: String, first: u64, acknowledged: Arc<Mutex<Vec<(u64, Ticket)>>>) {
    let client = client();
    for number in (first..).step_by(usize::try_from(UPLOADERS).unwrap()) {
        let Ok(response) = client.put(&url).body(bundle(number)).send().await else { return };
        assert_eq!(response.status(), 201);
        // The ticket counts once it has arrived.
        let Ok(body) = response.bytes().await else { return };
        acknowledged.lock().unwrap().push((number, serde_json::from_slice(&body).unwrap()));
    }
}

async fn assert_downloads(server: &Cloakroom, tickets: &[(u64, Ticket)]) {
    let client = client();
    for (number, ticket) in tickets {
        let url = server.url(&format!("/api/v1/resources/{}", ticket.resource_id));
        let response = client.get(url).bearer_auth(&ticket.resource_secret).send().await.unwrap();
        assert_eq!(response.status(), 200, "bundle {number} is lost");
        assert!(response.bytes().await.unwrap() == bundle(*number), "bundle {number} has other bytes");
    }
}

/// No file without a ready row of its size, and no row without its file. A bundle that was whole and not yet acknowledged is a
/// stray.
async fn assert_rows_are_files(data_dir: &Path, least: usize) {
    let directory = DataDirectory::open(data_dir).unwrap();
    let ledger = SqliteLedger::open(&directory.ledger()).await.unwrap();
    let store = DiskStore::new(directory);
    let strays: Vec<_> = ledger.facts().await.unwrap().strays.iter().map(|stray| stray.key).collect();
    let mut blobs: Vec<(BlobKey, BlobFacts)> = store.list().try_collect().await.unwrap();
    blobs.retain(|(key, _)| !strays.contains(key));
    assert_eq!(store.arriving().await.unwrap(), []);
    for (key, facts) in &blobs {
        let row = ledger.find(key.resource()).await.unwrap().expect("a file without a row");
        let row = row.into_ready().expect("a file of a row that is not ready");
        assert_eq!(facts.size_bytes, row.data.bundle.size_bytes);
    }
    let rows = ledger.totals().await.unwrap().by_state;
    assert_eq!(rows.into_iter().collect::<Vec<_>>(), [("ready", blobs.len() as u64)]);
    assert!(blobs.len() >= least);
    ledger.close().await;
}

// Invariant: acknowledged uploads survive `kill -9`, and nothing else is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_upload_survives_kill_9_and_nothing_else_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let mut everything = Vec::new();
    for round in 0..ROUNDS {
        let server = Cloakroom::serve(folder.path(), &["--min-free-space", "0b"]);
        let acknowledged = Arc::new(Mutex::new(Vec::new()));
        let url = server.url("/api/v1/resources/deps.tgz?namespace=demo&label=app%3Ddemo");
        let first = round as u64 * 1_000_000;
        let uploaders: Vec<_> = (0..UPLOADERS)
            .map(|lane| tokio::spawn(upload(url.clone(), first + lane, Arc::clone(&acknowledged))))
            .collect();
        // A moment that nothing in the server has to do with.
        tokio::time::sleep(Duration::from_millis(rand::rng().random_range(5..150))).await;
        server.kill();
        for uploader in uploaders {
            uploader.await.unwrap();
        }
        let of_this_round = std::mem::take(&mut *acknowledged.lock().unwrap());
        let restarted = Cloakroom::serve(folder.path(), &[]);
        assert_downloads(&restarted, &of_this_round).await;
        restarted.kill();
        everything.extend(of_this_round);
    }
    assert!(!everything.is_empty(), "no upload was ever acknowledged: the test tests nothing");
    let server = Cloakroom::serve(folder.path(), &[]);
    assert_downloads(&server, &everything).await;
    server.kill();
    assert_rows_are_files(folder.path(), everything.len()).await;
}
