//! Ledger and store belong together: the start checks it, and before the cleaner deletes anything it writes a new stamp into
//! both. So a ledger that is an earlier copy, or that has another store, deletes nothing.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::Mutex;

use super::super::{AccessError, Parts};
use super::Behind;
use crate::ledger::{Fact, Ledger, LedgerError};
use crate::stamp::{Claim, ClaimState, Installation, Stamp};
use crate::store::{LocalDisk, Storage, StoreError};
use cloakroom_core::metrics::Metrics;
use cloakroom_core::text::chain;

/// How often a stamp is written if the ledger has changed. A copy of the ledger that is older than this is known to be one.
const STAMP_INTERVAL: Duration = Duration::from_mins(1);

/// Ledger and store do not belong together, or could not be asked whether they do.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another ledger has claimed the store.
    #[error(
        "this store belongs to another ledger: the store has the id {store}, and {}; nothing was changed; put the ledger of this \
         store back, or name the right store; to keep both as they are and use them together, start once with \
         --adopt-store {store}: what the ledger does not know then stays as a stray for --stray-age",
        ledger_id(*.ledger, *.knows)
    )]
    OtherLedger {
        /// The installation that the store belongs to.
        store: Installation,
        /// The installation that the ledger belongs to; `None` if it never had a store.
        ledger: Option<Installation>,
        /// How many resources the ledger knows.
        knows: u64,
    },
    /// The ledger has claimed a store, and this one was never claimed.
    #[error(
        "this store {}, and {}; nothing was changed; name the store that has its bundles, or put them back; to go on \
         without them, start once with --adopt-store {ledger}",
        if *.is_empty { "is empty" } else { "has no id" }, ledger_id(Some(*.ledger), *.knows)
    )]
    OtherStore {
        /// The installation that the ledger belongs to.
        ledger: Installation,
        /// How many resources the ledger knows.
        knows: u64,
        /// Whether there is no bundle in the store.
        is_empty: bool,
    },
    /// The ledger could not be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The stamp of the store could not be read.
    #[error(
        "cannot read which ledger the bundles belong to; if that file is damaged, docs/run.md says what to do (a lost or \
         damaged ledger)"
    )]
    Store(#[source] StoreError),
}

fn ledger_id(id: Option<Installation>, knows: u64) -> String {
    let resources = if knows == 1 { "1 resource".to_owned() } else { format!("{knows} resources") };
    match id {
        Some(id) => format!("the ledger has the id {id} and knows {resources}"),
        None => format!("the ledger has none and knows {resources}"),
    }
}

/// Whether a new ledger may be made for a store: it may not if the store belongs to another one. Asked before anything is
/// written.
pub async fn check_new_ledger(disk: &dyn LocalDisk, adopt: Option<Installation>) -> Result<(), ClaimError> {
    match disk.stamp().await.map_err(ClaimError::Store)? {
        Some(seen) if adopt != Some(seen.installation) => {
            Err(ClaimError::OtherLedger { store: seen.installation, ledger: None, knows: 0 })
        }
        _ => Ok(()),
    }
}

/// The stamps of ledger and store, as far as this process knows them.
pub(in super::super) struct DiskClaim {
    disk: Arc<dyn LocalDisk>,
    state: Mutex<Stamps>,
    pub(super) behind: Behind,
}

struct Stamps {
    own: Claim,
    /// The claim in the ledger's file; `None` if that is not known.
    written: Option<Claim>,
    /// The last stamp that the store was seen to have.
    seen: Option<Stamp>,
    /// Whether this sweep has shown already that no other ledger has the store.
    is_confirmed: bool,
    /// How much the ledger had changed at the last stamp.
    changes: u64,
}

