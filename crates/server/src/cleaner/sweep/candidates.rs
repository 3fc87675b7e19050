//! The way from a candidate to its deletion: a fresh read, the present row, and the deletion.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use rand::seq::SliceRandom as _;
use tokio::time::{Instant, timeout_at};

use super::super::identity::believed;
use super::super::{Decision, KeepReason, decide};
use super::{Now, Sweeper, Swept};
use crate::owners::{Presence, Unknown};
use cloakroom_core::clock::Readings;
use cloakroom_core::resource::{DeletionReason, Owner, Ready, Resource, ResourceId};
use cloakroom_core::text::chain;
use cloakroom_storage::Authority;
use cloakroom_storage::ledger::LedgerError;
use cloakroom_storage::ready::Listed;
use cloakroom_storage::{AccessError, DELETIONS_AT_ONCE};

/// Fresh reads at once.
const READS_AT_ONCE: usize = 8;

/// After this many reads without an answer, the other candidates wait for the next sweep. If each of them waited for an
/// API server that does not answer, a sweep could take hours.
const MOST_FAILED_READS: usize = 8;

/// After this many bundles in a row that could not be removed, a sweep leaves the rest of the list to the next one: the
/// store itself may be the reason.
const MOST_FAILURES_IN_A_ROW: usize = 10;

/// What became of a candidate.
enum Ending {
    Deleted(DeletionReason),
    /// It is being downloaded.
    InUse,
    /// It changed since the decision.
    LeftAlone,
}

/// A resource that should be deleted.
#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) id: ResourceId,
    pub(super) reason: DeletionReason,
    owner: Arc<Owner>,
}

impl Candidate {
    pub(super) fn new(listed: &Listed, reason: DeletionReason) -> Self {
        Self { id: listed.id, reason, owner: Arc::clone(&listed.owner) }
    }

    pub(super) fn namespace(&self) -> &str {
        self.owner.namespace()
    }
}

impl Sweeper {
    /// Returns the candidates that a fresh read of their owners does not contradict. It reads each owner once. Owners that
    /// are not read by `reads_end` wait for the next sweep.
    pub(super) async fn confirm(
        &self,
        candidates: Vec<Candidate>,
        reads_end: Instant,
        swept: &mut Swept,
    ) -> Vec<Candidate> {
        let mut confirmed = Vec::new();
        let mut left: HashMap<ResourceId, Candidate> =
            candidates.iter().map(|candidate| (candidate.id, candidate.clone())).collect();
        let mut by_owner: HashMap<Arc<Owner>, Vec<Candidate>> = HashMap::new();
        for candidate in candidates {
            by_owner.entry(Arc::clone(&candidate.owner)).or_default().push(candidate);
        }
        // A namespace with many owners does not keep another one waiting.
        let in_turns = by_turns(by_owner.into_iter().collect(), |(owner, _)| owner.namespace().to_owned());
        let reads = stream::iter(in_turns).map(async |(owner, candidates)| {
            let presence = believed(self.owners.confirm(&owner).await, self.identity.doubt());
            (presence, candidates)
        });
        let mut reads = std::pin::pin!(reads.buffer_unordered(READS_AT_ONCE));
        while swept.failed_reads < MOST_FAILED_READS
            && let Ok(Some((presence, candidates))) = timeout_at(reads_end, reads.next()).await
        {
            for candidate in candidates {
                left.remove(&candidate.id);
                match contradiction(candidate.reason, presence) {
                    None => confirmed.push(candidate),
                    Some(why) => swept.withhold(candidate.id, why),
                }
            }
            swept.reads += 1;
            swept.failed_reads += usize::from(presence == Presence::Unknown(Unknown::Failing));
        }
        let is_failing = swept.failed_reads >= MOST_FAILED_READS;
        if !is_failing && !left.is_empty() {
            tracing::info!(
                resources = left.len(),
                "the time of one sweep was not enough to ask the API server for all owners that seem to be gone: the next \
                 ones ask for the others"
            );
        }
        for (id, candidate) in left {
            if !is_failing {
                swept.withhold(id, KeepReason::OwnerGone);
            } else if candidate.reason == DeletionReason::MaxUnusedReached {
                confirmed.push(candidate);
            } else {
                swept.withhold(id, KeepReason::OwnerUnknown(Unknown::Failing));
            }
        }
        confirmed
    }

