//! The memory that all transfers to and from a bucket share.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cloakroom_storage::store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// Memory is given out in units of this many bytes.
const UNIT: u64 = 1 << 10;

/// How long a transfer waits for memory before the slowest upload has to give its part up.
const WAIT: Duration = Duration::from_secs(10);

/// An upload that takes longer to fill a part is slow.
const SLOW: Duration = Duration::from_secs(30);

/// A bound for the memory of transfers. Clones share it.
///
/// An upload takes memory for a whole part before the first byte of it: with memory for pieces, all uploads could wait for the rest
/// of their parts. But slow clients would then hold all of it for long, so they give way to others.
#[derive(Debug, Clone)]
pub struct Pool {
    free: Arc<Semaphore>,
    /// All memory, in units.
    units: u32,
    filling: Arc<Mutex<Filling>>,
    wait: Duration,
    slow: Duration,
}

/// The parts that are being filled, by number, so the oldest first.
#[derive(Debug, Default)]
struct Filling {
    parts: BTreeMap<u64, (Instant, Buffer)>,
    next: u64,
}

/// The bytes of a part; `None` when it was sent or given up.
type Buffer = Arc<Mutex<Option<Filled>>>;

#[derive(Debug)]
struct Filled {
    bytes: BytesMut,
    memory: Taken,
}

/// Memory that was taken. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Taken(
    #[expect(dead_code, reason = "only its drop does something")] Option<OwnedSemaphorePermit>,
);

/// A part of an upload that is being filled.
#[derive(Debug)]
pub(super) struct Part {
    pool: Pool,
    number: u64,
    buffer: Buffer,
    bytes: usize,
}

impl Pool {
    /// A pool of `bytes`.
    pub fn new(bytes: u64) -> Self {
        Self::with_patience(bytes, WAIT, SLOW)
    }

    fn with_patience(bytes: u64, wait: Duration, slow: Duration) -> Self {
        let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX);
        let free = Semaphore::new(usize::try_from(units).unwrap_or(Semaphore::MAX_PERMITS));
        Self { free: Arc::new(free), units, filling: Arc::default(), wait, slow }
    }

    /// Waits until `bytes` are free, or all of the pool if it is smaller. Those who ask first get theirs first.
    pub(super) async fn take(&self, bytes: u64) -> Taken {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.units);
        let mut taking = pin!(Arc::clone(&self.free).acquire_many_owned(units));
        loop {
            match timeout(self.wait, taking.as_mut()).await {
                // The semaphore is never closed.
                Ok(taken) => return Taken(taken.ok()),
                Err(_) => self.end_slowest(),
            }
        }
    }

    /// Waits until there is memory for a part of `bytes`.
    pub(super) async fn part(&self, bytes: usize) -> Part {
        let memory = self.take(bytes as u64).await;
        let filled = Filled { bytes: BytesMut::with_capacity(bytes), memory };
        let buffer = Buffer::new(Mutex::new(Some(filled)));
        let mut filling = self.filling();
        let number = filling.next;
        filling.next += 1;
        filling.parts.insert(number, (Instant::now(), Arc::clone(&buffer)));
        Part { pool: self.clone(), number, buffer, bytes }
    }

    /// Frees the memory of the part that is being filled for the longest time, if that is too long.
    fn end_slowest(&self) {
        let slowest = {
            let mut filling = self.filling();
            let oldest = filling.parts.first_entry();
            oldest.filter(|oldest| oldest.get().0.elapsed() >= self.slow).map(|oldest| oldest.remove().1)
        };
        drop(slowest.and_then(|slowest| lock(&slowest).take()));
    }

    fn filling(&self) -> MutexGuard<'_, Filling> {
        lock(&self.filling)
    }
}

impl Part {
    /// Takes bytes out of `from` until the part is full. Returns whether it is.
    pub(super) fn fill(&self, from: &mut Bytes) -> Result<bool, StoreError> {
        let mut buffer = lock(&self.buffer);
        let filled = buffer.as_mut().ok_or_else(given_up)?;
        let room = self.bytes - filled.bytes.len();
        filled.bytes.extend_from_slice(&from.split_to(from.len().min(room)));
        Ok(filled.bytes.len() == self.bytes)
    }

    /// The bytes of the part, and the memory for them.
    pub(super) fn take(self) -> Result<(Bytes, Taken), StoreError> {
        let Filled { bytes, memory } = lock(&self.buffer).take().ok_or_else(given_up)?;
        Ok((bytes.freeze(), memory))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.pool.filling().parts.remove(&self.number);
    }
}

fn given_up() -> StoreError {
    let why = "other transfers waited for memory (--store-memory), and this upload was the slowest";
    StoreError::Throttled(why.into())
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: usize = 10 << 10;
    const SHORT: Duration = Duration::from_millis(30);
    const LONG: Duration = Duration::from_hours(1);

    fn bytes(count: usize) -> Bytes {
        Bytes::from(vec![7; count])
    }

    #[tokio::test]
    async fn a_part_has_its_memory_until_it_was_sent() {
        let pool = Pool::with_patience(2 * PART as u64, SHORT, LONG);
        let (first, _second) = (pool.part(PART).await, pool.part(PART).await);
        let mut from = bytes(PART + 1);
        assert!(first.fill(&mut from).unwrap() && from.len() == 1);
        let (sent, memory) = first.take().unwrap();
        assert_eq!(sent, bytes(PART));
        let mut waiting = pin!(pool.take(PART as u64));
        assert!(timeout(4 * SHORT, waiting.as_mut()).await.is_err(), "no client is slow");
        drop(memory);
        waiting.await;
    }

    #[tokio::test]
    async fn slow_clients_give_their_memory_up_when_others_wait_and_only_then() {
        let pool = Pool::with_patience(2 * PART as u64, SHORT, Duration::ZERO);
        let slow = [pool.part(PART).await, pool.part(PART).await];
        for part in &slow {
            assert!(!part.fill(&mut bytes(1)).unwrap());
        }
        let _memory = pool.take(PART as u64).await;
        assert!(matches!(slow[0].fill(&mut bytes(1)), Err(StoreError::Throttled(_))), "the oldest");
        slow[1].fill(&mut bytes(1)).unwrap();
        let _more = pool.take(PART as u64).await;
        let [_, second] = slow;
        assert!(matches!(second.take(), Err(StoreError::Throttled(_))));
    }

    #[tokio::test]
    async fn a_part_that_is_dropped_gives_its_memory_back_at_once() {
        let pool = Pool::with_patience(PART as u64, LONG, LONG);
        drop(pool.part(PART).await);
        pool.take(u64::MAX).await;
        assert!(pool.filling().parts.is_empty());
    }
}
