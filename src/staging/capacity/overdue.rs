//! Ending uploads that hold what others need for longer than an upload takes.

use std::cmp::Reverse;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Capacity;
use super::account::Account;
use super::no_room::{NoRoom, Shortage};
use crate::resource::ResourceId;
use crate::staging::StageError;

/// How long the clean-up of uploads that were ended is waited for.
const CLEAN_UP: Duration = Duration::from_secs(5);

/// What an upload that needs room gets.
#[derive(Debug)]
pub(in crate::staging) enum Room<T> {
    /// The room.
    Taken(T),
    /// Others were told to end, and make up for what is missing.
    Coming(Departures),
}

/// Uploads that were told to end because another one needs what they hold.
#[derive(Debug)]
pub(in crate::staging) struct Departures {
    of: Vec<ResourceId>,
    /// Why the upload that waits for them is refused if they stay.
    no_room: NoRoom,
    /// The upload that waits. It may be told to end, too.
    waiting: ResourceId,
    /// `None` if it has not begun.
    end: Option<CancellationToken>,
}

impl Capacity {
    /// Takes room for the upload `id`. Where there is too little, it ends as many overdue uploads as make up for that, the
    /// most overdue ones first, and none if there are too few of them.
    ///
    /// All of this is one step: an upload ends only for what is missing at that moment, and never by one that is itself
    /// told to end.
    pub(in crate::staging) fn take_room<T>(
        &self,
        id: ResourceId,
        now: Duration,
        attempt: impl FnOnce(&mut Account) -> Result<T, Shortage>,
    ) -> Result<Room<T>, StageError> {
        let mut account = self.account();
        let end = account.flights.get(&id).map(|flight| flight.end.clone());
        if end.as_ref().is_some_and(CancellationToken::is_cancelled) {
            return Err(ended(&account, id));
        }
        let shortage = match attempt(&mut account) {
            Ok(done) => return Ok(Room::Taken(done)),
            Err(shortage) => shortage,
        };
        let chosen = chosen(&account, &shortage, now, id);
        if chosen.is_empty() {
            return Err(shortage.no_room.into());
        }
        for id in &chosen {
            end_one(&account, *id);
        }
        Ok(Room::Coming(Departures { of: chosen, no_room: shortage.no_room, waiting: id, end }))
    }

    /// Waits until they are gone. An error if they stay, and at once if the upload that waits is told to end.
    pub(in crate::staging) async fn wait_for(&self, departures: Departures) -> Result<(), StageError> {
        let Departures { of, no_room, waiting, end } = departures;
        let told_to_end = async {
            match &end {
                Some(end) => end.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = told_to_end => Err(ended(&self.account(), waiting)),
            in_time = tokio::time::timeout(CLEAN_UP, self.are_over(&of)) => in_time.map_err(|_| no_room.into()),
        }
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

fn ended(account: &Account, id: ResourceId) -> StageError {
    StageError::Overdue { received: account.flights.get(&id).map_or(0, |flight| flight.received) }
}

fn end_one(account: &Account, id: ResourceId) {
    let Some(flight) = account.flights.get(&id).filter(|flight| !flight.end.is_cancelled()) else { return };
    tracing::warn!(
        resource_id = %id, received = flight.received, announced = flight.announced,
        "ended an upload that was too slow, because another one needs its place"
    );
    flight.end.cancel();
}

/// Which ones, the most overdue first; none if all of them together would not be enough. Those that were told to end
/// already come before all others, which may then stay.
fn chosen(account: &Account, shortage: &Shortage, now: Duration, beside: ResourceId) -> Vec<ResourceId> {
    let mut overdue: Vec<_> = account
        .flights
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
