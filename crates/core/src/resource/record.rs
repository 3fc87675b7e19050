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

/// A row of the ledger, with what it has at its stage.
#[derive(Debug, Clone)]
pub struct Resource<S = Stage> {
    /// Its public name.
    pub id: ResourceId,
    /// Hash of its secret.
    pub secret_hash: SecretHash,
    /// When its upload began, and from `ready` on when it was acknowledged.
    pub created_at: Timestamp,
    /// Where it is in its life.
    pub stage: S,
}

/// Where a resource is in its life, and what it has there.
#[derive(Debug, Clone)]
pub enum Stage {
    /// Its bytes are still arriving, and nothing else is certain.
    Pending(Arrival),
    /// Acknowledged.
    Ready(Box<Ready>),
    /// Its end is decided, and its bytes are being removed.
    Deleting(Box<Ready>, Ending),
    /// Gone.
    Deleted(Box<Tombstone>),
}

/// How it came.
#[derive(Debug, Clone, Default)]
pub struct Arrival {
    /// Under what name.
    pub file_name: Option<FileName>,
    /// By whom: a user, a named token, or the address of the peer.
    pub uploaded_by: Option<String>,
}

/// What was acknowledged.
#[derive(Debug, Clone)]
pub struct Ready {
    /// How it came.
    pub arrival: Arrival,
    /// Whom it is for.
    pub owner: Owner,
    /// Its bytes.
    pub bundle: Bundle,
    /// What happened since.
    pub history: History,
}

/// How long it may stay, and what happened to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct History {
    /// As agreed at upload.
    pub lifetime: Lifetime,
    /// First download.
    pub first_used_at: Option<Timestamp>,
    /// Last download.
    pub last_used_at: Option<Timestamp>,
    /// What was seen of its owner.
    pub sighting: Sighting,
}

/// Why and when it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// When it was decided.
    pub at: Timestamp,
    /// Why.
    pub reason: DeletionReason,
}

/// What stays of a resource that was deleted, beside its ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tombstone {
    /// Why and when it went.
    pub ending: Ending,
    /// The kind of the owner that it had.
    pub owner_kind: String,
    /// The namespace of that owner.
    pub namespace: String,
    /// How many bytes it had.
    pub size_bytes: u64,
    /// What happened before.
    pub history: History,
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
    /// The name of its stage.
    pub fn state(&self) -> State {
        match self.stage {
            Stage::Pending(_) => State::Pending,
            Stage::Ready(_) => State::Ready,
            Stage::Deleting(..) => State::Deleting,
            Stage::Deleted(_) => State::Deleted,
        }
    }

    /// What was acknowledged, as long as it is remembered.
    pub fn acknowledged(&self) -> Option<&Ready> {
        match &self.stage {
            Stage::Ready(ready) | Stage::Deleting(ready, _) => Some(ready),
            Stage::Pending(_) | Stage::Deleted(_) => None,
        }
    }

    /// Why and when it goes, once that is decided.
    pub fn ending(&self) -> Option<Ending> {
        match &self.stage {
            Stage::Deleting(_, ending) => Some(*ending),
            Stage::Deleted(tombstone) => Some(tombstone.ending),
            Stage::Pending(_) | Stage::Ready(_) => None,
        }
    }

    /// What happened to it; `None` before it is acknowledged.
    pub fn history(&self) -> Option<&History> {
        match &self.stage {
            Stage::Ready(ready) | Stage::Deleting(ready, _) => Some(&ready.history),
            Stage::Deleted(tombstone) => Some(&tombstone.history),
            Stage::Pending(_) => None,
        }
    }

    /// The same as a resource that is ready; `None` if it is not.
    pub fn into_ready(self) -> Option<Resource<Ready>> {
        let Self { id, secret_hash, created_at, stage } = self;
        match stage {
            Stage::Ready(ready) => Some(Resource { id, secret_hash, created_at, stage: *ready }),
            _ => None,
        }
    }
}

impl Resource<Ready> {
    /// What decides how long it lives.
    pub fn life(&self) -> Life {
        let History { lifetime, last_used_at, sighting, .. } = self.stage.history;
        Life { created_at: self.created_at, lifetime, last_used_at, sighting }
    }

    /// Downloaded at least once.
    pub fn is_used(&self) -> bool {
        self.stage.history.last_used_at.is_some()
    }
}
