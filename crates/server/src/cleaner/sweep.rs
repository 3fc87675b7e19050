//! One sweep: finishes what was interrupted, looks at all ready resources, deletes what is due, and forgets old
//! tombstones.

mod candidates;
mod findings;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::guard::{Allowance, Allowances, Guard, Released};
use super::identity::{Identity, believed};
use super::judge::Withheld;
use super::last_known::{LastKnown, Place};
use super::{Downloads, Judge, KeepReason, Knowledge, Policy};
use crate::owners::{Owners, Presence, WatchState};
use candidates::Candidate;
use cloakroom_core::clock::Readings;
use cloakroom_core::metrics::SweepOutcome;
use cloakroom_core::resource::{DeletionReason, Owner, ResourceId};
use cloakroom_core::text::chain;
use cloakroom_storage::ledger::Forgotten;
use cloakroom_storage::{AccessError, Recovered, Staging, StraysGo};
use findings::Findings;

/// The first sweep, and then every one after this many, reads everything from the ledger again and looks for bytes
/// without a row. This is rare, because only a crash or a change by hand in the data directory makes a difference.
const THOROUGH_SWEEPS: u64 = 100;

/// What an admin asks of a sweep beyond its rules.
#[derive(Debug, Clone, Default)]
pub struct SweepRequest {
    /// To remove all strays that are known, whatever their age.
    pub removes_strays: bool,
    /// For what the guard against mass deletion ends its hour.
    pub releases: Released,
}

/// What a sweep did.
#[derive(Debug, Clone, Default)]
pub struct Swept {
    /// Whether it could delete nothing because the ledger is an earlier copy.
    pub is_behind: bool,
    /// The interrupted uploads and deletions that it finished.
    pub recovered: Recovered,
    /// How many resources it deleted.
    pub expired: u64,
    /// How many resources it deleted, by reason.
    pub deleted: BTreeMap<DeletionReason, u64>,
    /// How many resources it kept, by reason.
    pub kept: BTreeMap<KeepReason, u64>,
    /// How many deletions the guard held back, by namespace.
    pub held: BTreeMap<String, u64>,
    /// The tombstones that it removed.
    pub forgotten: Forgotten,
    /// Whether so many bundles in a row could not be removed that it left the others to the next sweep.
    pub(super) has_given_up: bool,
    /// How many owners were read.
    pub(super) reads: usize,
    /// How many owners could not be read afresh.
    pub(super) failed_reads: usize,
    /// The resources that seem to have lost their owners and stay, each with the reason.
    pub(super) withheld: HashMap<ResourceId, KeepReason>,
}

impl Swept {
    /// Logs what was done, and how many resources were deleted for each reason. If there was nothing to do, the line is
    /// at level debug.
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
        // A reason that deleted nothing has no field. Only clients and admins release and remove, never a sweep.
        let of = |reason: DeletionReason| self.deleted.get(&reason).copied();
        tracing::info!(
            expired = self.expired,
            unused = of(DeletionReason::Unused),
            max_unused_reached = of(DeletionReason::MaxUnusedReached),
            ttl_reached = of(DeletionReason::TtlReached),
            max_age_reached = of(DeletionReason::MaxAgeReached),
            orphaned = of(DeletionReason::Orphaned),
            owner_finished = of(DeletionReason::OwnerFinished),
            owner_never_seen = of(DeletionReason::OwnerNeverSeen),
            not_read_again = of(DeletionReason::NotReadAgain),
            interrupted_uploads = self.recovered.uploads,
            interrupted_deletions = self.recovered.deletions,
            strays = self.recovered.strays,
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
    guard: Guard,
    withheld: Withheld,
    identity: Identity,
    last_known: LastKnown,
    /// How long the fresh reads of one sweep may take together.
    read_time: Duration,
    /// Whether the last sweep failed to read some owners, so that the log has one line and not one for each sweep.
    had_failed_reads: bool,
    passes: u64,
    /// Whether it has asked the ledger what earlier servers could read.
    has_remembered: bool,
    /// Whether a sweep has recorded its observations since the start. Until then, absences that an earlier run recorded
    /// do not count, because owners may have come and gone while no server was watching.
    has_looked: bool,
}

/// The time of a sweep.
pub(super) struct Now {
    pub(super) readings: Readings,
}

impl Sweeper {
    /// Works on `staging` by the rules of `policy`, with the owners in `owners`. The first sweep begins to look for the
    /// owners of ready resources.
    pub fn new(staging: Staging, owners: Arc<dyn Owners>, policy: Policy) -> Self {
        let last_known = LastKnown::new(staging.clock().monotonic());
        Self {
            staging,
            owners,
            policy,
            guard: Guard::default(),
            withheld: Withheld::default(),
            identity: Identity::default(),
            last_known,
            read_time: Duration::from_secs(30),
            had_failed_reads: false,
            passes: 0,
            has_remembered: false,
            has_looked: false,
        }
    }

