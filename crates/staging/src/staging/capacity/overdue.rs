//! Ends uploads that exceed their time while they hold what another upload needs.

use std::cmp::Reverse;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Capacity;
use super::flights::Flights;
use super::no_room::{NoRoom, Shortage};
use crate::staging::UploadError;
use cloakroom_core::resource::ResourceId;

/// How long an upload waits until the ended ones are cleaned up.
const CLEAN_UP: Duration = Duration::from_secs(5);

/// Uploads that were told to end, because another one needs what they hold.
#[derive(Debug)]
pub(in crate::staging) struct Departures {
    of: Vec<ResourceId>,
    /// The reason to refuse the waiting upload if they stay.
    no_room: NoRoom,
    /// The upload that waits. It may be told to end, too.
    waiting: ResourceId,
    /// Tells the waiting upload to end; `None` if it has not begun.
    end: Option<CancellationToken>,
}

impl Capacity {
    /// Tells as many overdue uploads to end as the shortage of the upload `id` needs, the most overdue ones first. If
    /// there are too few of them, none is told, and this returns an error.
    ///
    /// This is one step under the lock, so an upload that is itself told to end never ends another one.
    pub(in crate::staging) fn end_overdue(
        &self,
        id: ResourceId,
        now: Duration,
        shortage: Shortage,
    ) -> Result<Departures, UploadError> {
        let flights = self.flights();
        let end = flights.0.get(&id).map(|flight| flight.end.clone());
        if end.as_ref().is_some_and(CancellationToken::is_cancelled) {
            return Err(ended(&flights, id));
        }
        let chosen = chosen(&flights, &shortage, now, id);
        if chosen.is_empty() {
            return Err(shortage.no_room.into());
        }
        for id in &chosen {
            end_one(&flights, *id);
        }
        Ok(Departures { of: chosen, no_room: shortage.no_room, waiting: id, end })
    }

    /// Waits until they are gone. Returns an error if they stay. If the waiting upload is told to end, it returns an
    /// error at once.
    pub(in crate::staging) async fn wait_for(&self, departures: Departures) -> Result<(), UploadError> {
        let Departures { of, no_room, waiting, end } = departures;
        let told_to_end = async {
            match &end {
                Some(end) => end.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = told_to_end => Err(ended(&self.flights(), waiting)),
            in_time = tokio::time::timeout(CLEAN_UP, self.are_over(&of)) => in_time.map_err(|_| no_room.into()),
        }
    }

    async fn are_over(&self, ids: &[ResourceId]) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            // Listening begins before the check, so that no end in between is missed.
            ended.as_mut().enable();
            if !ids.iter().any(|id| self.is_uploading(*id)) {
                return;
            }
            ended.await;
        }
    }
}

fn ended(flights: &Flights, id: ResourceId) -> UploadError {
    UploadError::Overdue { received: flights.0.get(&id).map_or(0, |flight| flight.received) }
}

fn end_one(flights: &Flights, id: ResourceId) {
    let Some(flight) = flights.0.get(&id).filter(|flight| !flight.end.is_cancelled()) else { return };
    tracing::warn!(
        resource_id = %id, received = flight.received, announced = flight.announced,
        "ended an upload that was too slow, because another one needs its place"
    );
    flight.end.cancel();
}

/// The uploads to end, the most overdue first; none if all overdue ones together are not enough. Uploads that were told
/// to end before come first, because then others may stay.
fn chosen(flights: &Flights, shortage: &Shortage, now: Duration, beside: ResourceId) -> Vec<ResourceId> {
    let mut overdue: Vec<_> = flights
        .0
        .iter()
        .filter(|(id, _)| **id != beside)
        .filter(|(_, flight)| {
            shortage.no_room.holder().is_none_or(|holder| flight.holder.as_ref() == Some(holder))
        })
        .filter_map(|(id, flight)| {
            Some((flight.end.is_cancelled(), flight.overdue(now)?, *id, flight.reserved))
        })
        .collect();
    overdue.sort_unstable_by_key(|one| Reverse(*one));
    let counts_bytes =
        matches!(shortage.no_room, NoRoom::Total { .. } | NoRoom::Disk { .. } | NoRoom::RoomOf { .. });
    let mut missing = shortage.missing;
    let mut chosen = Vec::new();
    for (_, _, id, reserved) in overdue {
        if missing == 0 {
            break;
        }
        missing = missing.saturating_sub(if counts_bytes { reserved } else { 1 });
        chosen.push(id);
    }
    if missing == 0 { chosen } else { Vec::new() }
}
