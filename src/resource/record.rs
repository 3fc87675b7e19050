//! One resource, as the ledger knows it.

use std::time::Duration;

use jiff::Timestamp;

use super::{DeletionReason, FileName, Owner, ResourceId, SecretHash, Sighting, State};

/// How long a resource may stay, as agreed at upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// It goes when nobody has downloaded it for this long after the upload.
    pub unused_timeout: Duration,
    /// It goes when this has passed since the upload, used or not.
    pub ttl: Option<Duration>,
}

impl Lifetime {
    /// When it goes if nobody uses it.
    pub fn expiry_if_unused(&self, created_at: Timestamp) -> Timestamp {
        let shortest = self.ttl.map_or(self.unused_timeout, |ttl| ttl.min(self.unused_timeout));
        later(created_at, shortest)
    }

    /// When it goes once it was used; `None` when no time is set.
    pub fn expiry_if_used(&self, created_at: Timestamp) -> Option<Timestamp> {
        self.ttl.map(|ttl| later(created_at, ttl))
    }
}

/// `from` plus `by`, or the end of time.
fn later(from: Timestamp, by: Duration) -> Timestamp {
    from.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// What is known of the bytes once they are all stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bundle {
    /// Their number.
    pub size_bytes: u64,
    /// SHA-256 of them.
    pub sha256: [u8; 32],
}

/// What stays of a resource that was deleted, beside its ticket and its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tombstone {
    /// When it was decided.
    pub at: Timestamp,
    /// Why.
    pub reason: DeletionReason,
    /// The kind of the owner that it had.
    pub owner_kind: String,
    /// The namespace of that owner.
    pub namespace: String,
    /// How many bytes it had.
    pub size_bytes: u64,
}

/// A row of the ledger. Owner and bundle are known from `ready` on, and forgotten with the deletion.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Its public name.
    pub id: ResourceId,
    /// Hash of its secret.
    pub secret_hash: SecretHash,
    /// Where it is in its life.
    pub state: State,
    /// Whom it is for. Not known while a v0 upload is in flight, whose owner comes after the bundle.
    pub owner: Option<Owner>,
    /// Its bytes.
    pub bundle: Option<Bundle>,
    /// The name it came with.
    pub file_name: Option<FileName>,
    /// How long it may stay.
    pub lifetime: Lifetime,
    /// When its upload began to be acknowledged.
    pub created_at: Timestamp,
    /// First download.
    pub first_used_at: Option<Timestamp>,
    /// Last download.
    pub last_used_at: Option<Timestamp>,
    /// What was seen of its owner.
    pub sighting: Sighting,
    /// What is known of its deletion, from the moment on that it was decided.
    pub deleted: Option<Tombstone>,
    /// Who staged it: the address of the peer, as text.
    pub uploaded_by: Option<String>,
}

/// The part of a resource that decides how long it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// When it was acknowledged.
    pub created_at: Timestamp,
    /// What was agreed then.
    pub lifetime: Lifetime,
    /// Its last download.
    pub last_used_at: Option<Timestamp>,
    /// What was seen of its owner.
    pub sighting: Sighting,
}

impl Life {
    /// Downloaded at least once.
    pub fn is_used(&self) -> bool {
        self.last_used_at.is_some()
    }
}

impl Resource {
    /// What decides how long it lives.
    pub fn life(&self) -> Life {
        Life {
            created_at: self.created_at,
            lifetime: self.lifetime,
            last_used_at: self.last_used_at,
            sighting: self.sighting,
        }
    }

    /// Downloaded at least once.
    pub fn is_used(&self) -> bool {
        self.last_used_at.is_some()
    }
}