impl DiskClaim {
    /// Compares the stamps of both. A ledger and a store without one claim each other, and a claim that was cut is finished.
    /// `adopt` is the id that an earlier start has printed. The ledger `knows` so many resources.
    pub(super) async fn check(
        ledger: &dyn Ledger,
        knows: u64,
        storage: &Storage,
        disk: &Arc<dyn LocalDisk>,
        adopt: Option<Installation>,
        metrics: Metrics,
    ) -> Result<Self, ClaimError> {
        let (own, seen) = (ledger.facts().await?.claim, disk.stamp().await.map_err(ClaimError::Store)?);
        let begin = |installation| {
            let stamp = Stamp::new(installation, 0, &mut rand::rng());
            Claim { stamp, before: None, state: ClaimState::Begun }
        };
        let written = own;
        let own = match (own, seen) {
            (None, None) => begin(Installation::generate(&mut rand::rng())),
            (Some(own), None) if own.state == ClaimState::Begun => own,
            (Some(own), None) if adopt == Some(own.stamp.installation) => {
                Claim { before: None, state: ClaimState::Begun, ..own }
            }
            (Some(own), None) => {
                let is_empty = storage.blobs.list().next().await.is_none();
                return Err(ClaimError::OtherStore { ledger: own.stamp.installation, knows, is_empty });
            }
            (Some(own), Some(seen)) if own.stamp.installation == seen.installation => {
                let is_behind = own.state == ClaimState::Behind || own.is_behind(&seen);
                Claim { state: if is_behind { ClaimState::Behind } else { ClaimState::Made }, ..own }
            }
            (_, Some(seen)) if adopt == Some(seen.installation) && knows == 0 => begin(seen.installation),
            // Its rows may be older than what the store has been through since.
            (_, Some(seen)) if adopt == Some(seen.installation) => {
                Claim { state: ClaimState::Behind, ..begin(seen.installation) }
            }
            (own, Some(seen)) => {
                let ledger = own.map(|own| own.stamp.installation);
                return Err(ClaimError::OtherLedger { store: seen.installation, ledger, knows });
            }
        };
        let changes = ledger.changes();
        let stamps = Stamps { own, written, seen, is_confirmed: false, changes };
        let state = Mutex::new(stamps);
        let behind = Behind::new(own.state == ClaimState::Behind, metrics);
        Ok(Self { disk: Arc::clone(disk), state, behind })
    }
}

impl DiskClaim {
    /// By a stamp above both.
    pub(super) async fn resume_deletions(&self, parts: &Parts) -> Result<bool, AccessError> {
        let mut stamps = self.state.lock().await;
        if stamps.own.state != ClaimState::Behind {
            return Ok(false);
        }
        let seen = self.stamp_there().await?;
        if seen.is_some_and(|seen| seen.installation != stamps.own.stamp.installation) {
            return Err(StoreError::Fault("the store belongs to another ledger now".into()).into());
        }
        stamps.seen = seen;
        self.write_stamp(parts, &mut stamps).await
    }

    /// Writes the stamp of this start, which finishes a claim that was begun.
    pub(super) async fn begin_stamps(&self, parts: &Parts) -> Result<(), AccessError> {
        let mut stamps = self.state.lock().await;
        match stamps.own.state {
            ClaimState::Behind => self.become_behind(parts, &mut stamps).await,
            // So a copy that was made before this start is known to be one.
            ClaimState::Begun | ClaimState::Made => self.write_stamp(parts, &mut stamps).await.map(drop),
        }
    }

    /// The next deletion needs a new stamp.
    pub(super) async fn begin_batch(&self) {
        self.state.lock().await.is_confirmed = false;
    }

    /// Writes a stamp once for each sweep.
    pub(super) async fn may_sweep(&self, parts: &Parts) -> Result<bool, AccessError> {
        let mut stamps = self.state.lock().await;
        if stamps.own.state == ClaimState::Behind || stamps.is_confirmed {
            return Ok(stamps.own.state != ClaimState::Behind);
        }
        stamps.is_confirmed = self.write_stamp(parts, &mut stamps).await?;
        Ok(stamps.is_confirmed)
    }

    /// Writes a stamp if the ledger has changed since the last one.
    pub(super) async fn stamp_changes(&self, parts: &Parts) -> Result<(), AccessError> {
        let mut stamps = self.state.lock().await;
        if stamps.own.state == ClaimState::Behind || stamps.changes == parts.ledger.changes() {
            return Ok(());
        }
        self.write_stamp(parts, &mut stamps).await.map(drop)
    }

