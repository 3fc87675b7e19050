//! Every sentence of the documentation of `BlobStore`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, Range};

use bytes::Bytes;
use cloakroom_core::client::Client;
use cloakroom_core::resource::{BlobKey, ResourceId};
use cloakroom_storage::stamp::{Installation, Stamp};
use cloakroom_storage::store::{Begun, BlobFacts, BlobStore, BlobWriter, StoreError};
use cloakroom_testing::noise::noise;
use futures_util::TryStreamExt as _;
use jiff::{SignedDuration, Timestamp};

use crate::stores::StoreData;
use crate::{Rule, rules};

pub const RULES: &[Rule<StoreData>] = rules!(
    bytes_are_invisible_until_they_are_committed,
    what_was_committed_reads_back_whole_and_in_parts,
    many_small_and_some_large_writes_are_one_blob,
    an_empty_blob_is_a_blob,
    aborting_removes_arriving_and_committed_bytes_and_may_find_nothing,
    an_aborted_upload_can_not_be_committed,
    a_handle_is_another_one_for_each_upload,
    deleting_takes_what_is_committed_and_nothing_is_success,
    deleting_leaves_what_is_arriving,
    dropped_bytes_are_left_to_abort,
    all_that_is_committed_is_listed_with_its_facts,
    what_is_committed_is_known_without_opening_it,
    blobs_with_the_same_prefix_do_not_disturb_each_other,
    what_is_not_there_whole_cannot_be_opened,
    a_large_blob_is_read_in_pieces_and_in_order,
    ranges_are_read_one_after_the_other_and_no_piece_is_of_two,
    a_store_that_can_be_read_says_so,
);

/// What only a store on a disk does.
pub const DISK_RULES: &[Rule<StoreData>] = rules!(a_stamp_is_replaced_only_by_those_who_have_seen_it);

pub fn new_key() -> BlobKey {
    BlobKey::for_resource(ResourceId::generate(&mut rand::rng()))
}

pub async fn begin(store: &impl Deref<Target: BlobStore>, key: BlobKey) -> Box<dyn BlobWriter> {
    store.begin(key, None, &Client::Server).await.unwrap().writer
}

pub async fn commit(store: &impl Deref<Target: BlobStore>, key: BlobKey, pieces: &[Bytes]) {
    let mut writer = begin(store, key).await;
    for piece in pieces {
        writer.write(piece.clone()).await.unwrap();
    }
    writer.commit().await.unwrap();
}

pub async fn content(store: &impl Deref<Target: BlobStore>, key: BlobKey) -> Option<Bytes> {
    let size_bytes = store.facts(key).await.unwrap()?.size_bytes;
    Some(part(store, key, size_bytes, 0..size_bytes).await.unwrap().into())
}

async fn part(
    store: &impl Deref<Target: BlobStore>,
    key: BlobKey,
    size_bytes: u64,
    range: Range<u64>,
) -> Result<Vec<u8>, StoreError> {
    let pieces: Vec<Bytes> =
        store.open(key, size_bytes, vec![range], &Client::Server).await?.try_collect().await?;
    Ok(pieces.concat())
}

pub async fn committed(store: &impl Deref<Target: BlobStore>) -> BTreeSet<BlobKey> {
    store.list().map_ok(|(key, _)| key).try_collect().await.unwrap()
}

/// Keys with bytes, committed or not.
async fn all_keys(store: &StoreData) -> BTreeSet<BlobKey> {
    committed(store).await.into_iter().chain(store.arriving().await).collect()
}

pub async fn is_there(store: &impl Deref<Target: BlobStore>, key: BlobKey) -> bool {
    let facts = store.facts(key).await.unwrap();
    let opened =
        store.open(key, facts.map_or(0, |facts| facts.size_bytes), vec![0..0], &Client::Server).await.err();
    assert_eq!(opened.is_none(), facts.is_some());
    assert!(matches!(opened, None | Some(StoreError::Missing(_))), "{opened:?}");
    facts.is_some()
}

async fn bytes_are_invisible_until_they_are_committed(store: &StoreData) {
    let key = new_key();
    let mut writer = begin(store, key).await;
    assert!(!is_there(store, key).await);
    writer.write(Bytes::from(vec![1; 1 << 20])).await.unwrap();
    assert!(!is_there(store, key).await);
    writer.commit().await.unwrap();
    assert_eq!(content(store, key).await.unwrap(), vec![1; 1 << 20]);
}

async fn what_was_committed_reads_back_whole_and_in_parts(store: &StoreData) {
    let key = new_key();
    commit(store, key, &[Bytes::from_static(b"0123456789")]).await;
    for (range, expected) in [(0..10, "0123456789"), (0..3, "012"), (7..10, "789"), (4..4, ""), (10..10, "")]
    {
        assert_eq!(part(store, key, 10, range.clone()).await.unwrap(), expected.as_bytes(), "{range:?}");
    }
}

