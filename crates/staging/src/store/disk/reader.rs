//! Reads a stored blob, on threads that may block.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};

use super::buffers::{Buffer, Buffers};
use super::counter::{Counted, Counter};
use super::{StoreError, blocking};
use crate::store::StoredBlob;

/// How many bytes are read at a time. Large pieces are faster while few blobs are read; small ones save memory when
/// there are many. There are only these two sizes, so that buffers can be used again.
const LARGE_PIECE: usize = 512 << 10;
const SMALL_PIECE: usize = 128 << 10;
const FEW_READERS: usize = 4;

/// How many pieces are read ahead of the network.
const PIECES_AHEAD: usize = 2;

pub(super) struct DiskBlob {
    reader: Arc<Reader>,
    size_bytes: u64,
}

struct Reader {
    file: Arc<OpenFile>,
    path: PathBuf,
    buffers: Arc<Buffers>,
    others: Counted,
}

/// The parts that all readers of one store share.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) open: Arc<OpenFiles>,
    buffers: Arc<Buffers>,
    readers: Counter,
}

impl Reading {
    /// Readers with at most `most` blobs open at once.
    pub(super) fn new(most: usize) -> Self {
        Self { open: Arc::new(OpenFiles::new(most)), buffers: Arc::default(), readers: Counter::default() }
    }
}

/// The blobs that are open. A blob that is downloaded many times at once takes one descriptor.
#[derive(Debug)]
pub(super) struct OpenFiles {
    files: Mutex<HashMap<PathBuf, Weak<OpenFile>>>,
    most: usize,
}

#[derive(Debug)]
struct OpenFile(File);

impl OpenFiles {
    pub(super) fn new(most: usize) -> Self {
        Self { files: Mutex::default(), most }
    }

    /// Makes the next opening of `path` look at the disk again. Readers that have the file open keep it.
    pub(super) fn forget(&self, path: &Path) {
        self.lock().remove(path);
    }

    /// How many files are open, and how many may be open; `None` if there is no limit.
    pub(super) fn count(&self) -> Option<(usize, usize)> {
        let open = self.lock().values().filter(|file| file.strong_count() > 0).count();
        (self.most < usize::MAX).then_some((open, self.most))
    }

    /// The file at `path`. The lock is held while the file is opened. So no file is opened twice, and no file that was
    /// removed meanwhile is remembered.
    fn open(&self, path: &Path) -> Result<Arc<OpenFile>, StoreError> {
        let mut files = self.lock();
        if let Some(open) = files.get(path).and_then(Weak::upgrade) {
            return Ok(open);
        }
        files.retain(|_, file| file.strong_count() > 0);
        if files.len() >= self.most {
            return Err(StoreError::OutOfDescriptors { path: path.to_owned() });
        }
        let file = File::open(path).map_err(|error| StoreError::io("open", path, error))?;
        // A hint that makes the kernel read further ahead. Without it reading works, but is slower from a cold disk.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Sequential);
        let file = Arc::new(OpenFile(file));
        files.insert(path.to_owned(), Arc::downgrade(&file));
        Ok(file)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Weak<OpenFile>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskBlob {
    pub(super) fn open(path: PathBuf, reading: Reading) -> Result<Option<Self>, StoreError> {
        let failed = |error| StoreError::io("open", &path, error);
        let file = match reading.open.open(&path) {
            Ok(file) => file,
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let size_bytes = file.0.metadata().map_err(failed)?.len();
        let reader = Reader { file, path, buffers: reading.buffers, others: reading.readers.one_more() };
        Ok(Some(Self { reader: Arc::new(reader), size_bytes }))
    }
}

impl StoredBlob for DiskBlob {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read(self: Box<Self>, range: Range<u64>) -> BoxStream<'static, Result<Bytes, StoreError>> {
        let Self { reader, .. } = *self;
        let open = Arc::clone(&reader);
        let pieces = stream::unfold(range.start, move |from| {
            let length = if open.others.count() <= FEW_READERS { LARGE_PIECE } else { SMALL_PIECE };
            let to = range.end.min(from.saturating_add(length as u64));
            std::future::ready((from < range.end).then_some((from..to, to)))
        });
        pieces.map(move |piece| Arc::clone(&reader).read(piece)).buffered(PIECES_AHEAD).boxed()
    }
}

impl Reader {
    async fn read(self: Arc<Self>, piece: Range<u64>) -> Result<Bytes, StoreError> {
        blocking(move || {
            let length = usize::try_from(piece.end - piece.start).unwrap_or(usize::MAX);
            read_exactly(&self.file.0, piece.start, self.buffers.take(length))
                .map_err(|error| StoreError::io("read", &self.path, error))
        })
        .await
    }
}

/// Fewer bytes than the buffer holds are an error, because their number was promised.
fn read_exactly(file: &File, offset: u64, mut buffer: Buffer) -> io::Result<Bytes> {
    file.read_exact_at(buffer.bytes_mut(), offset)?;
    Ok(buffer.into_bytes())
}
