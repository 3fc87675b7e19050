//! The uploads in flight at this server: whether there is a place for another one, and how much they may still write.

use std::collections::{HashMap, HashSet};

use super::{Beginning, NoRoom};
use crate::rules::Limits;
use cloakroom_core::resource::{Holder, ResourceId};

/// How far an upload is. It leaves [`UploadPhase::Open`] once: an upload that is given up is never completed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum UploadPhase {
    #[default]
    Open,
    Completing,
    GivenUp,
}

/// What an upload holds.
#[derive(Debug)]
pub(super) struct UploadInFlight {
    /// For whom it counts; `None` if there are no shares.
    pub(super) holder: Option<Holder>,
    /// Bytes that are promised to it, written or not.
    pub(super) reserved: u64,
    /// Those of the promised bytes that are not on the disk yet.
    pub(super) unwritten: u64,
    pub(super) phase: UploadPhase,
}

/// The uploads, by the id of their resource.
#[derive(Debug, Default)]
pub(super) struct UploadsInFlight(pub(super) HashMap<ResourceId, UploadInFlight>);

impl UploadsInFlight {
    /// Takes a place, and room on the disk.
    pub(super) fn begin(
        &mut self,
        beginning: Beginning,
        reserved: u64,
        limits: &Limits,
        free_on_disk: Option<u64>,
    ) -> Result<(), NoRoom> {
        self.check_places(beginning.holder.as_ref(), limits)?;
        self.check_disk(reserved, limits, free_on_disk)?;
        let Beginning { id, holder, .. } = beginning;
        self.0.insert(id, UploadInFlight { holder, reserved, unwritten: reserved, phase: UploadPhase::Open });
        Ok(())
    }

    /// Checks the share first, because a used-up share concerns only its holder.
    fn check_places(&self, holder: Option<&Holder>, limits: &Limits) -> Result<(), NoRoom> {
        let most = limits.max_concurrent_uploads as u64;
        if let (Some(share), Some(holder)) = (limits.share, holder) {
            let limit = share.of(most);
            let no_room = || NoRoom::UploadsOf { holder: holder.clone(), limit };
            bound(self.of(holder), 1, limit, no_room)?;
        }
        bound(self.0.len() as u64, 1, most, || NoRoom::Uploads)
    }

    /// Checks whether the disk has room for `bytes` besides what is promised already.
    pub(super) fn check_disk(
        &self,
        bytes: u64,
        limits: &Limits,
        free_on_disk: Option<u64>,
    ) -> Result<(), NoRoom> {
        let Some(on_disk) = free_on_disk else { return Ok(()) };
        let (free, keep) = (on_disk.saturating_sub(self.unwritten()), limits.capacity.min_free_space);
        bound(keep, bytes, free, || NoRoom::Disk { free, keep })
    }

    /// Makes an upload count for `holder`, if the holder's share of the places allows it. Returns the holder for whom
    /// it counted before.
    pub(super) fn pass_to(
        &mut self,
        id: ResourceId,
        holder: Option<Holder>,
        limits: &Limits,
    ) -> Result<Option<Holder>, NoRoom> {
        let Some(mut upload) = self.0.remove(&id) else { return Ok(None) };
        let checked = match (limits.share, &holder) {
            (Some(_), Some(_)) if upload.holder != holder => self.check_places(holder.as_ref(), limits),
            _ => Ok(()),
        };
        let before = upload.holder.clone();
        if checked.is_ok() {
            upload.holder = holder;
        }
        self.0.insert(id, upload);
        checked.map(|()| before)
    }

    /// Bytes that are promised and not on the disk yet.
    pub(super) fn unwritten(&self) -> u64 {
        self.0.values().map(|upload| upload.unwritten).sum()
    }

    /// The largest number of uploads that one holder has.
    pub(super) fn most(&self) -> u64 {
        let holders: HashSet<&Holder> = self.0.values().filter_map(|upload| upload.holder.as_ref()).collect();
        holders.into_iter().map(|holder| self.of(holder)).max().unwrap_or(0)
    }

    fn of(&self, holder: &Holder) -> u64 {
        self.0.values().filter(|upload| upload.holder.as_ref() == Some(holder)).count() as u64
    }
}

/// Checks whether `more` fits beside what is taken.
fn bound(taken: u64, more: u64, limit: u64, no_room: impl FnOnce() -> NoRoom) -> Result<(), NoRoom> {
    if taken.saturating_add(more) <= limit { Ok(()) } else { Err(no_room()) }
}
