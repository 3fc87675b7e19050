//! One resource, as the ledger knows it.

use std::time::Duration;

use jiff::Timestamp;

use super::{DeletionReason, FileName, Owner, OwnerHistory, ReadKey, ResourceId, SecretHash, State};
use crate::clock::Readings;

/// How long a resource may stay, as agreed at upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// The resource expires if no download happens within this time after the upload.
    pub unused_timeout: Duration,
    /// The resource expires this long after the upload, used or not; `None` if there is no such limit.
    pub ttl: Option<Duration>,
}

impl Lifetime {
    /// When an unused resource expires.
    pub fn expiry_if_unused(&self, created_at: Timestamp) -> Timestamp {
        let shortest = self.ttl.map_or(self.unused_timeout, |ttl| ttl.min(self.unused_timeout));
        later(created_at, shortest)
    }
}

/// `from` plus `by`, or the latest possible time if that is too late for a [`Timestamp`].
fn later(from: Timestamp, by: Duration) -> Timestamp {
    from.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// What is known of the bytes once all of them are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bundle {
    /// Length of the bytes.
    pub size_bytes: u64,
    /// SHA-256 of the bytes.
    pub sha256: [u8; 32],
}

/// A row of the ledger, with the data that exists in its state.
#[derive(Debug, Clone)]
pub struct Resource<S = StateData> {
    /// Its public id.
    pub id: ResourceId,
    /// Hash of its secret; the secret itself is never stored.
    pub secret_hash: SecretHash,
    /// When its upload began. Once it is ready: when it was acknowledged.
    pub created_at: Timestamp,
    /// The data of its state.
    pub data: S,
}

/// The state of a resource, with the data that exists in that state.
#[derive(Debug, Clone)]
pub enum StateData {
    /// The bytes are still arriving; owner and size are not certain.
    Pending(Arrival),
    /// The upload was acknowledged.
    Ready(Box<Ready>),
    /// The deletion is decided, and the bytes are being removed.
    Deleting(Box<Ready>, Ending),
    /// The bytes are gone.
    Deleted(Box<Tombstone>),
}

/// What is known when an upload begins.
#[derive(Debug, Clone, Default)]
pub struct Arrival {
    /// The name that it was uploaded under; `None` if the client gave none.
    pub file_name: Option<FileName>,
    /// Who uploaded it: a user, a named token, or the address of the peer.
    pub uploaded_by: Option<String>,
}

/// An acknowledged resource.
#[derive(Debug, Clone)]
pub struct Ready {
    /// How it was uploaded.
    pub arrival: Arrival,
    /// The objects that it lives for.
    pub owner: Owner,
    /// Length and digest of its bytes.
    pub bundle: Bundle,
    /// What happened to it since.
    pub history: History,
    /// The read keys that were given for it. Some may have ended.
    pub read_keys: Vec<ReadKey>,
}

/// How long a resource may stay, and what happened to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct History {
    /// The times that were agreed at upload.
    pub lifetime: Lifetime,
    /// Its first download; `None` if there was none.
    pub first_used_at: Option<Timestamp>,
    /// Its last download; `None` if there was none.
    pub last_used_at: Option<Timestamp>,
    /// When its owner was seen and missed.
    pub owner_history: OwnerHistory,
}

/// Why and when a resource was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// When the deletion was decided.
    pub at: Timestamp,
    /// The reason for the deletion.
    pub reason: DeletionReason,
}

/// What the ledger keeps of a deleted resource, beside its ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tombstone {
    /// Why and when it was deleted.
    pub ending: Ending,
    /// The kind of its owner.
    pub owner_kind: String,
    /// The namespace of its owner.
    pub namespace: String,
    /// How many bytes it had.
    pub size_bytes: u64,
    /// What happened before the deletion.
    pub history: History,
}

/// The data that decides how long a ready resource lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// When it was acknowledged.
    pub created_at: Timestamp,
    /// The times that were agreed at upload.
    pub lifetime: Lifetime,
    /// Its last download; `None` if there was none.
    pub last_used_at: Option<Timestamp>,
    /// When its owner was seen and missed.
    pub owner_history: OwnerHistory,
}

impl Life {
    /// Whether it was downloaded at least once.
    pub fn is_used(&self) -> bool {
        self.last_used_at.is_some()
    }

    /// Why and when its age alone ended it: its `ttl`, or the largest age of any resource; `None` if it did not. This holds
    /// whether it is used or not, and whatever is known of its owner.
    pub fn ended_by_age(&self, max_age: Option<Duration>, now: &Readings) -> Option<Ending> {
        let limits =
            [(self.lifetime.ttl, DeletionReason::TtlReached), (max_age, DeletionReason::MaxAgeReached)];
        let reached = |(time, reason): (Option<Duration>, DeletionReason)| {
            let time = time.filter(|time| now.passed_since(self.created_at, *time))?;
            Some(Ending { at: later(self.created_at, time), reason })
        };
        limits.into_iter().find_map(reached)
    }
}

impl Resource {
    /// The state that its data belongs to.
    pub fn state(&self) -> State {
        match self.data {
            StateData::Pending(_) => State::Pending,
            StateData::Ready(_) => State::Ready,
            StateData::Deleting(..) => State::Deleting,
            StateData::Deleted(_) => State::Deleted,
        }
    }

    /// The data of the acknowledged resource; `None` before that, and when only a tombstone is left.
    pub fn acknowledged(&self) -> Option<&Ready> {
        match &self.data {
            StateData::Ready(ready) | StateData::Deleting(ready, _) => Some(ready),
            StateData::Pending(_) | StateData::Deleted(_) => None,
        }
    }

    /// Why and when it was deleted; `None` before that is decided.
    pub fn ending(&self) -> Option<Ending> {
        match &self.data {
            StateData::Deleting(_, ending) => Some(*ending),
            StateData::Deleted(tombstone) => Some(tombstone.ending),
            StateData::Pending(_) | StateData::Ready(_) => None,
        }
    }

    /// What happened to it; `None` before it is acknowledged.
    pub fn history(&self) -> Option<&History> {
        match &self.data {
            StateData::Ready(ready) | StateData::Deleting(ready, _) => Some(&ready.history),
            StateData::Deleted(tombstone) => Some(&tombstone.history),
            StateData::Pending(_) => None,
        }
    }

    /// The same resource if it is ready; `None` otherwise.
    pub fn into_ready(self) -> Option<Resource<Ready>> {
        let Self { id, secret_hash, created_at, data } = self;
        match data {
            StateData::Ready(ready) => Some(Resource { id, secret_hash, created_at, data: *ready }),
            _ => None,
        }
    }
}

impl Resource<Ready> {
    /// The data that decides how long it lives.
    pub fn life(&self) -> Life {
        let History { lifetime, last_used_at, owner_history, .. } = self.data.history;
        Life { created_at: self.created_at, lifetime, last_used_at, owner_history }
    }

    /// Whether it was downloaded at least once.
    pub fn is_used(&self) -> bool {
        self.data.history.last_used_at.is_some()
    }
}
