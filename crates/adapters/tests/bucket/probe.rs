//! What `serve --check` and each start find out about a store.

use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cloakroom_adapters::bucket::Pool;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::text::chain;
use cloakroom_storage::store::{BlobStore as _, StoreError};
use cloakroom_testing::front::Turn;
use cloakroom_testing::s3_gateway::SECRET_KEY;
use libtest_mimic::Trial;

use super::{Behind, POOL_BYTES, download, first, is_blob, new_key, noise, store, trials, upload};

const XML: &str = "application/xml";

pub fn trials() -> Vec<Trial> {
    trials![
        a_store_that_cannot_complete_parts_is_refused,
        a_store_that_lacks_a_request_is_told_by_it,
        a_page_without_objects_is_no_lost_write,
        a_deletion_that_finds_nothing_is_done,
        a_refusal_that_says_its_cause_blames_no_right,
        a_key_that_may_not_read_is_told_as_that,
        nothing_of_a_try_stays,
        damaged_bytes_are_sent_again,
        a_store_that_hangs_is_said_within_a_minute,
    ]
}

async fn told(script: impl Fn(&str) -> Turn + Send + Sync + 'static) -> String {
    chain(&Behind::start(script).await.store().probe().await.unwrap_err())
}

fn is_part(line: &str) -> bool {
    line.contains("partNumber=")
}

fn is_list(line: &str) -> bool {
    line.contains("list-type=2")
}

async fn a_store_that_cannot_complete_parts_is_refused() {
    for etag in ["text/plain\r\nETag: W/\"a\"", "text/plain\r\nETag: \"another\"", "text/plain"] {
        let told = told(first(usize::MAX, is_part, Turn::Answer(200, etag, ""))).await;
        assert!(told.contains("cannot complete an upload in parts"), "{etag}: {told}");
    }
}

async fn a_store_that_lacks_a_request_is_told_by_it() {
    let unknown = "<Error><Code>NotImplemented</Code></Error>";
    let of_parts: fn(&str) -> bool = |line| line.starts_with("POST ");
    for (is_it, expected) in [
        (of_parts, "has no uploads in parts (CreateMultipartUpload)"),
        (is_list, "has no lists by pages (ListObjectsV2)"),
    ] {
        let told = told(first(usize::MAX, is_it, Turn::Answer(501, XML, unknown))).await;
        assert!(told.contains(expected) && told.contains("501 (NotImplemented)"), "{told}");
    }
    let whole = "cloakroom tries whether this bucket can be used\n";
    let reads = AtomicUsize::new(0);
    let second_read = move |line: &str| {
        let is_it = line.starts_with("GET /team/prefix/probe") && reads.fetch_add(1, Ordering::Relaxed) > 0;
        let head = "text/plain\r\nETag: \"a\"\r\nLast-Modified: Sat, 03 Jan 2026 04:05:06 GMT";
        if is_it { Turn::Answer(200, head, whole) } else { Turn::Pass }
    };
    let told_of_ranges = told(second_read).await;
    assert!(told_of_ranges.contains("has no ranges of objects"), "{told_of_ranges}");
    let told = told(first_version_of_lists()).await;
    assert!(told.contains("has no lists by pages (ListObjectsV2)"), "{told}");
}

/// Answers lists as stores did before there were tokens.
fn first_version_of_lists() -> impl Fn(&str) -> Turn + Send + Sync + 'static {
    let name = Mutex::new(None);
    move |line| {
        if line.starts_with("PUT ") {
            let path = line.split(' ').nth(1).unwrap().trim_start_matches("/team/").to_owned();
            name.lock().unwrap().get_or_insert(path);
        }
        if !is_list(line) {
            return Turn::Pass;
        }
        let name = name.lock().unwrap().clone().unwrap();
        let body = format!(
            "<ListBucketResult><IsTruncated>true</IsTruncated><NextMarker>{name}</NextMarker><Contents><Key>{name}</Key>\
             <LastModified>2026-01-02T03:04:05.000Z</LastModified><ETag>\"a\"</ETag><Size>48</Size></Contents></ListBucketResult>"
        );
        Turn::Answer(200, XML, body.leak())
    }
}

