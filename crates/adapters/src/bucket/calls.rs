//! The calls to a bucket: how long each may take, which ones are repeated, and what is believed.

use std::future::Future;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloakroom_core::client::Client;
use cloakroom_core::lock::lock;
use cloakroom_core::resource::BlobKey;
use cloakroom_core::retry::{Backoff, Failures};
use cloakroom_storage::store::{BlobFacts, StoreError};
use object_store::path::Path;
use tokio::time::{Instant, sleep, timeout};

use super::api::Api;
use super::failure::CallFailure;
use super::location::Location;
use super::pool::Pool;

/// How long the store may take for a call. A call is not tried again when its first attempt began longer ago.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// How slowly the bytes of a call may go.
const SLOWEST_BYTES_PER_SECOND: u64 = 256 << 10;

/// How slowly a store may put parts together. Some copy them.
const SLOWEST_COPY_PER_SECOND: u64 = 16 << 20;

/// How long the store may take for a call that sends `bytes`.
pub(super) fn to_move(bytes: u64) -> Duration {
    PATIENCE + Duration::from_secs(bytes / SLOWEST_BYTES_PER_SECOND)
}

/// How long the store may take to make one blob of parts with `bytes`.
pub(super) fn to_complete(bytes: u64) -> Duration {
    PATIENCE + Duration::from_secs(bytes / SLOWEST_COPY_PER_SECOND)
}

/// How long the store may take to say whether it has what it was too late to acknowledge. With the time for a part it is less
/// than the minute that clients and proxies wait for an answer.
const LAST_LOOK: Duration = Duration::from_secs(5);

/// A call that succeeded so short a time ago says that the next one will.
const RECENT: Duration = Duration::from_secs(10);

/// How often a call is tried.
const ATTEMPTS: u32 = 4;

const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(200),
    longest: Duration::from_secs(5),
    longest_asked: Duration::from_secs(5),
};

/// A bucket, and what all calls to it share.
pub(super) struct Bucket {
    pub api: Arc<dyn Api>,
    pub location: Location,
    /// Memory for the transfers of clients.
    pub pool: Pool,
    /// Memory for those of the server itself: the copies of its ledger.
    pub own_pool: Pool,
    /// How many bytes a blob may have.
    pub largest: u64,
    /// Whether the store is spoken to without TLS.
    pub is_in_clear: bool,
    /// When a call succeeded last.
    pub succeeded_at: Mutex<Option<Instant>>,
    /// How many objects among the blobs the last listing found that other programs have made.
    pub foreign: AtomicU64,
}

/// The attempts of one call.
pub(super) struct Attempts {
    failures: Failures,
    began: Instant,
}

impl Attempts {
    /// The first one begins now.
    pub fn begin() -> Self {
        Self { failures: Failures::default(), began: Instant::now() }
    }

    /// Whether there is no time for another one.
    fn is_late(&self) -> bool {
        self.began.elapsed() >= PATIENCE
    }

    /// Counts a failure. Waits until the next attempt, and returns whether there may be one.
    pub async fn another(&mut self) -> bool {
        let wait = self.failures.wait(&BACKOFF, None, rand::random());
        let may = self.failures.count() < ATTEMPTS && !self.is_late();
        if may {
            sleep(wait).await;
        }
        may
    }
}

impl Bucket {
    /// The memory that the transfers of `client` share.
    pub fn pool_of(&self, client: &Client) -> &Pool {
        if *client == Client::Server { &self.own_pool } else { &self.pool }
    }

    pub fn path(&self, key: BlobKey) -> Path {
        self.location.blobs().join(key.to_string())
    }

    /// The failure to do `action` on the object at `path`.
    pub fn failure(&self, action: &'static str, path: &Path, error: &object_store::Error) -> CallFailure {
        CallFailure::new(action, self.location.shown(path), error)
    }

    /// There is no answer, or only a part of it, when `action` was to be done on the object at `path`.
    pub fn no_answer(&self, action: &'static str, path: &Path, why: &str) -> CallFailure {
        CallFailure::no_answer(action, self.location.shown(path), why)
    }

    /// The time for `action` on the object at `path` is over, and there is no answer.
    pub fn late(&self, action: &'static str, path: &Path) -> CallFailure {
        CallFailure::late(action, self.location.shown(path))
    }

    /// Deletes the object at `path` if there is one.
    pub async fn remove(&self, path: &Path) -> Result<(), StoreError> {
        let deleted = self.repeated("delete", path, PATIENCE, || self.api.delete(path)).await;
        self.or_absent(deleted).await.map(drop)
    }

