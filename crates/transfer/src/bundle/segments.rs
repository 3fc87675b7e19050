//! The segments of a bundle, by which a later bundle is compared with it.

use std::collections::VecDeque;

use flate2::Crc;
use serde::{Deserialize, Serialize};

/// A part of a bundle: the packed content of a large file, or what is between two of them, in groups of files.
///
/// Two segments with the same length and checksum count as the same. That may be wrong, so the server compares the SHA-256 of the
/// whole bundle. A SHA-256 of each segment would make packing slower, and the server would compare all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Segment {
    /// In bytes, packed.
    pub length: u64,
    /// CRC-32: of a large file's content as it is in the file, which the packer computes anyway, and of other bytes as they are packed.
    pub crc: u32,
}

/// Collects the segments of a bundle that is being packed.
#[derive(Debug, Default)]
pub struct Segments {
    all: Vec<Segment>,
    /// The checksum of the segment that has not ended, unless it is a file.
    open: Crc,
    is_file: bool,
    /// Where that segment begins.
    begins_at: u64,
    /// How many bytes were seen.
    seen_bytes: u64,
    /// Ends that were told before their bytes came.
    ends: VecDeque<End>,
}

#[derive(Debug)]
struct End {
    at: u64,
    /// The checksum, if it is the end of a file.
    crc: Option<u32>,
    /// Whether a file begins there.
    is_before_file: bool,
}

impl Segments {
    /// The content of a large file begins at the byte `at` of the bundle.
    pub fn file_begins(&mut self, at: u64) {
        self.add(End { at, crc: None, is_before_file: true });
    }

    /// It ends before the byte `at`.
    pub fn file_ends(&mut self, at: u64, crc: u32) {
        self.add(End { at, crc: Some(crc), is_before_file: false });
    }

    /// A group of small files ends before the byte `at`.
    pub fn group_ends(&mut self, at: u64) {
        self.add(End { at, crc: None, is_before_file: false });
    }

    fn add(&mut self, end: End) {
        self.ends.push_back(end);
        self.end_those_that_are_whole();
    }

    /// Takes the next bytes of the bundle.
    pub fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let to_end = self.ends.front().map_or(u64::MAX, |end| end.at - self.seen_bytes);
            let length = usize::try_from(to_end).unwrap_or(usize::MAX).min(bytes.len());
            let (now, later) = bytes.split_at(length);
            if !self.is_file {
                self.open.update(now);
            }
            self.seen_bytes += length as u64;
            self.end_those_that_are_whole();
            bytes = later;
        }
    }

    /// The segments, the last one included.
    pub fn finish(mut self) -> Vec<Segment> {
        self.end(None);
        self.all
    }

    fn end_those_that_are_whole(&mut self) {
        while let Some(end) = self.ends.pop_front_if(|end| end.at <= self.seen_bytes) {
            self.end(end.crc);
            self.is_file = end.is_before_file;
        }
    }

    fn end(&mut self, crc_of_file: Option<u32>) {
        let length = self.seen_bytes - self.begins_at;
        if length > 0 {
            self.all.push(Segment { length, crc: crc_of_file.unwrap_or(self.open.sum()) });
        }
        self.open.reset();
        self.begins_at = self.seen_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crc(bytes: &[u8]) -> u32 {
        let mut crc = Crc::new();
        crc.update(bytes);
        crc.sum()
    }

    #[test]
    fn segments_end_where_it_was_told_however_the_bytes_come() {
        let bytes: Vec<u8> = (0..100).collect();
        let expected = [
            Segment { length: 10, crc: crc(&bytes[..10]) },
            Segment { length: 50, crc: 7 },
            Segment { length: 20, crc: crc(&bytes[60..80]) },
            Segment { length: 20, crc: crc(&bytes[80..]) },
        ];
        for piece in 1..=100 {
            for lag in [0, 1, 9, 30] {
                // A place is told when at least the bytes up to there, less `lag`, have come.
                let (mut segments, mut told) = (Segments::default(), 0);
                for (number, bytes) in bytes.chunks(piece).enumerate() {
                    let seen = number * piece;
                    let end = seen + bytes.len();
                    if told == 0 && end + lag > 10 {
                        segments.file_begins(10);
                        told = 1;
                    }
                    if told == 1 && end + lag > 60 {
                        segments.file_ends(60, 7);
                        told = 2;
                    }
                    if told == 2 && end + lag > 80 {
                        segments.group_ends(80);
                        told = 3;
                    }
                    segments.update(bytes);
                }
                assert_eq!(segments.finish(), expected, "pieces of {piece}, {lag} early");
            }
        }
    }
}
