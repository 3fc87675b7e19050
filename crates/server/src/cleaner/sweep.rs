//! One pass: finish what was interrupted, look at everything that is ready, delete what is to go, forget old tombstones.

mod candidates;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use super::decide::needs_knowledge;
use super::guard::{Allowance, Finding, Guard};
use super::identity::{Identity, believed};
use super::judge::Withheld;
use super::steady::{Readings, SteadyTime};
use super::{Decision, Downloads, Judge, KeepReason, Policy, decide};
use crate::owners::{Owners, Presence, Unknown, WatchState};
use candidates::Candidate;
use cloakroom_core::metrics::SweepOutcome;
use cloakroom_core::resource::{DeletionReason, Life, Owner, OwnerHistory, ResourceId};
use cloakroom_staging::ledger::{Epoch, Listed};
use cloakroom_staging::{AccessError, Forgotten, Recovered, Staging};
use rand::seq::SliceRandom as _;

/// Resources looked at together.
const PAGE: usize = 1000;

/// Everything is read from the ledger again, and bytes without a row are looked for, at the start and then in every so
/// many sweeps: only a crash, or a hand in the data directory, makes a difference.
const THOROUGH_SWEEPS: u64 = 100;

/// What a pass did.
#[derive(Debug, Clone, Default)]
pub struct Swept {
    /// What it finished.
    pub recovered: Recovered,
    /// What it deleted, in all.
    pub expired: u64,
    /// What it deleted, by reason.
    pub deleted: BTreeMap<DeletionReason, u64>,
    /// What it kept, by why.
    pub kept: BTreeMap<KeepReason, u64>,
    /// How many it held back because they were too many at once.
    pub held: u64,
    /// Tombstones that it removed.
    pub forgotten: Forgotten,
    /// Owners that could not be asked for.
    pub(super) failed_reads: usize,
    /// What would have gone for lack of an owner, and why it stays after all.
    pub(super) withheld: HashMap<ResourceId, KeepReason>,
}

impl Swept {
    /// Writes down what was done, if there was anything to do.
    pub fn log(&self) {
        if self.forgotten.dropped > 0 {
            tracing::warn!(
                dropped = self.forgotten.dropped,
                "more tombstones than twice --max-resources: the oldest of the largest namespaces went before their seven \
                 days, and their tickets are answered with 404"
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

    /// It would have gone, and stays for now.
    fn withhold(&mut self, id: ResourceId, why: KeepReason) {
        self.keep(why);
        self.withheld.insert(id, why);
    }

    fn delete(&mut self, reason: DeletionReason) {
        self.expired += 1;
        *self.deleted.entry(reason).or_default() += 1;
    }
}

/// Makes passes, and remembers what one pass must know of the last.
pub struct Sweeper {
    staging: Staging,
    owners: Arc<dyn Owners>,
    policy: Policy,
    time: SteadyTime,
    guard: Guard,
    withheld: Withheld,
    identity: Identity,
    /// Whether the last sweep could not ask for some owners: that is said once, and not in every sweep.
    had_failed_reads: bool,
    passes: u64,
    /// Before that, what was missed when the last server stopped is old news: nobody watched in between.
    has_looked: bool,
}

/// When a pass decides, and by what right.
pub(super) struct Now {
    pub(super) readings: Readings,
    pub(super) term: Epoch,
}

/// What a look at everything found.
#[derive(Default)]
struct Findings {
    looked_at: usize,
    /// Their time is up, whatever is known of their owners.
    timed_out: Vec<Candidate>,
    /// Their owners seem to be gone.
    ownerless: Vec<Candidate>,
    /// Used ones among those.
    ownerless_used: usize,
    /// Used ones whose owners are unknown.
    unknown_used: usize,
    used: usize,
    histories: Vec<(ResourceId, OwnerHistory)>,
    /// Whether an owner history says more than that the owner is unknown.
    has_news: bool,
    /// What it kept, by why.
    kept: BTreeMap<KeepReason, u64>,
    /// What made all owners unknown.
    doubt: Option<Unknown>,
}

impl Sweeper {
    /// Works on `staging` by `policy`, with what `owners` knows. Owners of what is ready are looked for from the first
    /// sweep on.
    pub fn new(staging: Staging, owners: Arc<dyn Owners>, policy: Policy) -> Self {
        let time = SteadyTime::new(staging.clock());
        Self {
            staging,
            owners,
            policy,
            time,
            guard: Guard::default(),
            withheld: Withheld::default(),
            identity: Identity::default(),
            had_failed_reads: false,
            passes: 0,
            has_looked: false,
        }
    }

    /// What it would decide, for whoever asks.
    pub fn judge(&self) -> Judge {
        Judge::new(self.staging.clone(), self.owners(), self.policy, self.withheld.clone(), self.identity())
    }

    /// What notes downloads for it.
    pub fn downloads(&self) -> Downloads {
        Downloads::new(self.staging.clone(), self.owners(), self.identity())
    }

    /// Who knows about owners.
    pub fn owners(&self) -> Arc<dyn Owners> {
        Arc::clone(&self.owners)
    }

    /// Which cluster it asks about owners.
    pub fn identity(&self) -> Identity {
        self.identity.clone()
    }

    /// What time it is for this sweeper.
    pub(super) fn now(&self) -> Timestamp {
        self.staging.clock().now()
    }

    /// Makes one pass, and counts it.
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
                "owners seem to be gone, and the API server cannot be asked whether that is so: what is staged for \
                 them stays until it can"
            );
        } else if failed == 0 && had {
            tracing::info!("all owners that were in question could be asked for");
        }
    }

