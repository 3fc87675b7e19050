//! One sweep: finishes what was interrupted, looks at all ready resources, deletes what is due, and forgets old
//! tombstones.

mod candidates;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use super::decide::needs_knowledge;
use super::guard::{Allowance, Finding, Guard};
use super::identity::{Identity, believed};
use super::judge::Withheld;
use super::last_known::{LastKnown, Place};
use super::steady::{Readings, SteadyTime};
use super::{Decision, Downloads, Judge, KeepReason, Knowledge, Policy, decide};
use crate::owners::{Owners, Presence, Unknown, WatchState};
use candidates::Candidate;
use cloakroom_core::metrics::SweepOutcome;
use cloakroom_core::resource::{DeletionReason, Life, Owner, OwnerHistory, ResourceId};
use cloakroom_core::text::chain;
use cloakroom_staging::ledger::{Epoch, Listed, Observation};
use cloakroom_staging::{AccessError, Forgotten, Recovered, Staging};
use rand::seq::SliceRandom as _;

/// How many resources are looked at together.
const PAGE: usize = 1000;

/// The first sweep, and then every one after this many, reads everything from the ledger again and looks for bytes
/// without a row. This is rare, because only a crash or a change by hand in the data directory makes a difference.
const THOROUGH_SWEEPS: u64 = 100;

/// What a sweep did.
#[derive(Debug, Clone, Default)]
pub struct Swept {
    /// The interrupted uploads and deletions that it finished.
    pub recovered: Recovered,
    /// How many resources it deleted.
    pub expired: u64,
    /// How many resources it deleted, by reason.
    pub deleted: BTreeMap<DeletionReason, u64>,
    /// How many resources it kept, by reason.
    pub kept: BTreeMap<KeepReason, u64>,
    /// How many deletions the guard held back.
    pub held: u64,
    /// The tombstones that it removed.
    pub forgotten: Forgotten,
    /// How many owners could not be read afresh.
    pub(super) failed_reads: usize,
    /// The resources that seem to have lost their owners and stay, each with the reason.
    pub(super) withheld: HashMap<ResourceId, KeepReason>,
}

impl Swept {
    /// Logs what was done. If there was nothing to do, the line is at level debug.
    pub fn log(&self) {
        if self.forgotten.dropped > 0 {
            tracing::warn!(
                dropped = self.forgotten.dropped,
                "more tombstones than twice --max-resources: the oldest ones of the largest namespaces were removed \
                 before their seven days ended, and their tickets are answered with 404"
            );
        }
        if self.expired == 0 && self.recovered.is_nothing() {
            tracing::debug!("swept, nothing to do");
            return;
        }
        tracing::info!(
            expired = self.expired,
            interrupted_uploads = self.recovered.uploads,
            interrupted_deletions = self.recovered.deletions,
            orphans = self.recovered.orphans,
            "swept"
        );
    }

    fn keep(&mut self, why: KeepReason) {
        *self.kept.entry(why).or_default() += 1;
    }

    /// Notes a resource that stays, although its owner seems to be gone.
    fn withhold(&mut self, id: ResourceId, why: KeepReason) {
        self.keep(why);
        self.withheld.insert(id, why);
    }

    fn delete(&mut self, reason: DeletionReason) {
        self.expired += 1;
        *self.deleted.entry(reason).or_default() += 1;
    }
}

/// Makes sweeps, and remembers what one sweep must know of the one before.
pub struct Sweeper {
    staging: Staging,
    owners: Arc<dyn Owners>,
    policy: Policy,
    time: SteadyTime,
    guard: Guard,
    withheld: Withheld,
    identity: Identity,
    last_known: LastKnown,
    /// Whether the last sweep failed to read some owners, so that the log has one line and not one for each sweep.
    had_failed_reads: bool,
    passes: u64,
    /// Whether it has asked the ledger what earlier servers could read.
    has_remembered: bool,
    /// Whether a sweep has recorded its observations since the start. Until then, absences that an earlier run recorded
    /// do not count, because owners may have come and gone while no server was watching.
    has_looked: bool,
}

/// The time of a sweep, and the term that gives it the right to delete.
pub(super) struct Now {
    pub(super) readings: Readings,
    pub(super) term: Epoch,
}

/// What a look at all ready resources found.
#[derive(Default)]
struct Findings {
    looked_at: usize,
    /// Their time is over, whatever is known of their owners.
    timed_out: Vec<Candidate>,
    /// Their owners seem to be gone.
    ownerless: Vec<Candidate>,
    /// The number of used resources among those.
    ownerless_used: usize,
    /// The number of used resources whose owners are unknown.
    unknown_used: usize,
    used: usize,
    observations: Vec<Observation>,
    /// Whether an observation says more than that an owner is unknown.
    has_news: bool,
    /// How many resources stay, by reason.
    kept: BTreeMap<KeepReason, u64>,
    /// Where owners have too many label keys.
    crowded: BTreeSet<Place>,
    /// Why all owners count as unknown; `None` if they do not.
    doubt: Option<Unknown>,
}

