//! Every sentence of the documentation of `BlobStore`, and of `LocalDisk`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use cloakroom_adapters::disk::{DataDirectory, DiskError, DiskStore};
use cloakroom_core::resource::{BlobKey, ResourceId};
use cloakroom_storage::store::{Begun, BlobFacts, BlobStore, BlobWriter, LocalDisk, MemoryStore, StoreError};
use futures_util::TryStreamExt as _;
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;

/// Makes a test of each rule for each implementation.
macro_rules! suites {
    ($($implementation:ident, $make:path => $rules:tt),+ $(,)?) => {
        $(suites!(@one $implementation, $make => $rules);)+
    };
    (@one $implementation:ident, $make:path => [$($rule:ident),+ $(,)?]) => {
        mod $implementation {
            $(#[tokio::test]
            async fn $rule() {
                let (store, _kept) = $make();
                super::$rule(&store).await;
            })+
        }
    };
}

macro_rules! for_each_store {
    ($rules:tt) => { suites!(disk, super::on_disk => $rules, memory, super::in_memory => $rules); };
}

for_each_store!([
    bytes_are_invisible_until_they_are_committed,
    what_was_committed_reads_back_whole_and_in_parts,
    many_small_and_some_large_writes_are_one_blob,
    an_empty_blob_is_a_blob,
    aborting_takes_what_is_arriving_and_what_is_committed_and_nothing_is_success,
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
    a_store_that_can_be_read_says_so,
]);

suites!(
    local_disk, super::the_disk => [
        what_was_opened_stays_readable_when_it_is_deleted,
        the_reserve_can_be_kept_and_given_up_again_and_again,
        the_free_room_is_told,
        blobs_that_are_open_are_counted_up_to_their_limit,
        a_key_takes_bytes_once,
    ],
);

fn on_disk() -> (AnyStore, TempDir) {
    let (store, folder) = the_disk();
    (AnyStore { blobs: Arc::clone(&store) as _, uncommitted: Uncommitted::Disk(store) }, folder)
}

fn the_disk() -> (Arc<DiskStore>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let directory = DataDirectory::open(folder.path()).unwrap();
    (Arc::new(DiskStore::with_open_blobs(directory, 2)), folder)
}

fn in_memory() -> (AnyStore, ()) {
    let store = MemoryStore::default();
    (AnyStore { blobs: Arc::new(store.clone()), uncommitted: Uncommitted::Memory(store) }, ())
}

/// A store with all that it has.
struct AnyStore {
    blobs: Arc<dyn BlobStore>,
    uncommitted: Uncommitted,
}

/// Where a test finds the uploads that are not committed.
enum Uncommitted {
    Disk(Arc<dyn LocalDisk>),
    Memory(MemoryStore),
}

impl Deref for AnyStore {
    type Target = dyn BlobStore;

    fn deref(&self) -> &Self::Target {
        &*self.blobs
    }
}

fn new_key() -> BlobKey {
    BlobKey::of(ResourceId::generate(&mut rand::rng()))
}

async fn begin(store: &impl AsStore, key: BlobKey) -> Box<dyn BlobWriter> {
    store.blobs().begin(key, None).await.unwrap().writer
}

async fn commit(store: &impl AsStore, key: BlobKey, pieces: &[Bytes]) {
    let mut writer = begin(store, key).await;
    for piece in pieces {
        writer.write(piece.clone()).await.unwrap();
    }
    writer.commit().await.unwrap();
}

async fn content(store: &impl AsStore, key: BlobKey) -> Option<Bytes> {
    let size_bytes = store.blobs().facts(key).await.unwrap()?.size_bytes;
    Some(part(store, key, size_bytes, 0..size_bytes).await.unwrap().into())
}

async fn part(
    store: &impl AsStore,
    key: BlobKey,
    size_bytes: u64,
    range: Range<u64>,
) -> Result<Vec<u8>, StoreError> {
    let pieces: Vec<Bytes> = store.blobs().open(key, size_bytes, range).await?.try_collect().await?;
    Ok(pieces.concat())
}

/// Rules of the disk use the same steps as those of all stores.
trait AsStore {
    fn blobs(&self) -> &dyn BlobStore;
}

impl AsStore for AnyStore {
    fn blobs(&self) -> &dyn BlobStore {
        &*self.blobs
    }
}

