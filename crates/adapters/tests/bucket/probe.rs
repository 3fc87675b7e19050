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
use cloakroom_testing::logs;
use cloakroom_testing::s3_gateway::SECRET_KEY;
use libtest_mimic::Trial;

use super::{Behind, POOL_BYTES, download, first, is_blob, new_key, noise, store, trials, upload};

const XML: &str = "application/xml";

pub fn trials() -> Vec<Trial> {
    trials![
        a_store_that_cannot_complete_parts_is_refused,
        a_failure_of_an_upload_in_parts_blames_no_gateway,
        a_store_that_lacks_a_request_is_told_by_it,
        a_store_without_lasting_strong_etags_is_refused,
        a_bucket_that_no_longer_keeps_versions_gives_no_warning,
        a_deletion_that_does_nothing_is_told,
        a_slow_store_is_told_within_a_minute,
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

fn is_completion(line: &str) -> bool {
    line.starts_with("POST ") && line.contains("uploadId=")
}

fn is_read(line: &str) -> bool {
    line.starts_with("GET /team/prefix/") || line.starts_with("HEAD ")
}

fn is_list(line: &str) -> bool {
    line.contains("list-type=2")
}

async fn a_store_that_cannot_complete_parts_is_refused() {
    let weak = Turn::Answer(200, "text/plain\r\nETag: W/\"a\"", "");
    let another = Turn::Answer(200, "text/plain\r\nETag: \"another\"", "");
    let none = Turn::Rewrite("ETag: ", "X-Etag: ");
    for (is_it, turn) in [
        (is_part as fn(&str) -> bool, weak),
        (is_part, another),
        (is_part, none),
        (is_completion, Turn::Answer(200, XML, "<Error><Code>InvalidPart</Code></Error>")),
        (is_completion, Turn::Answer(200, XML, "done")),
    ] {
        let told = told(first(usize::MAX, is_it, turn)).await;
        assert!(told.contains("cannot complete an upload in parts"), "{turn:?}: {told}");
        assert!(told.contains("ETags of parts"), "{turn:?}: {told}");
    }
}

async fn a_failure_of_an_upload_in_parts_blames_no_gateway() {
    for (status, code) in [(500, "InternalError"), (404, "NoSuchUpload"), (200, "InternalError")] {
        let body = format!("<Error><Code>{code}</Code></Error>").leak();
        let told = told(first(usize::MAX, is_completion, Turn::Answer(status, XML, body))).await;
        assert!(told.contains("cannot complete the upload of "), "{told}");
        assert!(told.contains(&format!("the store answered {status} ({code})")), "{told}");
        assert!(!told.contains("ETag"), "{told}");
    }
    // This one is an answer to a request that was done, and the next one finds no upload.
    let absent = Turn::Answer(404, XML, "<Error><Code>NoSuchUpload</Code></Error>");
    let completions = AtomicUsize::new(0);
    let lost = move |line: &str| match line {
        line if !is_completion(line) => Turn::Pass,
        _ if completions.fetch_add(1, Ordering::Relaxed) == 0 => Turn::LoseAnswer,
        _ => absent,
    };
    Behind::start(lost).await.store().probe().await.unwrap();
}

/// As gateways and caches before a store change its answers.
async fn a_store_without_lasting_strong_etags_is_refused() {
    let is_head: fn(&str) -> bool = |line| line.starts_with("HEAD ");
    let (none, another) = ("answers without a strong ETag", "answers another ETag each time");
    for (is_it, times, header, expected) in [
        (is_read as fn(&str) -> bool, usize::MAX, "ETag: W/", none),
        (is_read, usize::MAX, "X-ETag: ", none),
        (is_read, 1, "ETag: \"another\"\r\nX-ETag: ", another),
        (is_head, 1, "ETag: \"another\"\r\nX-ETag: ", another),
    ] {
        let told = told(first(times, is_it, Turn::Rewrite("ETag: ", header))).await;
        assert!(told.contains(expected), "{header}: {told}");
    }
}

async fn a_bucket_that_no_longer_keeps_versions_gives_no_warning() {
    logs::capture();
    let header = "x-amz-version-id: null\r\nETag: ";
    let behind = Behind::start(first(usize::MAX, is_read, Turn::Rewrite("ETag: ", header))).await;
    behind.store().probe().await.unwrap();
    assert_eq!(logs::lines_with("s3://team/prefix keeps versions"), [""; 0]);
}

async fn a_deletion_that_does_nothing_is_told() {
    let is_deletion: fn(&str) -> bool = |line| line.starts_with("DELETE ") && !line.contains("uploadId");
    let told = told(first(usize::MAX, is_deletion, Turn::Answer(204, "text/plain", ""))).await;
    assert!(told.contains("still has an object of which it answered that it is deleted"), "{told}");
}

/// Each answer comes, but too late for all of them.
async fn a_slow_store_is_told_within_a_minute() {
    let began = Instant::now();
    let told = told(|_| {
        std::thread::sleep(Duration::from_secs(18));
        Turn::Pass
    })
    .await;
    assert!(told.contains("is too slow: after 50 s the try still waited for it to read an object"), "{told}");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

async fn a_store_that_lacks_a_request_is_told_by_it() {
    let of_parts: fn(&str) -> bool = |line| line.starts_with("POST ");
    for (status, code) in [(501, "NotImplemented"), (405, "MethodNotAllowed")] {
        let body = format!("<Error><Code>{code}</Code></Error>").leak();
        for (is_it, expected) in [
            (of_parts, "has no uploads in parts (CreateMultipartUpload)"),
            (is_list, "has no lists by pages (ListObjectsV2)"),
        ] {
            let told = told(first(usize::MAX, is_it, Turn::Answer(status, XML, body))).await;
            assert!(told.contains(expected) && told.contains(&format!("{status} ({code})")), "{told}");
        }
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
    // As stores did before there were tokens.
    let told_of_pages = told(same_page("NextMarker", &[""])).await;
    assert!(told_of_pages.contains("has no lists by pages (ListObjectsV2)"), "{told_of_pages}");
    let told = told(same_page("NextContinuationToken", &["", "-parts"])).await;
    assert!(told.contains("has no lists by pages that end (ListObjectsV2)"), "{told}");
}

/// Answers each list by the objects with these `endings`, and by `next` for the page after it.
fn same_page(next: &'static str, endings: &'static [&str]) -> impl Fn(&str) -> Turn + Send + Sync + 'static {
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
        let object = |ending| {
            format!(
                "<Contents><Key>{name}{ending}</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified><ETag>\"a\"</ETag>\
                 <Size>48</Size></Contents>"
            )
        };
        let objects: String = endings.iter().map(object).collect();
        let body = format!(
            "<ListBucketResult><IsTruncated>true</IsTruncated><{next}>{name}</{next}>{objects}</ListBucketResult>"
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
        ("InvalidToken", "", "AWS_SESSION_TOKEN"),
        ("AllAccessDisabled", "", "the provider has closed the bucket"),
    ] {
        let (head, body) =
            (format!("{XML}{header}").leak(), format!("<Error><Code>{code}</Code></Error>").leak());
        let told = told(first(usize::MAX, |_| true, Turn::Answer(403, head, body))).await;
        assert!(told.contains(expected) && !told.contains("do not allow"), "{told}");
    }
}

async fn a_key_that_may_not_read_is_told_as_that() {
    let denied = Turn::Answer(403, XML, "<Error><Code>AccessDenied</Code></Error>");
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
    let (upload, parts, read, check, tried) = tokio::join!(
        upload(&store, key, Some(4), &bytes),
        upload(&store, key, None, &bytes),
        download(&store, key, 4),
        store.check(),
        store.probe()
    );
    let tried = chain(&tried.unwrap_err());
    assert!(tried.contains("the store did not answer in time"), "{tried}");
    for failed in [upload, parts, read.map(drop), check] {
        let failed = failed.unwrap_err();
        assert!(matches!(failed, StoreError::Unavailable(_)), "{failed:?}");
        assert!(chain(&failed).contains("the store did not answer in time"), "{}", chain(&failed));
    }
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}