async fn a_page_without_objects_is_no_lost_write() {
    let page = "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>prefix/a\
                </NextContinuationToken></ListBucketResult>";
    let behind = Behind::start(first(1, is_list, Turn::Answer(200, XML, page))).await;
    behind.store().probe().await.unwrap();
}

async fn a_deletion_that_finds_nothing_is_done() {
    let deletions = AtomicUsize::new(0);
    let absent = Turn::Answer(404, XML, "<Error><Code>NoSuchKey</Code></Error>");
    let script = move |line: &str| match line {
        line if line.starts_with("DELETE ") && !line.contains("uploadId") => {
            if deletions.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
                Turn::LoseAnswer
            } else {
                absent
            }
        }
        _ => Turn::Pass,
    };
    Behind::start(script).await.store().probe().await.unwrap();
}

async fn a_refusal_that_says_its_cause_blames_no_right() {
    for (code, header, expected) in [
        ("SignatureDoesNotMatch", "", "the secret key does not belong to the access key"),
        (
            "RequestTimeTooSkewed",
            "\r\nDate: Sat, 03 Jan 2015 04:05:06 GMT",
            "that of the store 2015-01-03T04:05:06Z",
        ),
        ("SecondLevelDomainForbidden", "", "--store-addressing virtual"),
    ] {
        let (head, body) =
            (format!("{XML}{header}").leak(), format!("<Error><Code>{code}</Code></Error>").leak());
        let told = told(first(usize::MAX, |_| true, Turn::Answer(403, head, body))).await;
        assert!(told.contains(expected) && !told.contains("do not allow"), "{told}");
    }
}

async fn a_key_that_may_not_read_is_told_as_that() {
    let denied = Turn::Answer(403, XML, "<Error><Code>AccessDenied</Code></Error>");
    let is_read: fn(&str) -> bool = |line| line.starts_with("GET /team/prefix/") || line.starts_with("HEAD ");
    let told = told(first(usize::MAX, is_read, denied)).await;
    assert!(told.contains("do not allow to read objects (s3:GetObject)"), "{told}");
}

async fn nothing_of_a_try_stays() {
    let objects = |behind: &Behind| {
        std::fs::read_dir(behind.gateway.objects().join("prefix")).map_or(0, Iterator::count)
    };
    let behind = Behind::start(|_| Turn::Pass).await;
    behind.store().probe().await.unwrap();
    assert_eq!(objects(&behind), 0);
    let body = "<Error><Code>NotImplemented</Code></Error>";
    let behind = Behind::start(first(usize::MAX, is_list, Turn::Answer(501, XML, body))).await;
    behind.store().probe().await.unwrap_err();
    assert_eq!(objects(&behind), 0);
}

async fn damaged_bytes_are_sent_again() {
    let damaged = Turn::Answer(400, XML, "<Error><Code>XAmzContentSHA256Mismatch</Code></Error>");
    let is_write: fn(&str) -> bool = |line| line.starts_with("PUT ") && is_blob(line);
    for length in [Some(4), None] {
        let behind = Behind::start(first(1, is_write, damaged)).await;
        let (store, key) = (behind.store(), new_key());
        upload(&store, key, length, &noise(4)).await.unwrap();
        assert_eq!(download(&store, key, 4).await.unwrap(), noise(4));
    }
}

/// Clients and proxies wait for a minute.
async fn a_store_that_hangs_is_said_within_a_minute() {
    // Connections succeed, because the system accepts them. No program answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let store = store(&url, SECRET_KEY, Pool::new(POOL_BYTES), &Metrics::new());
    let (key, bytes) = (new_key(), noise(4));
    let began = Instant::now();
    let (upload, parts, read, check) = tokio::join!(
        upload(&store, key, Some(4), &bytes),
        upload(&store, key, None, &bytes),
        download(&store, key, 4),
        store.check()
    );
    for failed in [upload, parts, read.map(drop), check] {
        let failed = failed.unwrap_err();
        assert!(matches!(failed, StoreError::Unavailable(_)), "{failed:?}");
        assert!(chain(&failed).contains("the store did not answer in time"), "{}", chain(&failed));
    }
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}