async fn many_small_and_some_large_writes_are_one_blob(store: &StoreData) {
    let key = new_key();
    let sizes = [1, 0, 7, 4096, 300_000, 1, 1 << 20, 262_144, 262_143, 5].into_iter();
    let pieces: Vec<Bytes> = sizes
        .chain(std::iter::repeat_n(3, 2000))
        .enumerate()
        .map(|(number, size)| Bytes::from(vec![number as u8; size]))
        .collect();
    commit(store, key, &pieces).await;
    assert!(content(store, key).await.unwrap() == pieces.concat());
}

async fn an_empty_blob_is_a_blob(store: &StoreData) {
    let key = new_key();
    commit(store, key, &[]).await;
    assert_eq!(content(store, key).await.unwrap(), "");
    assert_eq!(all_keys(store).await, BTreeSet::from([key]));
}

async fn aborting_removes_arriving_and_committed_bytes_and_may_find_nothing(store: &StoreData) {
    let [nothing, arriving, committed] = [new_key(), new_key(), new_key()];
    let Begun { mut writer, handle } = store.begin(arriving, Some(4), &Client::Server).await.unwrap();
    writer.write(Bytes::from_static(b"half")).await.unwrap();
    drop(writer);
    commit(store, committed, &[Bytes::from_static(b"whole")]).await;
    for (key, handle) in [(nothing, None), (arriving, handle.as_ref()), (committed, None)] {
        store.abort(key, handle).await.unwrap();
        store.abort(key, handle).await.unwrap();
        assert!(!is_there(store, key).await);
    }
    assert_eq!(all_keys(store).await, BTreeSet::new());
}

async fn an_aborted_upload_can_not_be_committed(store: &StoreData) {
    let key = new_key();
    let Begun { mut writer, handle } = store.begin(key, None, &Client::Server).await.unwrap();
    writer.write(Bytes::from_static(b"late")).await.unwrap();
    // Not what a user of the port may do: one that was paused for long does it all the same.
    store.abort(key, handle.as_ref()).await.unwrap();
    assert_eq!(writer.commit().await.is_err(), store.has_uploads);
    if !store.has_uploads {
        // Its tombstone is what remembers the abort, and by that a sweep finds the blob.
        store.delete(key).await.unwrap();
    }
    assert!(!is_there(store, key).await);
    assert_eq!(all_keys(store).await, BTreeSet::new());
}

async fn a_handle_is_another_one_for_each_upload(store: &StoreData) {
    let one = store.begin(new_key(), None, &Client::Server).await.unwrap().handle;
    let other = store.begin(new_key(), None, &Client::Server).await.unwrap().handle;
    assert!(one.is_none() && other.is_none() || one != other, "{one:?} {other:?}");
}

async fn deleting_takes_what_is_committed_and_nothing_is_success(store: &StoreData) {
    let key = new_key();
    store.delete(key).await.unwrap();
    commit(store, key, &[Bytes::from_static(b"whole")]).await;
    store.delete(key).await.unwrap();
    assert!(!is_there(store, key).await);
    store.delete(key).await.unwrap();
    assert_eq!(all_keys(store).await, BTreeSet::new());
}

async fn deleting_leaves_what_is_arriving(store: &StoreData) {
    let key = new_key();
    let mut writer = begin(store, key).await;
    store.delete(key).await.unwrap();
    writer.write(Bytes::from_static(b"still arriving")).await.unwrap();
    writer.commit().await.unwrap();
    assert_eq!(content(store, key).await.unwrap(), "still arriving");
}

async fn dropped_bytes_are_left_to_abort(store: &StoreData) {
    let key = new_key();
    let Begun { mut writer, handle } = store.begin(key, None, &Client::Server).await.unwrap();
    writer.write(Bytes::from(vec![0; 1 << 20])).await.unwrap();
    drop(writer);
    assert_eq!(all_keys(store).await.contains(&key), store.has_uploads);
    assert!(!is_there(store, key).await);
    store.abort(key, handle.as_ref()).await.unwrap();
    assert_eq!(all_keys(store).await, BTreeSet::new());
}

async fn all_that_is_committed_is_listed_with_its_facts(store: &StoreData) {
    assert_eq!(all_keys(store).await, BTreeSet::new());
    let (mut expected, mut uncommitted) = (BTreeMap::new(), BTreeSet::new());
    for size_bytes in 0..40 {
        let key = new_key();
        if size_bytes % 2 == 0 {
            commit(store, key, &[Bytes::from(vec![1; size_bytes])]).await;
            expected.insert(key, store.facts(key).await.unwrap().unwrap());
        } else {
            begin(store, key).await;
            uncommitted.extend(store.has_uploads.then_some(key));
        }
    }
    let listed: BTreeMap<BlobKey, BlobFacts> = store.list().try_collect().await.unwrap();
    assert_eq!(listed, expected);
    assert_eq!(&all_keys(store).await - &expected.into_keys().collect(), uncommitted);
}

async fn blobs_with_the_same_prefix_do_not_disturb_each_other(store: &StoreData) {
    let keys: Vec<_> = (0..9)
        .map(|last| BlobKey::parse(&format!("abc00000-0000-4000-8000-00000000000{last}")).unwrap())
        .collect();
    let committing = keys.iter().map(|key| async move {
        commit(store, *key, &[Bytes::from(key.to_string())]).await;
    });
    futures_util::future::join_all(committing).await;
    store.delete(keys[0]).await.unwrap();
    assert!(content(store, keys[0]).await.is_none());
    for key in &keys[1..] {
        assert_eq!(content(store, *key).await.unwrap(), key.to_string());
    }
}

