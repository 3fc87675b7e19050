//! The bytes of a bundle that have arrived and are not written yet. Large pieces stay as they came; small ones are
//! copied together.
//!
//! A piece is a slice of the buffer that it was received into, and keeps that whole buffer in memory. Clients choose
//! the size of the pieces: a mebibyte in chunks of one byte would keep a hundred mebibytes.

use std::mem;

use bytes::{Bytes, BytesMut};

/// Pieces smaller than this many bytes are copied. A TLS record has that size, and so have most pieces of a fast
/// upload.
const SMALL: usize = 16 << 10;

/// The size of the buffers that small pieces are copied into, in bytes.
const BUFFER: usize = 64 << 10;

/// The bytes, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pieces: Vec<Bytes>,
    /// The last pieces, while they are small.
    copied: BytesMut,
    length: usize,
}

impl Batch {
    pub(super) fn push(&mut self, bytes: Bytes) {
        self.length += bytes.len();
        if bytes.len() >= SMALL {
            self.close_copied();
            self.pieces.push(bytes);
            return;
        }
        if self.copied.capacity() - self.copied.len() < bytes.len() {
            // The full buffer becomes a piece of its own. If it grew instead, its bytes would be copied again.
            self.close_copied();
            self.copied.reserve(BUFFER);
        }
        self.copied.extend_from_slice(&bytes);
    }

    /// The number of bytes in the batch.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Takes all bytes out, in few pieces: at most two for each [`SMALL`] bytes, and one more.
    pub(super) fn take(&mut self) -> Vec<Bytes> {
        self.close_copied();
        self.length = 0;
        mem::take(&mut self.pieces)
    }

    fn close_copied(&mut self) {
        if !self.copied.is_empty() {
            self.pieces.push(self.copied.split().freeze());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch_of(sizes: impl IntoIterator<Item = usize>) -> (Batch, Vec<u8>) {
        let (mut batch, mut all) = (Batch::default(), Vec::new());
        for (number, size) in sizes.into_iter().enumerate() {
            let bytes = vec![number.to_le_bytes()[0]; size];
            all.extend_from_slice(&bytes);
            batch.push(Bytes::from(bytes));
        }
        (batch, all)
    }

    #[test]
    fn the_bytes_come_out_in_their_order_whatever_the_pieces_are() {
        for sizes in
            [vec![1; 300_000], vec![SMALL, 1, SMALL - 1, 3 * SMALL, 5, 5], vec![SMALL - 1; 50], vec![]]
        {
            let (mut batch, all) = batch_of(sizes);
            assert_eq!(batch.length(), all.len());
            assert_eq!(batch.take().concat(), all);
            assert_eq!((batch.length(), batch.take()), (0, Vec::new()));
        }
    }

    #[test]
    fn small_pieces_become_few_pieces_in_the_batch() {
        for sizes in [vec![1; 1 << 20], [SMALL, 1].repeat(64), vec![SMALL - 1; 65]] {
            let (mut batch, all) = batch_of(sizes);
            let pieces = batch.take();
            assert!(pieces.len() <= 2 * all.len().div_ceil(SMALL) + 1, "{} pieces", pieces.len());
        }
    }

    #[test]
    fn small_pieces_are_copied_out_of_their_buffer_and_large_ones_are_not() {
        let received = Bytes::from(vec![7; 2 * SMALL]);
        let mut batch = Batch::default();
        batch.push(received.slice(..SMALL - 1));
        assert!(received.is_unique(), "a small piece keeps its buffer");
        batch.push(received.slice(SMALL..));
        assert_eq!(batch.take()[1].as_ptr(), received[SMALL..].as_ptr());
    }
}
