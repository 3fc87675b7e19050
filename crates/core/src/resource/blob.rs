//! What a store is asked for: a blob by its key.

use std::fmt;

use super::{InvalidResourceId, ResourceId};

/// Names one blob in a store. A key is never used twice: no bytes ever take another's place.
///
/// A resource has one blob, which has its name. Further ones would have a number behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobKey {
    resource: ResourceId,
}

impl BlobKey {
    /// The blob of `resource`.
    pub fn of(resource: ResourceId) -> Self {
        Self { resource }
    }

    /// Reads what [`Display`](fmt::Display) writes.
    pub fn parse(text: &str) -> Result<Self, InvalidResourceId> {
        ResourceId::parse(text).map(Self::of)
    }

    /// The resource that it belongs to.
    pub fn resource(self) -> ResourceId {
        self.resource
    }
}

impl fmt::Display for BlobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.resource.fmt(f)
    }
}

/// What a store must be told to abort an upload, beside its key: an object store's id of a multipart upload, for instance.
/// The ledger keeps it as long as the upload goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadHandle(pub String);
