//! The guard against mass deletion: when more than half of everything seems to have lost its owner at once, a mistake
//! is more likely than a fact.

use std::time::Duration;

/// How long such a finding must last before it is believed.
const PROBATION: Duration = Duration::from_hours(1);

/// What the guard lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowance {
    /// Everything.
    All,
    /// Nothing for now.
    Nothing,
    /// The finding has lasted: so many in this sweep.
    Slice(usize),
}

/// Remembers since when the finding lasts, by the monotonic clock. After a restart it must last anew.
#[derive(Debug, Default)]
pub(super) struct Guard {
    since: Option<Duration>,
}

impl Guard {
    /// Judges a sweep that would delete `candidates` of `used` resources in use.
    pub(super) fn judge(&mut self, candidates: usize, used: usize, most: usize, now: Duration) -> Allowance {
        if candidates <= most || candidates * 2 <= used {
            if self.since.take().is_some() {
                tracing::info!(
                    candidates,
                    used,
                    "the deletions that were held back are no longer out of proportion"
                );
            }
            return Allowance::All;
        }
        let Some(since) = self.since else {
            self.since = Some(now);
            tracing::error!(
                candidates,
                used,
                "more than half of all used resources seem to have lost their owners at once: nothing of them goes for \
                 an hour; check that this server asks the right cluster"
            );
            return Allowance::Nothing;
        };
        if now.saturating_sub(since) < PROBATION { Allowance::Nothing } else { Allowance::Slice(most) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn what_is_out_of_proportion_waits_an_hour_and_then_goes_in_slices() {
        let mut guard = Guard::default();
        assert_eq!(guard.judge(101, 201, 100, MINUTE), Allowance::Nothing);
        assert_eq!(guard.judge(101, 201, 100, MINUTE * 60), Allowance::Nothing);
        assert_eq!(guard.judge(101, 201, 100, MINUTE * 61), Allowance::Slice(100));
    }

    #[test]
    fn few_or_less_than_half_are_never_held_back() {
        let mut guard = Guard::default();
        assert_eq!(guard.judge(100, 100, 100, MINUTE), Allowance::All);
        assert_eq!(guard.judge(500, 1000, 100, MINUTE), Allowance::All);
    }

    #[test]
    fn a_finding_that_went_away_must_last_an_hour_again() {
        let mut guard = Guard::default();
        assert_eq!(guard.judge(200, 201, 100, MINUTE), Allowance::Nothing);
        assert_eq!(guard.judge(0, 201, 100, MINUTE * 30), Allowance::All);
        assert_eq!(guard.judge(200, 201, 100, MINUTE * 70), Allowance::Nothing);
        assert_eq!(guard.judge(200, 201, 100, MINUTE * 131), Allowance::Slice(100));
    }
}
