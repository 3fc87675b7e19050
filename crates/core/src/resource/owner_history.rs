//! What the server remembers of an owner between two sweeps.

use jiff::Timestamp;

/// When the owner was seen, and when it was missed. Each is the time of a sweep that looked for the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnerHistory {
    /// When it was first seen since the upload; `None` if never.
    pub seen_at: Option<Timestamp>,
    /// Since when it has been missing. Becomes `None` when the owner is there, or when its presence is unknown.
    pub absent_since: Option<Timestamp>,
    /// Since when all of its pods have been finished; `None` if one of them is not.
    pub finished_since: Option<Timestamp>,
}

impl OwnerHistory {
    /// Notes that the owner is there.
    pub fn present(self, now: Timestamp) -> Self {
        Self { seen_at: self.seen_at.or(Some(now)), absent_since: None, finished_since: None }
    }

    /// Notes that the owner's pods are there, and all of them have finished.
    pub fn finished(self, now: Timestamp) -> Self {
        Self { finished_since: self.finished_since.or(Some(now)), ..self.present(now) }
    }

    /// Notes that the owner is not there.
    pub fn absent(self, now: Timestamp) -> Self {
        Self { absent_since: self.absent_since.or(Some(now)), finished_since: None, ..self }
    }

    /// Notes that it is not known whether the owner is there. If it is missed later, its absence counts from that time.
    /// Finished pods stay finished.
    pub fn unknown(self) -> Self {
        Self { absent_since: None, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn an_absence_lasts_from_the_first_missed_sweep_until_seen_or_unknown() {
        let seen = OwnerHistory::default().present(at(1));
        let absent = seen.absent(at(2)).absent(at(3));
        assert_eq!((absent.seen_at, absent.absent_since), (Some(at(1)), Some(at(2))));
        assert_eq!(absent.present(at(4)), seen);
        assert_eq!(absent.unknown().absent(at(5)).absent_since, Some(at(5)));
    }

    #[test]
    fn an_owner_stays_finished_until_a_pod_runs_again_or_the_owner_is_gone() {
        let finished = OwnerHistory::default().finished(at(1)).unknown().finished(at(5));
        assert_eq!((finished.seen_at, finished.finished_since), (Some(at(1)), Some(at(1))));
        assert_eq!(finished.present(at(6)).finished_since, None);
        let gone = finished.absent(at(7));
        assert_eq!((gone.finished_since, gone.absent_since), (None, Some(at(7))));
    }
}
