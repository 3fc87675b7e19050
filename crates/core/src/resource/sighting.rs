//! What is remembered of an owner between two sweeps.

use jiff::Timestamp;

/// When the owner was seen, and when it was missed. Each is the time of a sweep that looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sighting {
    /// First seen since the upload.
    pub seen_at: Option<Timestamp>,
    /// Missing since then, without a break in what was known.
    pub absent_since: Option<Timestamp>,
    /// All of its pods finished since then.
    pub finished_since: Option<Timestamp>,
}

impl Sighting {
    /// The owner is there.
    pub fn present(self, now: Timestamp) -> Self {
        Self { seen_at: self.seen_at.or(Some(now)), absent_since: None, finished_since: None }
    }

    /// The owner's pods are there, and finished.
    pub fn finished(self, now: Timestamp) -> Self {
        Self { finished_since: self.finished_since.or(Some(now)), ..self.present(now) }
    }

    /// The owner is not there.
    pub fn absent(self, now: Timestamp) -> Self {
        Self { absent_since: self.absent_since.or(Some(now)), finished_since: None, ..self }
    }

    /// Nobody knows: how long the owner has been missing counts anew from the next time that it is missed. What has
    /// finished stays finished.
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
    fn an_absence_counts_from_its_first_observation_and_ends_with_the_owner_or_with_the_knowledge() {
        let seen = Sighting::default().present(at(1));
        let absent = seen.absent(at(2)).absent(at(3));
        assert_eq!((absent.seen_at, absent.absent_since), (Some(at(1)), Some(at(2))));
        assert_eq!(absent.present(at(4)), seen);
        assert_eq!(absent.unknown().absent(at(5)).absent_since, Some(at(5)));
    }

    #[test]
    fn what_has_finished_stays_finished_until_something_is_at_work_again_or_it_is_gone() {
        let finished = Sighting::default().finished(at(1)).unknown().finished(at(5));
        assert_eq!((finished.seen_at, finished.finished_since), (Some(at(1)), Some(at(1))));
        assert_eq!(finished.present(at(6)).finished_since, None);
        let gone = finished.absent(at(7));
        assert_eq!((gone.finished_since, gone.absent_since), (None, Some(at(7))));
    }
}
