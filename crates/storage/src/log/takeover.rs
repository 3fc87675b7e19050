//! The start of a server whose ledger is in the bucket: it waits until no other one writes, claims the next epoch, and makes the
//! file of the ledger from the newest copy and the log behind it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use super::reading::Reading;
use super::{
    Answer, Heartbeat, LedgerFile, LogError, LogStore, Object, Position, Takeover, Waiting, WriterStamp,
    WriterState,
};
use crate::stamp::Installation;
use cloakroom_core::text::chain;

/// How many epochs are left out if the stamp is lost: servers may have claimed some, and written nothing yet.
const UNSEEN_EPOCHS: u64 = 1_000_000;

/// The times of a start, and of the beats behind it.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// How long the stamp of another server must have stood still.
    pub patience: Duration,
    /// How often it is looked at.
    pub look: Duration,
    /// How often a server renews its own.
    pub beat: Duration,
}

/// A start that waits for its epoch.
pub struct Starting<'a> {
    /// The bucket.
    pub store: Arc<dyn LogStore>,
    /// The file that the ledger gets.
    pub file: &'a dyn LedgerFile,
    /// Its times.
    pub timing: Timing,
    /// For a bucket that has no stamp.
    pub installation: Installation,
    /// The copy that an admin wants back. It is taken once: a ledger that was put back from it stays as it is.
    pub restore: Option<Position>,
    /// Told of each stamp that is waited for, and how much longer it is.
    pub tell: &'a (dyn Fn(WriterStamp, Duration) + Sync),
}

/// A server that may write.
pub struct Started {
    /// Where the log begins.
    pub start: Position,
    /// The installation of the bucket.
    pub installation: Installation,
    /// The beats. They end when the handle is dropped.
    pub heartbeat: (Arc<Heartbeat>, AbortOnDropHandle<()>),
}