impl Sweeper {
    /// Works on `staging` by the rules of `policy`, with the owners in `owners`. The first sweep begins to look for the
    /// owners of ready resources.
    pub fn new(staging: Staging, owners: Arc<dyn Owners>, policy: Policy) -> Self {
        let time = SteadyTime::new(staging.clock());
        let last_known = LastKnown::new(staging.clock().monotonic());
        Self {
            staging,
            owners,
            policy,
            time,
            guard: Guard::default(),
            withheld: Withheld::default(),
            identity: Identity::default(),
            last_known,
            had_failed_reads: false,
            passes: 0,
            has_remembered: false,
            has_looked: false,
        }
    }

    /// A judge that tells what this sweeper would decide.
    pub fn judge(&self) -> Judge {
        let (withheld, last_known) = (self.withheld.clone(), self.last_known.clone());
        Judge::new(self.staging.clone(), self.owners(), self.policy, withheld, self.identity(), last_known)
    }

    /// The recorder of downloads that belongs to this sweeper.
    pub fn downloads(&self) -> Downloads {
        Downloads::new(self.staging.clone(), self.owners(), self.identity())
    }

    /// The source of truth about owners.
    pub fn owners(&self) -> Arc<dyn Owners> {
        Arc::clone(&self.owners)
    }

    /// The check of the cluster that is asked about owners.
    pub fn identity(&self) -> Identity {
        self.identity.clone()
    }

    /// The present time, by the clock of `staging`.
    pub(super) fn now(&self) -> Timestamp {
        self.staging.clock().now()
    }

    /// Makes one sweep, and counts it in the metrics.
    pub async fn sweep(&mut self) -> Result<Swept, AccessError> {
        let began = Instant::now();
        let mut result = self.pass().await;
        let outcome = if result.is_ok() { SweepOutcome::Ok } else { SweepOutcome::Failed };
        let metrics = self.staging.metrics().clone();
        metrics.swept(outcome, began.elapsed(), self.staging.clock().now());
        if let Ok(swept) = &mut result {
            self.withheld.set(std::mem::take(&mut swept.withheld));
            self.tell_of_failed_reads(swept.failed_reads);
            let kept: Vec<_> = swept.kept.iter().map(|(why, count)| (why.as_str(), *count)).collect();
            metrics.kept(&kept);
            metrics.mass_deletion(self.guard.is_holding(), swept.held);
        }
        result
    }

    fn tell_of_failed_reads(&mut self, failed: usize) {
        let had = std::mem::replace(&mut self.had_failed_reads, failed > 0);
        if failed > 0 && !had {
            tracing::warn!(
                owners = failed,
                "owners seem to be gone, and the API server cannot be asked whether they are: resources that are \
                 staged for them stay until it can"
            );
        } else if failed == 0 && had {
            tracing::info!("the API server could be asked for all owners that seem to be gone");
        }
    }

    async fn pass(&mut self) -> Result<Swept, AccessError> {
        let is_thorough = self.passes.is_multiple_of(THOROUGH_SWEEPS);
        self.passes += 1;
        let Some(term) = self.staging.term().await? else { return Ok(Swept::default()) };
        let recovered = self.staging.recover(term, is_thorough).await?;
        let mut swept = Swept { recovered, ..Swept::default() };
        if !self.has_remembered {
            self.last_known.remember(self.staging.watched().await?);
            self.has_remembered = true;
        }
        let now = Now { readings: self.time.read(self.staging.clock()), term };
        let mut findings = self.look(&now.readings).await?;
        if self.is_cluster_in_question(&findings) {
            self.identity.check(&self.staging, &*self.owners).await?;
            if findings.doubt.is_none() && self.identity.doubt().is_some() {
                // The watches belong to another cluster, so what they reported does not count.
                findings = self.look(&now.readings).await?;
            }
        }
        swept.kept = std::mem::take(&mut findings.kept);
        if self.staging.observe_for_sweep(&findings.observations).await? {
            self.has_looked = true;
        } else {
            // Due deletions that need no observation still go on, because they make room.
            tracing::warn!("the disk is full: the presence of owners cannot be recorded");
        }
        self.note_what_is_known(std::mem::take(&mut findings.crowded)).await;
        self.delete_all(std::mem::take(&mut findings.timed_out), &now, &mut swept).await?;
        let finding = Finding {
            candidates: findings.ownerless_used,
            unknown: findings.unknown_used,
            used: findings.used,
        };
        let most = self.policy.max_deletions_per_sweep;
        let allowance = self.guard.judge(finding, most, self.staging.clock().monotonic());
        self.delete_ownerless(findings.ownerless, allowance, &now, &mut swept).await?;
        swept.forgotten = self.staging.forget_tombstones(now.readings.earliest()).await?;
        Ok(swept)
    }

    /// Notes which watches are complete, for the time when they are not.
    async fn note_what_is_known(&self, crowded: BTreeSet<Place>) {
        self.last_known.note_crowded(crowded, self.staging.clock().monotonic());
        if self.identity.doubt().is_some() {
            return;
        }
        let new = self.last_known.note(&self.owners.watches());
        if new.is_empty() {
            return;
        }
        match self.staging.remember_watched(new.clone()).await {
            Ok(()) => self.last_known.remember(new),
            // The next sweep tries again.
            Err(error) => {
                tracing::warn!(error = %chain(&error), "which kinds can be read could not be written down");
            }
        }
    }

