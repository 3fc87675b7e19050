//! A stored bundle, read where reading may block.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use bytes::Bytes;

use super::buffers::{Buffer, Buffers};
use super::{StoreError, blocking};
use crate::store::StoredBundle;

pub(super) struct DiskBundle {
    file: Arc<OpenFile>,
    path: Arc<PathBuf>,
    size_bytes: u64,
    buffers: Arc<Buffers>,
}

/// Bundles that are open. One that is downloaded many times at once takes one descriptor.
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

    /// Opened once more it is not there, although some may still read it.
    pub(super) fn forget(&self, path: &Path) {
        self.lock().remove(path);
    }

    /// How many are open, and how many may be; `None` without a limit.
    pub(super) fn count(&self) -> Option<(usize, usize)> {
        let open = self.lock().values().filter(|file| file.strong_count() > 0).count();
        (self.most < usize::MAX).then_some((open, self.most))
    }

    /// The file at that path. Whoever opens waits for those before, so that nothing is opened twice, or kept in mind that was
    /// removed meanwhile.
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
        // A hint: the kernel reads further ahead. Without it all works, only slower from a cold disk.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Sequential);
        let file = Arc::new(OpenFile(file));
        files.insert(path.to_owned(), Arc::downgrade(&file));
        Ok(file)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Weak<OpenFile>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskBundle {
    pub(super) fn open(
        path: PathBuf,
        files: &OpenFiles,
        buffers: Arc<Buffers>,
    ) -> Result<Option<Self>, StoreError> {
        let failed = |error| StoreError::io("open", &path, error);
        let file = match files.open(&path) {
            Ok(file) => file,
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let size_bytes = file.0.metadata().map_err(failed)?.len();
        Ok(Some(Self { file, path: Arc::new(path), size_bytes, buffers }))
    }
}

#[async_trait]
impl StoredBundle for DiskBundle {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    async fn read(&self, offset: u64, length: usize) -> Result<Bytes, StoreError> {
        let (file, path, buffers) =
            (Arc::clone(&self.file), Arc::clone(&self.path), Arc::clone(&self.buffers));
        blocking(move || {
            read_fully(&file.0, offset, buffers.take(length))
                .map_err(|error| StoreError::io("read", path.as_path(), error))
        })
        .await
    }
}

fn read_fully(file: &File, offset: u64, mut buffer: Buffer) -> io::Result<Bytes> {
    let bytes = buffer.bytes_mut();
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(buffer.into_bytes(filled))
}
