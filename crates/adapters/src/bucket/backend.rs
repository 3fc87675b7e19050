//! The port behind which the kinds of stores differ: uploads, the stamp, the try at the start.

use std::sync::Arc;

use async_trait::async_trait;
use cloakroom_core::client::Client;
use cloakroom_core::resource::UploadHandle;
use cloakroom_storage::store::{Begun, StoreError};
use object_store::path::Path;
use object_store::{Result, UpdateVersion};

use super::api::Api;
use super::calls::Bucket;
use super::probe::{Probe, ProbeError, Rights};

/// The text of a stamp, and the version of its object where objects have one.
pub(super) struct Stamp {
    pub text: String,
    pub version: UpdateVersion,
}

/// A kind of stores. The bucket that is passed to it is the one that it was made for.
#[async_trait]
pub(super) trait Backend: Api {
    /// Begins the upload of a blob that never was there; see `BlobStore::begin`.
    async fn begin(
        self: Arc<Self>,
        bucket: &Arc<Bucket>,
        path: Path,
        length: Option<u64>,
        client: &Client,
    ) -> Result<Begun, StoreError>;

    /// Removes what an upload to `path` has left that was not committed.
    async fn abort(
        &self,
        bucket: &Bucket,
        path: &Path,
        handle: Option<&UploadHandle>,
    ) -> Result<(), StoreError>;

    /// Removes what no list of blobs shows and no upload needs any more.
    async fn clean(&self, _bucket: &Bucket) {}

    /// The stamp at `path`; `None` if there is none.
    async fn stamp(&self, bucket: &Bucket, path: &Path) -> Result<Option<Stamp>, StoreError>;

    /// Makes `by` the stamp at `path` if `seen` is the one there.
    async fn swap_stamp(&self, path: &Path, seen: Option<Stamp>, by: &str) -> Result<()>;

    /// What rights to this kind of stores are called.
    fn rights(&self) -> Rights;

    /// Tries all that a server does in its bucket.
    async fn probe(&self, probe: &Probe<'_>) -> Result<(), ProbeError>;
}
