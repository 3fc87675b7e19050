//! Reads a stored blob, on threads that may block.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use bytes::Bytes;
use cloakroom_core::lock::lock;
use cloakroom_core::resource::BlobKey;
use futures_util::{StreamExt as _, TryFutureExt as _, stream};
use rustix::fs::OFlags;
use tokio::sync::OnceCell;

use super::buffers::{Buffer, Buffers};
use super::calls::DiskCalls;
use super::root::Root;
use super::{Counted, Counter, DiskError, directory};
use cloakroom_storage::store::{BlobStream, StoreError};

/// How many bytes are read at a time. Large pieces are faster while few blobs are read; small ones save memory when
/// there are many. There are only these two sizes, so that buffers can be used again.
const LARGE_PIECE: usize = 512 << 10;
const SMALL_PIECE: usize = 128 << 10;
const FEW_READERS: usize = 4;

/// How many pieces are read ahead of the network.
const PIECES_AHEAD: usize = 2;

pub(super) struct DiskBlob {
    reader: Arc<Reader>,
}

struct Reader {
    file: Arc<OpenFile>,
    /// Counts the file as open.
    _slot: Arc<Slot>,
    path: PathBuf,
    calls: DiskCalls,
    buffers: Arc<Buffers>,
    others: Counted,
}

/// The parts that all readers of one store share.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    root: Arc<Root>,
    calls: DiskCalls,
    pub(super) open: Arc<OpenFiles>,
    buffers: Arc<Buffers>,
    readers: Counter,
}

impl Reading {
    /// Readers with at most `most` blobs open at once.
    pub(super) fn new(root: Arc<Root>, calls: DiskCalls, most: usize) -> Self {
        let open = Arc::new(OpenFiles::new(most));
        Self { root, calls, open, buffers: Arc::default(), readers: Counter::default() }
    }
}

/// The blobs that are open. A blob that is downloaded many times at once takes one descriptor.
#[derive(Debug)]
pub(super) struct OpenFiles {
    slots: Mutex<HashMap<BlobKey, Weak<Slot>>>,
    most: usize,
}

/// The place of an open blob. The first reader takes it and opens the file; others wait for that, without a thread.
#[derive(Debug, Default)]
struct Slot(OnceCell<Arc<OpenFile>>);

#[derive(Debug)]
struct OpenFile {
    file: File,
    size_bytes: u64,
}

impl OpenFiles {
    pub(super) fn new(most: usize) -> Self {
        Self { slots: Mutex::default(), most }
    }

    /// Makes the next opening of a blob look at the disk again. Readers that have the file open keep it.
    pub(super) fn forget(&self, key: BlobKey) {
        lock(&self.slots).remove(&key);
    }

    /// How many files are open, and how many may be open; `None` if there is no limit.
    pub(super) fn count(&self) -> Option<(usize, usize)> {
        let open = lock(&self.slots).values().filter(|slot| slot.strong_count() > 0).count();
        (self.most < usize::MAX).then_some((open, self.most))
    }

    /// The slot of a blob. The lock is never held while a file is opened, because a disk may take any time for that.
    fn slot(&self, key: BlobKey) -> Option<Arc<Slot>> {
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.get(&key).and_then(Weak::upgrade) {
            return Some(slot);
        }
        slots.retain(|_, slot| slot.strong_count() > 0);
        if slots.len() >= self.most {
            return None;
        }
        let slot = Arc::new(Slot::default());
        slots.insert(key, Arc::downgrade(&slot));
        Some(slot)
    }
}

impl DiskBlob {
    /// Opens the blob of `key`, which has `size_bytes`.
    pub(super) async fn open(key: BlobKey, size_bytes: u64, reading: Reading) -> Result<Self, DiskError> {
        let Reading { root, calls, open, buffers, readers } = reading;
        let name = directory::bundle(key);
        let path = root.shown(&name);
        let Some(slot) = open.slot(key) else { return Err(DiskError::OutOfDescriptors { path }) };
        let opened = slot.0.get_or_try_init(|| calls.run(move || OpenFile::open(&root, &name).map(Arc::new)));
        let file = match opened.await {
            Ok(file) => Arc::clone(file),
            Err(DiskError::Io { path, source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Err(DiskError::NoBundle { path });
            }
            Err(error) => return Err(error),
        };
        if file.size_bytes != size_bytes {
            return Err(DiskError::OtherSize { path, size_bytes: file.size_bytes, expected: size_bytes });
        }
        let reader = Reader { file, _slot: slot, path, calls, buffers, others: readers.one_more() };
        Ok(Self { reader: Arc::new(reader) })
    }

    /// The bytes in `ranges`. Fewer of them are an error.
    pub(super) fn read(self, ranges: Vec<Range<u64>>) -> BlobStream {
        let Self { reader } = self;
        let open = Arc::clone(&reader);
        let pieces = stream::iter(ranges).flat_map(move |range| {
            let open = Arc::clone(&open);
            stream::unfold(range.start, move |from| {
                let length = if open.others.count() <= FEW_READERS { LARGE_PIECE } else { SMALL_PIECE };
                let to = range.end.min(from.saturating_add(length as u64));
                std::future::ready((from < range.end).then_some((from..to, to)))
            })
        });
        let read = move |piece| Arc::clone(&reader).read(piece).map_err(StoreError::from);
        pieces.map(read).buffered(PIECES_AHEAD).boxed()
    }
}

impl OpenFile {
    /// Opens without waiting for a pipe and without following a link: the store made neither.
    fn open(root: &Root, name: &Path) -> Result<Self, DiskError> {
        let failed = |error| DiskError::io("open", root.shown(name), error);
        let file = root.open(name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK, "open")?;
        let found = file.metadata().map_err(failed)?;
        if !found.is_file() {
            return Err(failed(io::Error::other("it is not a regular file")));
        }
        // A hint that makes the kernel read further ahead. Without it reading works, but is slower from a cold disk.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Sequential);
        Ok(Self { file, size_bytes: found.len() })
    }
}

impl Reader {
    async fn read(self: Arc<Self>, piece: Range<u64>) -> Result<Bytes, DiskError> {
        let calls = self.calls.clone();
        calls
            .run(move || {
                let length = usize::try_from(piece.end - piece.start).unwrap_or(usize::MAX);
                read_exactly(&self.file.file, piece.start, self.buffers.take(length))
                    .map_err(|error| DiskError::io("read", &self.path, error))
            })
            .await
    }
}

/// Fewer bytes than the buffer holds are an error, because their number was promised.
fn read_exactly(file: &File, offset: u64, mut buffer: Buffer) -> io::Result<Bytes> {
    file.read_exact_at(buffer.bytes_mut(), offset)?;
    Ok(buffer.into_bytes())
}
