//! The segments of a bundle, by which a later bundle is compared with it.

use std::collections::VecDeque;

use flate2::Crc;
use serde::{Deserialize, Serialize};

/// A part of a bundle: the packed content of a large file, or what is between two of them.
///
/// Two segments with the same length and checksum count as the same. That may be wrong, so whoever puts a bundle together of them
/// compares the SHA-256 of the whole. A second cryptographic hash would make packing slower, and spare nobody that comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Segment {
    /// In bytes.
    pub length: u64,
    /// CRC-32.
    pub crc: u32,
}

/// Collects the segments of a bundle that is being packed.
#[derive(Debug, Default)]
pub struct Segments {
    all: Vec<Segment>,
    /// The bytes of the segment that has not ended.
    open: Crc,
    /// Where that segment begins.
    begins_at: u64,
    /// How many bytes were seen.
    seen_bytes: u64,
    /// Ends that were told before their bytes came.
    ends: VecDeque<u64>,
}

impl Segments {
    /// A segment ends before the byte `at` of the bundle.
    pub fn cut(&mut self, at: u64) {
        self.ends.push_back(at);
        self.end_those_that_are_whole();
    }

    /// Takes the next bytes of the bundle.
    pub fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let to_end = self.ends.front().map_or(u64::MAX, |end| end - self.seen_bytes);
            let length = usize::try_from(to_end).unwrap_or(usize::MAX).min(bytes.len());
            let (now, later) = bytes.split_at(length);
            self.open.update(now);
            self.seen_bytes += length as u64;
            self.end_those_that_are_whole();
            bytes = later;
        }
    }

    /// The segments, the last one included.
    pub fn finish(mut self) -> Vec<Segment> {
        self.end();
        self.all
    }

    fn end_those_that_are_whole(&mut self) {
        while self.ends.pop_front_if(|end| *end <= self.seen_bytes).is_some() {
            self.end();
        }
    }

    fn end(&mut self) {
        let length = self.seen_bytes - self.begins_at;
        if length > 0 {
            self.all.push(Segment { length, crc: self.open.sum() });
        }
        self.open.reset();
        self.begins_at = self.seen_bytes;
    }
}
