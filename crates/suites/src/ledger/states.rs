//! Rows from their first state to their last.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::Poll;

use cloakroom_core::resource::{
    DeletionReason, Ending, History, Lifetime, Owner, OwnerHistory, OwnerKind, Ready, ResourceId,
    ResourceSecret, State, StateData, Tombstone, UploadHandle,
};
use cloakroom_storage::ledger::{
    Abandoned, Completion, Condition, Deletion, Fact, Finish, LedgerError, Observation, Stored, Totals,
    WatchScope,
};
use cloakroom_storage::ready::OwnerMemory;
use futures_util::FutureExt as _;
use futures_util::future::join_all;

use super::rows::{
    AnyLedger, at, begin, completion, deleted, deleting, deletion, ids_of, is_used, new_id, open, pending,
    ready, secret, state,
};
use crate::ledgers::LedgerData;
use crate::{Rule, rules};

pub const RULES: &[Rule<LedgerData>] = rules!(
    a_pending_row_has_its_ticket_and_nothing_else,
    completing_makes_a_row_ready_with_everything_that_it_was_given,
    only_a_pending_row_can_be_completed,
    only_an_upload_that_goes_on_can_be_abandoned,
    a_handle_is_kept_until_the_upload_is_complete_or_abandoned,
    a_use_is_noted_on_ready_rows_only_and_the_clock_is_never_set_back,
    a_deletion_holds_only_if_nothing_was_downloaded_since,
    a_deletion_goes_from_ready_to_deleting_to_deleted_and_no_other_way,
    tombstones_are_forgotten_by_the_time_of_their_deletion,
    of_too_many_tombstones_the_oldest_of_the_largest_namespace_go_first,
    equal_owners_need_memory_once,
    the_cluster_that_was_written_down_last_is_the_one_that_is_known,
    what_could_be_read_is_remembered_once,
    ids_come_in_order_and_in_pages,
    what_is_ready_comes_in_order_and_in_pages,
    what_is_ready_is_listed_as_its_row_is_whatever_changes_it,
    what_was_seen_of_an_owner_is_noted_on_ready_rows_only,
    what_is_stored_is_ready_or_deleting_and_counts_by_namespace,
    a_change_whose_caller_goes_away_is_in_memory_too,
    one_operation_that_fails_takes_no_neighbour_with_it,
    five_hundred_at_once_are_all_durable,
    an_operation_whose_caller_went_away_is_done_all_the_same,
    a_closed_ledger_says_so_and_has_finished_what_it_accepted,
);

async fn a_pending_row_has_its_ticket_and_nothing_else(data: &LedgerData) {
    let ledger = open(data).await;
    let id = new_id();
    assert!(ledger.find(id).await.unwrap().is_none());
    begin(&ledger, id).await;
    let row = ledger.find(id).await.unwrap().unwrap();
    assert_eq!((row.id, row.state(), row.created_at), (id, State::Pending, at(0)));
    assert!(row.secret_hash.matches(&secret(id)));
    assert!(!row.secret_hash.matches(&ResourceSecret::from_text("another")));
    let StateData::Pending(arrival) = row.data else { panic!("{:?}", row.data) };
    assert_eq!(arrival.file_name.unwrap().as_str(), "déps.tgz");
    assert_eq!(arrival.uploaded_by.as_deref(), Some("10.0.0.1"));
    assert!(ledger.begin(pending(id)).await.is_err(), "an id names one resource");
}

async fn completing_makes_a_row_ready_with_everything_that_it_was_given(data: &LedgerData) {
    let id = ready(&open(data).await).await;
    let row = open(data).await.find(id).await.unwrap().unwrap().into_ready().unwrap();
    let (given, Ready { arrival, owner, bundle, history, read_keys }) = (completion(id), row.data);
    assert_eq!((owner, bundle), (given.owner, given.bundle));
    assert_eq!((history.lifetime, row.created_at), (given.lifetime, given.created_at));
    assert_eq!((history.first_used_at, history.last_used_at), (None, None));
    assert_eq!(arrival.uploaded_by.as_deref(), Some("10.0.0.1"));
    assert!(read_keys.is_empty());
}