    /// Limits how long the fresh reads of one sweep may take together. The others wait for the next sweep.
    pub(super) fn limit_reads(&mut self, read_time: Duration) {
        // Otherwise an API server that does not answer would never be known to fail.
        self.read_time = read_time.max(self.owners.longest_read() + Duration::from_secs(1));
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

    /// The task that a sweep relies on and that has ended.
    pub(super) fn ended_task(&self) -> Option<&'static str> {
        let watch = self.owners.has_failed_watch().then_some("a watch of owners");
        watch.or_else(|| self.staging.ended_task())
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
        self.sweep_for(&SweepRequest::default()).await
    }

    /// Makes one sweep for an admin, and counts it in the metrics.
    pub async fn sweep_for(&mut self, request: &SweepRequest) -> Result<Swept, AccessError> {
        if self.staging.is_read_only() {
            return Ok(Swept::default());
        }
        let began = Instant::now();
        let mut result = self.pass(request).await;
        let is_ok = result.as_ref().is_ok_and(|swept| !swept.has_given_up);
        let outcome = if is_ok { SweepOutcome::Ok } else { SweepOutcome::Failed };
        let metrics = self.staging.metrics().clone();
        metrics.swept(outcome, began.elapsed(), self.staging.clock().now());
        if let Ok(swept) = &mut result {
            self.withheld.set(std::mem::take(&mut swept.withheld));
            self.tell_of_failed_reads(swept.reads, swept.failed_reads);
            let kept: Vec<_> = swept.kept.iter().map(|(why, count)| (why.as_str(), *count)).collect();
            metrics.kept(&kept);
            metrics.mass_deletion_held(swept.held.values().sum());
        }
        result
    }

