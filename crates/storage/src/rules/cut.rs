//! Downloads that can be ended from outside. A client that takes nothing more is never asked for the next piece, so what the
//! download holds is taken away from it.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use futures_util::{Stream, StreamExt as _};

use super::transfers::Transfer;
use crate::store::{BlobStream, StoreError};
use cloakroom_core::lock::lock;

/// The parts of a download in flight. They are dropped in this order. So at the end of the transfer, the blob is closed.
pub(super) struct OpenBlob {
    pub(super) pieces: BlobStream,
    pub(super) transfer: Transfer,
}

/// A download that is being read, for the one who may cut it off.
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
