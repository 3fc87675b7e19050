//! Rows for the rules of ledgers.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use cloakroom_core::resource::{
    Bundle, DeletionReason, FileName, Lifetime, Owner, OwnerKind, Resource, ResourceId, ResourceSecret, State,
};
use cloakroom_storage::ledger::{Completion, Condition, Deletion, Finish, Ledger, Page, PendingResource};
use cloakroom_storage::ready::ReadyResources;
use jiff::Timestamp;

use crate::ledgers::LedgerData;

/// A ledger, with what is in memory in front of it.
pub struct AnyLedger {
    ledger: Arc<dyn Ledger>,
    pub ready: Arc<ReadyResources>,
}

impl AnyLedger {
    /// A row counts as `least_bytes` or more.
    pub async fn load(ledger: Arc<dyn Ledger>, least_bytes: u64) -> Self {
        let ready = Arc::new(ReadyResources::new(least_bytes));
        ledger.follow(Arc::clone(&ready) as _);
        ready.load(&*ledger).await.unwrap();
        Self { ledger, ready }
    }

    pub async fn refresh(&self, thorough: bool) {
        self.ready.refresh(&**self, thorough).await.unwrap();
    }
}

impl Deref for AnyLedger {
    type Target = dyn Ledger;

    fn deref(&self) -> &Self::Target {
        &*self.ledger
    }
}

/// Opens the data as a process does that begins.
pub async fn open(data: &LedgerData) -> AnyLedger {
    AnyLedger::load(data.open().await, 0).await
}

pub fn new_id() -> ResourceId {
    ResourceId::generate(&mut rand::rng())
}

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

pub fn secret(id: ResourceId) -> ResourceSecret {
    ResourceSecret::from_text(format!("secret of {id}"))
}

pub fn pending(id: ResourceId) -> PendingResource {
    PendingResource {
        id,
        secret_hash: secret(id).hash(),
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
    ledger.begin(pending(id)).await.unwrap();
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
