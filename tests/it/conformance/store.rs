//! Every sentence of `Store`'s documentation.

use std::sync::Arc;

use bytes::Bytes;
use cloakroom::resource::ResourceId;
use cloakroom::store::{DataDirectory, DiskStore, Store};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

/// Makes a test of each rule for one implementation.
macro_rules! suite {
    ($implementation:ident, $make:path: $($rule:ident),+ $(,)?) => {
        mod $implementation {
            $(#[tokio::test]
            async fn $rule() {
                let (store, _kept) = $make();
                super::$rule(&store).await;
            })+
        }
    };
}

suite!(
    disk, super::on_disk:
    bytes_are_invisible_until_they_are_published,
    what_was_published_reads_back_whole_and_in_parts,
    many_small_and_some_large_writes_are_one_bundle_with_its_digest,
    an_empty_bundle_is_a_bundle,
    what_was_opened_stays_readable_when_it_is_removed,
    removing_takes_what_is_incoming_and_what_is_published_and_nothing_is_success,
    dropped_bytes_are_left_to_remove,
    every_id_that_has_bytes_is_listed,
    one_id_takes_bytes_once_at_a_time,
    bundles_with_the_same_prefix_do_not_disturb_each_other,
    the_reserve_can_be_kept_and_given_up_again_and_again,
    the_free_room_is_told,
);

fn on_disk() -> (Arc<dyn Store>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (Arc::new(DiskStore::new(DataDirectory::open(folder.path()).unwrap())), folder)
}

type AnyStore = Arc<dyn Store>;

fn new_id() -> ResourceId {
    ResourceId::generate(&mut rand::rng())
}

async fn publish(store: &AnyStore, id: ResourceId, pieces: &[Bytes]) {
    let mut incoming = store.create(id).await.unwrap();
    for piece in pieces {
        incoming.write(piece.clone()).await.unwrap();
    }
    incoming.finish().await.unwrap();
    incoming.publish().await.unwrap();
}

async fn content(store: &AnyStore, id: ResourceId) -> Option<Bytes> {
    let bundle = store.open(id).await.unwrap()?;
    Some(bundle.read(0, usize::try_from(bundle.size_bytes()).unwrap() + 1).await.unwrap())
}

async fn bytes_are_invisible_until_they_are_published(store: &AnyStore) {
    let id = new_id();
    let mut incoming = store.create(id).await.unwrap();
    assert!(store.open(id).await.unwrap().is_none());
    incoming.write(Bytes::from(vec![1; 1 << 20])).await.unwrap();
    assert!(store.open(id).await.unwrap().is_none());
    let bundle = incoming.finish().await.unwrap();
    assert!(store.open(id).await.unwrap().is_none());
    incoming.publish().await.unwrap();
    let opened = store.open(id).await.unwrap().unwrap();
    assert_eq!((opened.size_bytes(), bundle.size_bytes), (1 << 20, 1 << 20));
}

async fn what_was_published_reads_back_whole_and_in_parts(store: &AnyStore) {
    let id = new_id();
    publish(store, id, &[Bytes::from_static(b"0123456789")]).await;
    let opened = store.open(id).await.unwrap().unwrap();
    for (offset, length, expected) in [
        (0, 10, "0123456789"),
        (0, 3, "012"),
        (7, 3, "789"),
        (7, 100, "789"),
        (10, 5, ""),
        (99, 5, ""),
        (4, 0, ""),
    ] {
        assert_eq!(opened.read(offset, length).await.unwrap(), expected, "{length} from {offset}");
    }
}

async fn many_small_and_some_large_writes_are_one_bundle_with_its_digest(store: &AnyStore) {
    let id = new_id();
    let sizes = [1, 0, 7, 4096, 300_000, 1, 1 << 20, 262_144, 262_143, 5].into_iter();
    let pieces: Vec<Bytes> = sizes
        .chain(std::iter::repeat_n(3, 2000))
        .enumerate()
        .map(|(number, size)| Bytes::from(vec![number as u8; size]))
        .collect();
    let mut incoming = store.create(id).await.unwrap();
    for piece in &pieces {
        incoming.write(piece.clone()).await.unwrap();
    }
    let bundle = incoming.finish().await.unwrap();
    incoming.publish().await.unwrap();
    let whole = pieces.concat();
    assert_eq!(bundle.size_bytes, whole.len() as u64);
    assert_eq!(bundle.sha256, <[u8; 32]>::from(Sha256::digest(&whole)));
    assert!(content(store, id).await.unwrap() == whole);
}

