//! Buffers that downloads read into. They are used again, because allocating and clearing new ones costs time, and
//! under load scatters memory over the allocator's arenas.

use std::sync::{Arc, Mutex};

use cloakroom_core::lock::lock;

use bytes::Bytes;

/// The largest total size of free buffers that are kept, in bytes.
const KEPT_BYTES: usize = 8 << 20;

/// The total size of free buffers that are kept when none is in use, in bytes. While buffers are in use, as much again
/// is kept; after a burst the rest is freed.
const KEPT_WHEN_IDLE: usize = 1 << 20;

/// The free buffers, and how much is in use.
#[derive(Debug, Default)]
pub(super) struct Buffers(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    free: Vec<Vec<u8>>,
    used_bytes: usize,
}

/// A buffer in use. It returns when it is dropped, or when the last slice of its [`Bytes`] is dropped.
pub(super) struct Buffer {
    bytes: Vec<u8>,
    home: Arc<Buffers>,
}

impl Buffers {
    /// A buffer of `length` bytes, with the content of its earlier use.
    pub(super) fn take(self: &Arc<Self>, length: usize) -> Buffer {
        let mut kept = lock(&self.0);
        kept.used_bytes += length;
        let free = &mut kept.free;
        let fitting = free.iter().position(|bytes| bytes.len() == length);
        let bytes = if let Some(index) = fitting {
            free.swap_remove(index)
        } else {
            // Lengths change with the load. A buffer of another length makes room for this one.
            free.pop();
            vec![0; length]
        };
        Buffer { bytes, home: Arc::clone(self) }
    }

    fn give_back(&self, bytes: Vec<u8>) {
        let mut kept = lock(&self.0);
        kept.used_bytes -= bytes.len();
        let most = (KEPT_WHEN_IDLE + kept.used_bytes).min(KEPT_BYTES);
        kept.free.push(bytes);
        let mut kept_bytes: usize = kept.free.iter().map(Vec::len).sum();
        while kept_bytes > most {
            kept_bytes -= kept.free.pop().map_or(kept_bytes, |dropped| dropped.len());
        }
    }
}

impl Buffer {
    /// The whole buffer, to read into.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The whole buffer, to send without a copy.
    pub(super) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.home.give_back(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_once_its_last_slice_is_gone() {
        let buffers = Arc::new(Buffers::default());
        let mut buffer = buffers.take(4);
        buffer.bytes_mut().copy_from_slice(b"abcd");
        let bytes = buffer.into_bytes();
        let slice = bytes.slice(1..);
        drop(bytes);
        assert_eq!(&slice[..], b"bcd");
        assert!(buffers.0.lock().unwrap().free.is_empty());
        drop(slice);
        assert_eq!(buffers.0.lock().unwrap().free.len(), 1);
        assert_eq!(buffers.take(4).bytes, b"abcd");
    }

    #[test]
    fn buffers_of_a_length_that_is_no_longer_needed_make_room() {
        let buffers = Arc::new(Buffers::default());
        for length in [KEPT_WHEN_IDLE / 2, KEPT_WHEN_IDLE / 2 + 1] {
            for _ in 0..2 {
                let both = [buffers.take(length), buffers.take(length)];
                drop(both);
            }
            let kept: Vec<usize> = buffers.0.lock().unwrap().free.iter().map(Vec::len).collect();
            assert!(kept.contains(&length), "{kept:?} and not {length}");
        }
    }

    #[test]
    fn no_more_than_a_bound_is_kept_and_little_when_nothing_is_in_use() {
        let buffers = Arc::new(Buffers::default());
        let length = KEPT_WHEN_IDLE / 4;
        let mut many: Vec<Buffer> = (0..100).map(|_| buffers.take(length)).collect();
        let kept = || buffers.0.lock().unwrap().free.iter().map(Vec::len).sum::<usize>();
        many.truncate(50);
        assert_eq!(kept(), KEPT_BYTES);
        drop(many);
        assert_eq!(kept(), KEPT_WHEN_IDLE);
    }
}
