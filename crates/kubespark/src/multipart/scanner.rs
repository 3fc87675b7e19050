//! Searches a stream of chunks for delimiters, at the speed of `memmem`, without copying the content between them.

use bytes::{Buf, Bytes};
use memchr::memmem::Finder;
use memchr::memrchr;

use super::boundary::Boundary;

/// Finds `CRLF "--" boundary` however it is split over chunks.
///
/// The bytes that the scanner holds back are always the beginning of `CRLF "--" boundary "-"`, so it only keeps their
/// number. CR stands only at the beginning of the delimiter, because a boundary has none. So a match that breaks off
/// cannot hide the beginning of another match.
#[derive(Debug)]
pub(super) struct Scanner {
    /// `CRLF "--" boundary "-"`: the bytes that may have to be given back as data. The dash is for a closing delimiter
    /// that turns out to be none.
    held: Bytes,
    delimiter_length: usize,
    finder: Finder<'static>,
    /// How many bytes of `held` are matched, and how many of these were never in the stream.
    matched: usize,
    imagined: usize,
}

/// After a match that is no delimiter, so many bytes are looked at one by one. A search costs as much as looking at some
/// tens of bytes, so content full of such matches would cost many times what other content costs.
const NEAR: usize = 64;

/// What the scanner found at the front of its input. It has consumed that part of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scan {
    /// The whole input is consumed.
    NeedMore,
    /// Content, never empty.
    Data(Bytes),
    /// A delimiter; the rest of its line comes next.
    Delimiter,
    /// The closing delimiter, its two dashes included.
    Close,
}

impl Scanner {
    /// A scanner at the beginning of a line.
    pub(super) fn new(boundary: &Boundary) -> Self {
        let held = Bytes::from(format!("\r\n--{}-", boundary.as_str()));
        let delimiter_length = held.len() - 1;
        let finder = Finder::new(&held[..delimiter_length]).into_owned();
        let mut scanner = Self { held, delimiter_length, finder, matched: 0, imagined: 0 };
        scanner.at_line_start();
        scanner
    }

    /// Lets a delimiter follow at once. The line end that it needs has been consumed already, or was never sent.
    pub(super) fn at_line_start(&mut self) {
        self.imagined = 2;
        self.matched = 2;
    }

    /// How many bytes of the stream are consumed, and are neither content nor delimiter yet.
    #[cfg(test)]
    pub(super) fn held_back(&self) -> usize {
        self.matched - self.imagined
    }

    /// Consumes and returns the next item of the input.
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

    /// Searches while nothing is matched: everything before a delimiter, or before a possible beginning of one, is
    /// content. It is one slice, whatever is in it.
    fn search(&mut self, input: &mut Bytes) -> Option<Scan> {
        let (content, matched) = self.end_of_content(input);
        let data = input.split_to(content);
        input.advance(matched);
        self.matched = matched;
        (!data.is_empty()).then_some(Scan::Data(data))
    }

    /// Where the content ends, and how many of the bytes after it are matched.
    fn end_of_content(&self, input: &[u8]) -> (usize, usize) {
        let mut next = self.finder.find(input);
        while let Some(start) = next {
            let end = start + self.delimiter_length;
            match input[end..] {
                // Only the next chunk tells.
                [] | [b'-'] => return (start, input.len() - start),
                [b'\r' | b' ' | b'\t', ..] | [b'-', b'-', ..] => return (start, self.delimiter_length),
                _ => next = self.find_after(input, end),
            }
        }
        self.tail(input)
    }

    /// The next match from here on, where matches may be close together.
    fn find_after(&self, input: &[u8], from: usize) -> Option<usize> {
        let delimiter = &self.held[..self.delimiter_length];
        let near = input.len().min(from + NEAR);
        (from..near)
            .find(|start| input[*start] == b'\r' && input[*start..].starts_with(delimiter))
            .or_else(|| self.finder.find(&input[near..]).map(|offset| near + offset))
    }

    /// Where the last bytes of the input may begin a delimiter, and how many bytes these are.
    fn tail(&self, input: &[u8]) -> (usize, usize) {
        let window = input.len().saturating_sub(self.delimiter_length - 1);
        memrchr(b'\r', &input[window..])
            .map(|offset| window + offset)
            .filter(|start| self.held.starts_with(&input[*start..]))
            .map_or((input.len(), 0), |start| (start, input.len() - start))
    }

    /// Continues a partial match: either the input continues the delimiter, or the bytes that were held back are
    /// content.
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

    /// Decides after a complete match. A delimiter must be followed by blanks, the end of the line, or two dashes. RFC
    /// 2046 §5.1.1 takes any line that begins with the delimiter. Here other lines are content. So a message inside the
    /// content arrives unharmed even if its boundary begins with ours.
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
