//! A stored bundle, read where reading may block.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::buffers::{Buffer, Buffers};
use super::{StoreError, blocking};
use crate::store::StoredBundle;

pub(super) struct DiskBundle {
    file: Arc<File>,
    path: Arc<PathBuf>,
    size_bytes: u64,
    buffers: Arc<Buffers>,
}

impl DiskBundle {
    pub(super) fn open(path: PathBuf, buffers: Arc<Buffers>) -> Result<Option<Self>, StoreError> {
        let failed = |error| StoreError::io("open", &path, error);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let size_bytes = file.metadata().map_err(failed)?.len();
        // A hint: the kernel reads further ahead. Without it all works, only slower from a cold disk.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Sequential);
        Ok(Some(Self { file: Arc::new(file), path: Arc::new(path), size_bytes, buffers }))
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
            read_fully(&file, offset, buffers.take(length))
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