    /// Writes the next stamp, first into the ledger and then into the store. If it is in the ledger already, its answer got lost,
    /// and the same is written again: a ledger is never more than one stamp ahead of what it has seen. Returns `false` if the
    /// store has another one: then another ledger has gone on with it, and this one is behind.
    async fn write_stamp(&self, parts: &Parts, stamps: &mut Stamps) -> Result<bool, AccessError> {
        if self.is_behind_by_now(parts, stamps).await? {
            self.become_behind(parts, stamps).await?;
            return Ok(false);
        }
        let (Claim { stamp, before, .. }, seen) = (stamps.own, stamps.seen);
        let is_under_way = before == seen && Some(stamp) != seen;
        let stamp = if is_under_way { stamp } else { Stamp::after(&stamp, seen.as_ref(), &mut rand::rng()) };
        let state = if seen.is_some() { ClaimState::Made } else { ClaimState::Begun };
        stamps.own = Claim { stamp, before: seen, state };
        self.write_claim(parts, stamps).await?;
        if !self.replace_stamp(parts, seen, stamp).await? && self.stamp_there().await? != Some(stamp) {
            self.become_behind(parts, stamps).await?;
            return Ok(false);
        }
        stamps.seen = Some(stamp);
        stamps.own.state = ClaimState::Made;
        self.write_claim(parts, stamps).await?;
        stamps.changes = parts.ledger.changes();
        self.behind.tell(false);
        Ok(true)
    }

    /// Reads both again if the ledger has another claim than this process wrote: the answer got lost, or another server on this
    /// ledger has written one. Returns whether the ledger is behind.
    async fn is_behind_by_now(&self, parts: &Parts, stamps: &mut Stamps) -> Result<bool, AccessError> {
        let there = parts.ledger.facts().await?.claim;
        let Some(claim) = there.filter(|_| there != stamps.written) else { return Ok(false) };
        (stamps.own, stamps.written, stamps.seen) = (claim, there, self.stamp_there().await?);
        Ok(claim.state == ClaimState::Behind || stamps.seen.is_some_and(|seen| claim.is_behind(&seen)))
    }

    /// Writes down that the ledger is behind, so that a restart knows it too.
    async fn become_behind(&self, parts: &Parts, stamps: &mut Stamps) -> Result<(), AccessError> {
        stamps.own.state = ClaimState::Behind;
        self.behind.tell(true);
        tracing::error!(
            "the ledger is an earlier copy, or its bundles were replaced: what is staged is served and uploads are taken, but no \
             sweep deletes anything; put the newer ledger, or the right bundles, back, or let the server go on with what is \
             there with cloakroom resume-deletions"
        );
        self.write_claim(parts, stamps).await
    }

    /// Writes the claim into the ledger unless it is there. On a full disk the reserve is for this too, because deletions make
    /// room.
    async fn write_claim(&self, parts: &Parts, stamps: &mut Stamps) -> Result<(), AccessError> {
        let claim = stamps.own;
        if stamps.written == Some(claim) {
            return Ok(());
        }
        // After an error it is not known what the ledger has.
        stamps.written = None;
        match parts.ledger.write(Fact::Claim(claim)).await {
            Err(LedgerError::Full) => {
                parts.give_up_reserve().await?;
                parts.ledger.write(Fact::Claim(claim)).await?;
            }
            written => written?,
        }
        stamps.written = Some(claim);
        Ok(())
    }

    async fn replace_stamp(
        &self,
        parts: &Parts,
        seen: Option<Stamp>,
        by: Stamp,
    ) -> Result<bool, AccessError> {
        let mut replaced = self.disk.replace_stamp(seen, by).await;
        if let Err(StoreError::Full { .. }) = replaced {
            parts.give_up_reserve().await?;
            replaced = self.disk.replace_stamp(seen, by).await;
        }
        replaced.map_err(of_all)
    }

    async fn stamp_there(&self) -> Result<Option<Stamp>, AccessError> {
        self.disk.stamp().await.map_err(of_all)
    }
}

/// The error of a stamp is none of a single resource, because without a stamp no other one can go either.
fn of_all(error: StoreError) -> AccessError {
    match AccessError::from(error) {
        AccessError::Denied(cause) => AccessError::NotWritable(cause),
        AccessError::Store(error @ (StoreError::Fault(_) | StoreError::Full { .. })) => {
            AccessError::NotWritable(error.into())
        }
        error => error,
    }
}

/// Writes stamps until the server is closed.
pub(in super::super) async fn keep_stamping(parts: Weak<Parts>) {
    loop {
        tokio::time::sleep(STAMP_INTERVAL).await;
        let Some(parts) = parts.upgrade() else { return };
        if let Err(error) = parts.stamp_changes().await {
            tracing::warn!(error = %chain(&error), "could not write the stamp of ledger and store; trying again in a minute");
        }
    }
}