impl AsStore for Arc<DiskStore> {
    fn blobs(&self) -> &dyn BlobStore {
        &**self
    }
}

async fn committed(store: &impl AsStore) -> BTreeSet<BlobKey> {
    store.blobs().list().map_ok(|(key, _)| key).try_collect().await.unwrap()
}

/// Keys with bytes, committed or not.
async fn all_keys(store: &AnyStore) -> BTreeSet<BlobKey> {
    let uncommitted = match &store.uncommitted {
        Uncommitted::Disk(disk) => disk.arriving().await.unwrap(),
        Uncommitted::Memory(store) => store.arriving(),
    };
    committed(store).await.into_iter().chain(uncommitted).collect()
}

async fn is_there(store: &impl AsStore, key: BlobKey) -> bool {
    let facts = store.blobs().facts(key).await.unwrap();
    let opened = store.blobs().open(key, facts.map_or(0, |facts| facts.size_bytes), 0..0).await.err();
    assert_eq!(opened.is_none(), facts.is_some());
    assert!(matches!(opened, None | Some(StoreError::Missing(_))), "{opened:?}");
    facts.is_some()
}

async fn bytes_are_invisible_until_they_are_committed(store: &AnyStore) {
    let key = new_key();
    let mut writer = begin(store, key).await;
    assert!(!is_there(store, key).await);
    writer.write(Bytes::from(vec![1; 1 << 20])).await.unwrap();
    assert!(!is_there(store, key).await);
    writer.commit().await.unwrap();
    assert_eq!(content(store, key).await.unwrap(), vec![1; 1 << 20]);
}

async fn what_was_committed_reads_back_whole_and_in_parts(store: &AnyStore) {
    let key = new_key();
    commit(store, key, &[Bytes::from_static(b"0123456789")]).await;
    for (range, expected) in [(0..10, "0123456789"), (0..3, "012"), (7..10, "789"), (4..4, ""), (10..10, "")]
    {
        assert_eq!(part(store, key, 10, range.clone()).await.unwrap(), expected.as_bytes(), "{range:?}");
    }
}

