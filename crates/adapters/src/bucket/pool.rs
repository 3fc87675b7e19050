//! The memory that all transfers to and from a bucket share.

mod queue;

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cloakroom_core::client::Client;
use cloakroom_core::lock::lock;
use cloakroom_core::metrics::{LimitUse, Limited};
use cloakroom_storage::store::StoreError;
use tokio::time::{Instant, timeout};

use queue::{Lent, Queue};

/// Memory is given out in units of this many bytes.
const UNIT: u64 = 1 << 10;

/// How long transfers keep memory while others wait for it.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// How often a transfer that waits looks for what can be taken back.
    look: Duration,
    /// A download whose client has not taken its last piece for longer is slow.
    slow_download: Duration,
    /// How long a download keeps its memory at least while another one of the same client waits.
    turn: Duration,
    /// How long a transfer waits before an upload has to give its part up.
    wait: Duration,
    /// An upload that takes longer to fill a part is slow.
    slow_upload: Duration,
}

const PATIENCE: Patience = Patience {
    look: Duration::from_millis(50),
    slow_download: Duration::from_millis(50),
    turn: Duration::from_secs(1),
    wait: Duration::from_secs(10),
    slow_upload: Duration::from_secs(30),
};

/// A bound for the memory of transfers. Clones share it.
///
/// An upload takes memory for a whole part before the first byte of it: with memory for pieces, all uploads could wait for the rest
/// of their parts. But slow clients would then hold all of it for long. So next is who has least of it, and a client that has more
/// than an equal share gives back what its slow transfers hold while others wait.
#[derive(Debug, Clone)]
pub struct Pool(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    queue: Mutex<Queue>,
    patience: Patience,
}

/// Memory that was taken. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    pool: Pool,
    client: Client,
    units: u32,
    at: Instant,
}

/// Something with its memory, while its client is waited for. The pool may take both back.
#[derive(Debug)]
pub(super) struct Pause<T> {
    pool: Pool,
    /// `None` if the pool may not take it back.
    number: Option<u64>,
    slot: Slot<T>,
}

type Slot<T> = Arc<Mutex<Option<(T, Taken)>>>;

/// What can be taken back.
trait Revoke: Send + Sync {
    fn revoke(&self);
}

impl<T: Send> Revoke for Mutex<Option<(T, Taken)>> {
    fn revoke(&self) {
        let taken = lock(self).take();
        drop(taken);
    }
}

/// What kind of transfer waits for its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// It loses what it has of the part, so it fails.
    Upload,
    /// It can ask the store again.
    Download,
}

impl Pool {
    /// A pool of `bytes`.
    pub fn new(bytes: u64) -> Self {
        Self::with_patience(bytes, PATIENCE)
    }

    fn with_patience(bytes: u64, patience: Patience) -> Self {
        let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX);
        Self(Arc::new(Parts { queue: Mutex::new(Queue::new(units)), patience }))
    }

    /// Waits until `client` may have `bytes`, or all of the pool if it is smaller.
    pub(super) async fn take(&self, client: &Client, bytes: u64) -> Taken {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let mut waiting = pin!(self.queue().enter(client, units));
        self.hand_on();
        loop {
            let look = self.0.patience.look;
            // There is no error: the queue drops a sender only after its receiver is gone.
            if let Ok(Ok(taken)) = timeout(look, waiting.as_mut()).await {
                return taken;
            }
            if self.queue().should_look(look) {
                self.hand_on();
            }
        }
    }

    /// How much of it is taken or waited for, which may be more than there is.
    pub fn uses(&self) -> LimitUse {
        let (used, all) = self.queue().used();
        LimitUse { of: Limited::StoreMemory, used: used * UNIT, limit: all * UNIT }
    }

    /// Keeps something with its memory while its client is waited for.
    fn pause<T: Send + 'static>(&self, kind: Direction, what: T, taken: Taken) -> Pause<T> {
        let (client, units, taken_at) = (taken.client.clone(), taken.units, taken.at);
        let slot = Slot::new(Mutex::new(Some((what, taken))));
        let lent = Lent {
            client,
            kind,
            units,
            since: Instant::now(),
            taken_at,
            memory: Arc::clone(&slot) as Arc<dyn Revoke>,
        };
        let number = Some(self.queue().lend(lent));
        Pause { pool: self.clone(), number, slot }
    }

    /// The same for what must not be taken back.
    pub(super) fn keep<T>(&self, what: T, taken: Taken) -> Pause<T> {
        Pause { pool: self.clone(), number: None, slot: Slot::new(Mutex::new(Some((what, taken)))) }
    }

    /// The same for a download.
    pub(super) fn pause_download<T: Send + 'static>(&self, what: T, taken: Taken) -> Pause<T> {
        self.pause(Direction::Download, what, taken)
    }

    /// Gives what is free to those who wait, and takes back what slow clients hold if that is not enough.
    fn hand_on(&self) {
        let (unclaimed, revoked) = {
            let mut queue = self.queue();
            (queue.give(self), queue.revoke(&self.0.patience))
        };
        // Not under the lock, which memory takes when it comes back.
        drop(unclaimed);
        for memory in revoked {
            memory.revoke();
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.0.queue)
    }
}

impl Taken {
    fn new(pool: &Pool, client: Client, units: u32) -> Self {
        Self { pool: pool.clone(), client, units, at: Instant::now() }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let unclaimed = {
            let mut queue = self.pool.queue();
            queue.give_back(&self.client, self.units);
            queue.give(&self.pool)
        };
        drop(unclaimed);
    }
}

impl<T> Pause<T> {
    /// The thing and its memory; `None` if the pool has taken both back.
    pub(super) fn end(self) -> Option<(T, Taken)> {
        lock(&self.slot).take()
    }

    /// Does something with the thing, if it is still there.
    fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        lock(&self.slot).as_mut().map(|(what, _)| act(what))
    }
}

impl<T> Drop for Pause<T> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.pool.queue().end(number);
        }
    }
}

/// A part of an upload that is being filled.
#[derive(Debug)]
pub(in crate::bucket) struct Part {
    filled: Pause<BytesMut>,
    bytes: usize,
}

impl Pool {
    /// Waits until `client` may have memory for a part of `bytes`.
    pub(in crate::bucket) async fn part(&self, client: &Client, bytes: usize) -> Part {
        let taken = self.take(client, bytes as u64).await;
        Part { filled: self.pause(Direction::Upload, BytesMut::with_capacity(bytes), taken), bytes }
    }
}

impl Part {
    /// Takes bytes out of `from` until the part is full. Returns whether it is.
    pub(in crate::bucket) fn fill(&self, from: &mut Bytes) -> Result<bool, StoreError> {
        let filled = self.filled.with(|filled| {
            let room = self.bytes - filled.len();
            filled.extend_from_slice(&from.split_to(from.len().min(room)));
            filled.len() == self.bytes
        });
        filled.ok_or(StoreError::TooSlow)
    }

    /// The bytes of the part, and the memory for them.
    pub(in crate::bucket) fn take(self) -> Result<(Bytes, Taken), StoreError> {
        let (bytes, memory) = self.filled.end().ok_or(StoreError::TooSlow)?;
        Ok((bytes.freeze(), memory))
    }
}

#[cfg(test)]
mod tests;
