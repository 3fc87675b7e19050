//! The start of a server whose ledger is in the bucket: it waits until no other one writes, claims the next epoch, and makes the
//! file of the ledger from the newest copy and the log behind it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use super::{
    Answer, Group, Heartbeat, LedgerFile, LogError, LogStore, Position, Takeover, Waiting, WriterStamp,
    WriterState,
};
use crate::stamp::Installation;

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
    pub async fn run(self) -> Result<Started, LogError> {
        loop {
            if let Some(started) = self.attempt().await? {
                return Ok(started);
            }
        }
    }

    /// Takes over, unless another server is faster.
    async fn attempt(&self) -> Result<Option<Started>, LogError> {
        let stamp = self.wait().await?;
        if stamp.is_none()
            && let Some(copy) = self.store.copies().await?.last()
        {
            return Err(LogError::NoStamp(copy.at));
        }
        let mut step = Takeover::Look.answered(Answer::Stamp(stamp.map_or(0, |stamp| stamp.epoch)));
        let claimed = WriterStamp::claim(stamp, self.installation, &mut rand::rng());
        let mut heartbeat = None;
        loop {
            let answer = match step {
                Takeover::Look | Takeover::Lost => return Ok(None),
                Takeover::Claim { .. } => {
                    let is_replaced = self.store.replace_stamp(stamp, claimed).await?;
                    if is_replaced {
                        heartbeat =
                            Some(Heartbeat::begin(Arc::clone(&self.store), claimed, self.timing.beat));
                    }
                    Answer::Replaced(is_replaced)
                }
                Takeover::Find { epoch } => match self.newest(epoch).await? {
                    None if claimed.state != WriterState::Begins => return Err(LogError::NoCopy),
                    found => Answer::Newest(found),
                },
                Takeover::Read { next, .. } => Answer::Group(self.read(next, claimed.installation).await?),
                Takeover::Write { epoch } => {
                    let start = Position::start(epoch);
                    self.file.finish().await?;
                    self.store.write_copy(start, self.file.path()).await?;
                    Answer::Done
                }
                Takeover::Confirm { .. } => {
                    Answer::Stamp(self.store.stamp().await?.map_or(0, |stamp| stamp.epoch))
                }
                Takeover::Serve { epoch } => {
                    let (start, installation) = (Position::start(epoch), claimed.installation);
                    return Ok(heartbeat.map(|heartbeat| {
                        heartbeat.0.say(WriterState::Serves);
                        Started { start, installation, heartbeat }
                    }));
                }
            };
            step = step.answered(answer);
        }
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
        }
        Ok(newest)
    }

    /// Puts the group at this place into the file. Returns `false` if there is none.
    async fn read(&self, at: Position, installation: Installation) -> Result<bool, LogError> {
        let Some(bytes) = self.store.group(at).await? else {
            // The last server may have sent one group that never arrived, but none behind it.
            return if self.store.group(at.next()).await?.is_some() {
                Err(LogError::Gap(at))
            } else {
                Ok(false)
            };
        };
        let group = Group::decode(&bytes).map_err(|damage| LogError::Damaged { at, damage })?;
        if group.at != at || group.installation != installation {
            return Err(LogError::Misplaced { at, says: group.at, of: group.installation });
        }
        self.file.apply(group).await?;
        Ok(true)
    }
}
