//! The beats of a server that writes: it replaces its stamp every few seconds, so that others see that it is there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{LogError, LogStore, Object, Position, WriterEnd, WriterStamp, WriterState};
use cloakroom_core::lock::lock;
use cloakroom_core::text::chain;

/// A server that has claimed an epoch.
pub struct Heartbeat {
    store: Arc<dyn LogStore>,
    claimed: WriterStamp,
    /// The stamp that this server wrote last. Held while it is replaced.
    stamp: tokio::sync::Mutex<WriterStamp>,
    /// What the next stamp says.
    says: Mutex<(Position, WriterState)>,
    /// Whether the reserve of the bucket was freed, and is not there again.
    is_short_of_room: AtomicBool,
    /// Whether the last beat failed.
    fails: AtomicBool,
    /// Cancelled once this server must not write any more.
    over: CancellationToken,
    end: OnceLock<WriterEnd>,
}

impl Heartbeat {
    /// Begins to beat. The beats end with the second value.
    pub fn begin(
        store: Arc<dyn LogStore>,
        claimed: WriterStamp,
        interval: Duration,
    ) -> (Arc<Self>, AbortOnDropHandle<()>) {
        let heartbeat = Arc::new(Self {
            store,
            claimed,
            stamp: claimed.into(),
            says: Mutex::new((claimed.reached, claimed.state)),
            is_short_of_room: AtomicBool::new(false),
            fails: AtomicBool::new(false),
            over: CancellationToken::new(),
            end: OnceLock::new(),
        });
        let beats = Arc::clone(&heartbeat).beats(interval);
        (heartbeat, AbortOnDropHandle::new(tokio::spawn(beats)))
    }

    /// The epoch of this server.
    pub fn epoch(&self) -> u64 {
        self.claimed.epoch
    }

    /// Why this server writes no more; `None` while it does.
    pub fn ended(&self) -> Option<WriterEnd> {
        self.end.get().copied()
    }

    /// Waits until this server must not write any more.
    pub async fn over(&self) -> WriterEnd {
        self.over.cancelled().await;
        self.ended().unwrap_or(WriterEnd::Superseded)
    }

    /// Ends it. Only the first reason counts.
    pub(super) fn end(&self, why: WriterEnd) {
        let _ = self.end.set(why);
        self.over.cancel();
    }

    /// What the beats say from now on.
    pub fn say(&self, state: WriterState) {
        lock(&self.says).1 = state;
    }

    /// Where the log is, as the beats say it from now on.
    pub(super) fn reached(&self, place: Position) {
        lock(&self.says).0 = place;
    }

    /// Frees some room of a full bucket. Returns `false` if there was none to free.
    pub(super) async fn make_room(&self) -> bool {
        self.is_short_of_room.store(true, Ordering::Relaxed);
        // What was to be written has its own error.
        self.store.make_room().await.unwrap_or(false)
    }

    /// Keeps room in reserve, so that deletions can be logged in a full bucket.
    pub async fn keep_reserve(&self) {
        match self.store.keep_reserve().await {
            Ok(()) => self.is_short_of_room.store(false, Ordering::Relaxed),
            Err(error) if error.is_full() => self.is_short_of_room.store(true, Ordering::Relaxed),
            // It says nothing about the room.
            Err(_) => {}
        }
    }

    /// Whether the stamp could not be renewed.
    pub fn fails(&self) -> bool {
        self.fails.load(Ordering::Relaxed)
    }

    /// Whether the bucket has no room but for deletions.
    pub fn is_short_of_room(&self) -> bool {
        self.is_short_of_room.load(Ordering::Relaxed)
    }

    /// An absent stamp is an error, because no server removes it.
    async fn stamp_there(&self) -> Result<WriterStamp, LogError> {
        let stamp = self.store.stamp().await?;
        stamp.ok_or_else(|| LogError::NoStamp(self.store.shown(Object::Stamp)))
    }

    /// Reads the stamp, and returns its epoch.
    pub async fn seen(&self) -> Result<u64, LogError> {
        let stamp = self.stamp_there().await?;
        if !stamp.is_of_writer_of(&self.claimed) {
            self.end(WriterEnd::Superseded);
        }
        Ok(stamp.epoch)
    }

    /// Replaces the stamp by the next one. If another one is there, its epoch says whose it is: an answer may have been lost.
    pub async fn beat(&self) -> Result<(), LogError> {
        let mut stamp = self.stamp.lock().await;
        let (reached, state) = *lock(&self.says);
        let next = stamp.next(reached, state);
        if self.store.replace_stamp(Some(*stamp), next).await? {
            *stamp = next;
            return Ok(());
        }
        let found = self.stamp_there().await?;
        if found.is_of_writer_of(&self.claimed) {
            *stamp = found;
        } else {
            self.end(WriterEnd::Superseded);
        }
        Ok(())
    }

    async fn beats(self: Arc<Self>, interval: Duration) {
        let mut told = None;
        while self.end.get() != Some(&WriterEnd::Superseded) {
            tokio::time::sleep(interval).await;
            let failed = self.beat().await.err();
            if failed.as_ref().is_some_and(LogError::is_full) {
                self.make_room().await;
            }
            self.fails.store(failed.is_some(), Ordering::Relaxed);
            let kind = failed.as_ref().map(std::mem::discriminant);
            match &failed {
                _ if kind == told => {}
                // A beat that fails ends nothing: the stamp is still this server's.
                Some(error) => {
                    tracing::warn!(error = %chain(error), "the stamp of the server could not be renewed; it is tried again");
                }
                None => tracing::info!("the stamp of the server is renewed again"),
            }
            told = kind;
        }
    }
}
