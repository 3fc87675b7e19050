use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cloakroom_adapters::bucket::Pool;
use cloakroom_core::metrics::{Metrics, Stock};
use cloakroom_core::text::chain;
use cloakroom_storage::store::{BlobStore as _, StoreError};
use cloakroom_testing::front::{Front, Turn};
use cloakroom_testing::s3_gateway::{ACCESS_KEY, S3Gateway, SECRET_KEY};
use libtest_mimic::Trial;

use super::{
    Behind, download, first, is_blob, new_key, noise, stamp_failure, store, store_by, trials, upload,
};

pub fn trials() -> Vec<Trial> {
    trials![
        each_answer_has_its_kind,
        a_missing_bucket_is_no_missing_blob,
        wrong_credentials_are_told_without_any_secret,
        a_store_that_does_not_listen_is_unavailable,
        a_service_that_gives_no_credentials_is_named_and_not_the_store,
        credentials_of_a_pod_are_fetched,
        a_throttled_call_is_made_again,
        probes_ask_the_bucket_only_if_no_other_call_has_succeeded,
    ]
}

const XML: &str = "application/xml";

async fn each_answer_has_its_kind() {
    type Kind = fn(&StoreError) -> bool;
    const OF_AZURE: [&str; 3] = ["InvalidAuthenticationInfo", "ContainerBeingDeleted", "SnapshotsPresent"];
    let answers: [(u16, &str, &str, Kind); 14] = [
        (503, "SlowDown", "throttled", |error| matches!(error, StoreError::Throttled(_))),
        (429, "TooManyRequests", "throttled", |error| matches!(error, StoreError::Throttled(_))),
        (500, "InternalError", "unavailable", |error| matches!(error, StoreError::Unavailable(_))),
        (503, "ServiceUnavailable", "unavailable", |error| matches!(error, StoreError::Unavailable(_))),
        (403, "AccessDenied", "denied", |error| matches!(error, StoreError::Denied(_))),
        (400, "ExpiredToken", "denied", |error| matches!(error, StoreError::Denied(_))),
        (507, "XMinioStorageFull", "full", |error| matches!(error, StoreError::Full { .. })),
        (301, "PermanentRedirect", "unavailable", |error| matches!(error, StoreError::Unavailable(_))),
        (400, "InvalidAuthenticationInfo", "denied", |error| matches!(error, StoreError::Denied(_))),
        (409, "ContainerBeingDeleted", "unavailable", |error| matches!(error, StoreError::Unavailable(_))),
        (409, "SnapshotsPresent", "failed", |error| matches!(error, StoreError::Fault(_))),
        (403, "InvalidObjectState", "failed", |error| matches!(error, StoreError::Fault(_))),
        (400, "KMS.DisabledException", "failed", |error| matches!(error, StoreError::Fault(_))),
        (400, "InvalidArgument", "failed", |error| matches!(error, StoreError::Fault(_))),
    ];
    for (status, code, outcome, is_expected) in answers {
        let body =
            format!("<Error><Code>{code}</Code><Message>for KEY and SIGNATURE</Message></Error>").leak();
        let behind = Behind::start(first(usize::MAX, is_blob, Turn::Answer(status, XML, body))).await;
        let store = if OF_AZURE.contains(&code) { behind.container() } else { behind.store() };
        let key = new_key();
        let failures = [
            upload(&store, key, Some(4), &noise(4)).await.unwrap_err(),
            upload(&store, key, None, &noise(4)).await.unwrap_err(),
            download(&store, key, 4).await.unwrap_err(),
            store.delete(key).await.unwrap_err(),
        ];
        for failure in failures {
            assert!(is_expected(&failure), "{status} {code}: {failure:?}");
            let told = chain(&failure);
            assert!(told.contains(&format!("the store answered {status} ({code})")), "{told}");
            assert!(!told.contains("SIGNATURE"), "{told}");
        }
        let metrics = exposition(&behind.metrics);
        for call in ["put", "get", "delete"] {
            let count = format!("cloakroom_store_requests_total{{call=\"{call}\",outcome=\"{outcome}\"}} ");
            assert!(metrics.contains(&count), "{status} {code}: {metrics}");
        }
    }
}

/// What an admin sees of the calls.
pub fn exposition(metrics: &Metrics) -> String {
    metrics.exposition(&Stock::default()).unwrap()
}

