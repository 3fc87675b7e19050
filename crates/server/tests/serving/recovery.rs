//! What a start finds after a crash, and puts right; what it must not touch, and what it refuses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloakroom_adapters::disk::{DataDirectory, DiskStore};
use cloakroom_adapters::sqlite::SqliteLedger;
use cloakroom_core::client::Client;
use cloakroom_core::resource::{
    BlobKey, Bundle, DeletionReason, Lifetime, Owner, OwnerKind, ResourceId, ResourceSecret,
};
use cloakroom_storage::Recovered;
use cloakroom_storage::ledger::{Completion, Condition, Deletion, Ledger as _, PendingResource};
use cloakroom_storage::store::{Begun, BlobStore as _};
use cloakroom_testing::clock::ManualClock;
use cloakroom_testing::logs;
use cloakroom_testing::wait::until;
use cloakroom_testing::wire::Wire;
use jiff::Timestamp;
use tempfile::TempDir;

use crate::support::TestApp;
use crate::support::app::{Options, problem};

const RESERVE_BYTES: u64 = 4 << 20;

/// A data directory as an earlier process left it.
struct Remains {
    directory: Arc<TempDir>,
    ledger: SqliteLedger,
    store: DiskStore,
}

impl Remains {
    async fn new() -> Self {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        let data = DataDirectory::open(directory.path()).unwrap();
        let ledger = SqliteLedger::open(&data.ledger()).await.unwrap();
        Self { directory, ledger, store: DiskStore::new(data) }
    }

    /// Starts a server on it.
    async fn start(self) -> TestApp {
        self.ledger.close().await;
        drop(self.store);
        TestApp::start_on(self.directory, Arc::new(ManualClock::new()), Options::default()).await
    }

    async fn pending(&self) -> ResourceId {
        let id = ResourceId::generate(&mut rand::rng());
        let pending = PendingResource {
            id,
            secret_hash: ResourceSecret::from_text(id.to_string()).hash(),
            file_name: None,
            created_at: now(),
            uploaded_by: None,
        };
        self.ledger.begin(pending).await.unwrap();
        id
    }

    async fn ready(&self, id: ResourceId) {
        let owner = Owner::new(OwnerKind::default(), "demo", [("app".into(), "demo".into())], None).unwrap();
        let lifetime = Lifetime { unused_timeout: Duration::from_mins(30), ttl: None };
        let bundle = Bundle { size_bytes: 5, sha256: [0; 32] };
        self.ledger.complete(Completion { id, owner, bundle, lifetime, created_at: now() }).await.unwrap();
    }

    async fn deleting(&self) -> ResourceId {
        let id = self.pending().await;
        self.ready(id).await;
        let reason = DeletionReason::Released;
        let deletion = Deletion { id, reason, at: now(), condition: Condition::Always };
        assert!(self.ledger.mark_deleting(deletion).await.unwrap());
        id
    }

    async fn incoming_bytes(&self, id: ResourceId) {
        let Begun { mut writer, .. } =
            self.store.begin(BlobKey::for_resource(id), None, &Client::Server).await.unwrap();
        writer.write(Bytes::from_static(b"bytes")).await.unwrap();
    }

    async fn published_bytes(&self, id: ResourceId) {
        let Begun { mut writer, .. } =
            self.store.begin(BlobKey::for_resource(id), None, &Client::Server).await.unwrap();
        writer.write(Bytes::from_static(b"bytes")).await.unwrap();
        writer.commit().await.unwrap();
    }
}

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

#[tokio::test]
async fn interrupted_uploads_are_gone_after_a_start_however_far_they_came() {
    let remains = Remains::new().await;
    remains.pending().await;
    let arriving = remains.pending().await;
    remains.incoming_bytes(arriving).await;
    let renamed = remains.pending().await;
    remains.published_bytes(renamed).await;
    let app = remains.start().await;
    // A whole bundle may have been acknowledged, and the ledger may have lost that.
    assert_eq!(app.files(), [format!("bundles/{}/{renamed}", renamed.shard())]);
    assert_eq!((app.rows().await, app.metric("strays").await), (BTreeMap::new(), "1".to_owned()));
    assert_eq!(app.clean_strays().await, 1);
    app.assert_nothing_kept().await;
}

