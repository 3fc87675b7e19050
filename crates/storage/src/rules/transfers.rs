//! The downloads that this process is sending, and the resources that take no more of them. Whether a resource may still be
//! downloaded is decided here, under one lock and before the ledger is asked to delete it: `open → closing → closed`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use futures_util::{Stream, StreamExt as _};
use tokio_util::sync::CancellationToken;

use super::{AccessError, Limits};
use crate::store::{BlobStream, StoreError};
use cloakroom_core::lock::lock;
use cloakroom_core::metrics::{LimitUse, Limited};
use cloakroom_core::resource::{Holder, ResourceId};

/// The register of downloads in flight.
#[derive(Debug)]
pub(super) struct Transfers {
    limits: Limits,
    in_flight: Mutex<InFlight>,
}

#[derive(Debug, Default)]
struct InFlight {
    downloads: usize,
    by_resource: HashMap<ResourceId, Readers>,
    /// Empty if there are no shares.
    by_holder: HashMap<Holder, usize>,
    /// The resources that are not open.
    closing: HashMap<ResourceId, Closing>,
}

/// The downloads of one resource.
#[derive(Debug, Default)]
struct Readers {
    count: usize,
    /// Those that have begun to read. Some may have ended.
    reading: Vec<Weak<Reading>>,
    /// Whether all of them must end.
    is_cut: bool,
    /// Cancelled when the last one has ended.
    closed: CancellationToken,
}

#[derive(Debug)]
enum Closing {
    /// The ledger is asked. Cancelled when it has answered.
    Asked(CancellationToken),
    /// The ledger was asked, and it is not known what it has written.
    Unknown,
    /// The deletion is written, and the bytes are not removed yet.
    Closed,
}

/// What a resource lets its caller do.
pub(super) enum Gate<T> {
    /// It is open.
    Open(T),
    /// Its deletion is being decided. Cancelled when that is over.
    Closing(CancellationToken),
    /// The row must say what became of an earlier decision.
    Unknown(Decision),
    /// It is deleted.
    Closed,
}

/// The right to say whether a resource is deleted. If it is dropped without a word, the row must say it.
#[derive(Debug)]
pub(super) struct Decision {
    transfers: Arc<Transfers>,
    id: ResourceId,
}

impl Transfers {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, in_flight: Mutex::default() }
    }

    /// Registers a download that counts for `holder`. Returns an error if there are too many.
    pub(super) fn begin_download(
        self: &Arc<Self>,
        id: ResourceId,
        holder: &Holder,
    ) -> Result<Gate<Transfer>, AccessError> {
        let most = self.limits.max_concurrent_downloads;
        let holder = self.limits.share.map(|_| holder);
        let mut in_flight = lock(&self.in_flight);
        if let Some(closing) = in_flight.closing.get_mut(&id) {
            return Ok(closing.gate(self, id));
        }
        if let (Some(share), Some(holder)) = (self.limits.share, holder) {
            let limit = share.of(most as u64);
            if in_flight.by_holder.get(holder).copied().unwrap_or(0) as u64 >= limit {
                return Err(AccessError::TooManyDownloadsOf { holder: holder.clone(), limit });
            }
        }
        if in_flight.downloads >= most {
            return Err(AccessError::TooManyDownloads);
        }
        in_flight.downloads += 1;
        in_flight.by_resource.entry(id).or_default().count += 1;
        if let Some(holder) = holder {
            *in_flight.by_holder.entry(holder.clone()).or_default() += 1;
        }
        Ok(Gate::Open(Transfer { transfers: Arc::clone(self), id, holder: holder.cloned() }))
    }

    /// Closes a resource before the ledger is asked to delete it. `None` if a download is in flight, unless it is deleted
    /// `even_if_downloading`.
    pub(super) fn begin_deletion(
        self: &Arc<Self>,
        id: ResourceId,
        even_if_downloading: bool,
    ) -> Gate<Option<Decision>> {
        let mut in_flight = lock(&self.in_flight);
        if let Some(closing) = in_flight.closing.get_mut(&id) {
            return closing.gate(self, id);
        }
        if !even_if_downloading && in_flight.by_resource.contains_key(&id) {
            return Gate::Open(None);
        }
        in_flight.closing.insert(id, Closing::Asked(CancellationToken::new()));
        Gate::Open(Some(Decision { transfers: Arc::clone(self), id }))
    }

    /// Forgets a resource whose deletion is finished: its row tells that it is gone.
    pub(super) fn deletion_finished(&self, id: ResourceId) {
        self.decided(id, None);
    }

    fn decided(&self, id: ResourceId, closing: Option<Closing>) {
        let mut in_flight = lock(&self.in_flight);
        let before = match closing {
            Some(closing) => in_flight.closing.insert(id, closing),
            None => in_flight.closing.remove(&id),
        };
        if let Some(Closing::Asked(answered)) = before {
            answered.cancel();
        }
    }

    /// Waits until no download of this resource is in flight. Cuts them off after `patience`.
    pub(super) async fn end(&self, id: ResourceId, patience: Duration) {
        let Some(closed) = lock(&self.in_flight).by_resource.get(&id).map(|readers| readers.closed.clone())
        else {
            return;
        };
        if tokio::time::timeout(patience, closed.cancelled()).await.is_err() {
            self.cut_off(id);
            closed.cancelled().await;
        }
    }

    fn cut_off(&self, id: ResourceId) {
        let reading = match lock(&self.in_flight).by_resource.get_mut(&id) {
            Some(readers) => {
                readers.is_cut = true;
                std::mem::take(&mut readers.reading)
            }
            None => return,
        };
        // Not under the lock: what ends takes it.
        for reading in reading.iter().filter_map(Weak::upgrade) {
            reading.cut_off();
        }
    }

    pub(super) fn is_downloading(&self, id: ResourceId) -> bool {
        lock(&self.in_flight).by_resource.contains_key(&id)
    }

    pub(super) fn downloads(&self) -> usize {
        lock(&self.in_flight).downloads
    }

    /// How much of the limit of downloads is used, and of its share by the holder with the most downloads.
    pub(super) fn uses(&self) -> Vec<LimitUse> {
        let (in_flight, most) = (lock(&self.in_flight), self.limits.max_concurrent_downloads);
        let of_share = self.limits.share.map(|share| LimitUse {
            of: Limited::ShareOfDownloads,
            used: in_flight.by_holder.values().copied().max().unwrap_or(0) as u64,
            limit: share.of(most as u64),
        });
        let all = LimitUse::from_counts(Limited::Downloads, in_flight.downloads, most);
        std::iter::once(all).chain(of_share).collect()
    }
}

