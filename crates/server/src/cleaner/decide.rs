//! Decides whether a resource is deleted: a pure function of its settings, of what was seen of its owner, and of the
//! time.

use std::time::Duration;

use jiff::Timestamp;

use crate::owners::Presence;
use cloakroom_core::clock::Readings;
use cloakroom_core::resource::{DeletionReason, KeepReason, Life};

#[cfg(test)]
mod tests;

/// The settings of the admin that limit how long resources stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The largest age of any resource; `None` is no limit.
    pub max_age: Option<Duration>,
    /// The age at which an unused resource is deleted even if it is unknown whether its owner exists.
    pub max_unused: Duration,
    /// How long an owner must be absent before its resource is deleted.
    pub orphan_grace: Duration,
    /// How long finished pods count as present; `None` is as long as they exist.
    pub finished_owner_retention: Option<Duration>,
    /// How long bytes without a row stay after they were found.
    pub stray_age: Duration,
    /// The most deletions in one sweep of what the guard against mass deletion has held back before.
    pub max_deletions_per_sweep: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_age: None,
            max_unused: Duration::from_hours(7 * 24),
            orphan_grace: Duration::from_mins(1),
            finished_owner_retention: Some(Duration::from_hours(24)),
            stray_age: Duration::from_hours(7 * 24),
            max_deletions_per_sweep: 100,
        }
    }
}

/// What a sweep does with a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It stays.
    Keep(Kept),
    Delete(DeletionReason),
}

/// Why a resource stays, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// The reason of this moment.
    pub why: KeepReason,
    /// When time alone ends it, if nothing else changes; `None` if time alone does not.
    pub until: Option<Timestamp>,
}

/// What is known of an owner when a resource is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Knowledge {
    /// Whether the owner exists.
    pub presence: Presence,
    /// How long the server has not been able to tell, by the monotonic clock. `None` if it can tell, or if no server on
    /// this ledger ever could. Of an owner without objects: how long this server has run.
    pub unknown_for: Option<Duration>,
}

/// Decides what becomes of a resource. `now` holds all times that the clock may mean; see [`Readings`].
pub fn decide(life: &Life, owner: Knowledge, now: &Readings, policy: &Policy) -> Decision {
    if let Some(ending) = life.ended_by_age(policy.max_age, now) {
        return Decision::Delete(ending.reason);
    }
    let rule = rule(life, owner, policy);
    if rule.deadline.is_reached(now) {
        return Decision::Delete(rule.reason);
    }
    let by_age = [life.lifetime.ttl, policy.max_age].map(|time| Deadline::after(Some(life.created_at), time));
    let until = by_age.into_iter().chain([rule.deadline]).filter_map(|deadline| deadline.at(now)).min();
    Decision::Keep(Kept { why: rule.why, until })
}

/// The rule for a resource: why it stays, until when, and the reason for its deletion after that.
struct Rule {
    why: KeepReason,
    deadline: Deadline,
    reason: DeletionReason,
}

/// The rule for a resource of whose owner this is known.
fn rule(life: &Life, owner: Knowledge, policy: &Policy) -> Rule {
    let Life { created_at, lifetime, last_used_at, owner_history } = *life;
    let grace = Some(policy.orphan_grace);
    match owner.presence {
        Presence::Present => Rule::kept(KeepReason::OwnerPresent),
        Presence::NoObjects => without_objects(life, owner.unknown_for.unwrap_or_default(), policy),
        Presence::NotAsked if life.is_used() => Rule::kept(KeepReason::OwnersNotAsked),
        Presence::Unknown(unknown) if life.is_used() => Rule::kept(KeepReason::OwnerUnknown(unknown)),
        Presence::Unknown(unknown) => {
            let time = policy.max_unused.max(lifetime.unused_timeout);
            let left = owner.unknown_for.map_or(Duration::ZERO, |passed| time.saturating_sub(passed));
            Rule {
                why: KeepReason::OwnerUnknown(unknown),
                deadline: Deadline::after(Some(created_at), Some(time)).and_in(left),
                reason: DeletionReason::MaxUnusedReached,
            }
        }
        // `finished_since` and `absent_since` are `None` at the first observation. So one observation alone never
        // deletes.
        Presence::Finished => Rule {
            why: KeepReason::OwnerFinished,
            deadline: finished(life, policy),
            reason: DeletionReason::OwnerFinished,
        },
        Presence::NotAsked => Rule {
            why: KeepReason::NotUsedYet,
            deadline: Deadline::after(Some(created_at), Some(lifetime.unused_timeout)),
            reason: DeletionReason::Unused,
        },
        // The grace covers a driver that is replaced by another one with the same name.
        Presence::Absent if !life.is_used() => Rule {
            why: KeepReason::NotUsedYet,
            deadline: Deadline::after(Some(created_at), Some(lifetime.unused_timeout))
                .and(Deadline::after(owner_history.absent_since, grace)),
            reason: DeletionReason::Unused,
        },
        Presence::Absent if owner_history.seen_at.is_some() => Rule {
            why: KeepReason::OwnerGone,
            deadline: Deadline::after(owner_history.absent_since, grace)
                .and(Deadline::after(last_used_at, grace)),
            reason: DeletionReason::Orphaned,
        },
        Presence::Absent => Rule {
            why: KeepReason::OwnerNotSeenYet,
            deadline: Deadline::after(last_used_at, Some(lifetime.unused_timeout))
                .and(Deadline::after(owner_history.absent_since, grace)),
            reason: DeletionReason::OwnerNeverSeen,
        },
    }
}