async fn only_a_pending_row_can_be_completed(data: &LedgerData) {
    let ledger = open(data).await;
    for id in [new_id(), ready(&ledger).await, deleting(&ledger).await, deleted(&ledger).await] {
        let before = state(&ledger, id).await;
        let refused = ledger.complete(completion(id)).await;
        assert!(matches!(refused, Err(LedgerError::Abandoned { id: named }) if named == id), "{before:?}");
        assert_eq!(state(&ledger, id).await, before);
    }
}

async fn only_an_upload_that_goes_on_can_be_abandoned(data: &LedgerData) {
    let ledger = open(data).await;
    let id = new_id();
    begin(&ledger, id).await;
    for _ in 0..2 {
        assert_eq!(ledger.abandon(id).await.unwrap(), Some(Abandoned::default()));
        assert_eq!(state(&ledger, id).await, Some(State::Pending), "its bytes go before its row");
    }
    assert!(ledger.finish(id, Finish::Abandoned { late: None }).await.unwrap());
    let late = ledger.complete(completion(id)).await;
    assert!(matches!(late, Err(LedgerError::Abandoned { id: named }) if named == id));
    assert!(ledger.find(id).await.unwrap().is_none());
    assert_eq!(ledger.abandon(new_id()).await.unwrap(), Some(Abandoned::default()), "it is not known");
    for id in [ready(&ledger).await, deleting(&ledger).await, deleted(&ledger).await] {
        let before = state(&ledger, id).await;
        assert_eq!(ledger.abandon(id).await.unwrap(), None);
        assert_eq!(state(&ledger, id).await, before);
    }
}

async fn a_handle_is_kept_until_the_upload_is_complete_or_abandoned(data: &LedgerData) {
    let ledger = open(data).await;
    let handle = UploadHandle::from_text("upload-7");
    let id = new_id();
    begin(&ledger, id).await;
    ledger.note_handle(id, handle.clone()).await.unwrap();
    // A process that begins anew knows the handle.
    let ledger = open(data).await;
    let abandoned = ledger.abandon(id).await.unwrap();
    assert_eq!(abandoned, Some(Abandoned { handle: Some(handle.clone()) }));
    ledger.finish(id, Finish::Abandoned { late: None }).await.unwrap();
    let late = ledger.note_handle(id, handle.clone()).await;
    assert!(matches!(late, Err(LedgerError::Abandoned { .. })));
    let complete = ready(&ledger).await;
    let late = ledger.note_handle(complete, handle).await;
    assert!(matches!(late, Err(LedgerError::Abandoned { .. })));
}

async fn a_use_is_noted_on_ready_rows_only_and_the_clock_is_never_set_back(data: &LedgerData) {
    let ledger = open(data).await;
    let waiting = new_id();
    begin(&ledger, waiting).await;
    for id in [new_id(), waiting, deleting(&ledger).await, deleted(&ledger).await] {
        assert!(!ledger.mark_used(id, at(20)).await.unwrap());
        assert!(ledger.find(id).await.unwrap().is_none_or(|row| !is_used(&row)));
    }
    let id = ready(&ledger).await;
    for (used_at, first, last) in [(20, 20, 20), (40, 20, 40), (30, 20, 40)] {
        assert!(ledger.mark_used(id, at(used_at)).await.unwrap());
        let history = *ledger.find(id).await.unwrap().unwrap().history().unwrap();
        assert_eq!((history.first_used_at, history.last_used_at), (Some(at(first)), Some(at(last))));
    }
    let forever = new_id();
    begin(&ledger, forever).await;
    let lifetime = Lifetime { ttl: None, ..completion(forever).lifetime };
    ledger.complete(Completion { lifetime, ..completion(forever) }).await.unwrap();
    assert!(ledger.mark_used(forever, at(20)).await.unwrap());
    assert!(is_used(&ledger.find(forever).await.unwrap().unwrap()));
}