async fn a_missing_bucket_is_no_missing_blob() {
    let behind = Behind::start(|_| Turn::Pass).await;
    let (store, key) = (behind.store(), new_key());
    std::fs::remove_dir_all(behind.gateway.objects()).unwrap();
    let failures = [
        store.facts(key).await.unwrap_err(),
        download(&store, key, 4).await.unwrap_err(),
        store.delete(key).await.unwrap_err(),
        stamp_failure(&store).await,
        store.check().await.unwrap_err(),
        upload(&store, key, Some(4), &noise(4)).await.unwrap_err(),
    ];
    for failure in failures {
        assert!(matches!(failure, StoreError::Unavailable(_)), "{failure:?}");
        assert!(chain(&failure).contains("404 (NoSuchBucket)"), "{}", chain(&failure));
    }
}

async fn wrong_credentials_are_told_without_any_secret() {
    let behind = Behind::start(|_| Turn::Pass).await;
    let wrong = "another-secret-key";
    let store = behind.store_with(wrong, Pool::new(1 << 20));
    let failures = [
        upload(&store, new_key(), Some(4), &noise(4)).await.unwrap_err(),
        upload(&store, new_key(), None, &noise(4)).await.unwrap_err(),
        store.check().await.unwrap_err(),
    ];
    for failure in failures {
        assert!(matches!(failure, StoreError::Denied(_)), "{failure:?}");
        let told = format!("{} {failure:?}", chain(&failure));
        assert!(told.contains("403 (SignatureDoesNotMatch)"), "{told}");
        for secret in [ACCESS_KEY, SECRET_KEY, wrong, "Signature=", "Credential="] {
            assert!(!told.contains(secret), "{told}");
        }
    }
}

async fn a_store_that_does_not_listen_is_unavailable() {
    let port = cloakroom_testing::scripted::closed_port();
    let (url, metrics) = (format!("http://127.0.0.1:{port}"), Metrics::new());
    let store = store(&url, SECRET_KEY, Pool::new(1 << 20), &metrics);
    let failure = store.check().await.unwrap_err();
    assert!(matches!(failure, StoreError::Unavailable(_)), "{failure:?}");
    assert!(chain(&failure).contains("cannot be reached: Connection refused"), "{}", chain(&failure));
}

async fn probes_ask_the_bucket_only_if_no_other_call_has_succeeded() {
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&asked);
    let behind = Behind::start(move |_| {
        seen.fetch_add(1, Ordering::Relaxed);
        Turn::Pass
    })
    .await;
    let store = behind.store();
    for _ in 0..20 {
        store.check().await.unwrap();
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

async fn a_service_that_gives_no_credentials_is_named_and_not_the_store() {
    let gateway = S3Gateway::start().await;
    let service = Front::before(gateway.address(), |_| Turn::Answer(403, "text/plain", "no role"));
    let metrics = Metrics::new();
    let store = store_by(
        &gateway.url(),
        Pool::new(1 << 20),
        &[("AWS_EC2_METADATA_SERVICE_ENDPOINT", &service.url())],
        &metrics,
    );
    let failures =
        [store.check().await.unwrap_err(), upload(&store, new_key(), Some(4), &noise(4)).await.unwrap_err()];
    for failure in failures {
        assert!(matches!(failure, StoreError::Unavailable(_)), "{failure:?}");
        let told = chain(&failure);
        assert!(told.contains("no credentials") && told.contains("127.0.0.1 answered 403"), "{told}");
    }
    let metrics = exposition(&metrics);
    assert!(metrics.contains("{call=\"credentials\",outcome=\"denied\"} "), "{metrics}");
}

/// As EKS Pod Identity gives them: by an address and a token in a file.
async fn credentials_of_a_pod_are_fetched() {
    let gateway = S3Gateway::start().await;
    let answer = serde_json::json!({
        "AccessKeyId": ACCESS_KEY, "SecretAccessKey": SECRET_KEY, "Token": "", "Expiration": "2100-01-01T00:00:00Z",
    });
    let answer = answer.to_string().leak();
    let service = Front::before(gateway.address(), |_| Turn::Answer(200, "application/json", answer));
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "token-of-the-pod").unwrap();
    let store = store_by(
        &gateway.url(),
        Pool::new(1 << 20),
        &[
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &service.url()),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.to_str().unwrap()),
        ],
        &Metrics::new(),
    );
    let (key, bytes) = (new_key(), noise(4));
    upload(&store, key, Some(4), &bytes).await.unwrap();
    assert_eq!(download(&store, key, 4).await.unwrap(), bytes);
}

async fn a_throttled_call_is_made_again() {
    let slow_down = Turn::Answer(503, XML, "<Error><Code>SlowDown</Code></Error>");
    let behind = Behind::start(first(2, is_blob, slow_down)).await;
    let (store, key, bytes) = (behind.store(), new_key(), noise(4));
    upload(&store, key, None, &bytes).await.unwrap();
    assert_eq!(download(&store, key, 4).await.unwrap(), bytes);
}