#[tokio::test]
async fn interrupted_deletions_are_finished_by_a_start_and_answer_as_gone() {
    let remains = Remains::new().await;
    let with_bytes = remains.deleting().await;
    remains.published_bytes(with_bytes).await;
    let without_bytes = remains.deleting().await;
    let app = remains.start().await;
    assert_eq!(app.files(), Vec::<String>::new());
    assert_eq!(app.rows().await, BTreeMap::from([("deleted", 2)]));
    assert_eq!(app.stored().await.bytes, 0);
    for id in [with_bytes, without_bytes] {
        let request = app.get(&format!("/api/v1/resources/{id}")).bearer_auth(id);
        let gone = problem(request.send().await.unwrap()).await;
        assert_eq!((gone.status, gone.deletion_reason.as_deref()), (410, Some("released")));
    }
}

#[tokio::test]
async fn bytes_without_a_row_are_removed_and_logged_unless_they_are_a_bundle() {
    let remains = Remains::new().await;
    let [arriving, whole] = [(); 2].map(|()| ResourceId::generate(&mut rand::rng()));
    remains.incoming_bytes(arriving).await;
    remains.published_bytes(whole).await;
    let known = remains.pending().await;
    remains.published_bytes(known).await;
    remains.ready(known).await;
    let app = remains.start().await;
    let mut left = [known, whole].map(|id| format!("bundles/{}/{id}", id.shard()));
    left.sort();
    assert_eq!(app.files(), left);
    assert_eq!(app.clean_strays().await, 1);
    assert_eq!(app.files(), [format!("bundles/{}/{known}", known.shard())]);
    for id in [arriving, whole] {
        let lines = logs::lines_with(&id.to_string());
        assert!(lines.iter().any(|line| line.contains("ledger does not know")), "{lines:?}");
    }
    app.ready_row(&known.to_string()).await;
}

// Invariant: the store removes only bytes that it wrote.
#[tokio::test]
async fn what_is_not_the_stores_own_is_left_alone() {
    let remains = Remains::new().await;
    let folder = remains.directory.path().to_owned();
    let id = ResourceId::generate(&mut rand::rng()).to_string();
    let foreign = [
        "incoming/notes.txt".to_owned(),
        "bundles/README".to_owned(),
        "bundles/ab/.keep".to_owned(),
        format!("bundles/ab/{}", id.to_uppercase()),
        format!("bundles/ab/{id}.bak"),
        format!("bundles/lost+found/{}", "x".repeat(36)),
        "other/file".to_owned(),
    ];
    for name in &foreign {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "mine").unwrap();
    }
    // A folder with the name of a bundle is not a bundle.
    std::fs::create_dir_all(folder.join(format!("bundles/{}/{id}/inner", &id[..2]))).unwrap();
    let app = remains.start().await;
    app.recover().await.unwrap();
    for name in &foreign {
        assert_eq!(std::fs::read_to_string(folder.join(name)).unwrap(), "mine", "{name}");
    }
    assert!(folder.join(format!("bundles/{}/{id}/inner", &id[..2])).is_dir());
    let ticket = app.stage("still works").await;
    assert_eq!(app.download(&ticket).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn the_reserve_is_renewed_when_it_is_missing_or_too_small() {
    let app = TestApp::start().await;
    let reserve = app.data_dir().join("reserve");
    let size = || std::fs::metadata(&reserve).map_or(0, |found| found.len());
    assert_eq!(size(), RESERVE_BYTES);
    std::fs::remove_file(&reserve).unwrap();
    app.sweep().await;
    assert_eq!(size(), RESERVE_BYTES);
    std::fs::write(&reserve, "half of it").unwrap();
    let app = app.crash_and_restart().await;
    assert_eq!(size(), RESERVE_BYTES);
    drop(app);
}

// Invariant: an upload in flight is not taken for debris, nor is one whose last step failed in an unknown way.
#[tokio::test]
async fn an_upload_in_flight_is_no_debris() {
    let app = TestApp::start().await;
    let mut wire = Wire::connect(app.address).await;
    let head = "PUT /api/v1/resources/a?namespace=demo&name=driver HTTP/1.1\r\nHost: x\r\nContent-Length: 600000\r\n\r\n";
    wire.send(head).await;
    wire.send(vec![1; 300_000]).await;
    until("bytes are arriving", async || !app.files().is_empty()).await;
    assert_eq!(app.recover().await.unwrap(), Recovered::default());
    assert_eq!(app.sweep().await.recovered, Recovered::default());
    wire.send(vec![1; 300_000]).await;
    let answer = wire.answer().await;
    assert_eq!(answer.status, 201);
    let ticket: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    app.keep_secret(ticket["resourceSecret"].as_str().unwrap());
    assert_eq!(app.recover().await.unwrap(), Recovered::default());
    assert_eq!(std::fs::metadata(app.data_dir().join(&app.files()[0])).unwrap().len(), 600_000);
}