    /// Makes a call once, which may take `patience`.
    pub async fn once<T>(
        &self,
        action: &'static str,
        path: &Path,
        patience: Duration,
        call: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, CallFailure> {
        let authenticated = async {
            let authenticated = self.api.authenticate().await;
            authenticated.map_err(|error| self.failure(action, path, &error).of_credentials())?;
            call.await.map_err(|error| self.failure(action, path, &error))
        };
        let answer = timeout(patience, authenticated).await;
        let answer = answer.unwrap_or_else(|_| Err(self.late(action, path)));
        if answer.is_ok() {
            *lock(&self.succeeded_at) = Some(Instant::now());
        }
        answer
    }

    /// Whether the bucket can be read now, as far as the last calls tell. It is asked only if there was none: probes come each
    /// second, and each request costs money.
    pub async fn check(&self) -> Result<(), StoreError> {
        let is_recent = lock(&self.succeeded_at).is_some_and(|at| at.elapsed() < RECENT);
        if is_recent { Ok(()) } else { self.confirm().await }
    }

    /// Makes a call that may be made twice, again while that may help.
    pub async fn repeated<T, F>(
        &self,
        action: &'static str,
        path: &Path,
        patience: Duration,
        call: impl Fn() -> F + Send,
    ) -> Result<T, CallFailure>
    where
        F: Future<Output = object_store::Result<T>> + Send,
    {
        let mut attempts = Attempts::begin();
        loop {
            match self.once(action, path, patience, call()).await {
                Err(failure) if failure.is_temporary() && attempts.another().await => {}
                done => return done,
            }
        }
    }

    /// Makes a call that commits `length` bytes at `path`, until the store has said whether it has them. A path has one upload,
    /// ever: an object there with that size is this one.
    pub async fn committed<T, F>(
        &self,
        action: &'static str,
        path: &Path,
        length: u64,
        patience: Duration,
        call: impl Fn() -> F + Send,
    ) -> Result<(), StoreError>
    where
        F: Future<Output = object_store::Result<T>> + Send,
    {
        let (mut attempts, mut may_be_done) = (Attempts::begin(), false);
        loop {
            let Err(failure) = self.once(action, path, patience, call()).await else { return Ok(()) };
            // An object that stands in the way is this one, too.
            may_be_done |= failure.may_be_done() || failure.is_conflict();
            let patience = if attempts.is_late() { LAST_LOOK } else { PATIENCE };
            match timeout(patience, self.facts(path)).await.unwrap_or(Ok(None)) {
                Ok(Some(found)) if found.size_bytes == length => return Ok(()),
                // The condition of a single request did not let it replace what is there.
                Ok(Some(_)) => return Err(StoreError::Fault(failure.into())),
                Ok(None) | Err(_) => {}
            }
            if !may_be_done && !failure.is_temporary() {
                return Err(failure.into());
            }
            if !attempts.another().await {
                return Err(if may_be_done {
                    StoreError::Unavailable(failure.into())
                } else {
                    failure.into()
                });
            }
        }
    }

    /// What the store says of the object; `None` if it has none.
    pub async fn facts(&self, path: &Path) -> Result<Option<BlobFacts>, StoreError> {
        let found = self.repeated("look at", path, PATIENCE, || self.api.head(path)).await;
        Ok(self.or_absent(found).await?.map(|found| found.facts))
    }

    /// What was found; `None` if the store has said that there is nothing. That is believed only if the bucket is confirmed.
    pub async fn or_absent<T>(&self, found: Result<T, CallFailure>) -> Result<Option<T>, StoreError> {
        match found {
            Err(failure) if failure.is_absence() => self.confirm().await.map(|()| None),
            found => Ok(Some(found?)),
        }
    }

    /// Confirms that the bucket exists and can be read. A 404 alone does not say that: a missing bucket gives it as well, and in a
    /// bucket the answer to HEAD has no code.
    pub async fn confirm(&self) -> Result<(), StoreError> {
        let path = self.location.stamp();
        match self.repeated("read", &path, PATIENCE, || self.api.confirm(&path)).await {
            Err(failure) if !failure.is_absent_object() => return Err(failure.into()),
            // That there is no such object is an answer, too.
            _ => *lock(&self.succeeded_at) = Some(Instant::now()),
        }
        Ok(())
    }
}
