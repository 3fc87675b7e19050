//! A store in a bucket when the bucket fails: answers get lost, connections break, and the bucket refuses or is gone. Each test
//! has a real gateway behind a proxy that fails as planned.
#![expect(clippy::unwrap_used, clippy::pedantic, reason = "tests are read for what they check")]

mod clouds;
mod conditions;
mod downloads;
mod hdfs;
mod listing;
mod minio;
mod probe;
mod refusals;
mod uploads;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use cloakroom_adapters::bucket::{BucketOptions, BucketStore, Location, Pool};
use cloakroom_core::client::Client;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::resource::{BlobKey, ResourceId};
use cloakroom_storage::log::{LogError, LogStore as _};
use cloakroom_storage::store::{Begun, BlobStore as _, StoreError};
use cloakroom_testing::front::{Front, Turn};
use cloakroom_testing::needs::trial;
use cloakroom_testing::s3_gateway::{ACCESS_KEY, BUCKET, S3Gateway, SECRET_KEY};
use futures_util::TryStreamExt as _;
use libtest_mimic::{Arguments, Trial};

/// The memory of the stores here.
const POOL_BYTES: u64 = 32 << 20;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = [
        uploads::trials(),
        downloads::trials(),
        refusals::trials(),
        conditions::trials(),
        probe::trials(),
        listing::trials(),
        clouds::trials(),
        hdfs::trials(),
        minio::trials(),
    ]
    .into_iter()
    .flatten()
    .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A test with a runtime, and with all that a gateway needs.
fn bucket_trial(name: &str, test: impl AsyncFnOnce() + Send + 'static) -> Trial {
    trial(name, &S3Gateway::needs(), || block_on(test()))
}

fn block_on(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

/// Names tests as the functions that they are.
macro_rules! trials {
    ($($test:ident),+ $(,)?) => {
        vec![$(crate::bucket_trial(concat!(module_path!(), "::", stringify!($test)).trim_start_matches("bucket::"), $test)),+]
    };
}
use trials;

/// A gateway, and a proxy before it.
struct Behind {
    gateway: S3Gateway,
    front: Front,
    metrics: Metrics,
}

impl Behind {
    /// `script` sees the line of each request, such as `PUT /team/… HTTP/1.1`.
    async fn start(script: impl Fn(&str) -> Turn + Send + Sync + 'static) -> Self {
        let gateway = S3Gateway::start().await;
        let front = Front::before(gateway.address(), script);
        Self { gateway, front, metrics: Metrics::new() }
    }

    fn store(&self) -> BucketStore {
        self.store_with(SECRET_KEY, Pool::new(POOL_BYTES))
    }

    /// A container of Azure, for answers that the gateway does not give.
    fn container(&self) -> BucketStore {
        let options = BucketOptions {
            endpoint: Some(self.front.url()),
            account: Some("example".to_owned()),
            ..BucketOptions::default()
        };
        store_at(&format!("az://{BUCKET}/prefix"), options, &[("AZURE_STORAGE_KEY", "a2V5")], &self.metrics)
    }

    fn store_with(&self, secret_key: &str, pool: Pool) -> BucketStore {
        store(&self.front.url(), secret_key, pool, &self.metrics)
    }
}

fn store(endpoint: &str, secret_key: &str, pool: Pool, metrics: &Metrics) -> BucketStore {
    let key = [("AWS_ACCESS_KEY_ID", ACCESS_KEY), ("AWS_SECRET_ACCESS_KEY", secret_key)];
    store_by(endpoint, pool, &key, metrics)
}

/// With these variables in place of the environment.
fn store_by(endpoint: &str, pool: Pool, variables: &[(&str, &str)], metrics: &Metrics) -> BucketStore {
    let options = BucketOptions { endpoint: Some(endpoint.to_owned()), ..BucketOptions::default() };
    store_with_pool(&format!("s3://{BUCKET}/prefix"), options, pool, variables, metrics)
}

fn store_at(
    location: &str,
    options: BucketOptions,
    variables: &[(&str, &str)],
    metrics: &Metrics,
) -> BucketStore {
    store_with_pool(location, options, Pool::new(POOL_BYTES), variables, metrics)
}

fn store_with_pool(
    location: &str,
    options: BucketOptions,
    pool: Pool,
    variables: &[(&str, &str)],
    metrics: &Metrics,
) -> BucketStore {
    let options = BucketOptions { allows_http: true, ..options };
    let value = |name: &str| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    BucketStore::new(Location::parse(location).unwrap(), &options, &value, pool, 1 << 30, metrics).unwrap()
}

/// A script that has this turn for the first `times` requests that `concerns`.
fn first(
    times: usize,
    concerns: fn(&str) -> bool,
    turn: Turn,
) -> impl Fn(&str) -> Turn + Send + Sync + 'static {
    let seen = Arc::new(AtomicUsize::new(0));
    move |line| {
        let is_one = concerns(line) && seen.fetch_add(1, Ordering::Relaxed) < times;
        if is_one { turn } else { Turn::Pass }
    }
}

fn is_blob(line: &str) -> bool {
    line.contains("/blobs/")
}

fn new_key() -> BlobKey {
    BlobKey::for_resource(ResourceId::generate(&mut rand::rng()))
}

/// Bytes that differ from place to place.
fn noise(bytes: usize) -> Bytes {
    (0..bytes).map(|at| (at / 251 + at) as u8).collect()
}

async fn upload(
    store: &BucketStore,
    key: BlobKey,
    length: Option<u64>,
    bytes: &Bytes,
) -> Result<(), StoreError> {
    let Begun { mut writer, .. } = store.begin(key, length, &Client::Server).await?;
    for piece in bytes.chunks(300_000) {
        writer.write(bytes.slice_ref(piece)).await?;
    }
    writer.commit().await
}

async fn download(store: &BucketStore, key: BlobKey, size_bytes: u64) -> Result<Vec<u8>, StoreError> {
    let pieces: Vec<Bytes> =
        store.open(key, size_bytes, vec![0..size_bytes], &Client::Server).await?.try_collect().await?;
    Ok(pieces.concat())
}

async fn stamp_failure(store: &BucketStore) -> StoreError {
    match store.stamp().await.unwrap_err() {
        LogError::Store(failure) => failure,
        other => panic!("{other}"),
    }
}
