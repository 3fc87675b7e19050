//! The read keys of rows.

use cloakroom_core::resource::{ReadKey, ResourceId, StateData};
use cloakroom_storage::ledger::{Condition, Finish, KeyChange, KeyChanged};

use super::rows::{AnyLedger, at, begin, deleted, deleting, deletion, new_id, open, ready, secret};
use crate::ledgers::LedgerData;
use crate::{Rule, rules};

pub const RULES: &[Rule<LedgerData>] = rules!(
    keys_are_added_to_ready_rows_until_there_are_as_many_as_may_be,
    keys_that_have_ended_make_room_and_all_can_be_ended,
    a_tombstone_has_no_keys,
);

fn key(of: ResourceId, ends_at: i64) -> ReadKey {
    ReadKey { hash: secret(of).hash(), ends_at: at(ends_at) }
}

fn adding(key: ReadKey, now: i64) -> KeyChange {
    KeyChange::Add { key, now: at(now), most: 2 }
}

/// Which of the keys a row has.
async fn has(ledger: &AnyLedger, id: ResourceId, keys: &[ResourceId]) -> Vec<bool> {
    let row = ledger.find(id).await.unwrap().unwrap().into_ready().unwrap();
    let is_there =
        |key: &ResourceId| row.data.read_keys.iter().any(|known| known.opens(&secret(*key), at(0)));
    keys.iter().map(is_there).collect()
}

async fn keys_are_added_to_ready_rows_until_there_are_as_many_as_may_be(data: &LedgerData) {
    let ledger = open(data).await;
    let (id, pending) = (ready(&ledger).await, new_id());
    begin(&ledger, pending).await;
    let keys = [new_id(), new_id(), new_id()];
    let expected = [KeyChanged::Done, KeyChanged::Done, KeyChanged::TooMany];
    for (one, expected) in keys.into_iter().zip(expected) {
        assert_eq!(ledger.change_read_keys(id, adding(key(one, 50), 10)).await.unwrap(), expected);
    }
    assert_eq!(has(&ledger, id, &keys).await, [true, true, false]);
    for other in [new_id(), pending, deleting(&ledger).await, deleted(&ledger).await] {
        for change in [adding(key(keys[0], 50), 10), KeyChange::EndAll] {
            let changed = ledger.change_read_keys(other, change).await.unwrap();
            assert_eq!(changed, KeyChanged::NotReady);
        }
    }
    assert_eq!(has(&open(data).await, id, &keys).await, [true, true, false], "they are durable");
}

async fn keys_that_have_ended_make_room_and_all_can_be_ended(data: &LedgerData) {
    let ledger = open(data).await;
    let id = ready(&ledger).await;
    let keys = [new_id(), new_id(), new_id()];
    for (one, ends_at, now) in [(keys[0], 20, 10), (keys[1], 50, 10), (keys[2], 50, 20)] {
        let changed = ledger.change_read_keys(id, adding(key(one, ends_at), now)).await.unwrap();
        assert_eq!(changed, KeyChanged::Done);
    }
    assert_eq!(has(&ledger, id, &keys).await, [false, true, true]);
    for _ in 0..2 {
        let changed = ledger.change_read_keys(id, KeyChange::EndAll).await.unwrap();
        assert_eq!(changed, KeyChanged::Done);
        assert_eq!(has(&ledger, id, &keys).await, [false; 3]);
    }
}

async fn a_tombstone_has_no_keys(data: &LedgerData) {
    let ledger: AnyLedger = open(data).await;
    let id = ready(&ledger).await;
    ledger.change_read_keys(id, adding(key(new_id(), 1000), 10)).await.unwrap();
    assert!(ledger.mark_deleting(deletion(id, Condition::Always)).await.unwrap());
    assert!(ledger.finish(id, Finish::Deleted).await.unwrap());
    let row = open(data).await.find(id).await.unwrap().unwrap();
    assert!(matches!(row.data, StateData::Deleted(_)));
}
