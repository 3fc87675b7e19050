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
        let Some(copy) = self.newest(u64::MAX).await? else { return Err(LogError::NoCopy) };
        let installation = stamp.map_or(self.installation, |stamp| stamp.installation);
        let mut log = Reading::behind(copy, installation, &*self.store);
        while let Some(group) = log.next().await? {
            self.file.apply(group).await?;
        }
        Ok(self.file.finish(installation).await?)
    }

    /// Takes over, unless another server is faster.
    async fn attempt(&self) -> Result<Option<Started>, LogError> {
        let seen = self.wait().await?;
        let before = if seen.is_some() { seen } else { self.lost_stamp().await? };
        let claimed = WriterStamp::claim(before, self.installation, &mut rand::rng());
        if !self.store.replace_stamp(seen, claimed).await? {
            return Ok(None);
        }
        let heartbeat = Heartbeat::begin(Arc::clone(&self.store), claimed, self.timing.beat);
        let mut is_confirmed = self.take(claimed).await;
        if let (Err(error), Some(wanted)) = (&is_confirmed, self.restore)
            && error.is_about_content()
            && !self.newest_is_restored_from(wanted).await?
        {
            tracing::error!(error = %chain(error), "the ledger cannot be read, so it cannot be kept as a copy");
            is_confirmed = self.begin_with(wanted, claimed).await;
        }
        // So that the next start need not wait. One that was to make the first ledger has made none.
        if is_confirmed.is_err() && claimed.state != WriterState::Begins {
            heartbeat.0.say(WriterState::Stopped);
            let _ = heartbeat.0.beat().await;
        }
        if !is_confirmed? {
            return Ok(None);
        }
        heartbeat.0.say(WriterState::Serves);
        let (start, installation) = (Position::start(claimed.epoch), claimed.installation);
        Ok(Some(Started { start, installation, heartbeat }))
    }

    /// A stamp to go on from where there is none; `None` if the bucket has no ledger. Only an admin who takes over at once can know
    /// that no other server waits for the stamp.
    async fn lost_stamp(&self) -> Result<Option<WriterStamp>, LogError> {
        let copies = self.store.copies().await?.into_iter().map(|copy| copy.at);
        let Some(last) = copies.chain(self.store.groups().await?).max() else { return Ok(None) };
        if !self.timing.patience.is_zero() {
            return Err(LogError::NoStamp(self.store.shown(Object::Stamp)));
        }
        self.newest(u64::MAX).await?.ok_or(LogError::NoCopy)?;
        let installation = self.file.installation().await?.unwrap_or(self.installation);
        let epoch = last.epoch.saturating_add(UNSEEN_EPOCHS);
        tracing::warn!(epoch, "{} was missing: a new one is made", self.store.shown(Object::Stamp));
        Ok(Some(WriterStamp { installation, epoch, writer: 0, beat: 0, state: WriterState::Stopped }))
    }

    /// Makes the ledger of a claimed epoch. Returns `false` if another server has claimed a later one.
    async fn take(&self, claimed: WriterStamp) -> Result<bool, LogError> {
        let (mut step, mut last) = (Takeover::Find { epoch: claimed.epoch }, None);
        let mut log = None;
        loop {
            let answer = match step {
                Takeover::Look | Takeover::Claim { .. } | Takeover::Lost => return Ok(false),
                Takeover::Find { epoch } => {
                    last = self.newest(epoch).await?;
                    // A prefix with a log has had a ledger, even if its first server never renewed its stamp.
                    let is_first = claimed.state == WriterState::Begins;
                    if last.is_none() && !(is_first && self.store.groups().await?.is_empty()) {
                        return Err(LogError::NoCopy);
                    }
                    log = last.map(|copy| Reading::behind(copy, claimed.installation, &*self.store));
                    Answer::Newest(last)
                }
                Takeover::Read { next, .. } => {
                    let group = match &mut log {
                        Some(log) => log.next().await?,
                        None => None,
                    };
                    let is_there = group.is_some();
                    if let Some(group) = group {
                        self.file.apply(group).await?;
                        last = Some(next);
                    } else if let Some(end) = last
                        && !self.is_end(end, claimed.epoch).await?
                    {
                        step = Takeover::Find { epoch: claimed.epoch };
                        continue;
                    }
                    Answer::Group(is_there)
                }
                Takeover::Write { epoch } => {
                    self.file.finish(claimed.installation).await?;
                    if let Some(wanted) = self.restore {
                        self.restore(wanted, last, claimed.installation).await?;
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

    /// Whether the ledger was put back from this copy already: then what is wrong came later, and an admin decides anew.
    async fn newest_is_restored_from(&self, wanted: Position) -> Result<bool, LogError> {
        let restored = match self.newest(u64::MAX).await {
            Ok(Some(_)) => self.file.restored().await.ok().flatten(),
            _ => None,
        };
        Ok(restored == Some(wanted))
    }

    /// Begins the epoch with a copy, although the log behind it cannot be read.
    async fn begin_with(&self, wanted: Position, claimed: WriterStamp) -> Result<bool, LogError> {
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
        let there = self.store.copies().await?;
        let is_missing = |at| there.iter().all(|copy| copy.at != at);
        if let Some(last) = last.filter(|last| is_missing(*last) && !is_missing(wanted)) {
            self.store.write_copy(last, self.file.path()).await?;
        }
        self.put_back(wanted, installation).await
    }

    async fn put_back(&self, wanted: Position, installation: Installation) -> Result<(), LogError> {
        let there = self.store.copies().await?;
        if there.iter().all(|copy| copy.at != wanted) {
            return Err(LogError::NoSuchCopy { wanted, there });
        }
        let mut part = self.file.path().to_owned();
        part.as_mut_os_string().push("-copy");
        self.store.read_copy(wanted, &part).await?;
        let unfit = |source| LogError::UnfitCopy { place: self.store.shown(Object::Copy(wanted)), source };
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