async fn what_is_committed_is_known_without_opening_it(store: &StoreData) {
    let (key, arriving) = (new_key(), new_key());
    let before = Timestamp::now() - SignedDuration::from_secs(2);
    commit(store, key, &[Bytes::from_static(b"0123456789")]).await;
    begin(store, arriving).await.write(Bytes::from_static(b"not yet")).await.unwrap();
    let facts = store.facts(key).await.unwrap().unwrap();
    assert_eq!(facts.size_bytes, 10);
    assert!((before..=Timestamp::now()).contains(&facts.changed_at), "{facts:?}");
    assert_eq!(store.facts(arriving).await.unwrap(), None);
    store.delete(key).await.unwrap();
    assert_eq!(store.facts(key).await.unwrap(), None);
}

async fn what_is_not_there_whole_cannot_be_opened(store: &StoreData) {
    let (key, missing) = (new_key(), new_key());
    commit(store, key, &[Bytes::from_static(b"0123456789")]).await;
    for (key, size_bytes) in [(missing, 10), (missing, 0), (key, 9), (key, 11), (key, 0)] {
        for range in [0..size_bytes, 0..0] {
            let opened = store.open(key, size_bytes, vec![range.clone()], &Client::Server).await;
            assert!(matches!(opened.err(), Some(StoreError::Missing(_))), "{size_bytes} {range:?}");
        }
    }
    assert!(part(store, key, 10, 0..11).await.is_err(), "more than there is");
}

async fn a_large_blob_is_read_in_pieces_and_in_order(store: &StoreData) {
    let key = new_key();
    let whole: Vec<u8> = (0..3_000_001_u32).map(|number| (number / 1000) as u8).collect();
    commit(store, key, &[Bytes::from(whole.clone())]).await;
    // Many at once: how much is read at a time depends on that.
    let reads = (0..9_u64).map(async |number| {
        let range = number * 1000..3_000_001 - number;
        let read = part(store, key, 3_000_001, range.clone()).await.unwrap();
        let expected = &whole[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()];
        assert!(read == expected, "{range:?}");
    });
    futures_util::future::join_all(reads).await;
}

async fn ranges_are_read_one_after_the_other_and_no_piece_is_of_two(store: &StoreData) {
    let key = new_key();
    let whole = Bytes::from(noise(3_000_001));
    commit(store, key, std::slice::from_ref(&whole)).await;
    let ranges: [Range<usize>; 6] =
        [2_000_000..3_000_001, 0..70_000, 0..70_000, 5..5, 69_999..1_500_000, 3_000_000..3_000_001];
    let asked = ranges.iter().map(|range| range.start as u64..range.end as u64).collect();
    let mut pieces = store.open(key, 3_000_001, asked, &Client::Server).await.unwrap();
    for range in ranges {
        let (mut read, length) = (Vec::new(), range.end - range.start);
        while read.len() < length {
            read.extend_from_slice(&pieces.try_next().await.unwrap().unwrap());
        }
        assert!(read == whole[range.clone()], "{range:?}");
    }
    assert!(pieces.try_next().await.unwrap().is_none());
}

async fn a_stamp_is_replaced_only_by_those_who_have_seen_it(store: &StoreData) {
    let disk = store.storage.disk.as_ref().unwrap();
    let random = &mut rand::rng();
    let installation = Installation::generate(random);
    let [first, second, other] = [1, 2, 2].map(|number| Stamp::new(installation, number, random));
    assert_eq!(disk.stamp().await.unwrap(), None);
    assert!(!disk.replace_stamp(Some(first), second).await.unwrap());
    assert_eq!(disk.stamp().await.unwrap(), None, "nothing was changed");
    assert!(disk.replace_stamp(None, first).await.unwrap());
    assert!(!disk.replace_stamp(None, second).await.unwrap());
    assert!(disk.replace_stamp(Some(first), second).await.unwrap());
    assert!(!disk.replace_stamp(Some(other), first).await.unwrap(), "the number is not the whole of it");
    assert_eq!(disk.stamp().await.unwrap(), Some(second));
    // Of many who have seen the same one, one succeeds.
    let stamps: Vec<Stamp> = (0..20).map(|_| Stamp::new(installation, 3, random)).collect();
    let replaced = stamps.iter().map(|by| disk.replace_stamp(Some(second), *by));
    let replaced = futures_util::future::try_join_all(replaced).await.unwrap();
    assert_eq!(replaced.iter().filter(|is_done| **is_done).count(), 1);
    let at = replaced.iter().position(|is_done| *is_done).unwrap();
    assert_eq!(disk.stamp().await.unwrap(), Some(stamps[at]));
    assert_eq!(all_keys(store).await, BTreeSet::new(), "it is no blob");
}

async fn a_store_that_can_be_read_says_so(store: &StoreData) {
    store.check().await.unwrap();
}
