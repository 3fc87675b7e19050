//! Azure and Google refuse a call, and lose an answer, in other ways than S3.

use cloakroom_adapters::bucket::{BucketOptions, BucketStore};
use cloakroom_core::metrics::Metrics;
use cloakroom_core::text::chain;
use cloakroom_storage::store::{BlobStore as _, StoreError};
use cloakroom_testing::azurite::{ACCOUNT, Azurite, CONTAINER, KEY, SAS};
use cloakroom_testing::front::{Front, Turn};
use cloakroom_testing::google_storage::{self, GoogleStorage};
use cloakroom_testing::needs::trial;
use libtest_mimic::Trial;

use super::{download, first, new_key, noise, stamp_failure, store_at, upload};

const PART: usize = 5 << 20;
const XML: &str = "application/xml";

pub fn trials() -> Vec<Trial> {
    let needs = [Azurite::needs(), GoogleStorage::needs()].into_iter().flatten().collect::<Vec<_>>();
    let run = |name, test: fn()| trial(name, &needs, test);
    vec![
        run(
            "clouds::answers_that_get_lost_are_confirmed",
            || block_on(answers_that_get_lost_are_confirmed()),
        ),
        run("clouds::a_download_goes_on_where_it_broke", || block_on(a_download_goes_on_where_it_broke())),
        run("clouds::a_denied_call_is_told_without_any_secret", || {
            block_on(a_denied_call_is_told_without_any_secret())
        }),
        run("clouds::what_is_missing_is_told_from_a_missing_bucket", || {
            block_on(what_is_missing_is_told_from_a_missing_bucket())
        }),
        run("clouds::each_kind_of_credentials_will_do", || block_on(each_kind_of_credentials_will_do())),
    ]
}

