//! Ending uploads that hold what others need for longer than an upload takes.

use std::time::Duration;

use super::Capacity;
use super::account::Account;
use super::no_room::{NoRoom, Shortage};
use crate::resource::ResourceId;

/// How long the clean-up of uploads that were ended is waited for.
const CLEAN_UP: Duration = Duration::from_secs(5);

impl Capacity {
    /// Ends as many overdue uploads as make up for a shortage, the most overdue ones first, and waits until they are
    /// gone. `false` if there are too few of them, and then none is ended, or if they do not go.
    ///
    /// `beside` is the upload that has the shortage: it does not end itself.
    pub(in crate::staging) async fn end_overdue(
        &self,
        shortage: &Shortage,
        now: Duration,
        beside: ResourceId,
    ) -> bool {
        let chosen = chosen(&self.account(), shortage, now, beside);
        if chosen.is_empty() {
            return false;
        }
        for id in &chosen {
            if let Some(flight) = self.account().flights.get(id) {
                tracing::warn!(
                    resource_id = %id, received = flight.received, announced = flight.announced,
                    "ended an upload that was too slow, because another one needs its place"
                );
                flight.end.cancel();
            }
        }
        tokio::time::timeout(CLEAN_UP, self.are_over(&chosen)).await.is_ok()
    }

    async fn are_over(&self, ids: &[ResourceId]) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            // Before the look, so that nothing is missed in between.
            ended.as_mut().enable();
            if !ids.iter().any(|id| self.is_uploading(*id)) {
                return;
            }
            ended.await;
        }
    }
}

/// Which ones; none if all of them together would not be enough.
fn chosen(account: &Account, shortage: &Shortage, now: Duration, beside: ResourceId) -> Vec<ResourceId> {
    let mut overdue: Vec<_> = account
        .flights
        .iter()
        .filter(|(id, _)| **id != beside)
        .filter(|(_, flight)| {
            shortage.no_room.holder().is_none_or(|holder| flight.holder.as_ref() == Some(holder))
        })
        .filter_map(|(id, flight)| Some((flight.overdue(now)?, *id, flight.reserved)))
        .collect();
    overdue.sort_unstable_by(|one, other| other.cmp(one));
    let counts_bytes =
        matches!(shortage.no_room, NoRoom::Total { .. } | NoRoom::Disk { .. } | NoRoom::RoomOf { .. });
    let mut missing = shortage.missing;
    let mut chosen = Vec::new();
    for (_, id, reserved) in overdue {
        if missing == 0 {
            break;
        }
        missing = missing.saturating_sub(if counts_bytes { reserved } else { 1 });
        chosen.push(id);
    }
    if missing == 0 { chosen } else { Vec::new() }
}
