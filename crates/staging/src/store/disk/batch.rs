//! What has arrived of a bundle and is not handed over yet: large pieces as they came, small ones copied together.
//!
//! A piece is a slice of the buffer that it was received into, and keeps all of it. Clients choose how small the pieces
//! are: in chunks of one byte, a mebibyte of them would keep a hundred.

use std::mem;

use bytes::{Bytes, BytesMut};

/// Smaller pieces are copied. A record of TLS is that large, and so are most pieces of a fast upload.
const SMALL: usize = 16 << 10;

/// Copied pieces are kept in buffers of this size.
const BUFFER: usize = 64 << 10;

/// Bytes in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pieces: Vec<Bytes>,
    /// The last of them, as long as they are small.
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
            // What was copied so far goes its own way, so that growing never copies it again.
            self.close_copied();
            self.copied.reserve(BUFFER);
        }
        self.copied.extend_from_slice(&bytes);
    }

    /// Bytes, all together.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// All that is there, in few pieces: at most two for each [`SMALL`] bytes, and one.
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
    fn whatever_the_pieces_are_the_bytes_come_out_in_their_order() {
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
    fn no_pieces_however_small_are_many_in_the_batch() {
        for sizes in [vec![1; 1 << 20], [SMALL, 1].repeat(64), vec![SMALL - 1; 65]] {
            let (mut batch, all) = batch_of(sizes);
            let pieces = batch.take();
            assert!(pieces.len() <= 2 * all.len().div_ceil(SMALL) + 1, "{} pieces", pieces.len());
        }
    }

    #[test]
    fn small_pieces_keep_nothing_of_the_buffer_that_they_were_received_into_and_large_ones_are_not_copied() {
        let received = Bytes::from(vec![7; 2 * SMALL]);
        let mut batch = Batch::default();
        batch.push(received.slice(..SMALL - 1));
        assert!(received.is_unique(), "a small piece keeps its buffer");
        batch.push(received.slice(SMALL..));
        assert_eq!(batch.take()[1].as_ptr(), received[SMALL..].as_ptr());
    }
}
