//! The calls that every kind of store takes, and their form for the library's stores.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use cloakroom_storage::store::BlobFacts;
use futures_util::stream::BoxStream;
use jiff::Timestamp;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, Result, UpdateVersion};

/// The objects of a store, or its files. An error has a [`CallTrouble`](super::answer::CallTrouble) as its cause.
#[async_trait]
pub(super) trait Api: Send + Sync {
    /// Gets the credentials for the next call, unless they are there. It is a step of its own, so that an error says whether the
    /// credentials or the store failed.
    async fn authenticate(&self) -> Result<()>;

    /// Looks at an object.
    async fn head(&self, path: &Path) -> Result<Meta>;

    /// Reads an object, or a range of it, if it is the version `etag`.
    async fn get(&self, path: &Path, range: Option<Range<u64>>, etag: Option<&str>) -> Result<Answer>;

    /// Writes an object that must not be there yet.
    async fn create(&self, path: &Path, bytes: Bytes) -> Result<()>;

    /// Deletes an object.
    async fn delete(&self, path: &Path) -> Result<()>;

    /// A page of the objects whose paths begin with `prefix`, of at most `most` where the store takes that. `token` is that of the
    /// page before.
    async fn list(&self, prefix: &str, token: Option<String>, most: Option<usize>) -> Result<Page>;
}

/// What a store says of an object.
#[derive(Debug)]
pub(super) struct Meta {
    pub path: Path,
    pub facts: BlobFacts,
    /// Names the version of the object.
    pub version: UpdateVersion,
}

/// An object that is being read.
pub(super) struct Answer {
    pub meta: Meta,
    pub pieces: BoxStream<'static, Result<Bytes>>,
}

/// A part of a list.
pub(super) struct Page {
    pub objects: Vec<Meta>,
    /// Gets the next page; `None` if there is none.
    pub token: Option<String>,
}

/// A store of the library.
#[async_trait]
pub(super) trait Objects: ObjectStore + MultipartStore + PaginatedListStore {
    /// See [`Api::authenticate`].
    async fn authenticate(&self) -> Result<()>;
}

impl From<ObjectMeta> for Meta {
    fn from(found: ObjectMeta) -> Self {
        // Only some answers have parts of seconds.
        let changed_at = Timestamp::from_second(found.last_modified.timestamp()).unwrap_or(Timestamp::MAX);
        Self {
            path: found.location,
            facts: BlobFacts { size_bytes: found.size, changed_at },
            version: UpdateVersion { e_tag: found.e_tag, version: found.version },
        }
    }
}

#[async_trait]
impl<S: Objects> Api for S {
    async fn authenticate(&self) -> Result<()> {
        Objects::authenticate(self).await
    }

    async fn head(&self, path: &Path) -> Result<Meta> {
        ObjectStoreExt::head(self, path).await.map(Meta::from)
    }

    async fn get(&self, path: &Path, range: Option<Range<u64>>, etag: Option<&str>) -> Result<Answer> {
        let options = GetOptions {
            range: range.map(Into::into),
            if_match: etag.map(str::to_owned),
            ..GetOptions::default()
        };
        let found = self.get_opts(path, options).await?;
        Ok(Answer { meta: found.meta.clone().into(), pieces: found.into_stream() })
    }

    async fn create(&self, path: &Path, bytes: Bytes) -> Result<()> {
        self.put_opts(path, bytes.into(), PutMode::Create.into()).await.map(drop)
    }

    async fn delete(&self, path: &Path) -> Result<()> {
        ObjectStoreExt::delete(self, path).await
    }

    async fn list(&self, prefix: &str, token: Option<String>, most: Option<usize>) -> Result<Page> {
        let options =
            PaginatedListOptions { page_token: token, max_keys: most, ..PaginatedListOptions::default() };
        let page = self.list_paginated(Some(prefix), options).await?;
        let objects = page.result.objects.into_iter().map(Meta::from).collect();
        Ok(Page { objects, token: page.page_token })
    }
}
