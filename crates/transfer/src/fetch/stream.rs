//! The bridge from an asynchronous download to the extracting thread, which reads it. It holds only a few pieces, so
//! that a slow disk slows the network down and memory does not grow.

use std::io::{self, Read};

use bytes::{Buf, Bytes};
use tokio::sync::mpsc;

const PIECES_IN_FLIGHT: usize = 4;

/// One message over the bridge.
pub(super) enum Piece {
    Bytes(Bytes),
    /// All bytes came and are right. If the bridge closes without this, the download was stopped.
    End,
}

/// Makes both ends of a bridge.
pub(super) fn bridge() -> (mpsc::Sender<Piece>, PieceReader) {
    let (sender, receiver) = mpsc::channel(PIECES_IN_FLIGHT);
    (sender, PieceReader { receiver, current: Bytes::new(), is_at_end: false })
}

/// The reading end. It does not notice when a download breaks and resumes.
pub(super) struct PieceReader {
    receiver: mpsc::Receiver<Piece>,
    current: Bytes,
    is_at_end: bool,
}

impl PieceReader {
    /// Reads the rest, so that the caller knows that all bytes came.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        io::copy(self, &mut io::sink()).map(|_| ())
    }
}

impl Read for PieceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() && !self.is_at_end {
            match self.receiver.blocking_recv() {
                Some(Piece::Bytes(bytes)) => self.current = bytes,
                Some(Piece::End) => self.is_at_end = true,
                None => return Err(io::Error::other("the download was given up")),
            }
        }
        let length = buffer.len().min(self.current.len());
        self.current.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reader_sees_one_stream_that_ends_only_where_it_was_said_to_end() {
        let (sender, mut reader) = bridge();
        sender.blocking_send(Piece::Bytes(Bytes::from_static(b"ab"))).unwrap();
        sender.blocking_send(Piece::Bytes(Bytes::from_static(b"c"))).unwrap();
        sender.blocking_send(Piece::End).unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "abc");
    }

    #[test]
    fn a_download_that_is_given_up_is_an_error_to_the_reader() {
        let (sender, mut reader) = bridge();
        sender.blocking_send(Piece::Bytes(Bytes::from_static(b"ab"))).unwrap();
        drop(sender);
        assert!(reader.drain().is_err());
    }
}