    fn tell_of_failed_reads(&mut self, reads: usize, failed: usize) {
        // While the watches fail too, no owner seems to be gone, and none is read.
        if reads == 0 {
            return;
        }
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

    async fn pass(&mut self, request: &SweepRequest) -> Result<Swept, AccessError> {
        let is_thorough = self.passes.is_multiple_of(THOROUGH_SWEEPS);
        self.passes += 1;
        let strays_go =
            if request.removes_strays { StraysGo::Now } else { StraysGo::After(self.policy.stray_age) };
        let recovered = self.staging.recover(is_thorough, strays_go).await?;
        let mut swept = Swept { recovered, ..Swept::default() };
        if self.staging.is_behind() {
            return Ok(Swept { is_behind: true, ..swept });
        }
        if !self.has_remembered {
            self.last_known.remember(self.staging.watched().await?);
            self.has_remembered = true;
        }
        let now = Now { readings: self.staging.readings() };
        let reads_end = tokio::time::Instant::now() + self.read_time;
        let mut findings = self.look(&now.readings);
        // This needs no call. So no API server, and no resource of another tenant, holds it up.
        self.delete_all(std::mem::take(&mut findings.aged), &now, &mut swept).await?;
        if self.is_cluster_in_question(&findings) {
            self.identity.check(&self.staging, &*self.owners).await?;
            if findings.doubt.is_none() && self.identity.doubt().is_some() {
                // The watches belong to another cluster, so what they reported does not count.
                findings = self.look(&now.readings);
            }
        }
        for (why, count) in std::mem::take(&mut findings.kept) {
            *swept.kept.entry(why).or_default() += count;
        }
        if self.staging.observe_for_sweep(&findings.observations).await? {
            self.has_looked = true;
        } else {
            // Due deletions that need no observation still go on, because they make room.
            tracing::warn!("the disk is full: the presence of owners cannot be recorded");
        }
        self.note_what_is_known(std::mem::take(&mut findings.crowded)).await;
        self.delete_all(std::mem::take(&mut findings.timed_out), &now, &mut swept).await?;
        let now_monotonic = self.staging.clock().monotonic();
        let allowances = self.guard.judge(&findings.census, &request.releases, now_monotonic);
        let ownerless = self.allowed(findings.ownerless, &allowances, &mut swept);
        let doubtful = ownerless.into_iter().chain(findings.unknown).collect();
        self.delete_confirmed(doubtful, reads_end, &now, &mut swept).await?;
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

    /// What the watches report about an owner; unknown while the cluster is in doubt.
    fn presence(&self, owner: &Owner) -> Presence {
        believed(Presence::look_up(owner, &*self.owners), self.identity.doubt())
    }

    fn knowledge(&self, owner: &Owner, presence: Presence) -> Knowledge {
        self.last_known.knowledge(owner, presence, self.staging.clock().monotonic())
    }

    /// The candidates that the guard lets through.
    fn allowed(
        &self,
        candidates: Vec<Candidate>,
        allowances: &Allowances,
        swept: &mut Swept,
    ) -> Vec<Candidate> {
        let (mut allowed, mut slices) = (Vec::new(), Vec::new());
        let hold = |candidate: Candidate, swept: &mut Swept| {
            *swept.held.entry(candidate.namespace().to_owned()).or_default() += 1;
            swept.withhold(candidate.id, KeepReason::Held);
        };
        for candidate in candidates {
            match allowances.of(candidate.namespace()) {
                Allowance::All => allowed.push(candidate),
                Allowance::Slices => slices.push(candidate),
                Allowance::Nothing => hold(candidate, swept),
            }
        }
        // The order is random. Otherwise owners that cannot be read could come first in every slice and keep the others
        // from their turn.
        let mut slices =
            candidates::by_turns(slices, |candidate| candidate.namespace().to_owned()).into_iter();
        allowed.extend(slices.by_ref().take(self.policy.max_deletions_per_sweep));
        for candidate in slices {
            hold(candidate, swept);
        }
        allowed
    }

    /// Deletes the candidates that a fresh read does not contradict.
    async fn delete_confirmed(
        &self,
        candidates: Vec<Candidate>,
        reads_end: tokio::time::Instant,
        now: &Now,
        swept: &mut Swept,
    ) -> Result<(), AccessError> {
        let confirmed = self.confirm(candidates, reads_end, swept).await;
        // For these nothing needs to be known of the owner.
        let is_by_time = |candidate: &Candidate| candidate.reason == DeletionReason::MaxUnusedReached;
        let (by_time, ownerless): (Vec<_>, Vec<_>) = confirmed.into_iter().partition(is_by_time);
        self.delete_all(by_time, now, swept).await?;
        if !ownerless.is_empty() {
            // The cluster is checked after the fresh reads, too. If it is the same before and after, they were made in
            // the right cluster.
            self.identity.check(&self.staging, &*self.owners).await?;
        }
        match self.identity.doubt() {
            None => self.delete_all(ownerless, now, swept).await?,
            Some(doubt) => {
                for candidate in ownerless {
                    swept.withhold(candidate.id, KeepReason::OwnerUnknown(doubt));
                }
            }
        }
        Ok(())
    }
}