async fn an_empty_bundle_is_a_bundle(store: &AnyStore) {
    let id = new_id();
    let mut incoming = store.create(id).await.unwrap();
    let bundle = incoming.finish().await.unwrap();
    incoming.publish().await.unwrap();
    assert_eq!((bundle.size_bytes, bundle.sha256), (0, Sha256::digest([]).into()));
    assert_eq!(content(store, id).await.unwrap(), "");
    assert_eq!(store.ids().await.unwrap(), [id]);
}

async fn what_was_opened_stays_readable_when_it_is_removed(store: &AnyStore) {
    let id = new_id();
    publish(store, id, &[Bytes::from_static(b"still here")]).await;
    let opened = store.open(id).await.unwrap().unwrap();
    store.remove(id).await.unwrap();
    assert!(store.open(id).await.unwrap().is_none());
    assert_eq!(opened.read(0, 10).await.unwrap(), "still here");
}

async fn removing_takes_what_is_incoming_and_what_is_published_and_nothing_is_success(store: &AnyStore) {
    let [nothing, arriving, published] = [new_id(), new_id(), new_id()];
    let mut incoming = store.create(arriving).await.unwrap();
    incoming.write(Bytes::from_static(b"half")).await.unwrap();
    incoming.finish().await.unwrap();
    publish(store, published, &[Bytes::from_static(b"whole")]).await;
    for id in [nothing, arriving, published] {
        store.remove(id).await.unwrap();
        store.remove(id).await.unwrap();
        assert!(store.open(id).await.unwrap().is_none());
    }
    assert_eq!(store.ids().await.unwrap(), []);
}

async fn dropped_bytes_are_left_to_remove(store: &AnyStore) {
    let id = new_id();
    let mut incoming = store.create(id).await.unwrap();
    incoming.write(Bytes::from(vec![0; 1 << 20])).await.unwrap();
    drop(incoming);
    assert_eq!(store.ids().await.unwrap(), [id]);
    assert!(store.open(id).await.unwrap().is_none());
    store.remove(id).await.unwrap();
    assert_eq!(store.ids().await.unwrap(), []);
    // The id is free again.
    publish(store, id, &[Bytes::from_static(b"again")]).await;
    assert_eq!(content(store, id).await.unwrap(), "again");
}

async fn every_id_that_has_bytes_is_listed(store: &AnyStore) {
    assert_eq!(store.ids().await.unwrap(), []);
    let mut expected: Vec<_> = (0..40).map(|_| new_id()).collect();
    let mut arriving = Vec::new();
    for (number, id) in expected.iter().enumerate() {
        if number % 2 == 0 {
            publish(store, *id, &[]).await;
        } else {
            arriving.push(store.create(*id).await.unwrap());
        }
    }
    let mut listed = store.ids().await.unwrap();
    listed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(listed, expected);
}

async fn one_id_takes_bytes_once_at_a_time(store: &AnyStore) {
    let id = new_id();
    let mut first = store.create(id).await.unwrap();
    assert!(store.create(id).await.is_err(), "two uploads would write over each other");
    first.write(Bytes::from_static(b"first")).await.unwrap();
    first.finish().await.unwrap();
    first.publish().await.unwrap();
    assert_eq!(content(store, id).await.unwrap(), "first");
}

async fn bundles_with_the_same_prefix_do_not_disturb_each_other(store: &AnyStore) {
    let ids: Vec<_> = (0..9)
        .map(|last| ResourceId::parse(&format!("abc00000-0000-4000-8000-00000000000{last}")).unwrap())
        .collect();
    let publishing = ids.iter().map(|id| async move {
        publish(store, *id, &[Bytes::from(id.to_string())]).await;
    });
    futures_util::future::join_all(publishing).await;
    store.remove(ids[0]).await.unwrap();
    assert!(content(store, ids[0]).await.is_none());
    for id in &ids[1..] {
        assert_eq!(content(store, *id).await.unwrap(), id.to_string());
    }
}

async fn the_reserve_can_be_kept_and_given_up_again_and_again(store: &AnyStore) {
    store.release_reserve().await.unwrap();
    for _ in 0..2 {
        store.keep_reserve().await.unwrap();
        store.keep_reserve().await.unwrap();
        store.release_reserve().await.unwrap();
        store.release_reserve().await.unwrap();
    }
    assert_eq!(store.ids().await.unwrap(), []);
}

async fn the_free_room_is_told(store: &AnyStore) {
    assert!(store.space().await.unwrap().is_none_or(|space| space.free > 0));
}
