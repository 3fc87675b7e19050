//! The name of a blob in a store.

use std::fmt;

use super::{InvalidResourceId, ResourceId};

/// Names one blob in a store. A key is never used twice, so new bytes never take the place of others.
///
/// Today a resource has one blob, named by the id of the resource. More blobs would have a number behind the id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobKey {
    resource: ResourceId,
}

impl BlobKey {
    /// The key of the blob of `resource`.
    pub fn for_resource(resource: ResourceId) -> Self {
        Self { resource }
    }

    /// Reads the text that [`Display`](fmt::Display) writes.
    pub fn parse(text: &str) -> Result<Self, InvalidResourceId> {
        ResourceId::parse(text).map(Self::for_resource)
    }

    /// The resource that the blob belongs to.
    pub fn resource(self) -> ResourceId {
        self.resource
    }
}

impl fmt::Display for BlobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.resource.fmt(f)
    }
}

/// Identifies an upload to its store, which needs it beside the key to abort the upload: the id of a multipart upload,
/// for instance. The ledger keeps it while the upload is in flight.
#[derive(Clone, PartialEq, Eq)]
pub struct UploadHandle(String);

impl UploadHandle {
    /// The handle that a store gave out, or that the ledger kept.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The handle as the store and the ledger need it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Hidden, because with the store's own credentials it is enough to change the upload.
impl fmt::Debug for UploadHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UploadHandle(hidden)")
    }
}