impl Starting<'_> {
    /// Takes over. It may be dropped at any time: what it has claimed then stands still, and the next start goes on.
    pub async fn run(&self) -> Result<Started, LogError> {
        loop {
            match self.attempt().await {
                Ok(Some(started)) => return Ok(started),
                Ok(None) => {}
                Err(error) if error.is_full() && self.store.make_room().await? => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes the ledger without a claim, from a bucket that takes no writes. It does not see later changes of another server, and
    /// does not disturb them.
    pub async fn read_only(&self) -> Result<(), LogError> {
        let stamp = self.wait().await?;
        let mut end = self.newest(u64::MAX).await?.ok_or_else(|| self.no_copy())?;
        let installation = stamp.map_or(self.installation, |stamp| stamp.installation);
        self.check_installation(end, installation).await?;
        let mut log = Reading::behind(end, installation, &*self.store);
        while let Some(group) = log.next().await? {
            self.file.apply(group).await?;
            end = end.next();
        }
        self.check_end(end, stamp.map_or(end, |stamp| stamp.reached))?;
        Ok(self.file.finish(installation).await?)
    }

    /// Takes over, unless another server is faster.
    async fn attempt(&self) -> Result<Option<Started>, LogError> {
        let seen = self.wait().await?;
        let before = match self.latest().await? {
            Some(latest) if seen.is_none_or(|seen| seen.epoch < latest.epoch) => {
                // Another server may have claimed an epoch since then.
                if self.store.stamp().await? != seen {
                    return Ok(None);
                }
                Some(self.lost_stamp(seen, latest).await?)
            }
            _ => seen,
        };
        let claimed = WriterStamp::claim(before, self.installation, &mut rand::rng());
        if !self.store.replace_stamp(seen, claimed).await? {
            return Ok(None);
        }
        let heartbeat = Heartbeat::begin(Arc::clone(&self.store), claimed, self.timing.beat);
        let mut last = None;
        let mut is_confirmed = self.take(claimed, &mut last).await;
        if let (Err(error), Some(wanted)) = (&is_confirmed, self.restore)
            && error.is_about_content()
            && !self.is_restored_from(wanted, last).await
        {
            tracing::error!(error = %chain(error), "the ledger cannot be read to its end: what was read stays as a copy");
            is_confirmed = self.begin_with(wanted, last, claimed).await;
        }
        // So that the next start need not wait. One that was to make the first ledger has made none.
        if is_confirmed.is_err() && claimed.state != WriterState::Begins {
            heartbeat.0.say(WriterState::Stopped);
            let _ = heartbeat.0.beat().await;
        }
        if !is_confirmed? {
            return Ok(None);
        }
        let (start, installation) = (Position::start(claimed.epoch), claimed.installation);
        heartbeat.0.reached(start);
        heartbeat.0.say(WriterState::Serves);
        Ok(Some(Started { start, installation, heartbeat }))
    }

    /// The last place that has an object; `None` if the bucket has no ledger.
    async fn latest(&self) -> Result<Option<Position>, LogError> {
        let copies = self.store.copies().await?.into_iter().map(|copy| copy.at);
        Ok(copies.chain(self.store.groups().await?).max())
    }

    /// A stamp to go on from in place of `seen`, which is missing, or earlier than the ledger. Only an admin who takes over at once can
    /// know that no other server waits for the stamp.
    async fn lost_stamp(&self, seen: Option<WriterStamp>, latest: Position) -> Result<WriterStamp, LogError> {
        let place = self.store.shown(Object::Stamp);
        if !self.timing.patience.is_zero() {
            return Err(match seen {
                None => LogError::NoStamp(place),
                Some(stamp) => LogError::EarlierStamp { place, epoch: stamp.epoch, latest },
            });
        }
        self.newest(u64::MAX).await?.ok_or_else(|| self.no_copy())?;
        let installation = self.file.installation().await?.unwrap_or(self.installation);
        let epoch = latest.epoch.saturating_add(UNSEEN_EPOCHS);
        tracing::warn!(epoch, "{place} was missing, or an earlier one: a new one is made");
        let (writer, beat, state) = (0, 0, WriterState::Stopped);
        Ok(WriterStamp { installation, epoch, writer, beat, reached: Position::start(0), state })
    }

    fn no_copy(&self) -> LogError {
        LogError::NoCopy(self.store.shown(Object::Stamp))
    }

    /// Refuses a copy of another installation than that of the stamp.
    async fn check_installation(&self, copy: Position, expected: Installation) -> Result<(), LogError> {
        match self.file.installation().await? {
            Some(found) if found != expected => Err(LogError::OtherInstallation {
                copy: self.store.shown(Object::Copy(copy)),
                found,
                stamp: self.store.shown(Object::Stamp),
                expected,
            }),
            _ => Ok(()),
        }
    }

    /// Refuses a log that ends before the place that it had `reached`.
    fn check_end(&self, end: Position, reached: Position) -> Result<(), LogError> {
        let stamp = || self.store.shown(Object::Stamp);
        if end < reached { Err(LogError::Shortened { stamp: stamp(), reached, end }) } else { Ok(()) }
    }

    /// Makes the ledger of a claimed epoch. Returns `false` if another server has claimed a later one. `last` is the last place that
    /// the file has.
    async fn take(&self, claimed: WriterStamp, last: &mut Option<Position>) -> Result<bool, LogError> {
        let mut step = Takeover::Find { epoch: claimed.epoch };
        let mut log = None;
        loop {
            let answer = match step {
                Takeover::Look | Takeover::Claim { .. } | Takeover::Lost => return Ok(false),
                Takeover::Find { epoch } => {
                    *last = None;
                    *last = self.newest(epoch).await?;
                    // A prefix with a log has had a ledger, even if its first server never renewed its stamp.
                    let is_first = claimed.state == WriterState::Begins;
                    if last.is_none() && !(is_first && self.store.groups().await?.is_empty()) {
                        return Err(self.no_copy());
                    }
                    if let Some(copy) = *last {
                        self.check_installation(copy, claimed.installation).await?;
                    }
                    log = last.map(|copy| Reading::behind(copy, claimed.installation, &*self.store));
                    Answer::Newest(*last)
                }
                Takeover::Read { next, .. } => {
                    let group = match &mut log {
                        Some(log) => log.next().await?,
                        None => None,
                    };
                    let is_there = group.is_some();
                    if let Some(group) = group {
                        self.file.apply(group).await?;
                        *last = Some(next);
                    } else if let Some(end) = *last {
                        if !self.is_end(end, claimed.epoch).await? {
                            step = Takeover::Find { epoch: claimed.epoch };
                            continue;
                        }
                        self.check_end(end, claimed.reached)?;
                    }
                    Answer::Group(is_there)
                }
                Takeover::Write { epoch } => {
                    self.file.finish(claimed.installation).await?;
                    if let Some(wanted) = self.restore {
                        self.restore(wanted, *last, claimed.installation).await?;
                    }
                    self.store.write_copy(Position::start(epoch), self.file.path()).await?;
                    Answer::Done
                }
                Takeover::Confirm { .. } => {
                    Answer::Stamp(self.store.stamp().await?.map_or(0, |stamp| stamp.epoch))
                }
                Takeover::Serve { .. } => return Ok(true),
            };
            step = step.answered(answer);
        }
    }

    /// Refuses a bucket with copies or groups behind `end`, where the reading has ended. A server that was replaced may have sent one
    /// group late, but only behind an epoch that ends with a copy. Returns `false` if there is a newer copy to begin with: one that a
    /// server that was replaced has sent late.
    async fn is_end(&self, end: Position, claimed: u64) -> Result<bool, LogError> {
        let copies = self.store.copies().await?;
        if copies.iter().any(|copy| copy.at > end && copy.at.epoch < claimed) {
            return Ok(false);
        }
        let copies = copies.into_iter().map(|copy| (copy.at, Object::Copy(copy.at)));
        let groups = self.store.groups().await?.into_iter().map(|at| (at, Object::Group(at)));
        // The group behind the end may have arrived since it was looked for.
        let beyond = copies.chain(groups).filter(|(at, _)| *at > end && *at != end.next());
        let Some((_, found)) = beyond.min_by_key(|(at, _)| *at) else { return Ok(true) };
        // Or another server has claimed a later epoch meanwhile, and is at work.
        match self.store.stamp().await? {
            Some(stamp) if stamp.epoch != claimed => Ok(true),
            _ => Err(LogError::Beyond { found: self.store.shown(found), end }),
        }
    }

    /// Whether the ledger was put back from this copy already: then what is wrong came later, and an admin decides anew. The file has
    /// all groups up to `last`.
    async fn is_restored_from(&self, wanted: Position, last: Option<Position>) -> bool {
        last.is_some() && self.file.restored().await.ok().flatten() == Some(wanted)
    }

    /// Begins the epoch with a copy, although the log behind it cannot be read.
    async fn begin_with(
        &self,
        wanted: Position,
        last: Option<Position>,
        claimed: WriterStamp,
    ) -> Result<bool, LogError> {
        if last.is_some() && self.file.finish(claimed.installation).await.is_ok() {
            self.keep_before(wanted, last).await?;
        }
        self.file.clear().await?;
        self.put_back(wanted, claimed.installation).await?;
        self.store.write_copy(Position::start(claimed.epoch), self.file.path()).await?;
        Ok(self.store.stamp().await?.is_some_and(|stamp| stamp.epoch == claimed.epoch))
    }

    /// Puts a copy in the place of the ledger, which has all groups up to `last`, and stays as a copy.
    async fn restore(
        &self,
        wanted: Position,
        last: Option<Position>,
        installation: Installation,
    ) -> Result<(), LogError> {
        if self.file.restored().await? == Some(wanted) {
            tracing::info!(copy = %wanted, "the ledger was put back from this copy already, and has gone on since then");
            return Ok(());
        }
        self.keep_before(wanted, last).await?;
        self.put_back(wanted, installation).await
    }

    /// Keeps the ledger, which has all groups up to `last`, before a copy takes its place.
    async fn keep_before(&self, wanted: Position, last: Option<Position>) -> Result<(), LogError> {
        let there = self.store.copies().await?;
        let is_missing = |at| there.iter().all(|copy| copy.at != at);
        if let Some(last) = last.filter(|last| is_missing(*last) && !is_missing(wanted)) {
            self.store.write_copy(last, self.file.path()).await?;
        }
        Ok(())
    }

    async fn put_back(&self, wanted: Position, installation: Installation) -> Result<(), LogError> {
        let there = self.store.copies().await?;
        if there.iter().all(|copy| copy.at != wanted) {
            return Err(LogError::NoSuchCopy { wanted, there });
        }
        let mut part = self.file.path().to_owned();
        part.as_mut_os_string().push("-copy");
        self.store.read_copy(wanted, &part).await?;
        let unfit = |source| LogError::of_wanted_copy(self.store.shown(Object::Copy(wanted)), source);
        self.file.put_back(&part, wanted).await.map_err(unfit)?;
        self.file.finish(installation).await.map_err(unfit)?;
        tracing::warn!(copy = %wanted, "the ledger was put back from a copy in the bucket");
        Ok(())
    }

    /// Waits until the stamp may be replaced, and returns it.
    async fn wait(&self) -> Result<Option<WriterStamp>, LogError> {
        let began = Instant::now();
        let mut waiting = Waiting::new(self.timing.patience);
        loop {
            let stamp = self.store.stamp().await?;
            let (Some(left), Some(seen)) = (waiting.look(stamp, began.elapsed()), stamp) else {
                return Ok(stamp);
            };
            (self.tell)(seen, left);
            sleep(left.min(self.timing.look)).await;
        }
    }

    /// Begins the file with the newest copy of an earlier epoch, or anew.
    async fn newest(&self, epoch: u64) -> Result<Option<Position>, LogError> {
        self.file.clear().await?;
        let copies = self.store.copies().await?;
        let newest = copies.iter().map(|copy| copy.at).filter(|at| at.epoch < epoch).max();
        if let Some(at) = newest {
            self.store.read_copy(at, self.file.path()).await?;
            let place = || self.store.shown(Object::Copy(at));
            self.file.check().await.map_err(|error| LogError::of_copy(place(), error))?;
        }
        Ok(newest)
    }
}
