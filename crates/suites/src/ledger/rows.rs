//! Rows for the rules of ledgers.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_core::resource::{
    Bundle, DeletionReason, FileName, Lifetime, Owner, OwnerKind, Resource, ResourceId, ResourceSecret, State,
};
use cloakroom_storage::ledger::{Completion, Condition, Deletion, Finish, Ledger, Page, PendingResource};
use jiff::Timestamp;

use crate::ledgers::LedgerData;

pub type AnyLedger = Arc<dyn Ledger>;

/// Opens the data as a process does that begins.
pub async fn open(data: &LedgerData) -> AnyLedger {
    let ledger = data.open().await;
    ledger.load(0).await.unwrap();
    ledger
}

pub fn new_id() -> ResourceId {
    ResourceId::generate(&mut rand::rng())
}

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

pub fn pending(id: ResourceId) -> PendingResource {
    PendingResource {
        id,
        secret_hash: ResourceSecret::from_text("secret").hash(),
        file_name: Some(FileName::parse("déps.tgz").unwrap()),
        created_at: at(0),
        uploaded_by: Some("10.0.0.1".to_owned()),
    }
}

pub fn completion(id: ResourceId) -> Completion {
    let labels = [("app".to_owned(), "demo".to_owned()), ("b/c".to_owned(), String::new())];
    Completion {
        id,
        owner: Owner::new(OwnerKind::parse("Job").unwrap(), "team-a", labels, Some("driver")).unwrap(),
        bundle: Bundle { size_bytes: 1000, sha256: [7; 32] },
        lifetime: Lifetime { unused_timeout: Duration::from_secs(100), ttl: Some(Duration::from_secs(500)) },
        created_at: at(10),
    }
}

pub async fn begin(ledger: &AnyLedger, id: ResourceId) {
    ledger.begin(pending(id), &[]).await.unwrap();
}

pub async fn ready(ledger: &AnyLedger) -> ResourceId {
    let id = new_id();
    begin(ledger, id).await;
    ledger.complete(completion(id)).await.unwrap();
    id
}

pub fn deletion(id: ResourceId, condition: Condition) -> Deletion {
    Deletion { id, reason: DeletionReason::Unused, at: at(200), condition }
}

pub async fn deleting(ledger: &AnyLedger) -> ResourceId {
    let id = ready(ledger).await;
    assert!(ledger.mark_deleting(deletion(id, Condition::Always)).await.unwrap());
    id
}

pub async fn deleted(ledger: &AnyLedger) -> ResourceId {
    let id = deleting(ledger).await;
    assert!(ledger.finish(id, Finish::Deleted).await.unwrap());
    id
}

pub fn is_used(row: &Resource) -> bool {
    row.history().is_some_and(|history| history.last_used_at.is_some())
}

pub async fn state(ledger: &AnyLedger, id: ResourceId) -> Option<State> {
    ledger.find(id).await.unwrap().map(|resource| resource.state())
}

pub async fn ids_of(
    ledger: &AnyLedger,
    state: State,
    after: Option<ResourceId>,
    limit: u32,
) -> Vec<ResourceId> {
    ledger.page(state, after, limit).await.unwrap().rows.iter().map(Page::id).collect()
}
