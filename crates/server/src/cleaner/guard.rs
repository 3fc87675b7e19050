//! The guard against mass deletion. If more than half of the used resources seem to have lost their owners at once,
//! this is more likely a mistake than the truth.

use std::time::Duration;

/// How long such a finding must last before resources are deleted for it.
const PROBATION: Duration = Duration::from_hours(1);

/// How many ownerless resources one sweep may delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowance {
    /// All of them.
    All,
    /// None of them, for now.
    Nothing,
    /// At most this many, because the finding has lasted.
    Slice(usize),
}

/// Remembers when the finding began, by the monotonic clock. A restart begins the time anew.
#[derive(Debug, Default)]
pub(super) struct Guard {
    since: Option<Duration>,
}

/// The counts of used resources in one sweep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finding {
    /// Those that would be deleted for lack of an owner.
    pub(super) candidates: usize,
    /// Those whose owners are unknown.
    pub(super) unknown: usize,
    /// All used resources.
    pub(super) used: usize,
}

impl Finding {
    fn is_in_proportion(self, candidates: usize, most: usize) -> bool {
        candidates <= most || candidates * 2 <= self.used
    }
}

impl Guard {
    /// Whether the guard holds deletions back, or lets them through in slices.
    pub(super) fn is_holding(&self) -> bool {
        self.since.is_some()
    }

    /// Decides how many may be deleted. More than `most` deletions that are also more than half of the used resources
    /// are out of proportion.
    pub(super) fn judge(&mut self, finding: Finding, most: usize, now: Duration) -> Allowance {
        let Finding { candidates, unknown, used } = finding;
        if finding.is_in_proportion(candidates, most) {
            if self.since.is_none() {
                return Allowance::All;
            }
            // Unknown owners may still be absent, so they do not end the finding.
            if !finding.is_in_proportion(candidates + unknown, most) {
                return Allowance::Nothing;
            }
            self.since = None;
            tracing::info!(
                candidates,
                used,
                "the deletions that were held back are no longer out of proportion"
            );
            return Allowance::All;
        }
        let Some(since) = self.since else {
            self.since = Some(now);
            tracing::error!(
                candidates,
                used,
                "more than half of all used resources seem to have lost their owners at once: none of them is deleted \
                 for an hour; check that this server asks the right cluster"
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

    fn judge(guard: &mut Guard, candidates: usize, used: usize, now: Duration) -> Allowance {
        guard.judge(Finding { candidates, unknown: 0, used }, 100, now)
    }

    #[test]
    fn what_is_out_of_proportion_waits_an_hour_and_then_goes_in_slices() {
        let mut guard = Guard::default();
        assert_eq!(judge(&mut guard, 101, 201, MINUTE), Allowance::Nothing);
        assert_eq!(judge(&mut guard, 101, 201, MINUTE * 60), Allowance::Nothing);
        assert_eq!(judge(&mut guard, 101, 201, MINUTE * 61), Allowance::Slice(100));
    }

    #[test]
    fn few_deletions_or_less_than_half_are_never_held_back() {
        let mut guard = Guard::default();
        assert_eq!(judge(&mut guard, 100, 100, MINUTE), Allowance::All);
        assert_eq!(judge(&mut guard, 500, 1000, MINUTE), Allowance::All);
    }

    #[test]
    fn a_finding_that_went_away_must_last_an_hour_again() {
        let mut guard = Guard::default();
        assert_eq!(judge(&mut guard, 200, 201, MINUTE), Allowance::Nothing);
        assert_eq!(judge(&mut guard, 0, 201, MINUTE * 30), Allowance::All);
        assert_eq!(judge(&mut guard, 200, 201, MINUTE * 70), Allowance::Nothing);
        assert_eq!(judge(&mut guard, 200, 201, MINUTE * 131), Allowance::Slice(100));
    }

    #[test]
    fn owners_that_become_unknown_neither_end_the_hour_nor_let_anything_go() {
        let mut guard = Guard::default();
        assert_eq!(judge(&mut guard, 200, 201, MINUTE), Allowance::Nothing);
        let unknown = Finding { candidates: 10, unknown: 190, used: 201 };
        assert_eq!(guard.judge(unknown, 100, MINUTE * 30), Allowance::Nothing);
        assert_eq!(judge(&mut guard, 200, 201, MINUTE * 61), Allowance::Slice(100));
    }
}