async fn a_deletion_holds_only_if_nothing_was_downloaded_since(data: &LedgerData) {
    let ledger = open(data).await;
    let used = async |times: &[i64]| {
        let id = ready(&ledger).await;
        for second in times {
            ledger.mark_used(id, at(*second)).await.unwrap();
        }
        id
    };
    for (uses, condition, holds) in [
        (&[][..], Condition::LastUsedAt(None), true),
        (&[], Condition::LastUsedAt(Some(at(20))), false),
        (&[20], Condition::LastUsedAt(None), false),
        (&[20], Condition::LastUsedAt(Some(at(20))), true),
        (&[20, 30], Condition::LastUsedAt(Some(at(20))), false),
        (&[20, 30], Condition::Always, true),
    ] {
        let id = used(uses).await;
        assert_eq!(
            ledger.mark_deleting(deletion(id, condition)).await.unwrap(),
            holds,
            "{uses:?} {condition:?}"
        );
        let expected = if holds { State::Deleting } else { State::Ready };
        assert_eq!(state(&ledger, id).await, Some(expected));
        assert_eq!(ledger.find(id).await.unwrap().unwrap().ending().is_some(), holds);
    }
}

async fn a_deletion_goes_from_ready_to_deleting_to_deleted_and_no_other_way(data: &LedgerData) {
    let ledger = open(data).await;
    let waiting = new_id();
    begin(&ledger, waiting).await;
    for id in [new_id(), waiting, deleting(&ledger).await, deleted(&ledger).await] {
        let before = state(&ledger, id).await;
        assert!(!ledger.mark_deleting(deletion(id, Condition::Always)).await.unwrap());
        assert_eq!(state(&ledger, id).await, before);
    }
    for id in [new_id(), waiting, ready(&ledger).await, deleted(&ledger).await] {
        let before = state(&ledger, id).await;
        assert!(!ledger.finish(id, Finish::Deleted).await.unwrap());
        assert_eq!(state(&ledger, id).await, before, "bytes are removed before their tombstone is set");
    }
    let id = deleted(&ledger).await;
    let row = open(data).await.find(id).await.unwrap().unwrap();
    let tombstone = Tombstone {
        ending: Ending { at: at(200), reason: DeletionReason::Unused },
        owner_kind: "Job".to_owned(),
        namespace: "team-a".to_owned(),
        size_bytes: 1000,
        history: History {
            lifetime: completion(id).lifetime,
            first_used_at: None,
            last_used_at: None,
            owner_history: OwnerHistory::default(),
        },
    };
    let StateData::Deleted(left) = row.data else { panic!("{:?}", row.data) };
    assert_eq!(*left, tombstone);
    assert_eq!(row.created_at, at(10));
    assert!(row.secret_hash.matches(&secret(id)), "its ticket still gets an answer");
}

async fn tombstones_are_forgotten_by_the_time_of_their_deletion(data: &LedgerData) {
    let ledger = open(data).await;
    let gone = [deleted(&ledger).await, deleted(&ledger).await];
    let kept = [ready(&ledger).await, deleting(&ledger).await];
    assert_eq!(ledger.forget(at(200), 100).await.unwrap().expired, 0);
    assert_eq!(ledger.forget(at(201), 100).await.unwrap().expired, 2);
    for id in gone {
        assert_eq!(state(&ledger, id).await, None);
    }
    for id in kept {
        assert!(state(&ledger, id).await.is_some());
    }
}

async fn of_too_many_tombstones_the_oldest_of_the_largest_namespace_go_first(data: &LedgerData) {
    let ledger = open(data).await;
    let deleted_in = async |namespace: &str, second| {
        let id = new_id();
        begin(&ledger, id).await;
        let labels = [("app".to_owned(), "demo".to_owned())];
        let owner = Owner::new(OwnerKind::default(), namespace, labels, None).unwrap();
        ledger.complete(Completion { owner, ..completion(id) }).await.unwrap();
        let deletion = Deletion { at: at(second), ..deletion(id, Condition::Always) };
        assert!(ledger.mark_deleting(deletion).await.unwrap());
        ledger.finish(id, Finish::Deleted).await.unwrap();
        id
    };
    let small = deleted_in("small", 1).await;
    let mut large = Vec::new();
    for second in [7, 3, 5, 9] {
        large.push(deleted_in("large", second).await);
    }
    ready(&ledger).await;
    assert_eq!(ledger.forget(at(-1000), 5).await.unwrap().dropped, 0);
    assert_eq!(ledger.forget(at(-1000), 3).await.unwrap().dropped, 2);
    let mut left = vec![small, large[0], large[3]];
    left.sort_unstable();
    assert_eq!(ids_of(&ledger, State::Deleted, None, 100).await, left);
}

