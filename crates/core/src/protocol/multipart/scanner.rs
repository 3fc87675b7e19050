//! The search for delimiters in a stream of chunks, at the speed of `memmem`, without copying what lies between.

use bytes::{Buf, Bytes};
use memchr::memmem::Finder;
use memchr::memrchr;

use super::boundary::Boundary;

/// Finds `CRLF "--" boundary` however it is split over chunks.
///
/// What is held back of the stream is only ever the beginning of `CRLF "--" boundary "-"`, so its length is all
/// that is kept. CR begins the delimiter and is nowhere else in it (a boundary has none), so a match that breaks off
/// cannot hide the beginning of another one.
#[derive(Debug)]
pub(super) struct Scanner {
    /// `CRLF "--" boundary "-"`: what may have to be given back as data, the dash of a false closing included.
    held: Bytes,
    delimiter_length: usize,
    finder: Finder<'static>,
    /// How much of `held` the stream has matched, and how much of that was never in the stream.
    matched: usize,
    imagined: usize,
}

/// What the scanner found at the front of its input, which is consumed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scan {
    /// Everything is consumed.
    NeedMore,
    /// Content, never empty.
    Data(Bytes),
    /// A delimiter; the rest of its line comes next.
    Delimiter,
    /// The closing delimiter, its two dashes included.
    Close,
}

impl Scanner {
    /// A scanner that begins at the beginning of a line.
    pub(super) fn new(boundary: &Boundary) -> Self {
        let held = Bytes::from(format!("\r\n--{}-", boundary.as_str()));
        let delimiter_length = held.len() - 1;
        let finder = Finder::new(&held[..delimiter_length]).into_owned();
        let mut scanner = Self { held, delimiter_length, finder, matched: 0, imagined: 0 };
        scanner.at_line_start();
        scanner
    }

    /// Lets a delimiter follow at once: the line end that it needs before it has been consumed, or never was.
    pub(super) fn at_line_start(&mut self) {
        self.imagined = 2;
        self.matched = 2;
    }

    /// How many bytes of the stream are consumed and not yet decided.
    #[cfg(test)]
    pub(super) fn held_back(&self) -> usize {
        self.matched - self.imagined
    }

    /// The next thing in the input.
    pub(super) fn scan(&mut self, input: &mut Bytes) -> Scan {
        loop {
            if input.is_empty() {
                return Scan::NeedMore;
            }
            let found = if self.matched == 0 {
                self.search(input)
            } else if self.matched < self.delimiter_length {
                self.resume(input)
            } else {
                self.look_ahead(input)
            };
            if let Some(found) = found {
                return found;
            }
        }
    }

    /// Nothing is matched: everything before a delimiter, or before what may be one's beginning, is content.
    fn search(&mut self, input: &mut Bytes) -> Option<Scan> {
        let (content, matched) = match self.finder.find(input) {
            Some(start) => (start, self.delimiter_length),
            None => self.tail(input),
        };
        let data = input.split_to(content);
        input.advance(matched);
        self.matched = matched;
        (!data.is_empty()).then_some(Scan::Data(data))
    }

    /// Where the input's last bytes may begin a delimiter, and how many they are.
    fn tail(&self, input: &[u8]) -> (usize, usize) {
        let window = input.len().saturating_sub(self.delimiter_length - 1);
        memrchr(b'\r', &input[window..])
            .map(|offset| window + offset)
            .filter(|start| self.held.starts_with(&input[*start..]))
            .map_or((input.len(), 0), |start| (start, input.len() - start))
    }

    /// A part of the delimiter is matched: the input goes on with it, or what was held back is content.
    fn resume(&mut self, input: &mut Bytes) -> Option<Scan> {
        let wanted = &self.held[self.matched..self.delimiter_length];
        let length = wanted.len().min(input.len());
        if wanted[..length] != input[..length] {
            return self.give_back();
        }
        input.advance(length);
        self.matched += length;
        None
    }

    /// The delimiter is matched whole, and blanks, the line's end or two dashes follow it. To RFC 2046 §5.1.1 any line
    /// that begins with it would do; here other lines are content, so that a message inside the content whose boundary
    /// is ours with something behind it arrives unharmed.
    fn look_ahead(&mut self, input: &mut Bytes) -> Option<Scan> {
        let dash = self.matched > self.delimiter_length;
        match (input[0], dash) {
            (b'\r' | b' ' | b'\t', false) => Some(self.found(Scan::Delimiter)),
            (b'-', false) => {
                input.advance(1);
                self.matched += 1;
                None
            }
            (b'-', true) => {
                input.advance(1);
                Some(self.found(Scan::Close))
            }
            _ => self.give_back(),
        }
    }

    fn found(&mut self, scan: Scan) -> Scan {
        self.matched = 0;
        self.imagined = 0;
        scan
    }

    fn give_back(&mut self) -> Option<Scan> {
        let data = self.held.slice(self.imagined..self.matched);
        self.matched = 0;
        self.imagined = 0;
        (!data.is_empty()).then_some(Scan::Data(data))
    }
}
