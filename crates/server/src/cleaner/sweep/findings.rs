//! A look at all ready resources: what is due, what was seen of owners, and what stays.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::super::decide::needs_knowledge;
use super::super::guard::Census;
use super::super::identity::believed;
use super::super::last_known::Place;
use super::super::{Decision, KeepReason, decide};
use super::Sweeper;
use super::candidates::Candidate;
use crate::owners::{Presence, Unknown};
use cloakroom_core::clock::Readings;
use cloakroom_core::resource::{DeletionReason, Life, OwnerHistory, ResourceId};
use cloakroom_storage::ledger::Observation;
use cloakroom_storage::ready::Listed;

/// How many resources are looked at together.
const PAGE: usize = 1000;

/// What a look at all ready resources found.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) looked_at: usize,
    /// Their age alone ended them.
    pub(super) aged: Vec<Candidate>,
    /// Their time is over, and no cluster is asked about their owners, or there are none.
    pub(super) timed_out: Vec<Candidate>,
    /// Their time is over, and nothing is known of their owners.
    pub(super) unknown: Vec<Candidate>,
    /// Their owners seem to be gone.
    pub(super) ownerless: Vec<Candidate>,
    /// The owners of each namespace that were once seen.
    pub(super) census: BTreeMap<String, Census>,
    pub(super) observations: Vec<Observation>,
    /// Whether an observation says more than that an owner is unknown.
    pub(super) has_news: bool,
    /// How many resources stay, by reason.
    pub(super) kept: BTreeMap<KeepReason, u64>,
    /// Where owners have too many label keys.
    pub(super) crowded: BTreeSet<Place>,
    /// Why all owners count as unknown; `None` if they do not.
    pub(super) doubt: Option<Unknown>,
}

impl Sweeper {
    /// Looks at all ready resources. It makes no call and no query.
    pub(super) fn look(&self, now: &Readings) -> Findings {
        let mut findings = Findings { doubt: self.identity.doubt(), ..Findings::default() };
        let mut after = None;
        loop {
            let page = self.staging.ready(after, PAGE);
            let Some(last) = page.last() else { break };
            after = Some(last.id);
            for listed in &page {
                self.look_at(listed, now, &mut findings);
            }
        }
        self.owners.looked_at_everything();
        findings
    }

    fn look_at(&self, listed: &Listed, now: &Readings, findings: &mut Findings) {
        if listed.owner.has_objects() {
            self.owners.follow(&listed.owner);
        }
        let before = listed.life.owner_history;
        let owner_history = if self.has_looked { before } else { before.unknown() };
        let life = Life { owner_history, ..listed.life };
        findings.looked_at += 1;
        if let Some(ending) = life.ended_by_age(self.policy.max_age, now) {
            findings.aged.push(Candidate::new(listed, ending.reason));
            return;
        }
        findings.count(listed, |census| &mut census.known);
        if self.staging.is_in_use(listed.id) {
            findings.keep(KeepReason::Downloading);
            // A download in flight counts as an owner, so the time of the owner's absence begins anew.
            findings.note(listed.id, before, owner_history.unknown());
            return;
        }
        let presence = believed(Presence::look_up(&listed.owner, &*self.owners), findings.doubt);
        let after = self.observed(owner_history, presence);
        findings.has_news |= before != after && !matches!(presence, Presence::Unknown(_));
        findings.note(listed.id, before, after);
        if presence == Presence::Unknown(Unknown::TooManyLabelKeys) {
            findings.crowded.insert((listed.owner.kind().clone(), listed.owner.namespace().to_owned()));
        }
        let known = self.knowledge(&listed.owner, presence);
        match decide(&life, known, now, &self.policy) {
            Decision::Keep(kept) => {
                if matches!(presence, Presence::Unknown(_)) {
                    findings.count(listed, |census| &mut census.unknown);
                }
                findings.keep(kept.why);
            }
            Decision::Delete(reason) => {
                let candidate = Candidate::new(listed, reason);
                if !needs_knowledge(reason, presence) {
                    findings.timed_out.push(candidate);
                } else if reason == DeletionReason::MaxUnusedReached {
                    findings.unknown.push(candidate);
                } else {
                    if presence == Presence::Absent {
                        findings.count(listed, |census| &mut census.vanished);
                    }
                    findings.ownerless.push(candidate);
                }
            }
        }
    }

    fn observed(&self, owner_history: OwnerHistory, presence: Presence) -> OwnerHistory {
        let now = self.staging.clock().now();
        match presence {
            Presence::Present => owner_history.present(now),
            Presence::Finished => owner_history.finished(now),
            Presence::Absent => owner_history.absent(now),
            Presence::Unknown(_) => owner_history.unknown(),
            Presence::NotAsked | Presence::NoObjects => owner_history,
        }
    }
}

impl Findings {
    /// Counts the owner of a resource in its namespace if it was once seen.
    fn count(&mut self, listed: &Listed, among: impl Fn(&mut Census) -> &mut HashSet<u64>) {
        if listed.life.owner_history.seen_at.is_none() {
            return;
        }
        let namespace = listed.owner.namespace();
        let census = match self.census.get_mut(namespace) {
            Some(census) => census,
            None => self.census.entry(namespace.to_owned()).or_default(),
        };
        // Equal owners are one in memory.
        among(census).insert(Arc::as_ptr(&listed.owner).addr() as u64);
    }

    fn keep(&mut self, why: KeepReason) {
        *self.kept.entry(why).or_default() += 1;
    }

    fn note(&mut self, id: ResourceId, before: OwnerHistory, after: OwnerHistory) {
        if before != after {
            self.observations.push(Observation { id, before, after });
        }
    }
}
