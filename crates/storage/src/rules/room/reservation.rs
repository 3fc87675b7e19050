//! What one upload holds of this server until it ends.

use std::sync::Arc;

use super::in_flight::{UploadInFlight, UploadPhase};
use super::{Capacity, NoRoom};
use cloakroom_core::lock::lock;
use cloakroom_core::resource::{Holder, ResourceId};

/// How many bytes an upload of unknown length is promised at a time.
pub(super) const STEP_BYTES: u64 = 16 << 20;

/// A place among the uploads, room on the disk, and what the upload is charged. Dropping it frees all.
pub(in crate::rules) struct Reservation {
    pub(super) capacity: Arc<Capacity>,
    pub(super) id: ResourceId,
}

impl Reservation {
    /// How many more bytes must be promised before `bytes` may be written; 0 if there are enough.
    pub(in crate::rules) fn missing_for(&self, bytes: u64) -> u64 {
        let missing = bytes.saturating_sub(self.of_upload(|upload| upload.unwritten));
        if missing == 0 { 0 } else { missing.max(STEP_BYTES) }
    }

    pub(in crate::rules) fn id(&self) -> ResourceId {
        self.id
    }

    /// How many bytes it was promised so far.
    pub(in crate::rules) fn reserved(&self) -> u64 {
        self.of_upload(|upload| upload.reserved)
    }

    pub(in crate::rules) fn holder(&self) -> Option<Holder> {
        self.of_upload(|upload| upload.holder.clone())
    }

    /// Promises `bytes` more, if the limits and the disk have room for them.
    pub(in crate::rules) fn grow(&self, bytes: u64, free_on_disk: Option<u64>) -> Result<(), NoRoom> {
        self.charge(self.reserved() + bytes, free_on_disk)?;
        let mut in_flight = lock(&self.capacity.in_flight);
        if let Err(no_room) = in_flight.check_disk(bytes, &self.capacity.limits, free_on_disk) {
            drop(in_flight);
            self.charge(self.reserved(), free_on_disk)?;
            return Err(no_room);
        }
        if let Some(upload) = in_flight.0.get_mut(&self.id) {
            upload.reserved += bytes;
            upload.unwritten += bytes;
        }
        Ok(())
    }

    /// Makes the upload count for another holder, if that holder's share allows it.
    pub(in crate::rules) fn pass_to(&self, holder: &Holder, free_on_disk: Option<u64>) -> Result<(), NoRoom> {
        let Capacity { limits, .. } = &*self.capacity;
        let before = lock(&self.capacity.in_flight).pass_to(self.id, Some(holder.clone()), limits)?;
        let charged = self.charge(self.reserved(), free_on_disk);
        if charged.is_err() {
            // The upload counted for this holder before, so its place is still there.
            let _ = lock(&self.capacity.in_flight).pass_to(self.id, before, limits);
        }
        charged
    }

    /// Charges it for `bytes`, in place of what it was charged before.
    fn charge(&self, bytes: u64, free_on_disk: Option<u64>) -> Result<(), NoRoom> {
        let charges = self.capacity.charges(self.holder().as_ref(), bytes, free_on_disk);
        Ok(self.capacity.ready.charge(self.id, &charges)?)
    }

    /// Records that `bytes` more are on the disk.
    pub(in crate::rules) fn written(&self, bytes: u64) {
        self.of_upload(|upload| upload.unwritten = upload.unwritten.saturating_sub(bytes));
    }

    /// Begins the completion; `false` if the upload was given up.
    pub(in crate::rules) fn begin_completion(&self) -> bool {
        self.of_upload(|upload| {
            let is_open = upload.phase == UploadPhase::Open;
            if is_open {
                upload.phase = UploadPhase::Completing;
            }
            is_open
        })
    }

    /// Gives the upload up: its completion has failed, or never begins.
    pub(in crate::rules) fn give_up(&self) {
        self.of_upload(|upload| upload.phase = UploadPhase::GivenUp);
    }

    pub(in crate::rules) fn is_given_up(&self) -> bool {
        self.of_upload(|upload| upload.phase == UploadPhase::GivenUp)
    }

    fn of_upload<T: Default>(&self, look: impl FnOnce(&mut UploadInFlight) -> T) -> T {
        lock(&self.capacity.in_flight).0.get_mut(&self.id).map(look).unwrap_or_default()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // Before the place: an upload that takes the place needs the room as well.
        self.capacity.ready.let_go(self.id);
        lock(&self.capacity.in_flight).0.remove(&self.id);
    }
}
