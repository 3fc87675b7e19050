//! `kill -9` at any moment while sweeps delete: what has an owner is there, what has none goes in the end, and nothing is
//! left in between.

use std::path::Path;
use std::time::Duration;

use cloakroom_adapters::disk::{DataDirectory, DiskStore};
use cloakroom_adapters::sqlite::SqliteLedger;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_storage::ledger::Ledger as _;
use cloakroom_storage::store::{BlobStore as _, LocalDisk as _};
use cloakroom_testing::api_server::FakeApiServer;
use cloakroom_testing::cluster::{Account, Cluster as _};
use cloakroom_testing::wait::until;
use cloakroom_testing::{process::Cloakroom, tls};
use futures_util::StreamExt as _;
use rand::RngExt as _;
use reqwest::Client;

const BUNDLES: usize = 60;
/// More than half, because the guard against mass deletion would hold back what the others leave, if all of them are first
/// missed in one sweep.
const OWNED: usize = 32;
const ROUNDS: usize = 12;

fn client() -> Client {
    Client::builder().no_proxy().tls_backend_preconfigured(tls::no_roots()).build().unwrap()
}

fn serve(data_dir: &Path, kubeconfig: &Path) -> Cloakroom {
    let flags =
        ["--cleanup-interval", "20ms", "--orphan-grace", "1ms", "--min-free-space", "0b", "--kubeconfig"];
    Cloakroom::serve(data_dir, &[&flags[..], &[kubeconfig.to_str().unwrap()]].concat())
}

async fn status(server: &Cloakroom, client: &Client, ticket: &Ticket) -> u16 {
    let url = server.url(&format!("/api/v1/resources/{}", ticket.resource_id));
    let answer = client.get(url).bearer_auth(&ticket.resource_secret).send().await.unwrap();
    let status = answer.status().as_u16();
    if status == 200 {
        assert_eq!(answer.text().await.unwrap(), "jars");
    }
    status
}

async fn stage_and_fetch(server: &Cloakroom, client: &Client, pod: &str) -> Ticket {
    let url = server.url(&format!("/api/v1/resources/deps.tgz?namespace=demo&name={pod}"));
    let answer = client.put(url).body("jars").send().await.unwrap();
    assert_eq!(answer.status(), 201);
    let ticket = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    assert_eq!(status(server, client, &ticket).await, 200);
    ticket
}

async fn owner_is_seen(server: &Cloakroom, client: &Client, ticket: &Ticket) -> bool {
    let url = server.url(&format!("/api/v1/resources/{}/metadata", ticket.resource_id));
    let answer = client.get(url).bearer_auth(&ticket.resource_secret).send().await.unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    metadata["ownerSeenAt"].is_string()
}

/// Every file has a row that is ready, and the other way round.
async fn assert_rows_are_files(data_dir: &Path) {
    let directory = DataDirectory::open(data_dir).unwrap();
    let ledger = SqliteLedger::open(&directory.ledger()).await.unwrap();
    let store = DiskStore::new(directory);
    let files = store.list().count().await + store.arriving().await.unwrap().len();
    let rows: Vec<_> = ledger.totals().await.unwrap().by_state.into_iter().collect();
    assert_eq!((files, rows), (OWNED, vec![("deleted", (BUNDLES - OWNED) as u64), ("ready", OWNED as u64)]));
    ledger.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_while_it_deletes_loses_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    let kubeconfig = folder.path().join("kubeconfig");
    let api = FakeApiServer::start();
    std::fs::write(&kubeconfig, api.kubeconfig(Account::Cloakroom, api.address())).unwrap();
    let (client, mut server) = (client(), serve(&data_dir, &kubeconfig));
    let mut tickets = Vec::new();
    for number in 0..BUNDLES {
        let pod = format!("driver-{number}");
        api.create_pod("demo", &pod, &[]);
        tickets.push(stage_and_fetch(&server, &client, &pod).await);
    }
    for ticket in &tickets {
        until("its owner is seen", || owner_is_seen(&server, &client, ticket)).await;
    }
    let mut doomed: Vec<usize> = (OWNED..BUNDLES).collect();
    let per_round = doomed.len().div_ceil(ROUNDS);
    for _ in 0..ROUNDS {
        for number in doomed.drain(..per_round.min(doomed.len())) {
            api.delete_pod("demo", &format!("driver-{number}"));
        }
        // A moment that nothing in the server has to do with.
        tokio::time::sleep(Duration::from_millis(rand::rng().random_range(1..120))).await;
        server.kill();
        server = serve(&data_dir, &kubeconfig);
    }
    for ticket in &tickets[OWNED..] {
        until("the orphan is gone", async || status(&server, &client, ticket).await == 410).await;
    }
    for ticket in &tickets[..OWNED] {
        assert_eq!(status(&server, &client, ticket).await, 200);
    }
    server.kill();
    assert_rows_are_files(&data_dir).await;
}