    async fn pass(&mut self) -> Result<Swept, AccessError> {
        let is_thorough = self.passes.is_multiple_of(THOROUGH_SWEEPS);
        self.passes += 1;
        let Some(term) = self.staging.term().await? else { return Ok(Swept::default()) };
        let recovered = self.staging.recover(term, is_thorough).await?;
        let mut swept = Swept { recovered, ..Swept::default() };
        let now = Now { readings: self.time.read(self.staging.clock()), term };
        let mut findings = self.look(&now.readings).await?;
        if self.is_cluster_in_question(&findings) {
            self.identity.check(&self.staging, &*self.owners).await?;
            if findings.doubt.is_none() && self.identity.doubt().is_some() {
                // What was seen there says nothing about owners here.
                findings = self.look(&now.readings).await?;
            }
        }
        swept.kept = std::mem::take(&mut findings.kept);
        if self.staging.observe_for_sweep(&findings.histories).await? {
            self.has_looked = true;
        } else {
            // What is due without it goes all the same, and makes room.
            tracing::warn!("the disk is full: what was seen of owners cannot be noted");
        }
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

    /// Whether it must be known which cluster it is: before anything new about owners is written down, and until that is
    /// known and nothing is in doubt. A watch that works says that the API server can be asked; the start does not wait
    /// for it.
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

    /// Looks at everything without a call, and without a query but for owners that are not in memory.
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
            // A download in flight is as good as an owner: how long that one was missing counts anew.
            findings.note(listed.id, before, owner_history.unknown());
            return;
        }
        let presence = believed(self.owners.presence(&listed.owner), findings.doubt);
        let after = self.observed(owner_history, presence);
        findings.has_news |= before != after && !matches!(presence, Presence::Unknown(_));
        findings.note(listed.id, before, after);
        match decide(&life, presence, now, &self.policy) {
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

    /// The watches' word for an owner; unknown while the cluster is in doubt.
    fn presence(&self, owner: &Owner) -> Presence {
        believed(self.owners.presence(owner), self.identity.doubt())
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
            // Those whose owners cannot be asked for must not stand before all others in every slice.
            candidates.shuffle(&mut rand::rng());
        }
        for held in candidates.drain(candidates.len().min(allowed)..) {
            swept.held += 1;
            swept.withhold(held.id, KeepReason::Held);
        }
        let confirmed = self.confirm(candidates, swept).await?;
        if !confirmed.is_empty() {
            // It was the same one before, so that the fresh reads were made in the right one.
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
            self.histories.push((id, after));
        }
    }
}
