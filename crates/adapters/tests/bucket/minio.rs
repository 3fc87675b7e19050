//! `MinIO` refuses to complete an upload a second time, where the gateway says that it is complete.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cloakroom_core::client::Client;
use cloakroom_core::metrics::Metrics;
use cloakroom_storage::log::LogStore as _;
use cloakroom_storage::store::{Begun, BlobStore as _};
use cloakroom_testing::front::{Front, Turn};
use cloakroom_testing::logs;
use cloakroom_testing::minio::Minio;
use cloakroom_testing::needs::trial;
use cloakroom_testing::s3_gateway::{ACCESS_KEY, SECRET_KEY, signed_with};
use futures_util::TryStreamExt as _;
use libtest_mimic::Trial;

use super::{POOL_BYTES, block_on, download, first, is_blob, new_key, noise, store, store_at, upload};
use cloakroom_adapters::bucket::{BucketOptions, BucketStore, Pool};

const PART: usize = 5 << 20;

pub fn trials() -> Vec<Trial> {
    let run = |name, test: fn()| trial(name, &Minio::needs(), test);
    vec![
        run("minio::it_can_be_used", || block_on(it_can_be_used())),
        run("minio::a_bucket_with_object_lock_is_warned_of", || {
            block_on(a_bucket_with_object_lock_is_warned_of());
        }),
        run("minio::an_upload_that_is_completed_twice_is_confirmed", || {
            block_on(an_upload_that_is_completed_twice_is_confirmed());
        }),
    ]
}

async fn behind(script: impl Fn(&str) -> Turn + Send + Sync + 'static) -> (BucketStore, Front, Minio) {
    let minio = Minio::start().await;
    let front = Front::before(minio.address(), script);
    (store(&front.url(), SECRET_KEY, Pool::new(POOL_BYTES), &Metrics::new()), front, minio)
}

async fn it_can_be_used() {
    let (store, _front, _minio) = behind(|_| Turn::Pass).await;
    store.probe().await.unwrap();
    let mut keys = Vec::new();
    for size in [0, 1000, PART + 1] {
        let bytes = noise(size);
        for length in [Some(size as u64), None] {
            let key = new_key();
            upload(&store, key, length, &bytes).await.unwrap();
            assert!(download(&store, key, size as u64).await.unwrap() == bytes, "{size} {length:?}");
            keys.push(key);
        }
    }
    let aborted = new_key();
    let Begun { writer, handle } = store.begin(aborted, None, &Client::Server).await.unwrap();
    drop(writer);
    store.abort(aborted, handle.as_ref()).await.unwrap();
    let mut listed: Vec<_> = store.list().map_ok(|(key, _)| key).try_collect().await.unwrap();
    listed.sort_unstable();
    keys.sort_unstable();
    assert_eq!(listed, keys);
    let stamp = "form-1 00000000000000ab 1 7 0 1-0 serves".parse().unwrap();
    assert!(store.replace_stamp(None, stamp).await.unwrap());
    assert!(!store.replace_stamp(None, stamp).await.unwrap());
}

/// Object lock brings versions with it, so a deletion only hides what was written.
async fn a_bucket_with_object_lock_is_warned_of() {
    logs::capture();
    let minio = Minio::start().await;
    let endpoint = format!("http://{}", minio.address());
    signed_with("PUT", &format!("{endpoint}/locked"), "x-amz-bucket-object-lock-enabled: true");
    let options = BucketOptions { endpoint: Some(endpoint), ..BucketOptions::default() };
    let key = [("AWS_ACCESS_KEY_ID", ACCESS_KEY), ("AWS_SECRET_ACCESS_KEY", SECRET_KEY)];
    store_at("s3://locked/prefix", options, &key, &Metrics::new()).probe().await.unwrap();
    let told = logs::lines_with("s3://locked/prefix keeps versions");
    assert!(told.len() == 1 && told[0].contains("until a lifecycle rule"), "{told:?}");
}

async fn an_upload_that_is_completed_twice_is_confirmed() {
    let is_end = |line: &str| line.starts_with("POST ") && line.contains("uploadId=");
    let (ends, loses) = (Arc::new(AtomicUsize::new(0)), first(1, is_end, Turn::LoseAnswer));
    let counted = Arc::clone(&ends);
    // All four attempts of the first confirmation.
    let hides =
        first(4, |line| line.starts_with("HEAD ") && is_blob(line), Turn::Answer(503, "text/plain", ""));
    let (store, front, _minio) = behind(move |line| {
        counted.fetch_add(usize::from(is_end(line)), Ordering::Relaxed);
        let turn = loses(line);
        if turn == Turn::Pass { hides(line) } else { turn }
    })
    .await;
    let (key, bytes) = (new_key(), noise(PART + 1));
    upload(&store, key, None, &bytes).await.unwrap();
    assert!(download(&store, key, PART as u64 + 1).await.unwrap() == bytes);
    assert_eq!(ends.load(Ordering::Relaxed), 2, "the second one is refused");
    drop(front);
}
