//! What charges allow, and when room is free again.

use cloakroom_core::resource::{BlobKey, Bundle, DeletionReason, Holder, Owner, OwnerKind, ResourceId};
use cloakroom_storage::ledger::{Completion, Condition, Deletion, Fact, Finish, Stored, Stray};
use cloakroom_storage::ready::{Account, Charge, Shortage, Taken};

use super::rows::{AnyLedger, at, completion, new_id, pending};
use crate::ledgers::LedgerData;
use crate::{Rule, rules};

pub const RULES: &[Rule<LedgerData>] = rules!(
    what_is_stored_and_what_is_promised_count_together,
    a_charge_that_does_not_fit_changes_nothing_and_the_first_is_told,
    an_upload_is_charged_anew_in_place_of_what_it_was,
    an_upload_that_ends_gives_its_room_back,
    a_deletion_gives_its_room_back_once,
    what_is_complete_is_charged_what_it_has,
    each_resource_counts_as_the_least_at_least,
    a_holder_has_its_share_of_the_room_and_others_theirs,
    what_is_stored_counts_from_the_start_by_its_namespace,
    rows_that_another_hand_changed_count_when_they_are_counted_again,
    strays_are_noted_once_and_count_in_the_bytes_of_all_and_of_no_holder,
);

const LEAST: u64 = 40;

async fn open(data: &LedgerData) -> AnyLedger {
    AnyLedger::load(data.open().await, LEAST).await
}

fn bytes(amount: u64, limit: u64) -> Charge {
    Charge { account: Account::Bytes, amount, limit: Some(limit) }
}

fn bytes_of(namespace: &str, amount: u64, limit: u64) -> Charge {
    Charge { account: Account::BytesOf(Holder::namespace(namespace)), amount, limit: Some(limit) }
}

async fn upload(ledger: &AnyLedger, charges: &[Charge]) -> Result<ResourceId, Shortage> {
    let id = new_id();
    ledger.ready.charge(id, charges)?;
    ledger.begin(pending(id)).await.unwrap();
    Ok(id)
}

async fn complete(ledger: &AnyLedger, id: ResourceId, namespace: &str, size_bytes: u64) {
    let owner = Owner::new(OwnerKind::default(), namespace, [], Some("driver")).unwrap();
    let bundle = Bundle { size_bytes, sha256: [7; 32] };
    ledger.complete(Completion { owner, bundle, ..completion(id) }).await.unwrap();
}

async fn stored(ledger: &AnyLedger, namespace: &str, size_bytes: u64) -> ResourceId {
    let upload = upload(ledger, &[]).await.unwrap();
    complete(ledger, upload, namespace, size_bytes).await;
    upload
}

async fn delete(ledger: &AnyLedger, id: ResourceId) {
    let at = completion(id).created_at;
    let deletion = Deletion { id, reason: DeletionReason::Released, at, condition: Condition::Always };
    assert!(ledger.mark_deleting(deletion).await.unwrap());
}

fn taken(ledger: &AnyLedger) -> (u64, u64) {
    let Taken { resources, bytes, .. } = ledger.ready.taken();
    (resources, bytes)
}

async fn what_is_stored_and_what_is_promised_count_together(data: &LedgerData) {
    let ledger = open(data).await;
    stored(&ledger, "a", 50).await;
    let _first = upload(&ledger, &[bytes(30, 100)]).await.unwrap();
    let shortage = Shortage { account: Account::Bytes, limit: 100, taken: 80 };
    assert_eq!(upload(&ledger, &[bytes(21, 100)]).await, Err(shortage));
    upload(&ledger, &[bytes(20, 100)]).await.unwrap();
    assert_eq!(ledger.ready.taken().stored_bytes, 50);
}

