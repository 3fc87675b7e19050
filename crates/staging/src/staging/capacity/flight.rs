//! One upload in flight: what it holds, and whether it has used up its time.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Beginning;
use cloakroom_core::resource::Holder;

/// The time of an upload: this long, and one second more for each [`SLOWEST_RATE`] bytes.
const FIRST_TIME: Duration = Duration::from_mins(5);
const SLOWEST_RATE: u64 = 1 << 20;

/// What an upload holds.
#[derive(Debug)]
pub(super) struct Flight {
    /// For whom it counts; `None` if there are no shares.
    pub(super) holder: Option<Holder>,
    /// Bytes that are promised to it, written or not.
    pub(super) reserved: u64,
    /// Those of the promised bytes that are not on the disk yet.
    pub(super) unwritten: u64,
    /// Its announced length in bytes; `None` if it announced none.
    pub(super) announced: Option<u64>,
    pub(super) received: u64,
    /// When it began, by the monotonic clock.
    pub(super) began: Duration,
    /// Cancelled when another upload needs what this one holds.
    pub(super) end: CancellationToken,
}

impl Flight {
    pub(super) fn new(beginning: Beginning, reserved: u64) -> Self {
        let Beginning { holder, announced, at, .. } = beginning;
        let end = CancellationToken::new();
        Self { holder, reserved, unwritten: reserved, announced, received: 0, began: at, end }
    }

    /// How long it has exceeded its time; `None` if it has not.
    pub(super) fn overdue(&self, now: Duration) -> Option<Duration> {
        let length = self.announced.unwrap_or(self.received);
        let allowed = FIRST_TIME + Duration::from_secs(length / SLOWEST_RATE);
        now.checked_sub(self.began + allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloakroom_core::resource::ResourceId;

    #[test]
    fn an_upload_has_five_minutes_and_a_second_for_each_mebibyte() {
        let flight = |announced, received| {
            let id = ResourceId::generate(&mut rand::rng());
            let beginning = Beginning { id, holder: None, announced, at: Duration::from_secs(1000) };
            Flight { received, ..Flight::new(beginning, 0) }
        };
        let seconds = Duration::from_secs;
        let of_20_gib = flight(Some(20 << 30), 5);
        assert_eq!(of_20_gib.overdue(seconds(1300 + 20_479)), None);
        assert_eq!(of_20_gib.overdue(seconds(1300 + 20_490)), Some(seconds(10)));
        assert_eq!(flight(Some(0), 0).overdue(seconds(1299)), None);
        assert_eq!(flight(None, 3 << 20).overdue(seconds(1302)), None);
        assert_eq!(flight(None, 3 << 20).overdue(seconds(1303)), Some(Duration::ZERO));
        assert_eq!(flight(None, 0).overdue(Duration::ZERO), None);
    }
}
