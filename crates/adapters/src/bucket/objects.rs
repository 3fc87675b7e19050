//! Stores of objects that the library speaks to: those of the clouds. Objects are written whole or in parts, under conditions.

mod probe;
mod stamp;
mod upload;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use cloakroom_core::client::Client;
use cloakroom_core::resource::UploadHandle;
use cloakroom_storage::store::{Begun, BlobFacts, StoreError};
use jiff::Timestamp;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, Result};

use super::api::{Answer, Api, Meta, Page};
use super::backend::{Backend, Stamp};
use super::calls::{Bucket, PATIENCE};
use super::probe::{Probe, ProbeError, Rights};
use stamp::Form;
use upload::LONGEST_HANDLE;
pub(super) use upload::part_bytes;

/// A store of the library.
#[async_trait]
pub(super) trait Library: ObjectStore + MultipartStore + PaginatedListStore {
    /// See [`Api::authenticate`].
    async fn authenticate(&self) -> Result<()>;
}

/// A way to delete an object in place of the library's.
#[async_trait]
pub(super) trait Deletions: Send + Sync {
    /// Deletes the object at `path`.
    async fn delete(&self, path: &Path) -> Result<()>;
}

/// What differs between the clouds behind the library.
#[derive(Debug)]
pub(super) struct Cloud {
    pub rights: Rights,
    /// Whether each object has a version, also in a bucket that keeps none.
    pub always_has_versions: bool,
    /// Whether an upload in parts may be completed without a part.
    pub takes_no_parts: bool,
}

/// A bucket of one of the clouds.
pub(super) struct Objects {
    library: Arc<dyn Library>,
    cloud: &'static Cloud,
    /// How objects are deleted; `None` for the library's way.
    deletions: Option<Box<dyn Deletions>>,
    /// How the store takes an `ETag` in a condition, once a try has found it.
    form: OnceLock<Form>,
}

impl Objects {
    pub fn new(
        library: Arc<impl Library>,
        cloud: &'static Cloud,
        deletions: Option<Box<dyn Deletions>>,
    ) -> Arc<Self> {
        Arc::new(Self { library, cloud, deletions, form: OnceLock::new() })
    }
}

impl From<ObjectMeta> for Meta {
    fn from(found: ObjectMeta) -> Self {
        // Only some answers have parts of seconds.
        let changed_at = Timestamp::from_second(found.last_modified.timestamp()).unwrap_or(Timestamp::MAX);
        Self {
            path: found.location,
            facts: BlobFacts { size_bytes: found.size, changed_at },
            version: object_store::UpdateVersion { e_tag: found.e_tag, version: found.version },
        }
    }
}

#[async_trait]
impl Api for Objects {
    async fn authenticate(&self) -> Result<()> {
        self.library.authenticate().await
    }

    async fn head(&self, path: &Path) -> Result<Meta> {
        self.library.head(path).await.map(Meta::from)
    }

    async fn get(&self, path: &Path, range: Option<Range<u64>>, etag: Option<&str>) -> Result<Answer> {
        let options = GetOptions {
            range: range.map(Into::into),
            if_match: etag.map(str::to_owned),
            ..GetOptions::default()
        };
        let found = self.library.get_opts(path, options).await?;
        Ok(Answer { meta: found.meta.clone().into(), pieces: found.into_stream() })
    }

    /// The answer to HEAD has no code.
    async fn confirm(&self, path: &Path) -> Result<()> {
        self.get(path, None, None).await.map(drop)
    }

    async fn create(&self, path: &Path, bytes: Bytes) -> Result<()> {
        self.library.put_opts(path, bytes.into(), PutMode::Create.into()).await.map(drop)
    }

    async fn rewrite(&self, path: &Path, bytes: Bytes) -> Result<()> {
        self.library.put_opts(path, bytes.into(), PutMode::Overwrite.into()).await.map(drop)
    }

    async fn delete(&self, path: &Path) -> Result<()> {
        match &self.deletions {
            Some(deletions) => deletions.delete(path).await,
            None => self.library.delete(path).await,
        }
    }

    async fn list(&self, prefix: &str, token: Option<String>, most: Option<usize>) -> Result<Page> {
        let options =
            PaginatedListOptions { page_token: token, max_keys: most, ..PaginatedListOptions::default() };
        let page = self.library.list_paginated(Some(prefix), options).await?;
        let objects = page.result.objects.into_iter().map(Meta::from).collect();
        Ok(Page { objects, token: page.page_token })
    }
}

#[async_trait]
impl Backend for Objects {
    async fn begin(
        self: Arc<Self>,
        bucket: &Arc<Bucket>,
        path: Path,
        length: Option<u64>,
        client: &Client,
    ) -> Result<Begun, StoreError> {
        upload::begin(self, bucket, path, length, client).await
    }

    async fn abort(
        &self,
        bucket: &Bucket,
        path: &Path,
        handle: Option<&UploadHandle>,
    ) -> Result<(), StoreError> {
        let Some(handle) = handle else { return Ok(()) };
        if handle.expose().len() > LONGEST_HANDLE {
            tracing::warn!(
                object = %bucket.location.shown(path),
                "an upload has an id that is too long for a request, so its parts are left to the store's own rule for \
                 incomplete uploads"
            );
            return Ok(());
        }
        let id = handle.expose().to_owned();
        let abort = || self.library.abort_multipart(path, &id);
        let aborted = bucket.repeated("abort the upload of", path, PATIENCE, abort).await;
        bucket.or_absent(aborted).await.map(drop)
    }

    async fn stamp(&self, bucket: &Bucket, path: &Path) -> Result<Option<Stamp>, StoreError> {
        stamp::read(bucket, path).await
    }

    async fn swap_stamp(&self, path: &Path, seen: Option<Stamp>, by: &str) -> Result<()> {
        self.swap(path, seen, by).await
    }

    fn rights(&self) -> Rights {
        self.cloud.rights
    }

    async fn probe(&self, probe: &Probe<'_>) -> Result<(), ProbeError> {
        self.try_all(probe).await
    }
}