async fn equal_owners_need_memory_once(data: &LedgerData) {
    let ledger = open(data).await;
    let owner = completion(new_id()).owner;
    let memory = async || ledger.ready.owner_memory(&owner);
    let before = memory().await;
    assert!(before.needed > 0 && before.taken == 0, "{before:?}");
    let first = ready(&ledger).await;
    let known = OwnerMemory { needed: 0, taken: before.needed, taken_in_namespace: before.needed };
    assert_eq!(memory().await, known);
    let second = ready(&ledger).await;
    assert_eq!(memory().await, known);
    for (id, left) in [(first, known), (second, before)] {
        let deletion =
            Deletion { id, reason: DeletionReason::Released, at: at(0), condition: Condition::Always };
        assert!(ledger.mark_deleting(deletion).await.unwrap());
        assert_eq!(memory().await, left);
    }
}

async fn the_cluster_that_was_written_down_last_is_the_one_that_is_known(data: &LedgerData) {
    let mut ledger = open(data).await;
    assert_eq!(ledger.facts().await.unwrap().cluster, None);
    for uid in [Some("one"), Some("other"), None, None, Some("one")] {
        ledger.write(Fact::Cluster(uid.map(str::to_owned))).await.unwrap();
        ledger = open(data).await;
        assert_eq!(ledger.facts().await.unwrap().cluster.as_deref(), uid);
    }
}

async fn what_could_be_read_is_remembered_once(data: &LedgerData) {
    let ledger = open(data).await;
    assert_eq!(ledger.facts().await.unwrap().watched, []);
    let scope = |kind, namespace: Option<&str>| WatchScope {
        kind: OwnerKind::parse(kind).unwrap(),
        namespace: namespace.map(str::to_owned),
    };
    let all = [scope("Job", Some("demo")), scope("Pod", None), scope("Pod", Some("demo"))];
    for scopes in [&all[1..], &all[..2], &[]] {
        ledger.write(Fact::Watched(scopes.to_vec())).await.unwrap();
    }
    let mut watched = open(data).await.facts().await.unwrap().watched;
    watched.sort_unstable();
    assert_eq!(watched, all);
}

async fn ids_come_in_order_and_in_pages(data: &LedgerData) {
    let ledger = open(data).await;
    let mut expected = join_all((0..7).map(|_| ready(&ledger))).await;
    expected.sort_unstable();
    deleted(&ledger).await;
    assert_eq!(ids_of(&ledger, State::Ready, None, 100).await, expected);
    let mut paged: Vec<ResourceId> = Vec::new();
    for size in [3, 3, 1, 0] {
        let page = ids_of(&ledger, State::Ready, paged.last().copied(), 3).await;
        assert_eq!(page.len(), size);
        paged.extend(page);
    }
    assert_eq!(paged, expected);
    assert_eq!(ids_of(&ledger, State::Pending, None, 100).await, []);
}

async fn what_is_ready_comes_in_order_and_in_pages(data: &LedgerData) {
    let ledger = open(data).await;
    begin(&ledger, new_id()).await;
    deleting(&ledger).await;
    deleted(&ledger).await;
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(ready(&ledger).await);
    }
    all.sort_unstable();
    let page = async |after, limit| {
        let page = ledger.ready.page(after, limit);
        page.into_iter().map(|listed| listed.id).collect::<Vec<_>>()
    };
    assert_eq!(page(None, 100).await, all);
    assert_eq!(page(None, 2).await, all[..2]);
    assert_eq!(page(Some(all[1]), 2).await, all[2..4]);
    assert_eq!(page(Some(all[4]), 2).await, []);
}

