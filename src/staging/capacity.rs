//! Room for bundles: what is stored, what was promised to uploads in flight, and what must stay free.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::spark::format_size;

/// An upload of unknown length is promised this much at a time.
const STEP_BYTES: u64 = 16 << 20;

/// How much room there is. All in bytes.
#[derive(Debug, Clone, Copy)]
pub struct CapacityLimits {
    /// Of one bundle.
    pub max_resource_size: u64,
    /// Of all bundles together; `None` is no limit.
    pub max_total_size: Option<u64>,
    /// Of the disk, to leave free.
    pub min_free_space: u64,
}

/// There is no room for a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// The sum of all bundles would pass the limit.
    #[error(
        "no room for this bundle: everything that is staged together may have {} (--max-total-size), and {} are \
         taken by others; delete what is no longer needed, or try again when it has expired", format_size(*.limit), format_size(*.taken)
    )]
    Total {
        /// The limit.
        limit: u64,
        /// What is stored, or promised to other uploads.
        taken: u64,
    },
    /// The disk would have less free space than it must keep.
    #[error(
        "no room for this bundle: the server's disk has {} free and must keep {} (--min-free-space); delete what \
         is no longer needed, or give the server a larger volume", format_size(*.free), format_size(*.keep)
    )]
    Disk {
        /// Free for this upload: what the disk has, less what other uploads were promised.
        free: u64,
        /// To be kept.
        keep: u64,
    },
}

impl NoRoom {
    /// Without what the upload that hears of it has itself.
    fn beside(self, own: u64) -> Self {
        match self {
            Self::Total { limit, taken } => Self::Total { limit, taken: taken.saturating_sub(own) },
            Self::Disk { .. } => self,
        }
    }
}

/// The account of the room.
#[derive(Debug)]
pub(super) struct Capacity {
    limits: CapacityLimits,
    account: Mutex<Account>,
}

#[derive(Debug, Default)]
struct Account {
    /// Bytes of acknowledged bundles.
    stored: u64,
    /// Bytes promised to uploads in flight, written or not.
    reserved: u64,
    /// Bytes of those that are not on the disk yet.
    unwritten: u64,
    /// Changes that the ledger may know and `stored` does not, or the other way round.
    settling: usize,
    /// How many of them there have been.
    changes: u64,
}

impl Capacity {
    pub(super) fn new(limits: CapacityLimits, stored: u64) -> Self {
        Self { limits, account: Mutex::new(Account { stored, ..Account::default() }) }
    }

    pub(super) fn max_resource_size(&self) -> u64 {
        self.limits.max_resource_size
    }

    /// Bytes of acknowledged bundles.
    pub(super) fn stored(&self) -> u64 {
        self.account().stored
    }

    /// Begins a reservation of nothing.
    pub(super) fn open(self: &Arc<Self>) -> Reservation {
        Reservation { capacity: Arc::clone(self), reserved: 0, unwritten: 0 }
    }

    /// Acknowledged bytes were removed.
    pub(super) fn removed(&self, bytes: u64) {
        let mut account = self.account();
        account.stored = account.stored.saturating_sub(bytes);
    }

    /// To be held from before the ledger changes what is stored until the account has followed.
    pub(super) fn settling(self: &Arc<Self>) -> Settling {
        let mut account = self.account();
        account.settling += 1;
        account.changes += 1;
        Settling(Arc::clone(self))
    }

    /// Notes which changes there have been, before the ledger is asked for the truth; `None` while one is going on.
    pub(super) fn quiet(&self) -> Option<Quiet> {
        let account = self.account();
        (account.settling == 0).then_some(Quiet { changes: account.changes })
    }

    /// Takes over the truth, unless something has changed meanwhile: an answer of the ledger that got lost leaves
    /// the account wrong.
    pub(super) fn correct(&self, quiet: Quiet, stored: u64) {
        let mut account = self.account();
        if account.changes == quiet.changes && account.stored != stored {
            tracing::warn!(counted = account.stored, stored, "the account of the room was wrong; corrected");
            account.stored = stored;
        }
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reserve(&self, bytes: u64, free_on_disk: Option<u64>) -> Result<(), NoRoom> {
        let mut account = self.account();
        let taken = account.stored.saturating_add(account.reserved);
        if let Some(limit) = self.limits.max_total_size
            && taken.saturating_add(bytes) > limit
        {
            return Err(NoRoom::Total { limit, taken });
        }
        if let Some(on_disk) = free_on_disk {
            let (free, keep) = (on_disk.saturating_sub(account.unwritten), self.limits.min_free_space);
            if free.saturating_sub(bytes) < keep {
                return Err(NoRoom::Disk { free, keep });
            }
        }
        account.reserved += bytes;
        account.unwritten += bytes;
        Ok(())
    }
}

/// A moment at which the account was settled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quiet {
    changes: u64,
}

