//! Every sentence of the documentation of `LocalDisk`, and what a disk has beyond other stores.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use cloakroom_adapters::disk::{DataDirectory, DiskStore};
use cloakroom_core::client::Client;
use cloakroom_core::resource::BlobKey;
use cloakroom_storage::store::{BlobStore as _, LocalDisk as _, StoreError};
use cloakroom_suites::store::{begin, commit, committed, content, is_there, new_key};
use futures_util::TryStreamExt as _;
use tempfile::TempDir;

fn the_disk() -> (Arc<DiskStore>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let directory = DataDirectory::open(folder.path()).unwrap();
    (Arc::new(DiskStore::with_open_blobs(directory, 2)), folder)
}

#[tokio::test]
async fn what_was_opened_stays_readable_when_it_is_deleted() {
    let (store, _folder) = &the_disk();
    let key = new_key();
    commit(store, key, &[Bytes::from_static(b"still here")]).await;
    let opened = store.open(key, 10, vec![0..10], &Client::Server).await.unwrap();
    store.delete(key).await.unwrap();
    assert!(!is_there(store, key).await);
    let pieces: Vec<Bytes> = opened.try_collect().await.unwrap();
    assert_eq!(pieces.concat(), b"still here");
}

#[tokio::test]
async fn the_reserve_can_be_kept_and_given_up_again_and_again() {
    let (store, _folder) = &the_disk();
    store.release_reserve().await.unwrap();
    for _ in 0..2 {
        store.maintain().await.unwrap();
        store.maintain().await.unwrap();
        store.release_reserve().await.unwrap();
        store.release_reserve().await.unwrap();
    }
    assert_eq!(committed(store).await, BTreeSet::new());
}

#[tokio::test]
async fn the_free_room_is_told() {
    let (store, _folder) = &the_disk();
    assert!(store.space().await.unwrap().free > 0);
}

#[tokio::test]
async fn blobs_that_are_open_are_counted_up_to_their_limit() {
    let (store, _folder) = &the_disk();
    let keys = [new_key(), new_key(), new_key()];
    for key in keys {
        commit(store, key, &[Bytes::from_static(b"jars")]).await;
    }
    let one = store.open(keys[0], 4, vec![0..4], &Client::Server).await.unwrap();
    let again = store.open(keys[0], 4, vec![1..4], &Client::Server).await.unwrap();
    assert_eq!(store.open_blobs(), Some((1, 2)), "one file for one blob");
    let other = store.open(keys[1], 4, vec![0..4], &Client::Server).await.unwrap();
    let refused = store.open(keys[2], 4, vec![0..4], &Client::Server).await;
    assert!(matches!(refused.err(), Some(StoreError::Throttled(_))));
    drop((one, again));
    assert!(store.open(keys[2], 4, vec![0..4], &Client::Server).await.is_ok());
    drop(other);
}

#[tokio::test]
async fn a_key_takes_bytes_once() {
    let (store, _folder) = &the_disk();
    let key = new_key();
    let mut first = begin(store, key).await;
    assert!(
        store.begin(key, None, &Client::Server).await.is_err(),
        "two uploads would write over each other"
    );
    first.write(Bytes::from_static(b"first")).await.unwrap();
    first.commit().await.unwrap();
    assert_eq!(content(store, key).await.unwrap(), "first");
}

/// Where a committed blob is in the data directory of `store`.
fn file_of(folder: &Path, key: BlobKey) -> PathBuf {
    folder.join("bundles").join(key.resource().shard()).join(key.to_string())
}

// Invariant: a call to the disk that does not return holds up no other one.
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
        assert!(matches!(
            store.open(key, 5, vec![0..5], &Client::Server).await.err(),
            Some(StoreError::Fault(_))
        ));
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
    // Its calls still reach its own folder, and no other one.
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
async fn a_pipe_in_the_place_of_the_reserve_holds_nothing_up() {
    let (store, folder) = the_disk();
    make_pipe(&folder.path().join("reserve"));
    assert!(matches!(store.maintain().await, Err(StoreError::Fault(_))));
}

#[tokio::test]
async fn removed_folders_are_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let store = &Arc::new(DiskStore::new(DataDirectory::open(&path).unwrap()));
    store.maintain().await.unwrap();
    for name in ["incoming", "bundles"] {
        std::fs::remove_dir(path.join(name)).unwrap();
    }
    store.maintain().await.unwrap();
    let key = new_key();
    commit(store, key, &[Bytes::from_static(b"jars")]).await;
    assert_eq!(content(store, key).await.unwrap(), "jars");
}
