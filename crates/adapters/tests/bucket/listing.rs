//! Listings of a bucket, and answers that an object does not exist.

use cloakroom_adapters::bucket::Pool;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::text::chain;
use cloakroom_storage::log::LogStore as _;
use cloakroom_storage::store::{BlobStore as _, StoreError};
use cloakroom_testing::ceph::Ceph;
use cloakroom_testing::front::Turn;
use cloakroom_testing::logs;
use cloakroom_testing::needs::trial;
use cloakroom_testing::s3_gateway::{BUCKET, SECRET_KEY, signed};
use futures_util::TryStreamExt as _;
use libtest_mimic::Trial;

use super::{Behind, POOL_BYTES, block_on, first, new_key, noise, store, trials, upload};

const XML: &str = "application/xml";

pub fn trials() -> Vec<Trial> {
    let mut all =
        trials![a_listing_that_never_ends_is_an_error, a_stamp_that_is_absent_for_a_moment_is_found];
    all.push(trial("listing::objects_of_other_programs_are_left_alone", &Ceph::needs(), || {
        block_on(objects_of_other_programs_are_left_alone());
    }));
    all
}

// Invariant: objects of other programs among the bundles are left alone, whatever their names; a listing without end,
// and a stamp that is absent for a moment, change nothing.
/// The gateway before a folder cannot have such names.
async fn objects_of_other_programs_are_left_alone() {
    logs::capture();
    let ceph = Ceph::shared().await;
    for name in ["blobs//x", "blobs/%7Ba%7D", "blobs/readme.txt", "blobs/a%26b"] {
        signed("PUT", &format!("{}/{BUCKET}/prefix/{name}", ceph.url()));
    }
    let store = store(&ceph.url(), SECRET_KEY, Pool::new(POOL_BYTES), &Metrics::new());
    let key = new_key();
    upload(&store, key, Some(4), &noise(4)).await.unwrap();
    for _ in 0..2 {
        let listed: Vec<_> = store.list().map_ok(|(key, _)| key).try_collect().await.unwrap();
        assert_eq!(listed, [key]);
    }
    let told = logs::text().matches("objects that other programs made are among the bundles").count();
    assert_eq!(told, 1, "{}", logs::text());
}

async fn a_listing_that_never_ends_is_an_error() {
    let pages = [
        "<ListBucketResult><NextContinuationToken>t</NextContinuationToken></ListBucketResult>",
        "<ListBucketResult><NextContinuationToken>t</NextContinuationToken><Contents><Key>prefix/blobs/a</Key><Size>1</Size>\
         <LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents></ListBucketResult>",
    ];
    for page in pages {
        let behind = Behind::start(move |line| {
            if line.contains("list-type=2") { Turn::Answer(200, XML, page) } else { Turn::Pass }
        })
        .await;
        let error = behind.store().list().try_collect::<Vec<_>>().await.unwrap_err();
        assert!(matches!(error, StoreError::Fault(_)), "{error:?}");
        assert!(chain(&error).contains("pages in a row had nothing new"), "{}", chain(&error));
    }
}

async fn a_stamp_that_is_absent_for_a_moment_is_found() {
    let is_stamp = |line: &str| line.starts_with("GET ") && line.contains("/stamp");
    let absent = Turn::Answer(404, XML, "<Error><Code>NoSuchKey</Code></Error>");
    let behind = Behind::start(first(2, is_stamp, absent)).await;
    let (store, stamp) = (behind.store(), "form-1 00000000000000ab 1 7 0 1-0 serves".parse().unwrap());
    // It is read, twice, before it is made.
    assert!(store.replace_stamp(None, stamp).await.unwrap());
    assert_eq!(store.stamp().await.unwrap(), Some(stamp));
    let behind = Behind {
        front: cloakroom_testing::front::Front::before(behind.gateway.address(), first(1, is_stamp, absent)),
        ..behind
    };
    assert_eq!(behind.store().stamp().await.unwrap(), Some(stamp));
}