    /// Whether the cluster must be checked. It is checked before a new observation of an owner is recorded, and in
    /// every sweep until it is known and not in doubt. Without news it is checked only if a watch works, so that an API
    /// server that is down does not delay the start.
    fn is_cluster_in_question(&self, findings: &Findings) -> bool {
        if !self.owners.are_asked_for() {
            return false;
        }
        let is_open = findings.doubt.is_some() || (findings.looked_at > 0 && !self.identity.is_settled());
        findings.has_news || (is_open && self.is_api_server_answering())
    }

    fn is_api_server_answering(&self) -> bool {
        let watches = self.owners.watches();
        watches.is_empty() || watches.iter().any(|watch| watch.state == WatchState::Ready)
    }

    /// Looks at all ready resources. It makes no call, and no query except for owners that are not in memory.
    async fn look(&self, now: &Readings) -> Result<Findings, AccessError> {
        let mut findings = Findings { doubt: self.identity.doubt(), ..Findings::default() };
        let mut after = None;
        loop {
            let page = self.staging.ready(after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.id);
            for listed in &page {
                self.look_at(listed, now, &mut findings);
            }
        }
        self.owners.looked_at_everything();
        Ok(findings)
    }

    fn look_at(&self, listed: &Listed, now: &Readings, findings: &mut Findings) {
        self.owners.follow(&listed.owner);
        let before = listed.life.owner_history;
        let owner_history = if self.has_looked { before } else { before.unknown() };
        let life = Life { owner_history, ..listed.life };
        findings.looked_at += 1;
        findings.used += usize::from(life.is_used());
        if self.staging.is_in_use(listed.id) {
            findings.keep(KeepReason::Downloading);
            // A download in flight counts as an owner, so the time of the owner's absence begins anew.
            findings.note(listed.id, before, owner_history.unknown());
            return;
        }
        let presence = believed(self.owners.presence(&listed.owner), findings.doubt);
        let after = self.observed(owner_history, presence);
        findings.has_news |= before != after && !matches!(presence, Presence::Unknown(_));
        findings.note(listed.id, before, after);
        if presence == Presence::Unknown(Unknown::TooManyLabelKeys) {
            findings.crowded.insert((listed.owner.kind().clone(), listed.owner.namespace().to_owned()));
        }
        let known = self.knowledge(&listed.owner, presence);
        match decide(&life, known, now, &self.policy) {
            Decision::Keep(kept) => {
                let is_unknown = matches!(kept.why, KeepReason::OwnerUnknown(_));
                findings.unknown_used += usize::from(is_unknown && life.is_used());
                findings.keep(kept.why);
            }
            Decision::Delete(reason) => {
                let candidate = Candidate::new(listed, reason);
                if needs_knowledge(reason, presence) {
                    findings.ownerless_used += usize::from(life.is_used());
                    findings.ownerless.push(candidate);
                } else {
                    findings.timed_out.push(candidate);
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
            Presence::NotAsked => owner_history,
        }
    }

    /// What the watches report about an owner; unknown while the cluster is in doubt.
    fn presence(&self, owner: &Owner) -> Presence {
        believed(self.owners.presence(owner), self.identity.doubt())
    }

    fn knowledge(&self, owner: &Owner, presence: Presence) -> Knowledge {
        self.last_known.knowledge(owner, presence, self.staging.clock().monotonic())
    }

    async fn delete_ownerless(
        &self,
        mut candidates: Vec<Candidate>,
        allowance: Allowance,
        now: &Now,
        swept: &mut Swept,
    ) -> Result<(), AccessError> {
        let allowed = match allowance {
            Allowance::All => candidates.len(),
            Allowance::Nothing => 0,
            Allowance::Slice(most) => most,
        };
        if allowed < candidates.len() {
            // The order is random. Otherwise owners that cannot be read could come first in every slice and keep the
            // others from their turn.
            candidates.shuffle(&mut rand::rng());
        }
        for held in candidates.drain(candidates.len().min(allowed)..) {
            swept.held += 1;
            swept.withhold(held.id, KeepReason::Held);
        }
        let confirmed = self.confirm(candidates, swept).await?;
        if !confirmed.is_empty() {
            // The cluster is checked after the fresh reads, too. If it is the same before and after, they were made in
            // the right cluster.
            self.identity.check(&self.staging, &*self.owners).await?;
        }
        match self.identity.doubt() {
            None => self.delete_all(confirmed, now, swept).await?,
            Some(doubt) => {
                for candidate in confirmed {
                    swept.withhold(candidate.id, KeepReason::OwnerUnknown(doubt));
                }
            }
        }
        Ok(())
    }
}

impl Findings {
    fn keep(&mut self, why: KeepReason) {
        *self.kept.entry(why).or_default() += 1;
    }

    fn note(&mut self, id: ResourceId, before: OwnerHistory, after: OwnerHistory) {
        if before != after {
            self.observations.push(Observation { id, before, after });
        }
    }
}
