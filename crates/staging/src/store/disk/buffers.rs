//! Buffers that downloads read into, used again: allocating and clearing them anew costs time, and under load
//! scatters memory over the allocator's arenas.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// What is kept for later, at most, in bytes.
const KEPT_BYTES: usize = 8 << 20;

/// What is kept when nothing is in use. With more in use as much again is kept: after a burst the memory goes back.
const KEPT_WHEN_IDLE: usize = 1 << 20;

/// Buffers that are read into.
#[derive(Debug, Default)]
pub(super) struct Buffers(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    free: Vec<Vec<u8>>,
    used_bytes: usize,
}

/// A buffer in use. It goes back when it is dropped, or when the last slice of its [`Bytes`] is.
pub(super) struct Buffer {
    bytes: Vec<u8>,
    home: Arc<Buffers>,
}

impl Buffers {
    /// A buffer of `length` bytes, with whatever was in it before.
    pub(super) fn take(self: &Arc<Self>, length: usize) -> Buffer {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.used_bytes += length;
        let free = &mut kept.free;
        let fitting = free.iter().position(|bytes| bytes.len() == length);
        let bytes = if let Some(index) = fitting {
            free.swap_remove(index)
        } else {
            // Lengths change with the load; what no longer fits makes room.
            free.pop();
            vec![0; length]
        };
        Buffer { bytes, home: Arc::clone(self) }
    }

    fn give_back(&self, bytes: Vec<u8>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
    /// All of it, to write into.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// All of it, to be sent without a copy.
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
    fn buffers_of_a_length_that_is_no_longer_asked_for_make_room() {
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
