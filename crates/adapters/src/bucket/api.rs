//! The calls that every kind of store takes.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use cloakroom_storage::store::BlobFacts;
use futures_util::stream::BoxStream;
use object_store::path::Path;
use object_store::{Result, UpdateVersion};

/// The objects of a store, or its files. An error has a [`CallTrouble`](super::failure::CallTrouble) as its cause.
#[async_trait]
pub(super) trait Api: Send + Sync {
    /// Gets the credentials for the next call, unless they are there. It is a step of its own, so that an error says whether the
    /// credentials or the store failed.
    async fn authenticate(&self) -> Result<()>;

    /// Looks at an object.
    async fn head(&self, path: &Path) -> Result<Meta>;

    /// Reads an object, or a range of it, if it is the version `etag`.
    async fn get(&self, path: &Path, range: Option<Range<u64>>, etag: Option<&str>) -> Result<Answer>;

    /// Asks for an object by a call of which each answer says whether there is a bucket that can be read.
    async fn confirm(&self, path: &Path) -> Result<()>;

    /// Writes an object that must not be there yet.
    async fn create(&self, path: &Path, bytes: Bytes) -> Result<()>;

    /// Writes an object. One that is there has these bytes: it is replaced, or the call is refused.
    async fn rewrite(&self, path: &Path, bytes: Bytes) -> Result<()>;

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
