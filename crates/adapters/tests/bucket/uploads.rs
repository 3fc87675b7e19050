use bytes::Bytes;
use cloakroom_adapters::bucket::Pool;
use cloakroom_core::client::Client;
use cloakroom_core::resource::UploadHandle;
use cloakroom_core::text::chain;
use cloakroom_storage::log::LogStore as _;
use cloakroom_storage::log::WriterStamp;
use cloakroom_storage::stamp::Installation;
use cloakroom_storage::store::{Begun, BlobStore as _, StoreError};
use cloakroom_testing::front::Turn;
use libtest_mimic::Trial;

use super::{Behind, POOL_BYTES, download, first, is_blob, new_key, noise, trials, upload};

const PART: usize = 5 << 20;

pub fn trials() -> Vec<Trial> {
    trials![
        an_upload_is_one_request_or_parts_of_one_size,
        a_lost_answer_to_a_whole_upload_is_confirmed,
        a_lost_answer_to_the_end_of_an_upload_is_confirmed,
        an_upload_whose_end_cannot_be_confirmed_is_neither_there_nor_gone,
        a_part_whose_connection_breaks_is_sent_again,
        a_lost_answer_to_a_stamp_is_confirmed,
        more_bytes_than_announced_are_refused,
        an_upload_waits_for_the_memory_of_a_whole_part,
        an_id_that_no_request_can_have_is_refused_and_never_sent,
    ]
}

fn is_complete(line: &str) -> bool {
    line.starts_with("POST ") && line.contains("uploadId=")
}

fn is_whole_put(line: &str) -> bool {
    line.starts_with("PUT ") && is_blob(line) && !line.contains("partNumber=")
}

async fn an_upload_is_one_request_or_parts_of_one_size() {
    let behind = Behind::start(|_| Turn::Pass).await;
    let store = behind.store();
    for size in [0, 1, PART - 1, PART, PART + 1, 2 * PART, 3 * PART + 17] {
        let bytes = noise(size);
        for length in [Some(size as u64), None] {
            let key = new_key();
            upload(&store, key, length, &bytes).await.unwrap();
            assert!(download(&store, key, size as u64).await.unwrap() == bytes, "{size} {length:?}");
        }
    }
    assert!(behind.gateway.uploads().is_empty());
}

/// The library panics when it makes a request of it.
async fn an_id_that_no_request_can_have_is_refused_and_never_sent() {
    let id = "x".repeat(66_000);
    let answer = format!(
        "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
    );
    let begins = |line: &str| line.starts_with("POST ") && line.contains("?uploads");
    let behind =
        Behind::start(first(usize::MAX, begins, Turn::Answer(200, "application/xml", answer.leak()))).await;
    let (store, key) = (behind.store(), new_key());
    let Err(refused) = store.begin(key, None, &Client::Server).await else {
        panic!("an id of 66,000 bytes is taken")
    };
    let told = chain(&refused);
    assert!(matches!(refused, StoreError::Fault(_)), "{told}");
    assert!(told.contains("an id of 66000 bytes") && !told.contains("xxx"), "{told}");
    // A row of an earlier version may have it.
    store.abort(key, Some(&UploadHandle::from_text(id))).await.unwrap();
}

async fn a_lost_answer_to_a_whole_upload_is_confirmed() {
    let behind = Behind::start(first(1, is_whole_put, Turn::LoseAnswer)).await;
    let (store, key, bytes) = (behind.store(), new_key(), noise(1000));
    upload(&store, key, Some(1000), &bytes).await.unwrap();
    assert_eq!(download(&store, key, 1000).await.unwrap(), bytes);
}

async fn a_lost_answer_to_the_end_of_an_upload_is_confirmed() {
    let behind = Behind::start(first(1, is_complete, Turn::LoseAnswer)).await;
    let (store, key, bytes) = (behind.store(), new_key(), noise(PART + 1));
    upload(&store, key, None, &bytes).await.unwrap();
    assert!(download(&store, key, PART as u64 + 1).await.unwrap() == bytes);
}

async fn an_upload_whose_end_cannot_be_confirmed_is_neither_there_nor_gone() {
    let loses = |line: &str| is_complete(line) || line.starts_with("HEAD ");
    let behind = Behind::start(first(usize::MAX, loses, Turn::LoseAnswer)).await;
    let (store, key) = (behind.store(), new_key());
    let ended = upload(&store, key, None, &noise(1000)).await;
    assert!(matches!(ended, Err(StoreError::Unavailable(_))), "{ended:?}");
}

async fn a_part_whose_connection_breaks_is_sent_again() {
    let is_part = |line: &str| line.contains("partNumber=");
    let behind = Behind::start(first(2, is_part, Turn::LoseAnswer)).await;
    let (store, key, bytes) = (behind.store(), new_key(), noise(3 * PART));
    upload(&store, key, None, &bytes).await.unwrap();
    assert!(download(&store, key, 3 * PART as u64).await.unwrap() == bytes);
}

async fn a_lost_answer_to_a_stamp_is_confirmed() {
    let is_stamp = |line: &str| line.starts_with("PUT ") && line.contains("/stamp");
    let behind = Behind::start(first(1, is_stamp, Turn::LoseAnswer)).await;
    let (store, random) = (behind.store(), &mut rand::rng());
    let stamp = WriterStamp::claim(None, Installation::generate(random), random);
    assert!(store.replace_stamp(None, stamp).await.unwrap());
    assert_eq!(store.stamp().await.unwrap(), Some(stamp));
}

async fn more_bytes_than_announced_are_refused() {
    let behind = Behind::start(|_| Turn::Pass).await;
    let (store, key) = (behind.store(), new_key());
    let ended = upload(&store, key, Some(3), &noise(4)).await;
    assert!(matches!(ended, Err(StoreError::Fault(_))), "{ended:?}");
    assert_eq!(store.facts(key).await.unwrap(), None);
}

async fn an_upload_waits_for_the_memory_of_a_whole_part() {
    let behind = Behind::start(|_| Turn::Pass).await;
    let store = behind.store_with(super::SECRET_KEY, Pool::new(POOL_BYTES));
    let mut writers = Vec::new();
    // One client leaves a quarter to others.
    for _ in 0..POOL_BYTES as usize * 3 / 4 / PART {
        let Begun { mut writer, .. } = store.begin(new_key(), None, &Client::Server).await.unwrap();
        writer.write(Bytes::from_static(b"the first byte of a part")).await.unwrap();
        writers.push(writer);
    }
    let Begun { writer: mut late, .. } = store.begin(new_key(), None, &Client::Server).await.unwrap();
    let mut waiting = Box::pin(late.write(Bytes::from_static(b"one more")));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    writers.pop().unwrap().commit().await.unwrap();
    waiting.await.unwrap();
}
