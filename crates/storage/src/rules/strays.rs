//! Bytes without a row. Bytes that were never acknowledged go at once, and so do those of a tombstone. A whole bundle may
//! belong to a ledger that was lost: it is a *stray*, and waits for that ledger before it goes.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};

use super::upload::Late;
use super::{AccessError, Authority, Parts};
use crate::ledger::{Fact, Rowless, Stray};
use crate::store::BlobFacts;
use cloakroom_core::clock::Readings;
use cloakroom_core::resource::BlobKey;
use cloakroom_core::size::format_size;
use cloakroom_core::text::chain;

/// How many strays one change of the ledger notes, because uploads wait for that change.
const TOGETHER: usize = 1000;

/// How many bundles are looked at once. A start waits for that, and after a copy of the ledger was put back there can be many.
const LOOKS_AT_ONCE: usize = 32;

/// When strays go.
#[derive(Debug, Clone, Copy)]
pub enum StraysGo {
    /// As soon as a listing has found them this long ago, and they are that old themselves.
    After(Duration),
    /// Now: an admin has seen them, and wants them gone.
    Now,
}

/// The keys that a listing has found.
pub(super) struct Found {
    /// Keys with bytes that are not committed.
    pub(super) arriving: Vec<BlobKey>,
    /// The committed blobs.
    pub(super) committed: Vec<(BlobKey, BlobFacts)>,
}

impl Parts {
    /// Removes bytes that were never acknowledged, and bytes of tombstones. Notes strays. Returns how many were removed.
    pub(super) async fn sort_out(&self, found: Found) -> Result<u64, AccessError> {
        let Found { arriving, committed } = found;
        let (seen_at, sizes) = (self.clock.now(), BTreeMap::from_iter(committed));
        let keys: BTreeSet<BlobKey> = arriving.into_iter().chain(sizes.keys().copied()).collect();
        let unsure: Vec<BlobKey> =
            keys.into_iter().filter(|key| !self.ready.contains(key.resource())).collect();
        let (mut left_over, mut strays) = (Vec::new(), Vec::new());
        for Rowless { key, has_ended } in self.ledger.without_row(&unsure).await? {
            match sizes.get(&key) {
                Some(BlobFacts { size_bytes, .. }) if !has_ended => {
                    strays.push(Stray { key, size_bytes: *size_bytes, seen_at });
                }
                _ => left_over.push((key, has_ended)),
            }
        }
        let mut removed = 0;
        for (key, has_ended) in left_over {
            match self.remove_unknown(key, has_ended).await {
                Ok(is_removed) => removed += u64::from(is_removed),
                Err(error) if error.is_of_one() => tell_of_failure(key, &error),
                Err(error) => return Err(error),
            }
        }
        self.note_strays(strays).await?;
        Ok(removed)
    }

    /// Makes the strays of the ledger those that were just found. A stray that was known stays known since then.
    async fn note_strays(&self, found: Vec<Stray>) -> Result<(), AccessError> {
        let known: BTreeSet<BlobKey> =
            self.ledger.facts().await?.strays.into_iter().map(|stray| stray.key).collect();
        let here: BTreeSet<BlobKey> = found.iter().map(|stray| stray.key).collect();
        let gone: Vec<BlobKey> = known.difference(&here).copied().collect();
        // An upload that was abandoned since it was listed is none.
        let looks = stream::iter(found.into_iter().filter(|stray| !known.contains(&stray.key)))
            .map(async |stray| (self.facts(stray.key).await, stray));
        let (mut looks, mut new) = (pin!(looks.buffer_unordered(LOOKS_AT_ONCE)), Vec::new());
        while let Some((facts, stray)) = looks.next().await {
            match facts {
                Ok(facts) => new.extend(facts.map(|_| stray)),
                Err(error) if error.is_of_one() => tell_of_failure(stray.key, &error),
                Err(error) => return Err(error),
            }
        }
        if !new.is_empty() {
            tracing::warn!(
                bundles = new.len(),
                "found bundles without a resource, {} in all: the ledger may have been lost or replaced. They stay for \
                 --stray-age: put the ledger back, or remove them with cloakroom clean --strays",
                format_size(new.iter().map(|stray| stray.size_bytes).sum())
            );
        }
        for new in new.chunks(TOGETHER) {
            self.ledger.write(Fact::Strays { found: new.to_vec(), gone: Vec::new() }).await?;
        }
        for gone in gone.chunks(TOGETHER) {
            self.ledger.write(Fact::Strays { found: Vec::new(), gone: gone.to_vec() }).await?;
        }
        Ok(())
    }

    /// Removes the strays whose time has come. Returns how many. As long as a row has a damaged id, a stray may be its
    /// bundle, and only an admin may have it removed.
    pub(super) async fn remove_strays(&self, go: StraysGo) -> Result<u64, AccessError> {
        if self.ready.taken().strays.resources == 0 {
            return Ok(0);
        }
        if matches!(go, StraysGo::After(_)) && self.ready.unreadable().damaged_ids > 0 {
            return Ok(0);
        }
        let (now, mut removed) = (self.readings(), Vec::new());
        for stray in self.ledger.facts().await?.strays {
            match self.remove_if_due(&stray, go, &now).await {
                Ok(true) => removed.push(stray.key),
                Ok(false) => {}
                Err(error) if error.is_of_one() => tell_of_failure(stray.key, &error),
                Err(error) => return Err(error),
            }
        }
        for gone in removed.chunks(TOGETHER) {
            self.ledger.write(Fact::Strays { found: Vec::new(), gone: gone.to_vec() }).await?;
        }
        Ok(removed.len() as u64)
    }

    async fn facts(&self, key: BlobKey) -> Result<Option<BlobFacts>, AccessError> {
        Ok(self.storage.blobs.facts(key).await?)
    }

    async fn remove_if_due(&self, stray: &Stray, go: StraysGo, now: &Readings) -> Result<bool, AccessError> {
        if !self.is_due(stray, go, now).await? {
            return Ok(false);
        }
        match self.ledger.without_row(&[stray.key]).await?.first() {
            Some(Rowless { has_ended, .. }) => self.remove_unknown(stray.key, *has_ended).await,
            // The next listing takes it off the table.
            None => Ok(false),
        }
    }

    async fn is_due(&self, stray: &Stray, go: StraysGo, now: &Readings) -> Result<bool, AccessError> {
        let StraysGo::After(age) = go else { return Ok(true) };
        if !now.passed_since(stray.seen_at, age) {
            return Ok(false);
        }
        let facts = self.facts(stray.key).await?;
        Ok(facts.is_none_or(|facts| now.passed_since(facts.changed_at, age)))
    }

    /// Removes bytes that have no row. Returns `false` if they stay for now.
    async fn remove_unknown(&self, key: BlobKey, has_ended: bool) -> Result<bool, AccessError> {
        let id = key.resource();
        if !self.may_remove(Authority::Sweep).await? {
            return Ok(false);
        }
        if self.capacity.is_in_flight(id) {
            return Ok(false);
        }
        let is_removed = if has_ended {
            self.storage.blobs.abort(key, None).await?;
            true
        } else {
            self.remove_unacknowledged(id, Late::Never).await?
        };
        if is_removed {
            tracing::warn!(resource_id = %id, "removed bytes that the ledger does not know");
        }
        Ok(is_removed)
    }
}

fn tell_of_failure(key: BlobKey, error: &AccessError) {
    tracing::warn!(
        resource_id = %key.resource(), error = %chain(error),
        "could not remove bytes that the ledger does not know"
    );
}