/// A change that ledger and account make one after the other, until it is dropped.
#[derive(Debug)]
pub(super) struct Settling(Arc<Capacity>);

impl Drop for Settling {
    fn drop(&mut self) {
        self.0.account().settling -= 1;
    }
}

/// Room promised to one upload; dropped, it is free again.
#[derive(Debug)]
pub(super) struct Reservation {
    capacity: Arc<Capacity>,
    reserved: u64,
    unwritten: u64,
}

impl Reservation {
    /// How much more must be reserved before `bytes` may be written; 0 if there is enough.
    pub(super) fn missing_for(&self, bytes: u64) -> u64 {
        let missing = bytes.saturating_sub(self.unwritten);
        if missing == 0 { 0 } else { missing.max(STEP_BYTES) }
    }

    /// Adds `bytes` to the promise, given how much the disk has.
    pub(super) fn grow(&mut self, bytes: u64, free_on_disk: Option<u64>) -> Result<(), NoRoom> {
        self.capacity.reserve(bytes, free_on_disk).map_err(|no_room| no_room.beside(self.reserved))?;
        self.reserved += bytes;
        self.unwritten += bytes;
        Ok(())
    }

    /// `bytes` of it are on the disk now.
    pub(super) fn written(&mut self, bytes: u64) {
        let bytes = bytes.min(self.unwritten);
        self.unwritten -= bytes;
        let mut account = self.capacity.account();
        account.unwritten = account.unwritten.saturating_sub(bytes);
    }

    /// The upload is acknowledged with `bytes`.
    pub(super) fn stored(self, bytes: u64) {
        self.capacity.account().stored += bytes;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut account = self.capacity.account();
        account.reserved = account.reserved.saturating_sub(self.reserved);
        account.unwritten = account.unwritten.saturating_sub(self.unwritten);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacity(max_total_size: Option<u64>, min_free_space: u64) -> Arc<Capacity> {
        let limits = CapacityLimits { max_resource_size: u64::MAX, max_total_size, min_free_space };
        Arc::new(Capacity::new(limits, 10))
    }

    #[test]
    fn what_is_stored_and_what_is_promised_count_together() {
        let capacity = capacity(Some(100), 0);
        let mut first = capacity.open();
        first.grow(60, None).unwrap();
        assert_eq!(capacity.open().grow(31, None), Err(NoRoom::Total { limit: 100, taken: 70 }));
        capacity.open().grow(30, None).unwrap();
        first.stored(50);
        capacity.open().grow(40, None).unwrap();
        capacity.removed(50);
        capacity.open().grow(90, None).unwrap();
    }

    #[test]
    fn bytes_that_are_promised_but_not_written_are_not_promised_again() {
        let capacity = capacity(None, 100);
        let mut first = capacity.open();
        first.grow(500, Some(1000)).unwrap();
        assert_eq!(capacity.open().grow(401, Some(1000)), Err(NoRoom::Disk { free: 500, keep: 100 }));
        first.written(500);
        capacity.open().grow(401, Some(501)).unwrap();
        drop(first);
    }

    #[test]
    fn the_truth_is_taken_over_only_if_nothing_changed_meanwhile() {
        let capacity = capacity(Some(100), 0);
        let before = capacity.quiet().unwrap();
        let settling = capacity.settling();
        assert!(capacity.quiet().is_none());
        capacity.correct(before, 90);
        drop(settling);
        capacity.correct(before, 90);
        capacity.open().grow(90, None).unwrap();
        capacity.correct(capacity.quiet().unwrap(), 90);
        assert_eq!(capacity.open().grow(11, None), Err(NoRoom::Total { limit: 100, taken: 90 }));
    }

    #[test]
    fn an_upload_of_unknown_length_reserves_in_steps() {
        let capacity = capacity(None, 0);
        let mut reservation = capacity.open();
        assert_eq!(reservation.missing_for(1), STEP_BYTES);
        reservation.grow(STEP_BYTES, None).unwrap();
        assert_eq!(reservation.missing_for(STEP_BYTES), 0);
        reservation.written(STEP_BYTES - 1);
        assert_eq!(reservation.missing_for(2), STEP_BYTES);
    }
}