    /// Deletes the candidates whose rows still agree with the decision. Several deletions run at once, because each
    /// mostly waits for the disk.
    pub(super) async fn delete_all(
        &self,
        candidates: Vec<Candidate>,
        now: &Now,
        swept: &mut Swept,
    ) -> Result<(), AccessError> {
        let deletions =
            stream::iter(candidates).map(async |candidate| (candidate.id, self.delete(candidate, now).await));
        let mut endings = std::pin::pin!(deletions.buffer_unordered(DELETIONS_AT_ONCE));
        let mut failures_in_a_row = 0;
        while failures_in_a_row < MOST_FAILURES_IN_A_ROW
            && let Some((id, ending)) = endings.next().await
        {
            if !ending.as_ref().is_err_and(AccessError::may_be_of_store) {
                failures_in_a_row = 0;
            }
            match ending {
                Ok(Ending::Deleted(reason)) => swept.delete(reason),
                Ok(Ending::InUse) => swept.keep(KeepReason::Downloading),
                Ok(Ending::LeftAlone) => {}
                // If one bundle cannot be removed, the sweep goes on with the others.
                Err(error) if error.is_of_one() => {
                    failures_in_a_row += usize::from(error.may_be_of_store());
                    tracing::warn!(
                        resource_id = %id, error = %chain(&error),
                        "could not remove an expired bundle; the next sweep tries again"
                    );
                }
                Err(error) => return Err(error),
            }
        }
        if failures_in_a_row == MOST_FAILURES_IN_A_ROW {
            tracing::error!(
                failures = failures_in_a_row,
                "so many bundles in a row could not be removed that this sweep leaves the others to the next one"
            );
            swept.has_given_up = true;
        }
        Ok(())
    }

    async fn delete(&self, candidate: Candidate, now: &Now) -> Result<Ending, AccessError> {
        let resource = match self.staging.look_up(candidate.id).await {
            Ok(found) => found.and_then(Resource::into_ready),
            // A row that this version cannot read is never deleted by a sweep.
            Err(LedgerError::Unreadable(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let Some(resource) = resource else { return Ok(Ending::LeftAlone) };
        if !self.is_still_due(&resource, &candidate, &now.readings) {
            return Ok(Ending::LeftAlone);
        }
        let at = self.staging.clock().now();
        let by = Authority::Sweep;
        let is_deleted = self.staging.expire(&resource, candidate.reason, at, by).await?;
        Ok(if is_deleted { Ending::Deleted(candidate.reason) } else { Ending::InUse })
    }

    fn is_still_due(&self, resource: &Resource<Ready>, candidate: &Candidate, now: &Readings) -> bool {
        // The watch may have learnt of the owner meanwhile. Then the next sweep decides again.
        let presence = self.presence(&resource.data.owner);
        let known = self.knowledge(&resource.data.owner, presence);
        decide(&resource.life(), known, now, &self.policy) == Decision::Delete(candidate.reason)
    }
}

/// Why a candidate stays, by the fresh read; `None` if it does not.
fn contradiction(reason: DeletionReason, fresh: Presence) -> Option<KeepReason> {
    match (reason, fresh) {
        (DeletionReason::MaxUnusedReached, Presence::Present) => Some(KeepReason::OwnerPresent),
        // Its time passed while nobody knew its owner, and that does not change.
        (DeletionReason::MaxUnusedReached, _)
        | (_, Presence::Absent)
        | (DeletionReason::OwnerFinished, Presence::Finished) => None,
        (_, Presence::Present) => Some(KeepReason::OwnerPresent),
        (_, Presence::Finished) => Some(KeepReason::OwnerFinished),
        (_, Presence::Unknown(unknown)) => Some(KeepReason::OwnerUnknown(unknown)),
        (_, Presence::NotAsked | Presence::NoObjects) => Some(KeepReason::OwnersNotAsked),
    }
}

/// In random order, by turns: first one of each group, then a second one of each, and so on.
pub(super) fn by_turns<T, K: Eq + Hash>(mut all: Vec<T>, group: impl Fn(&T) -> K) -> Vec<T> {
    all.shuffle(&mut rand::rng());
    let mut turns: HashMap<K, usize> = HashMap::new();
    let turn = |one: T| {
        let turn = turns.entry(group(&one)).or_default();
        *turn += 1;
        (*turn, one)
    };
    let mut in_turns: Vec<(usize, T)> = all.into_iter().map(turn).collect();
    in_turns.sort_by_key(|(turn, _)| *turn);
    in_turns.into_iter().map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_has_its_turn_before_any_has_its_second() {
        let all: Vec<&str> = ["many"; 100].into_iter().chain(["few"; 2]).chain(["one"]).collect();
        let in_turns = by_turns(all, |name| *name);
        let place = |name| in_turns.iter().rposition(|one| *one == name).unwrap();
        assert!(place("one") < 3 && place("few") < 5, "{:?}", &in_turns[..6]);
        assert_eq!(in_turns.len(), 103);
    }
}
