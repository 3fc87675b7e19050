//! The keys that have no row, and whether their resource or upload has ended.

use cloakroom_storage::ledger::Finish;
use std::collections::BTreeMap;

use cloakroom_core::resource::{BlobKey, ResourceId};

use super::rows::{AnyLedger, at, begin, deleted, deleting, new_id, open, ready};
use crate::ledgers::LedgerData;
use crate::{Rule, rules};

pub const RULES: &[Rule<LedgerData>] = rules!(a_key_has_a_row_or_has_ended_or_is_not_known,);

async fn a_key_has_a_row_or_has_ended_or_is_not_known(data: &LedgerData) {
    let ledger = open(data).await;
    let [uploading, late, gone, unknown] = [new_id(), new_id(), new_id(), new_id()];
    for (id, at) in [(late, Some(at(200))), (gone, None)] {
        begin(&ledger, id).await;
        ledger.abandon(id).await.unwrap().unwrap();
        assert!(without_row(&ledger, &[id]).await.is_empty(), "its bytes are not removed yet");
        assert!(ledger.finish(id, Finish::Abandoned { late: at }).await.unwrap());
    }
    begin(&ledger, uploading).await;
    let tombstone = deleted(&ledger).await;
    let with_row = [uploading, ready(&ledger).await, deleting(&ledger).await];
    let all: Vec<_> = with_row.into_iter().chain([late, gone, unknown, tombstone]).collect();
    let expected = BTreeMap::from([(late, true), (gone, false), (unknown, false), (tombstone, true)]);
    let ledger = open(data).await;
    assert_eq!(without_row(&ledger, &all).await, expected);
    assert_eq!(without_row(&ledger, &[]).await, BTreeMap::new());
    // A second end of the same upload does not make the ledger forget the key.
    ledger.abandon(late).await.unwrap().unwrap();
    assert!(!ledger.finish(late, Finish::Abandoned { late: None }).await.unwrap());
    ledger.forget(at(200), 0).await.unwrap();
    assert_eq!(
        without_row(&ledger, &[late, tombstone]).await,
        BTreeMap::from([(late, true), (tombstone, false)])
    );
    ledger.forget(at(201), 0).await.unwrap();
    assert_eq!(without_row(&ledger, &[late]).await, BTreeMap::from([(late, false)]));
    let many: Vec<_> = (0..2500).map(|_| new_id()).chain([uploading]).collect();
    assert_eq!(without_row(&ledger, &many).await.len(), 2500);
}

/// Whether each of them that has no row has ended.
async fn without_row(ledger: &AnyLedger, ids: &[ResourceId]) -> BTreeMap<ResourceId, bool> {
    let keys: Vec<BlobKey> = ids.iter().copied().map(BlobKey::for_resource).collect();
    let found = ledger.without_row(&keys).await.unwrap();
    found.into_iter().map(|rowless| (rowless.key.resource(), rowless.has_ended)).collect()
}
