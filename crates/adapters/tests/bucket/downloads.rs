use std::net::IpAddr;

use bytes::Bytes;
use cloakroom_core::client::Client;
use cloakroom_storage::store::{Begun, BlobStore as _, StoreError};
use cloakroom_testing::front::Turn;
use futures_util::{StreamExt as _, TryStreamExt as _};
use libtest_mimic::Trial;

use super::{Behind, download, first, is_blob, new_key, noise, trials, upload};

const SIZE: usize = 4 << 20;

pub fn trials() -> Vec<Trial> {
    trials![
        a_download_goes_on_where_its_connection_broke,
        a_download_whose_connection_breaks_at_once_ends,
        a_download_never_mixes_two_objects,
        a_reader_that_pauses_reads_on,
        slow_readers_of_one_client_keep_no_other_client_out,
    ]
}

fn is_read(line: &str) -> bool {
    line.starts_with("GET ") && is_blob(line)
}

async fn a_download_goes_on_where_its_connection_broke() {
    let behind = Behind::start(first(3, is_read, Turn::Cut { after: SIZE / 4 })).await;
    let (store, key, bytes) = (behind.store(), new_key(), noise(SIZE));
    upload(&store, key, None, &bytes).await.unwrap();
    assert!(download(&store, key, SIZE as u64).await.unwrap() == bytes);
}

async fn a_download_whose_connection_breaks_at_once_ends() {
    let behind = Behind::start(first(usize::MAX, is_read, Turn::LoseAnswer)).await;
    let (store, key) = (behind.store(), new_key());
    upload(&store, key, None, &noise(SIZE)).await.unwrap();
    let ended = download(&store, key, SIZE as u64).await;
    assert!(matches!(ended, Err(StoreError::Unavailable(_))), "{ended:?}");
}

async fn a_download_never_mixes_two_objects() {
    let behind = Behind::start(first(1, is_read, Turn::Hold { after: SIZE / 4 })).await;
    let (store, key, bytes) = (behind.store(), new_key(), noise(SIZE));
    upload(&store, key, None, &bytes).await.unwrap();
    let mut pieces = store.open(key, SIZE as u64, vec![0..SIZE as u64], &Client::Server).await.unwrap();
    behind.front.holds().await;
    store.delete(key).await.unwrap();
    upload(&store, key, None, &noise(SIZE + 1).slice(1..)).await.unwrap();
    behind.front.let_go();
    let mut read = 0;
    let ended = loop {
        match pieces.next().await.unwrap() {
            Ok(piece) => {
                assert!(piece == bytes[read..read + piece.len()]);
                read += piece.len();
            }
            Err(error) => break error,
        }
    };
    assert!(matches!(ended, StoreError::Fault(_)) && read < SIZE, "{ended:?} {read}");
}

async fn a_reader_that_pauses_reads_on() {
    let behind = Behind::start(first(1, is_read, Turn::Hold { after: SIZE / 2 })).await;
    let (store, key, bytes) = (behind.store(), new_key(), noise(SIZE));
    upload(&store, key, None, &bytes).await.unwrap();
    let mut pieces = store.open(key, SIZE as u64, vec![0..SIZE as u64], &Client::Server).await.unwrap();
    let first = pieces.next().await.unwrap().unwrap();
    // The store gives the connection up while this reader pauses.
    behind.front.holds().await;
    behind.front.let_go();
    let mut read = first.to_vec();
    while let Some(piece) = pieces.next().await {
        read.extend_from_slice(&piece.unwrap());
    }
    assert!(read == bytes);
}

// Invariant: with a bucket, slow transfers of one client keep no other client waiting, and lose nothing.
async fn slow_readers_of_one_client_keep_no_other_client_out() {
    let behind = Behind::start(|_| Turn::Pass).await;
    let (store, key, bytes) = (behind.store(), new_key(), noise(SIZE));
    upload(&store, key, None, &bytes).await.unwrap();
    let host = |last| Client::Host(IpAddr::from([10, 0, 0, last]).into());
    let size = SIZE as u64;
    let mut slow = Vec::new();
    // All of the memory.
    for client in [1; 48].into_iter().chain([2; 16]) {
        let mut pieces = store.open(key, size, vec![0..size], &host(client)).await.unwrap();
        let first = pieces.next().await.unwrap().unwrap();
        assert!(
            first.len() <= 64 << 10,
            "more would wait for the client outside of the pool: {}",
            first.len()
        );
        slow.push((first, pieces));
    }
    // Its own memory does for one more, and for an upload.
    let pieces: Vec<Bytes> =
        store.open(key, size, vec![0..size], &host(3)).await.unwrap().try_collect().await.unwrap();
    assert!(pieces.concat() == bytes);
    let Begun { mut writer, .. } = store.begin(new_key(), Some(size), &host(3)).await.unwrap();
    writer.write(bytes.clone()).await.unwrap();
    writer.commit().await.unwrap();
    for (first, rest) in slow {
        let rest: Vec<Bytes> = rest.try_collect().await.unwrap();
        assert!([&first[..], &rest.concat()].concat() == bytes);
    }
}