async fn many_small_and_some_large_writes_are_one_blob(store: &AnyStore) {
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

async fn an_empty_blob_is_a_blob(store: &AnyStore) {
    let key = new_key();
    commit(store, key, &[]).await;
    assert_eq!(content(store, key).await.unwrap(), "");
    assert_eq!(all_keys(store).await, BTreeSet::from([key]));
}

async fn aborting_takes_what_is_arriving_and_what_is_committed_and_nothing_is_success(store: &AnyStore) {
    let [nothing, arriving, committed] = [new_key(), new_key(), new_key()];
    let Begun { mut writer, handle } = store.begin(arriving, Some(4)).await.unwrap();
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

async fn an_aborted_upload_can_not_be_committed(store: &AnyStore) {
    let key = new_key();
    let Begun { mut writer, handle } = store.begin(key, None).await.unwrap();
    writer.write(Bytes::from_static(b"late")).await.unwrap();
    // Not what a user of the port may do: one that was paused for long does it all the same.
    store.abort(key, handle.as_ref()).await.unwrap();
    assert!(writer.commit().await.is_err());
    assert!(!is_there(store, key).await);
    assert_eq!(all_keys(store).await, BTreeSet::new());
}

async fn a_handle_is_another_one_for_each_upload(store: &AnyStore) {
    let one = store.begin(new_key(), None).await.unwrap().handle;
    let other = store.begin(new_key(), None).await.unwrap().handle;
    assert!(one.is_none() && other.is_none() || one != other, "{one:?} {other:?}");
}

async fn deleting_takes_what_is_committed_and_nothing_is_success(store: &AnyStore) {
    let key = new_key();
    store.delete(key).await.unwrap();
    commit(store, key, &[Bytes::from_static(b"whole")]).await;
    store.delete(key).await.unwrap();
    assert!(!is_there(store, key).await);
    store.delete(key).await.unwrap();
    assert_eq!(all_keys(store).await, BTreeSet::new());
}

async fn deleting_leaves_what_is_arriving(store: &AnyStore) {
    let key = new_key();
    let mut writer = begin(store, key).await;
    store.delete(key).await.unwrap();
    writer.write(Bytes::from_static(b"still arriving")).await.unwrap();
    writer.commit().await.unwrap();
    assert_eq!(content(store, key).await.unwrap(), "still arriving");
}

async fn dropped_bytes_are_left_to_abort(store: &AnyStore) {
    let key = new_key();
    let Begun { mut writer, handle } = store.begin(key, None).await.unwrap();
    writer.write(Bytes::from(vec![0; 1 << 20])).await.unwrap();
    drop(writer);
    assert_eq!(all_keys(store).await, BTreeSet::from([key]));
    assert!(!is_there(store, key).await);
    store.abort(key, handle.as_ref()).await.unwrap();
    assert_eq!(all_keys(store).await, BTreeSet::new());
}

async fn all_that_is_committed_is_listed_with_its_facts(store: &AnyStore) {
    assert_eq!(all_keys(store).await, BTreeSet::new());
    let (mut expected, mut uncommitted) = (BTreeMap::new(), BTreeSet::new());
    for size_bytes in 0..40 {
        let key = new_key();
        if size_bytes % 2 == 0 {
            commit(store, key, &[Bytes::from(vec![1; size_bytes])]).await;
            expected.insert(key, store.facts(key).await.unwrap().unwrap());
        } else {
            begin(store, key).await;
            uncommitted.insert(key);
        }
    }
    let listed: BTreeMap<BlobKey, BlobFacts> = store.list().try_collect().await.unwrap();
    assert_eq!(listed, expected);
    assert_eq!(&all_keys(store).await - &expected.into_keys().collect(), uncommitted);
}

async fn blobs_with_the_same_prefix_do_not_disturb_each_other(store: &AnyStore) {
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

async fn what_is_committed_is_known_without_opening_it(store: &AnyStore) {
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

async fn what_is_not_there_whole_cannot_be_opened(store: &AnyStore) {
    let (key, missing) = (new_key(), new_key());
    commit(store, key, &[Bytes::from_static(b"0123456789")]).await;
    for (key, size_bytes) in [(missing, 10), (missing, 0), (key, 9), (key, 11), (key, 0)] {
        for range in [0..size_bytes, 0..0] {
            let opened = store.open(key, size_bytes, range.clone()).await;
            assert!(matches!(opened.err(), Some(StoreError::Missing(_))), "{size_bytes} {range:?}");
        }
    }
    assert!(part(store, key, 10, 0..11).await.is_err(), "more than there is");
}

async fn a_large_blob_is_read_in_pieces_and_in_order(store: &AnyStore) {
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

async fn a_store_that_can_be_read_says_so(store: &AnyStore) {
    store.check().await.unwrap();
}

async fn what_was_opened_stays_readable_when_it_is_deleted(store: &Arc<DiskStore>) {
    let key = new_key();
    commit(store, key, &[Bytes::from_static(b"still here")]).await;
    let opened = store.open(key, 10, 0..10).await.unwrap();
    store.delete(key).await.unwrap();
    assert!(!is_there(store, key).await);
    let pieces: Vec<Bytes> = opened.try_collect().await.unwrap();
    assert_eq!(pieces.concat(), b"still here");
}

async fn the_reserve_can_be_kept_and_given_up_again_and_again(store: &Arc<DiskStore>) {
    store.release_reserve().await.unwrap();
    for _ in 0..2 {
        store.maintain().await.unwrap();
        store.maintain().await.unwrap();
        store.release_reserve().await.unwrap();
        store.release_reserve().await.unwrap();
    }
    assert_eq!(committed(store).await, BTreeSet::new());
}

async fn the_free_room_is_told(store: &Arc<DiskStore>) {
    assert!(store.space().await.unwrap().free > 0);
}

async fn blobs_that_are_open_are_counted_up_to_their_limit(store: &Arc<DiskStore>) {
    let keys = [new_key(), new_key(), new_key()];
    for key in keys {
        commit(store, key, &[Bytes::from_static(b"jars")]).await;
    }
    let one = store.open(keys[0], 4, 0..4).await.unwrap();
    let again = store.open(keys[0], 4, 1..4).await.unwrap();
    assert_eq!(store.open_blobs(), Some((1, 2)), "one file for one blob");
    let other = store.open(keys[1], 4, 0..4).await.unwrap();
    let refused = store.open(keys[2], 4, 0..4).await;
    assert!(matches!(refused.err(), Some(StoreError::Throttled(_))));
    drop((one, again));
    assert!(store.open(keys[2], 4, 0..4).await.is_ok());
    drop(other);
}

async fn a_key_takes_bytes_once(store: &Arc<DiskStore>) {
    let key = new_key();
    let mut first = begin(store, key).await;
    assert!(store.begin(key, None).await.is_err(), "two uploads would write over each other");
    first.write(Bytes::from_static(b"first")).await.unwrap();
    first.commit().await.unwrap();
    assert_eq!(content(store, key).await.unwrap(), "first");
}

/// Where a committed blob is in the data directory of `store`.
fn file_of(folder: &Path, key: BlobKey) -> PathBuf {
    folder.join("bundles").join(key.resource().shard()).join(key.to_string())
}

#[tokio::test]
async fn a_pipe_or_a_link_in_the_place_of_a_blob_is_an_error_at_once() {
    let (store, folder) = the_disk();
    let (store, folder) = (&store, folder.path());
    let [pipe, link, whole] = [new_key(), new_key(), new_key()];
    for key in [pipe, link, whole] {
        commit(store, key, &[Bytes::from_static(b"whole")]).await;
    }
    for key in [pipe, link] {
        std::fs::remove_file(file_of(folder, key)).unwrap();
    }
    let made = std::process::Command::new("mkfifo").arg(file_of(folder, pipe)).status().unwrap();
    assert!(made.success());
    std::os::unix::fs::symlink(file_of(folder, whole), file_of(folder, link)).unwrap();
    for key in [pipe, link] {
        assert!(matches!(store.open(key, 5, 0..5).await.err(), Some(StoreError::Fault(_))));
        assert!(is_there(store, whole).await);
    }
}

#[tokio::test]
async fn a_folder_that_took_its_place_is_left_alone_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let store = &Arc::new(DiskStore::new(DataDirectory::open(&path).unwrap()));
    let (key, arriving) = (new_key(), new_key());
    commit(store, key, &[Bytes::from_static(b"of the first")]).await;
    let mut writer = begin(store, arriving).await;
    writer.write(Bytes::from_static(b"late")).await.unwrap();
    std::fs::rename(&path, folder.path().join("moved")).unwrap();
    let second = Arc::new(DiskStore::new(DataDirectory::open(&path).unwrap()));
    commit(&second, key, &[Bytes::from_static(b"of the second")]).await;
    assert!(matches!(writer.commit().await, Err(StoreError::Replaced(_))));
    for checked in [store.check().await, store.maintain().await] {
        assert!(matches!(checked, Err(StoreError::Replaced(_))), "{checked:?}");
    }
    // What it still does, it does in its own folder.
    assert_eq!(committed(store).await, BTreeSet::from([key, arriving]));
    for key in [key, arriving] {
        store.abort(key, None).await.unwrap();
    }
    store.release_reserve().await.unwrap();
    assert_eq!(content(&second, key).await.unwrap(), "of the second");
    second.check().await.unwrap();
}

fn make_pipe(path: &Path) {
    let _ = std::fs::remove_file(path);
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[tokio::test]
async fn a_pipe_in_the_place_of_the_reserve_or_the_lock_holds_nothing_up() {
    let (store, folder) = the_disk();
    make_pipe(&folder.path().join("reserve"));
    assert!(matches!(store.maintain().await, Err(StoreError::Fault(_))));
    make_pipe(&folder.path().join("lock"));
    store.maintain().await.unwrap();
    drop(store);
    assert!(matches!(DataDirectory::open(folder.path()), Err(DiskError::Io { .. })));
}

#[tokio::test]
async fn what_was_removed_from_the_folder_is_made_again_and_a_link_in_place_of_the_lock_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().join("elsewhere");
    std::fs::write(&elsewhere, "").unwrap();
    let path = folder.path().join("data");
    std::fs::create_dir(&path).unwrap();
    std::os::unix::fs::symlink(&elsewhere, path.join("lock")).unwrap();
    let store = &Arc::new(DiskStore::new(DataDirectory::open(&path).unwrap()));
    store.maintain().await.unwrap();
    for name in ["incoming", "bundles"] {
        std::fs::remove_dir(path.join(name)).unwrap();
    }
    std::fs::remove_file(path.join("lock")).unwrap();
    store.maintain().await.unwrap();
    assert!(std::fs::File::open(path.join("lock")).unwrap().try_lock().is_err(), "it is not locked");
    let key = new_key();
    commit(store, key, &[Bytes::from_static(b"jars")]).await;
    assert_eq!(content(store, key).await.unwrap(), "jars");
}