impl Closing {
    /// The caller of an unknown one gets the decision, and the next callers wait for it.
    fn gate<T>(&mut self, transfers: &Arc<Transfers>, id: ResourceId) -> Gate<T> {
        match self {
            Self::Asked(answered) => Gate::Closing(answered.clone()),
            Self::Closed => Gate::Closed,
            Self::Unknown => {
                *self = Self::Asked(CancellationToken::new());
                Gate::Unknown(Decision { transfers: Arc::clone(transfers), id })
            }
        }
    }
}

impl Decision {
    /// The resource that is decided about.
    pub(super) fn id(&self) -> ResourceId {
        self.id
    }

    /// Ends it: the resource is deleted, or stays.
    pub(super) fn is(self, deleted: bool) {
        self.transfers.decided(self.id, deleted.then_some(Closing::Closed));
    }
}

impl Drop for Decision {
    fn drop(&mut self) {
        let mut in_flight = lock(&self.transfers.in_flight);
        if let Some(closing) = in_flight.closing.get_mut(&self.id)
            && let Closing::Asked(answered) = closing
        {
            answered.cancel();
            *closing = Closing::Unknown;
        }
    }
}

/// One download in flight. It is registered until it is dropped.
#[derive(Debug)]
pub(super) struct Transfer {
    transfers: Arc<Transfers>,
    id: ResourceId,
    holder: Option<Holder>,
}

impl Transfer {
    /// Begins to read. From then on the download can be cut off.
    pub(super) fn reading(open: OpenBlob) -> Arc<Reading> {
        let (transfers, id) = (Arc::clone(&open.transfer.transfers), open.transfer.id);
        let reading = Reading::new(open);
        let is_cut = match lock(&transfers.in_flight).by_resource.get_mut(&id) {
            Some(readers) => {
                if readers.reading.len() >= 2 * readers.count {
                    readers.reading.retain(|reading| reading.strong_count() > 0);
                }
                readers.reading.push(Arc::downgrade(&reading));
                readers.is_cut
            }
            None => false,
        };
        if is_cut {
            reading.cut_off();
        }
        reading
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        let mut in_flight = lock(&self.transfers.in_flight);
        in_flight.downloads -= 1;
        if let Entry::Occupied(mut readers) = in_flight.by_resource.entry(self.id) {
            readers.get_mut().count -= 1;
            if readers.get().count == 0 {
                readers.remove().closed.cancel();
            }
        }
        if let Some(holder) = &self.holder {
            one_less(&mut in_flight.by_holder, holder);
        }
    }
}

fn one_less(counts: &mut HashMap<Holder, usize>, key: &Holder) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// The parts of a download in flight. They are dropped in this order. So at the end of the transfer, the blob is closed.
pub(super) struct OpenBlob {
    pub(super) pieces: BlobStream,
    pub(super) transfer: Transfer,
}

/// A download that is being read, for the one who may cut it off. A client that takes nothing more is never asked for the next
/// piece, so what the download holds is taken away from it.
pub(super) struct Reading {
    /// `None` once it has ended, or was cut off.
    open: Mutex<Option<OpenBlob>>,
    waker: AtomicWaker,
}

/// The bytes of a download.
pub(super) struct Pieces {
    reading: Arc<Reading>,
    is_over: bool,
}

impl Reading {
    pub(super) fn new(open: OpenBlob) -> Arc<Self> {
        Arc::new(Self { open: Mutex::new(Some(open)), waker: AtomicWaker::new() })
    }

    /// Lets go of everything. The next piece is an error.
    pub(super) fn cut_off(&self) {
        let open = lock(&self.open).take();
        drop(open);
        self.waker.wake();
    }
}

impl Pieces {
    pub(super) fn new(reading: Arc<Reading>) -> Self {
        Self { reading, is_over: false }
    }
}

impl Stream for Pieces {
    type Item = Result<Bytes, StoreError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        self.reading.waker.register(context.waker());
        let polled = match lock(&self.reading.open).as_mut() {
            Some(open) => open.pieces.poll_next_unpin(context),
            None => Poll::Ready(Some(Err(StoreError::Deleted))),
        };
        self.is_over = matches!(polled, Poll::Ready(None | Some(Err(_))));
        polled
    }
}