/// The rule for a resource whose owner has no objects. Who reads it may have waited for a server that was away, so the time
/// since the last read counts only while this one has `run_for`.
fn without_objects(life: &Life, run_for: Duration, policy: &Policy) -> Rule {
    let Life { created_at, lifetime, last_used_at, .. } = *life;
    match last_used_at {
        None => Rule {
            why: KeepReason::NotReadYet,
            deadline: Deadline::after(Some(created_at), Some(policy.max_unused.max(lifetime.unused_timeout))),
            reason: DeletionReason::MaxUnusedReached,
        },
        Some(_) => Rule {
            why: KeepReason::ReadRecently,
            deadline: Deadline::after(last_used_at, Some(lifetime.unused_timeout))
                .and_in(lifetime.unused_timeout.saturating_sub(run_for)),
            reason: DeletionReason::NotReadAgain,
        },
    }
}

/// When finished pods no longer count as present. Pods that had finished before may belong to an earlier run with the
/// same labels. So an unused resource keeps its unused timeout in any case.
fn finished(life: &Life, policy: &Policy) -> Deadline {
    let retention = policy.finished_owner_retention.map(|time| time.max(policy.orphan_grace));
    let as_any_other = match life.last_used_at {
        Some(last_used_at) => Deadline::after(Some(last_used_at), Some(policy.orphan_grace)),
        None => Deadline::after(Some(life.created_at), Some(life.lifetime.unused_timeout)),
    };
    Deadline::after(life.owner_history.finished_since, retention).and(as_any_other)
}

impl Rule {
    fn kept(why: KeepReason) -> Self {
        Self { why, deadline: Deadline::after(None, None), reason: DeletionReason::Orphaned }
    }
}

/// Whether a deletion for this reason depends on what is known of the owner. If so, a fresh read comes first.
pub fn needs_knowledge(reason: DeletionReason, presence: Presence) -> bool {
    if presence == Presence::NoObjects {
        return false;
    }
    match reason {
        // The last one: nothing is known of the owner, but perhaps a fresh read knows more.
        DeletionReason::Orphaned
        | DeletionReason::OwnerFinished
        | DeletionReason::OwnerNeverSeen
        | DeletionReason::MaxUnusedReached => true,
        DeletionReason::Unused => presence != Presence::NotAsked,
        DeletionReason::Released
        | DeletionReason::TtlReached
        | DeletionReason::MaxAgeReached
        | DeletionReason::NotReadAgain
        | DeletionReason::Removed => false,
    }
}

/// When time alone ends the life of a resource.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    /// Two moments and the time that must pass since each. `None` is never reached; a single moment is stored twice.
    moments: Option<[(Timestamp, Duration); 2]>,
    /// What must pass from now on in any case.
    left: Duration,
}

impl Deadline {
    fn after(since: Option<Timestamp>, time: Option<Duration>) -> Self {
        Self { moments: since.zip(time).map(|one| [one, one]), left: Duration::ZERO }
    }

    fn and(self, other: Self) -> Self {
        let moments = self.moments.zip(other.moments).map(|([one, _], [other, _])| [one, other]);
        Self { moments, left: self.left.max(other.left) }
    }

    fn and_in(self, left: Duration) -> Self {
        Self { left, ..self }
    }

    fn is_reached(self, now: &Readings) -> bool {
        let is_past = |moments: [(Timestamp, Duration); 2]| {
            moments.iter().all(|(since, time)| now.passed_since(*since, *time))
        };
        self.left.is_zero() && self.moments.is_some_and(is_past)
    }

    fn at(self, now: &Readings) -> Option<Timestamp> {
        let from_now = (!self.left.is_zero()).then(|| (now.wall(), self.left));
        let moments = self.moments?.into_iter().chain(from_now);
        moments.map(|(since, time)| since.checked_add(time).unwrap_or(Timestamp::MAX)).max()
    }
}