fn block_on(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

/// A container, and a proxy before it. Its emulator is shared.
async fn azure(script: impl Fn(&str) -> Turn + Send + Sync + 'static) -> (BucketStore, Front) {
    let front = Front::before(Azurite::shared().await.address(), script);
    (in_azure(&front, CONTAINER, &[("AZURE_STORAGE_KEY", KEY)]), front)
}

fn in_azure(front: &Front, container: &str, variables: &[(&str, &str)]) -> BucketStore {
    let options = BucketOptions {
        endpoint: Some(format!("{}/{ACCOUNT}", front.url())),
        account: Some(ACCOUNT.to_owned()),
        ..BucketOptions::default()
    };
    store_at(&format!("az://{container}/clouds"), options, variables, &Metrics::new())
}

/// A bucket of Google's, and a proxy before it.
async fn google(
    script: impl Fn(&str) -> Turn + Send + Sync + 'static,
) -> (BucketStore, Front, GoogleStorage) {
    let google = GoogleStorage::start().await;
    let front = Front::before(google.address(), script);
    let options = BucketOptions { endpoint: Some(front.url()), ..BucketOptions::default() };
    let account = google.credentials();
    let variables = [("GOOGLE_APPLICATION_CREDENTIALS", account.to_str().unwrap())];
    (
        store_at(&format!("gs://{}/clouds", google_storage::BUCKET), options, &variables, &Metrics::new()),
        front,
        google,
    )
}

fn is_blob(line: &str) -> bool {
    line.contains("blobs/") || line.contains("blobs%2F")
}

/// The last request of an upload: that of a short one, or the one that makes a blob of parts.
fn is_end(line: &str) -> bool {
    let is_part = line.contains("comp=block&") || line.contains("partNumber=");
    is_blob(line) && (line.starts_with("PUT ") && !is_part || line.contains("uploadId="))
}

async fn answers_that_get_lost_are_confirmed() {
    let lost = || first(2, is_end, Turn::LoseAnswer);
    let (azure, _front) = azure(lost()).await;
    let (google, _other_front, _google) = google(lost()).await;
    for store in [azure, google] {
        for (size, length) in [(1000, Some(1000)), (PART + 1, None)] {
            let (key, bytes) = (new_key(), noise(size));
            upload(&store, key, length, &bytes).await.unwrap();
            assert!(download(&store, key, size as u64).await.unwrap() == bytes);
        }
    }
}

async fn a_download_goes_on_where_it_broke() {
    let cut = || first(3, |line| line.starts_with("GET ") && is_blob(line), Turn::Cut { after: PART / 4 });
    let (azure, _front) = azure(cut()).await;
    let (google, _other_front, _google) = google(cut()).await;
    for store in [azure, google] {
        let (key, bytes) = (new_key(), noise(PART));
        upload(&store, key, Some(PART as u64), &bytes).await.unwrap();
        assert!(download(&store, key, PART as u64).await.unwrap() == bytes);
    }
}

async fn a_denied_call_is_told_without_any_secret() {
    let body = "<Error><Code>AccessDenied</Code><Message>for KEY and SIGNATURE</Message></Error>";
    let denied = || move |_: &str| Turn::Answer(403, XML, body);
    let (azure, front) = azure(denied()).await;
    let (google, _other_front, _google) = google(denied()).await;
    let wrong_key = in_azure(
        &Front::before(Azurite::shared().await.address(), |_| Turn::Pass),
        CONTAINER,
        &[("AZURE_STORAGE_KEY", "d3Jvbmc=")],
    );
    let with_sas = in_azure(&front, CONTAINER, &[("AZURE_STORAGE_SAS_TOKEN", SAS)]);
    for (store, code) in [
        (azure, "AccessDenied"),
        (google, "AccessDenied"),
        (with_sas, "AccessDenied"),
        (wrong_key, "AuthorizationFailure"),
    ] {
        let failures = [
            upload(&store, new_key(), Some(4), &noise(4)).await.unwrap_err(),
            download(&store, new_key(), 4).await.unwrap_err(),
            store.delete(new_key()).await.unwrap_err(),
            store.check().await.unwrap_err(),
        ];
        for failure in failures {
            assert!(matches!(failure, StoreError::Denied(_)), "{failure:?}");
            let told = format!("{} {failure:?}", chain(&failure));
            assert!(told.contains(&format!("the store answered 403 ({code})")), "{told}");
            for secret in [KEY, "d3Jvbmc=", "SIGNATURE", "sig=", "Bearer", "SharedKey"] {
                assert!(!told.contains(secret), "{told}");
            }
        }
    }
}

async fn what_is_missing_is_told_from_a_missing_bucket() {
    let (azure, front) = azure(|_| Turn::Pass).await;
    let (google, _other_front, google_storage) = google(|_| Turn::Pass).await;
    for store in [&azure, &google] {
        store.delete(new_key()).await.unwrap();
        assert_eq!(store.facts(new_key()).await.unwrap(), None);
    }
    std::fs::remove_dir_all(google_storage.gateway.objects()).unwrap();
    let no_container = in_azure(&front, "nowhere", &[("AZURE_STORAGE_KEY", KEY)]);
    for store in [no_container, google] {
        let failures = [
            store.facts(new_key()).await.unwrap_err(),
            store.delete(new_key()).await.unwrap_err(),
            stamp_failure(&store).await,
        ];
        assert!(failures.iter().all(|failure| matches!(failure, StoreError::Unavailable(_))), "{failures:?}");
    }
}

async fn each_kind_of_credentials_will_do() {
    let (with_a_key, front) = azure(|_| Turn::Pass).await;
    let with_sas = in_azure(&front, CONTAINER, &[("AZURE_STORAGE_SAS_TOKEN", SAS)]);
    let (with_an_account, _other_front, _google) = google(|_| Turn::Pass).await;
    for store in [with_a_key, with_sas, with_an_account] {
        store.probe().await.unwrap();
        let key = new_key();
        upload(&store, key, None, &noise(4)).await.unwrap();
        store.delete(key).await.unwrap();
        assert_eq!(store.facts(key).await.unwrap(), None);
    }
}