async fn a_charge_that_does_not_fit_changes_nothing_and_the_first_is_told(data: &LedgerData) {
    let ledger = open(data).await;
    let charges = [
        Charge { account: Account::Resources, amount: 1, limit: Some(1) },
        bytes_of("a", 30, 20),
        bytes(30, 10),
    ];
    let shortage = upload(&ledger, &charges).await.unwrap_err();
    assert_eq!(shortage.account, charges[1].account);
    assert_eq!(taken(&ledger), (0, 0));
    let unlimited = Charge { limit: None, ..bytes(u64::MAX, 0) };
    upload(&ledger, &[unlimited]).await.unwrap();
}

async fn an_upload_is_charged_anew_in_place_of_what_it_was(data: &LedgerData) {
    let ledger = open(data).await;
    let id = upload(&ledger, &[bytes_of("user", 60, 100), bytes(60, 100)]).await.unwrap();
    let shortage = ledger.ready.charge(id, &[bytes_of("a", 101, 200), bytes(101, 100)]).unwrap_err();
    assert_eq!(shortage.taken, 0, "without what it has itself");
    assert_eq!(taken(&ledger).1, 60);
    ledger.ready.charge(id, &[bytes_of("a", 100, 100), bytes(100, 100)]).unwrap();
    assert_eq!(taken(&ledger).1, 100);
    let other = upload(&ledger, &[bytes_of("a", 1, 100)]).await.unwrap_err();
    assert_eq!(other.taken, 100);
    upload(&ledger, &[bytes_of("user", 100, 100)]).await.unwrap();
    assert_eq!(ledger.ready.charged(&Account::Bytes), 100);
}

async fn an_upload_that_ends_gives_its_room_back(data: &LedgerData) {
    let ledger = open(data).await;
    let all = [bytes(100, 100)];
    let id = upload(&ledger, &all).await.unwrap();
    ledger.ready.let_go(id);
    let id = upload(&ledger, &all).await.unwrap();
    assert!(ledger.abandon(id).await.unwrap().is_some());
    assert_eq!(taken(&ledger).1, 100, "its bytes are still there");
    ledger.finish(id, Finish::Abandoned { late: None }).await.unwrap();
    ledger.ready.let_go(id);
    assert_eq!(taken(&ledger), (0, 0));
}

async fn a_deletion_gives_its_room_back_once(data: &LedgerData) {
    let ledger = open(data).await;
    stored(&ledger, "a", 50).await;
    let id = stored(&ledger, "a", 50).await;
    delete(&ledger, id).await;
    assert_eq!(taken(&ledger), (2, 100), "its bytes are still there");
    for _ in 0..3 {
        ledger.finish(id, Finish::Deleted).await.unwrap();
        assert_eq!(taken(&ledger), (1, 50));
    }
}

async fn what_is_complete_is_charged_what_it_has(data: &LedgerData) {
    let ledger = open(data).await;
    let promised = upload(&ledger, &[bytes_of("user", 90, 100), bytes(90, 100)]).await.unwrap();
    complete(&ledger, promised, "a", 50).await;
    let Taken { bytes: all, most_bytes, stored_bytes, .. } = ledger.ready.taken();
    assert_eq!((all, most_bytes, stored_bytes), (50, 50, 50));
    // Its charges have ended, and give nothing back.
    ledger.ready.let_go(promised);
    assert_eq!(taken(&ledger), (1, 50));
}

async fn each_resource_counts_as_the_least_at_least(data: &LedgerData) {
    let ledger = open(data).await;
    let id = stored(&ledger, "a", 0).await;
    stored(&ledger, "a", LEAST + 1).await;
    assert_eq!(taken(&ledger), (2, 2 * LEAST + 1));
    let ledger = open(data).await;
    assert_eq!(taken(&ledger), (2, 2 * LEAST + 1));
    delete(&ledger, id).await;
    ledger.finish(id, Finish::Deleted).await.unwrap();
    assert_eq!(taken(&ledger), (1, LEAST + 1));
}

