//! Writes under a condition, which keep a second server out.

use std::sync::atomic::{AtomicUsize, Ordering};

use cloakroom_core::metrics::Metrics;
use cloakroom_core::text::chain;
use cloakroom_storage::log::LogStore as _;
use cloakroom_testing::ceph::Ceph;
use cloakroom_testing::front::Turn;
use cloakroom_testing::needs::trial;
use cloakroom_testing::s3_gateway::SECRET_KEY;
use libtest_mimic::Trial;

use super::{Behind, POOL_BYTES, block_on, store, trials};
use cloakroom_adapters::bucket::Pool;

const XML: &str = "application/xml";

pub fn trials() -> Vec<Trial> {
    let mut all = trials![
        a_store_that_ignores_a_condition_is_refused,
        a_store_without_conditions_is_told_as_that,
        a_version_that_never_holds_is_told,
        a_lost_answer_to_the_try_is_no_failure,
    ];
    all.push(trial("conditions::ceph_takes_versions_without_quotation_marks", &Ceph::needs(), || {
        block_on(ceph_takes_versions_without_quotation_marks());
    }));
    all
}

async fn ceph_takes_versions_without_quotation_marks() {
    let ceph = Ceph::shared().await;
    let store = store(&ceph.url(), SECRET_KEY, Pool::new(POOL_BYTES), &Metrics::new());
    store.probe().await.unwrap();
    let [first, second, third] =
        [1, 2, 3].map(|id| format!("form-1 00000000000000ab 1 {id} 0 1-0 serves").parse().unwrap());
    assert!(store.replace_stamp(None, first).await.unwrap());
    assert!(store.replace_stamp(Some(first), second).await.unwrap());
    assert!(!store.replace_stamp(Some(first), third).await.unwrap());
    assert_eq!(store.stamp().await.unwrap(), Some(second));
}

/// A gateway that gives this turn to the write of that number, from 1, and to no other request.
async fn at_write(number: usize, turn: Turn) -> Behind {
    let writes = AtomicUsize::new(0);
    let is_it =
        move |line: &str| line.starts_with("PUT ") && writes.fetch_add(1, Ordering::Relaxed) + 1 == number;
    Behind::start(move |line| if is_it(line) { turn } else { Turn::Pass }).await
}

/// It creates, creates again, replaces another version, replaces the right one.
const CREATE: usize = 1;
const CREATE_AGAIN: usize = 2;
const REPLACE_ANOTHER: usize = 3;
const REPLACE: usize = 4;

async fn refused_at(write: usize, turn: Turn) -> String {
    chain(&at_write(write, turn).await.store().probe().await.unwrap_err())
}

// Invariant: a store that ignores a condition, or has none, is refused before the start; one that takes ETags in
// Ceph's form is used in it.
async fn a_store_that_ignores_a_condition_is_refused() {
    // With the header that an answer to a write must have.
    let done = Turn::Answer(200, "text/plain\r\nETag: \"0\"", "");
    for (write, header) in [(CREATE_AGAIN, "If-None-Match: *"), (REPLACE_ANOTHER, "If-Match")] {
        let told = refused_at(write, done).await;
        assert!(told.contains("ignores the condition") && told.contains(header), "{told}");
    }
}

async fn a_store_without_conditions_is_told_as_that() {
    for (status, code) in [(501, "NotImplemented"), (400, "InvalidArgument")] {
        let body = format!("<Error><Code>{code}</Code></Error>").leak();
        for write in [CREATE, CREATE_AGAIN, REPLACE_ANOTHER, REPLACE] {
            let told = refused_at(write, Turn::Answer(status, XML, body)).await;
            let expected = "takes no writes under a condition (If-None-Match, If-Match)";
            assert!(told.contains(expected) && told.contains(code), "{told}");
        }
    }
    // This one is about the bucket.
    let body = "<Error><Code>AccessDenied</Code></Error>";
    let told = refused_at(CREATE, Turn::Answer(403, XML, body)).await;
    assert!(told.contains("do not allow to write objects (s3:PutObject)"), "{told}");
}

async fn a_version_that_never_holds_is_told() {
    let behind = Behind::start({
        let writes = AtomicUsize::new(0);
        move |line: &str| {
            let is_later =
                line.starts_with("PUT ") && writes.fetch_add(1, Ordering::Relaxed) >= REPLACE_ANOTHER;
            let body = "<Error><Code>PreconditionFailed</Code></Error>";
            if is_later { Turn::Answer(412, XML, body) } else { Turn::Pass }
        }
    })
    .await;
    let told = chain(&behind.store().probe().await.unwrap_err());
    assert!(told.contains("takes no writes under a condition"), "{told}");
}

async fn a_lost_answer_to_the_try_is_no_failure() {
    for write in [CREATE, REPLACE] {
        at_write(write, Turn::LoseAnswer).await.store().probe().await.unwrap();
    }
}
