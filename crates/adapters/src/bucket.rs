//! Blobs as objects of a bucket: `PREFIX/blobs/KEY`. The ledger is beside them (`log.rs`), where no listing of blobs finds it. In
//! HDFS the same paths are files.

mod api;
mod azure;
mod backend;
mod calls;
mod connector;
mod copies;
mod download;
mod failure;
mod google;
mod hdfs;
mod listing;
mod location;
mod log;
mod names;
mod objects;
mod pool;
mod probe;
mod refusal;
mod s3;
mod settings;

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use cloakroom_core::client::Client;
use cloakroom_core::metrics::{LimitUse, Metrics};
use cloakroom_core::resource::{BlobKey, UploadHandle};
use cloakroom_storage::store::{Begun, BlobFacts, BlobStore, BlobStream, StoreError};
use futures_util::stream::BoxStream;
use object_store::path::Path;

use backend::Backend;
use calls::Bucket;
use location::Kind;
pub use location::{Location, LocationError};
pub use pool::Pool;
use probe::Probe;
pub use probe::ProbeError;
use settings::BucketSettings;
pub use settings::{Addressing, BucketOptions, BucketSettingError, Variables};

/// Memory for the copies of the ledger, beside that for transfers: two parts are on their way.
const OWN_MEMORY_BYTES: u64 = 16 << 20;

/// A store in a bucket.
pub struct BucketStore {
    bucket: Arc<Bucket>,
    backend: Arc<dyn Backend>,
}

impl BucketStore {
    /// A store at `location`. No request is made yet. `largest` is how many bytes a blob may have. Each request is counted in
    /// `metrics`.
    pub fn new(
        location: Location,
        options: &BucketOptions,
        variables: Variables<'_>,
        pool: Pool,
        largest: u64,
        metrics: &Metrics,
    ) -> Result<Self, BucketSettingError> {
        let settings = BucketSettings { location: &location, options, variables, metrics };
        settings.check_flags()?;
        let (backend, url) = match location.kind() {
            Kind::S3 => s3::connect(&settings),
            Kind::Azure => azure::connect(&settings),
            Kind::Google => google::connect(&settings),
            Kind::Hdfs { .. } => hdfs::connect(&settings),
        }?;
        let bucket = Arc::new(Bucket {
            api: Arc::clone(&backend) as _,
            location,
            pool,
            own_pool: Pool::new(OWN_MEMORY_BYTES),
            largest,
            is_in_clear: url.starts_with("http:"),
            succeeded_at: Mutex::default(),
            foreign: AtomicU64::new(0),
        });
        Ok(Self { bucket, backend })
    }

    /// The least memory for transfers with which a blob of `largest` bytes can be uploaded.
    pub fn least_memory(largest: u64) -> u64 {
        objects::part_bytes(largest) + download::MEMORY_BYTES
    }

    /// Whether the store is spoken to without TLS.
    pub fn is_in_clear(&self) -> bool {
        self.bucket.is_in_clear
    }

    /// Tries all that a server does in its bucket, and removes what it made for that.
    pub async fn probe(&self) -> Result<(), ProbeError> {
        let probe = Probe::new(&self.bucket, self.backend.rights());
        probe.run(self.backend.probe(&probe)).await
    }

    async fn begin_at(&self, path: Path, length: Option<u64>, client: &Client) -> Result<Begun, StoreError> {
        Arc::clone(&self.backend).begin(&self.bucket, path, length, client).await
    }
}

#[async_trait]
impl BlobStore for BucketStore {
    async fn begin(&self, key: BlobKey, length: Option<u64>, client: &Client) -> Result<Begun, StoreError> {
        self.begin_at(self.bucket.path(key), length, client).await
    }

    async fn abort(&self, key: BlobKey, handle: Option<&UploadHandle>) -> Result<(), StoreError> {
        self.backend.abort(&self.bucket, &self.bucket.path(key), handle).await?;
        self.delete(key).await
    }

    async fn open(
        &self,
        key: BlobKey,
        size_bytes: u64,
        ranges: Vec<Range<u64>>,
        client: &Client,
    ) -> Result<BlobStream, StoreError> {
        download::open(&self.bucket, self.bucket.path(key), size_bytes, ranges, client).await
    }

    async fn delete(&self, key: BlobKey) -> Result<(), StoreError> {
        self.bucket.remove(&self.bucket.path(key)).await
    }

    async fn facts(&self, key: BlobKey) -> Result<Option<BlobFacts>, StoreError> {
        self.bucket.facts(&self.bucket.path(key)).await
    }

    fn list(&self) -> BoxStream<'_, Result<(BlobKey, BlobFacts), StoreError>> {
        listing::blobs(&self.bucket, &*self.backend)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.bucket.check().await
    }

    fn memory(&self) -> Option<LimitUse> {
        Some(self.bucket.pool.uses())
    }
}
