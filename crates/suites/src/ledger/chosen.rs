//! Rows whose secret their client has chosen, and whose owner has no objects.

use cloakroom_core::resource::{DeletionReason, Owner, ResourceId, State};
use cloakroom_storage::ledger::{
    Chosen, Completion, Condition, Deletion, Finish, LedgerError, PendingResource,
};

use super::rows::{AnyLedger, at, completion, new_id, open, pending, secret, state};
use crate::ledgers::LedgerData;
use crate::{Rule, rules};

pub const RULES: &[Rule<LedgerData>] = rules!(
    a_secret_is_that_of_one_row_from_its_first_byte_to_its_last,
    a_row_without_objects_comes_back_as_it_is_and_leaves_no_tombstone,
);

async fn begun(ledger: &AnyLedger, id: ResourceId, of: ResourceId) -> Result<(), LedgerError> {
    ledger.begin(PendingResource { secret_hash: secret(of).hash(), ..pending(id) }).await
}

/// Whose the secret is; `Err` if it is spent.
async fn found(ledger: &AnyLedger, of: ResourceId) -> Result<Option<ResourceId>, ()> {
    match ledger.find_by_secret(secret(of).hash()).await.unwrap() {
        Chosen::Never => Ok(None),
        Chosen::By(row) => Ok(Some(row.id)),
        Chosen::Before => Err(()),
    }
}

fn without_objects(id: ResourceId) -> Completion {
    Completion { owner: Owner::without_objects("team-a").unwrap(), ..completion(id) }
}

async fn is_deleted(ledger: &AnyLedger, id: ResourceId) -> bool {
    let decision =
        Deletion { id, reason: DeletionReason::NotReadAgain, at: at(200), condition: Condition::Always };
    ledger.mark_deleting(decision).await.unwrap() && ledger.finish(id, Finish::Deleted).await.unwrap()
}

async fn a_secret_is_that_of_one_row_from_its_first_byte_to_its_last(data: &LedgerData) {
    let ledger = open(data).await;
    let [first, second, other] = [new_id(), new_id(), new_id()];
    assert_eq!(found(&ledger, first).await, Ok(None));
    begun(&ledger, first, first).await.unwrap();
    begun(&ledger, other, other).await.unwrap();
    assert!(matches!(begun(&ledger, second, first).await, Err(LedgerError::Taken)));
    assert_eq!((found(&ledger, first).await, state(&ledger, second).await), (Ok(Some(first)), None));
    ledger.finish(first, Finish::Abandoned { late: None }).await.unwrap();
    begun(&ledger, second, first).await.unwrap();
    ledger.complete(without_objects(second)).await.unwrap();
    let ledger = open(data).await;
    assert!(matches!(begun(&ledger, new_id(), first).await, Err(LedgerError::Taken)));
    assert_eq!(found(&ledger, first).await, Ok(Some(second)));
    assert!(is_deleted(&ledger, second).await);
    // The secret of a deleted row stays taken for as long as a tombstone would stay.
    let ledger = open(data).await;
    assert_eq!((found(&ledger, first).await, found(&ledger, other).await), (Err(()), Ok(Some(other))));
    assert!(matches!(begun(&ledger, new_id(), first).await, Err(LedgerError::Taken)));
    ledger.forget(at(200), 10).await.unwrap();
    assert_eq!(found(&ledger, first).await, Err(()));
    ledger.forget(at(201), 10).await.unwrap();
    assert_eq!(found(&ledger, first).await, Ok(None));
    begun(&ledger, first, first).await.unwrap();
    ledger.complete(without_objects(first)).await.unwrap();
    assert!(is_deleted(&ledger, first).await);
    ledger.forget(at(0), 0).await.unwrap();
    assert_eq!(found(&ledger, first).await, Ok(None), "there are too many");
}

async fn a_row_without_objects_comes_back_as_it_is_and_leaves_no_tombstone(data: &LedgerData) {
    let id = new_id();
    {
        let ledger = open(data).await;
        begun(&ledger, id, id).await.unwrap();
        ledger.complete(without_objects(id)).await.unwrap();
    }
    let ledger = open(data).await;
    let row = ledger.find(id).await.unwrap().unwrap().into_ready().unwrap();
    assert_eq!(row.data.owner, without_objects(id).owner);
    let listed = ledger.ready.page(None, 10);
    assert!(listed.iter().any(|listed| listed.id == id && !listed.owner.has_objects()));
    assert!(is_deleted(&ledger, id).await);
    assert!(ledger.find(id).await.unwrap().is_none());
    let by_state = ledger.ready.by_state();
    assert_eq!((by_state[State::Deleting.as_str()], by_state[State::Deleted.as_str()]), (0, 0));
    assert_eq!(ledger.ready.taken().resources, 0);
    assert_eq!(ledger.totals().await.unwrap().by_state.values().sum::<u64>(), 0);
}