// Invariant: a namespace never holds more than its share, regardless of what it announces.
async fn a_holder_has_its_share_of_the_room_and_others_theirs(data: &LedgerData) {
    let ledger = open(data).await;
    let charges = |namespace| [bytes_of(namespace, 50, 100), bytes(50, 1000)];
    let first = upload(&ledger, &charges("greedy")).await.unwrap();
    complete(&ledger, first, "greedy", 50).await;
    let second = upload(&ledger, &charges("greedy")).await.unwrap();
    let refused = upload(&ledger, &charges("greedy")).await.unwrap_err();
    assert_eq!((refused.account, refused.taken), (Account::BytesOf(Holder::namespace("greedy")), 100));
    upload(&ledger, &charges("honest")).await.unwrap();
    ledger.ready.let_go(second);
    upload(&ledger, &charges("greedy")).await.unwrap();
    delete(&ledger, first).await;
    assert!(upload(&ledger, &charges("greedy")).await.is_err());
    ledger.finish(first, Finish::Deleted).await.unwrap();
    upload(&ledger, &charges("greedy")).await.unwrap();
}

async fn what_is_stored_counts_from_the_start_by_its_namespace(data: &LedgerData) {
    let ledger = open(data).await;
    stored(&ledger, "a", 50).await;
    let deleting = stored(&ledger, "b", 70).await;
    delete(&ledger, deleting).await;
    upload(&ledger, &[bytes(500, 1000)]).await.unwrap();
    let taken = open(data).await.ready.taken();
    let Taken { resources, bytes, stored_bytes, most_resources, most_bytes, .. } = taken;
    assert_eq!((resources, bytes, stored_bytes, most_resources, most_bytes), (2, 120, 120, 1, 70));
}

async fn rows_that_another_hand_changed_count_when_they_are_counted_again(data: &LedgerData) {
    if !data.has_other_hands() {
        return;
    }
    let ledger = open(data).await;
    let _going_on = upload(&ledger, &[bytes(10, 1000)]).await.unwrap();
    stored(&open(data).await, "a", 50).await;
    assert_eq!(taken(&ledger).1, 10);
    for _ in 0..2 {
        ledger.refresh(true).await;
    }
    assert_eq!(taken(&ledger).1, 60);
    ledger.refresh(true).await;
    assert_eq!(taken(&ledger).1, 60);
}

async fn strays_are_noted_once_and_count_in_the_bytes_of_all_and_of_no_holder(data: &LedgerData) {
    let stray =
        |size_bytes, second| Stray { key: BlobKey::for_resource(new_id()), size_bytes, seen_at: at(second) };
    let (large, small) = (stray(100, 1), stray(1, 2));
    {
        let ledger = open(data).await;
        ledger.write(Fact::Strays { found: vec![large, small], gone: Vec::new() }).await.unwrap();
        ledger
            .write(Fact::Strays { found: vec![Stray { seen_at: at(9), ..large }], gone: Vec::new() })
            .await
            .unwrap();
        ledger.close().await;
    }
    let ledger = open(data).await;
    let mut noted = ledger.facts().await.unwrap().strays;
    noted.sort_by_key(|stray| stray.seen_at);
    assert_eq!(noted, [large, small], "when it was first seen stays");
    let taken = ledger.ready.taken();
    assert_eq!(taken.strays, Stored { resources: 2, bytes: 100 + LEAST });
    assert_eq!((taken.bytes, taken.stored_bytes, taken.resources, taken.most_bytes), (100 + LEAST, 0, 0, 0));
    let shortage = upload(&ledger, &[bytes(50, 150)]).await.unwrap_err();
    assert_eq!(shortage.taken, 100 + LEAST);
    ledger
        .write(Fact::Strays { found: Vec::new(), gone: vec![large.key, BlobKey::for_resource(new_id())] })
        .await
        .unwrap();
    assert_eq!(ledger.facts().await.unwrap().strays, [small]);
    ledger.refresh(true).await;
    ledger.refresh(true).await;
    assert_eq!(ledger.ready.taken().bytes, LEAST);
    upload(&ledger, &[bytes(50, 150)]).await.unwrap();
}
