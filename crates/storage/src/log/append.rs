//! The groups of one server on their way into the log.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::{Answer, Append, Group, Heartbeat, LogError, LogStore, Position, RowChange, Started, WriterEnd};
use crate::stamp::Installation;
use cloakroom_core::lock::lock;
use cloakroom_core::text::chain;

/// How long to wait after a request that failed. The store has repeated it by itself already.
const RETRY: Duration = Duration::from_secs(1);

/// For how long callers wait for a group.
const STALLED: Duration = Duration::from_secs(10);

/// The log of the server that writes. It has one user: the task that writes the ledger.
pub struct Appender {
    store: Arc<dyn LogStore>,
    heartbeat: Arc<Heartbeat>,
    installation: Installation,
    step: Append,
    progress: Arc<Progress>,
}

/// How far the log has come, for those who only look.
#[derive(Debug)]
pub struct Progress {
    state: Mutex<State>,
    is_stalled: watch::Sender<bool>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    last: Position,
    bytes: u64,
}

impl Progress {
    fn new(last: Position) -> Self {
        Self { state: Mutex::new(State { last, bytes: 0 }), is_stalled: watch::Sender::new(false) }
    }

    /// The last group that the ledger has.
    pub fn last(&self) -> Position {
        lock(&self.state).last
    }

    /// How many bytes were written to the log since the start.
    pub fn bytes(&self) -> u64 {
        lock(&self.state).bytes
    }

    /// Whether the store has not taken a group for so long that callers give up.
    pub fn is_stalled(&self) -> bool {
        *self.is_stalled.borrow()
    }

    /// Waits until the store has not taken a group for so long that callers should give up.
    pub async fn stalled(&self) {
        // The sender is here.
        let _ = self.is_stalled.subscribe().wait_for(|is_stalled| *is_stalled).await;
    }
}

impl Appender {
    /// The log of a server that has started.
    pub fn new(store: Arc<dyn LogStore>, started: &Started) -> Self {
        let progress = Arc::new(Progress::new(started.start));
        let (heartbeat, installation) = (Arc::clone(&started.heartbeat.0), started.installation);
        Self { store, heartbeat, installation, step: Append::Idle { last: started.start }, progress }
    }

    /// How far it has come.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// Whether this server still writes, as far as it knows.
    pub fn check(&self) -> Result<(), WriterEnd> {
        self.heartbeat.ended().map_or(Ok(()), Err)
    }

    /// The next group of the log. `form` is that of the tables.
    pub fn group(&self, form: i64, changes: Vec<RowChange>) -> Result<Bytes, serde_json::Error> {
        let at = self.progress.last().next();
        Ok(Group { installation: self.installation, at, form, changes }.encode()?.into())
    }

    /// Writes the next group. When this returns, the log has it, and the ledger must take it over before the next one: see
    /// [`Self::committed`]. It repeats the request until the store answers, because a request that failed may have written the group.
    /// It may be dropped only if the process ends.
    pub async fn append(&mut self, group: &Bytes) -> Result<(), WriterEnd> {
        self.check()?;
        self.step = self.step.begin();
        let progress = Arc::clone(&self.progress);
        let mut writing = pin!(self.write(group));
        let written = if let Ok(written) = timeout(STALLED, &mut writing).await {
            written
        } else {
            progress.is_stalled.send_replace(true);
            writing.await
        };
        progress.is_stalled.send_replace(false);
        written
    }

    /// The ledger has the group. If it could not take it, this server ends, because its ledger and its log differ.
    pub fn committed(&self, is_committed: bool, group: &Bytes) {
        if !is_committed {
            self.heartbeat.end(WriterEnd::NotCommitted);
        }
        let mut state = lock(&self.progress.state);
        if let Append::Idle { last } = self.step {
            state.last = last;
            self.heartbeat.reached(last);
        }
        state.bytes += group.len() as u64;
    }

    async fn write(&mut self, group: &Bytes) -> Result<(), WriterEnd> {
        let mut fails = false;
        loop {
            let answered = match self.step {
                Append::Idle { .. } => return self.check(),
                Append::Ended => return self.check().and(Err(WriterEnd::Superseded)),
                Append::Put(at) => self.store.write_group(at, group.clone()).await.map(|()| Answer::Done),
                Append::Check(_) => self.heartbeat.seen().await.map(Answer::Stamp),
            };
            let error = match answered {
                Ok(answer) => {
                    self.step = self.step.answered(answer);
                    continue;
                }
                Err(error) => error,
            };
            tell(&error, &mut fails);
            // A deletion makes room, and needs some.
            let has_room = error.is_full() && self.heartbeat.make_room().await;
            if !has_room {
                sleep(RETRY).await;
            }
            self.check()?;
        }
    }
}

/// Says once for each group that the store fails.
fn tell(error: &LogError, fails: &mut bool) {
    if !*fails {
        tracing::warn!(
            error = %chain(error),
            "a change could not be written to the log in the bucket; it is tried again until it is there"
        );
    }
    *fails = true;
}