async fn what_is_ready_is_listed_as_its_row_is_whatever_changes_it(data: &LedgerData) {
    let ledger = open(data).await;
    let [used, seen, plain] = [ready(&ledger).await, ready(&ledger).await, ready(&ledger).await];
    let marked = ready(&ledger).await;
    ledger.mark_used(used, at(20)).await.unwrap();
    let is_seen = OwnerHistory { seen_at: Some(at(30)), ..OwnerHistory::default() };
    ledger.observe(vec![observed(seen, OwnerHistory::default(), is_seen)]).await.unwrap();
    // It was read before it was seen.
    let is_missed = OwnerHistory { absent_since: Some(at(29)), ..OwnerHistory::default() };
    ledger.observe(vec![observed(seen, OwnerHistory::default(), is_missed)]).await.unwrap();
    assert!(ledger.mark_deleting(deletion(marked, Condition::Always)).await.unwrap());
    let used_since = Condition::LastUsedAt(Some(at(7)));
    assert!(!ledger.mark_deleting(deletion(plain, used_since)).await.unwrap());
    let lives = async |ledger: &AnyLedger| {
        let listed = ledger.ready.page(None, 100);
        assert!(listed.iter().all(|listed| *listed.owner == completion(listed.id).owner));
        listed.into_iter().map(|listed| (listed.id, listed.life)).collect::<BTreeMap<_, _>>()
    };
    let mut rows = BTreeMap::new();
    for id in [used, seen, plain] {
        let row = ledger.find(id).await.unwrap().unwrap().into_ready().unwrap();
        rows.insert(id, row.life());
    }
    assert_eq!(lives(&ledger).await, rows);
    for thorough in [false, true, true] {
        ledger.refresh(thorough).await;
        assert_eq!(lives(&ledger).await, rows);
    }
    assert_eq!(lives(&open(data).await).await, rows);
    assert_eq!(ledger.ready.unreadable().count, 0);
}

fn observed(id: ResourceId, before: OwnerHistory, after: OwnerHistory) -> Observation {
    Observation { id, before, after }
}

async fn what_was_seen_of_an_owner_is_noted_on_ready_rows_only(data: &LedgerData) {
    let ledger = open(data).await;
    let (seen, other, gone) = (ready(&ledger).await, ready(&ledger).await, deleted(&ledger).await);
    let owner_history =
        OwnerHistory { seen_at: Some(at(20)), absent_since: Some(at(30)), finished_since: Some(at(25)) };
    let all = [seen, gone, new_id()].map(|id| observed(id, OwnerHistory::default(), owner_history));
    ledger.observe(all.to_vec()).await.unwrap();
    let ledger = open(data).await;
    let noted = async |id| {
        ledger
            .find(id)
            .await
            .unwrap()
            .unwrap()
            .history()
            .map_or_else(Default::default, |history| history.owner_history)
    };
    assert_eq!(noted(seen).await, owner_history);
    assert_eq!(noted(other).await, OwnerHistory::default());
    assert_eq!(noted(gone).await, OwnerHistory::default());
    let back = OwnerHistory { absent_since: None, ..owner_history };
    ledger.observe(vec![observed(seen, OwnerHistory::default(), back)]).await.unwrap();
    assert_eq!(noted(seen).await, owner_history, "another observer was quicker");
    ledger.observe(vec![observed(seen, owner_history, back)]).await.unwrap();
    assert_eq!(noted(seen).await, back);
}

async fn what_is_stored_is_ready_or_deleting_and_counts_by_namespace(data: &LedgerData) {
    let mut ledger = open(data).await;
    assert_eq!(ledger.totals().await.unwrap(), Totals::default());
    begin(&ledger, new_id()).await;
    ready(&ledger).await;
    ready(&ledger).await;
    deleting(&ledger).await;
    deleted(&ledger).await;
    let counts = BTreeMap::from([("pending", 1), ("ready", 2), ("deleting", 1), ("deleted", 1)]);
    assert_eq!(ledger.ready.by_state(), counts);
    for (least_bytes, bytes) in [(0, 3000), (1001, 3003)] {
        ledger = AnyLedger::load(data.open().await, least_bytes).await;
        let totals = ledger.totals().await.unwrap();
        assert_eq!(totals.stored, BTreeMap::from([("team-a".to_owned(), Stored { resources: 3, bytes })]));
        assert_eq!((&totals.by_state, ledger.ready.by_state()), (&counts, counts.clone()));
    }
    let broken = new_id();
    begin(&ledger, broken).await;
    assert_eq!(ledger.ready.by_state()["pending"], 2);
    ledger.finish(broken, Finish::Abandoned { late: None }).await.unwrap();
    assert_eq!(ledger.forget(at(-1000), 0).await.unwrap().dropped, 1);
    let counts = BTreeMap::from([("pending", 1), ("ready", 2), ("deleting", 1), ("deleted", 0)]);
    assert_eq!(ledger.ready.by_state(), counts);
}

async fn a_change_whose_caller_goes_away_is_in_memory_too(data: &LedgerData) {
    let ledger = open(data).await;
    let id = ready(&ledger).await;
    assert!(ledger.mark_used(id, at(20)).now_or_never().is_none(), "it has not waited for its answer");
    // Its turn comes later.
    ready(&ledger).await;
    let row = ledger.find(id).await.unwrap().unwrap().into_ready().unwrap();
    let listed = ledger.ready.page(None, 2).into_iter().find(|listed| listed.id == id).unwrap();
    assert_eq!((listed.life, listed.life.last_used_at), (row.life(), Some(at(20))));
}

async fn one_operation_that_fails_takes_no_neighbour_with_it(data: &LedgerData) {
    let ledger = open(data).await;
    let taken = ready(&ledger).await;
    let ids: Vec<_> = (0..50).map(|_| new_id()).collect();
    // Polled together, they wait together: most of them share a commit.
    let outcomes = join_all(ids.iter().enumerate().map(async |(number, id)| {
        let id = if number % 10 == 5 { taken } else { *id };
        ledger.begin(pending(id)).await.is_ok()
    }))
    .await;
    ledger.close().await;
    let reopened = open(data).await;
    for (number, (id, is_done)) in ids.iter().zip(outcomes).enumerate() {
        assert_eq!(is_done, number % 10 != 5);
        assert_eq!(state(&reopened, *id).await.is_some(), is_done);
    }
    assert_eq!(state(&reopened, taken).await, Some(State::Ready));
}

async fn five_hundred_at_once_are_all_durable(data: &LedgerData) {
    let ledger = open(data).await;
    let mut ids: Vec<_> = (0..500).map(|_| new_id()).collect();
    join_all(ids.iter().map(async |id| ledger.begin(pending(*id)).await.unwrap())).await;
    // Another one on the same data, while the first one has not closed: nothing is only in its memory.
    let other = open(data).await;
    ids.sort_unstable();
    assert_eq!(ids_of(&other, State::Pending, None, 1000).await, ids);
}

async fn an_operation_whose_caller_went_away_is_done_all_the_same(data: &LedgerData) {
    let ledger = open(data).await;
    let id = new_id();
    {
        let mut begin = ledger.begin(pending(id));
        let is_pending = poll_fn(|context| Poll::Ready(begin.as_mut().poll(context).is_pending())).await;
        assert!(is_pending);
    }
    // The writer works in order: what comes after is done after.
    begin(&ledger, new_id()).await;
    assert_eq!(state(&ledger, id).await, Some(State::Pending));
}

async fn a_closed_ledger_says_so_and_has_finished_what_it_accepted(data: &LedgerData) {
    let ledger = open(data).await;
    let ids: Vec<_> = (0..300).map(|_| new_id()).collect();
    let begins = join_all(ids.iter().map(|id| ledger.begin(pending(*id))));
    let (outcomes, ()) = tokio::join!(begins, ledger.close());
    assert!(outcomes.iter().any(Result::is_ok));
    let late = ledger.begin(pending(new_id())).await;
    assert!(matches!(late, Err(LedgerError::Closed)));
    ledger.close().await;
    let reopened = open(data).await;
    for (id, outcome) in ids.iter().zip(outcomes) {
        let expected = outcome.is_ok().then_some(State::Pending);
        assert_eq!(state(&reopened, *id).await, expected, "{outcome:?}");
    }
}
