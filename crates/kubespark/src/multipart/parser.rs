//! The state machine that turns chunks into events.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use memchr::memmem;

use super::boundary::Boundary;
use super::error::MultipartError;
use super::headers::{HeaderFault, PartHeaders};
use super::limits::{BodyLimits, bounded};
use super::scanner::{Scan, Scanner};

/// A piece of a body. For each part come its headers, its content in any number of pieces, and its end. After the last
/// part comes the end of the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyEvent {
    /// A part begins.
    PartBegin(PartHeaders),
    /// Some content of the part, never empty. It is a slice of a pushed chunk, or of the delimiter.
    Data(Bytes),
    /// The part is complete.
    PartEnd,
    /// The closing boundary was read. Everything after it is skipped.
    Done,
}

/// Reads one multipart body that is pushed chunk by chunk.
#[derive(Debug)]
pub struct Parser {
    limits: BodyLimits,
    scanner: Scanner,
    state: State,
    parts: usize,
    /// The chunk that is being read. The chunks that were pushed after it are in `waiting`.
    input: Bytes,
    waiting: VecDeque<Bytes>,
    failed: Option<MultipartError>,
}

#[derive(Debug)]
enum State {
    Preamble {
        skipped: usize,
    },
    DelimiterLine {
        padding: usize,
    },
    /// The header block so far. It begins with the line end of its boundary, so that an empty block ends like any
    /// other.
    Headers {
        block: Vec<u8>,
    },
    Content,
    /// The last part has ended, and [`BodyEvent::Done`] is still to be emitted.
    Closing,
    Epilogue {
        skipped: usize,
    },
}

/// The result of one step of the machine.
enum Step {
    Again,
    NeedMore,
    Emit(BodyEvent),
}

impl Parser {
    /// A parser at the beginning of a body.
    pub fn new(boundary: &Boundary, limits: BodyLimits) -> Self {
        Self {
            limits,
            scanner: Scanner::new(boundary),
            state: State::Preamble { skipped: 0 },
            parts: 0,
            input: Bytes::new(),
            waiting: VecDeque::new(),
            failed: None,
        }
    }

    /// Takes the next chunk of the body. Call [`Parser::next`] until it returns `None` before you push another chunk,
    /// because chunks wait in memory until they are read.
    pub fn push(&mut self, chunk: Bytes) {
        if self.failed.is_none() {
            self.waiting.push_back(chunk);
        }
    }

    /// The next event; `None` if another chunk is needed. After an error every call returns that error.
    #[expect(clippy::should_implement_trait, reason = "`None` here is not the end, as it is for iterators")]
    pub fn next(&mut self) -> Result<Option<BodyEvent>, MultipartError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.run().inspect_err(|error| {
            self.failed = Some(error.clone());
            self.input = Bytes::new();
            self.waiting = VecDeque::new();
        })
    }

    /// Checks that the body was complete. Call it at the end of the body, once [`Parser::next`] has returned `None`.
    pub fn finish(&self) -> Result<(), MultipartError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let place = match &self.state {
            State::Closing | State::Epilogue { .. } => return Ok(()),
            State::Preamble { .. } => "before its first part",
            State::DelimiterLine { .. } => "on the line of a boundary",
            State::Headers { .. } => "inside the headers of a part",
            State::Content => "inside the content of a part",
        };
        Err(MultipartError::Truncated { place })
    }

    /// How many bytes of the body are held besides the chunks that wait: part of a delimiter or of headers.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        match &self.state {
            State::Headers { block } => block.len(),
            _ => self.scanner.held_back(),
        }
    }

    /// How many bytes on the heap are kept between two chunks.
    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        let block = match &self.state {
            State::Headers { block } => block.capacity(),
            _ => 0,
        };
        let waiting: usize = self.waiting.iter().map(Bytes::len).sum();
        block + self.input.len() + waiting + self.waiting.capacity() * size_of::<Bytes>()
    }

    fn run(&mut self) -> Result<Option<BodyEvent>, MultipartError> {
        loop {
            match self.step()? {
                Step::Again => {}
                Step::Emit(event) => return Ok(Some(event)),
                Step::NeedMore => match self.waiting.pop_front() {
                    Some(chunk) => self.input = chunk,
                    None => return Ok(None),
                },
            }
        }
    }

    fn step(&mut self) -> Result<Step, MultipartError> {
        if self.input.is_empty() && !matches!(self.state, State::Closing) {
            return Ok(Step::NeedMore);
        }
        match self.state {
            State::Preamble { skipped } => self.preamble(skipped),
            State::DelimiterLine { padding } => self.delimiter_line(padding),
            State::Headers { .. } => self.headers(),
            State::Content => Ok(self.content()),
            State::Closing => Ok(self.close()),
            State::Epilogue { skipped } => self.epilogue(skipped),
        }
    }

    fn preamble(&mut self, skipped: usize) -> Result<Step, MultipartError> {
        match self.scanner.scan(&mut self.input) {
            Scan::NeedMore => Ok(Step::NeedMore),
            Scan::Data(data) => {
                let limit = self.limits.preamble_bytes;
                let skipped = bounded(skipped, data.len(), limit, "too many bytes before its first part")?;
                self.state = State::Preamble { skipped };
                Ok(Step::Again)
            }
            Scan::Delimiter => {
                self.state = State::DelimiterLine { padding: 0 };
                Ok(Step::Again)
            }
            Scan::Close => Ok(self.close()),
        }
    }

    /// Skips the blanks that mail gateways once added after a boundary, up to the end of the line.
    fn delimiter_line(&mut self, padding: usize) -> Result<Step, MultipartError> {
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
        let blanks = self.input.iter().take_while(blank).count();
        let limit = self.limits.header_bytes;
        let padding = bounded(padding, blanks, limit, "too many blanks behind a boundary")?;
        self.input.advance(blanks);
        match self.input.first() {
            None => self.state = State::DelimiterLine { padding },
            Some(b'\r') => self.begin_part()?,
            Some(_) => return Err(MultipartError::MalformedDelimiter),
        }
        Ok(Step::Again)
    }

    fn begin_part(&mut self) -> Result<(), MultipartError> {
        let limit = self.limits.parts;
        self.parts = bounded(self.parts, 1, limit, "too many parts")?;
        self.state = State::Headers { block: Vec::new() };
        Ok(())
    }

    fn headers(&mut self) -> Result<Step, MultipartError> {
        let State::Headers { block } = &mut self.state else {
            return Ok(Step::Again);
        };
        let room = self.limits.header_bytes.saturating_sub(block.len());
        let before = block.len();
        let taken = room.min(self.input.len());
        block.extend_from_slice(&self.input[..taken]);
        if !b"\r\n".starts_with(&block[..block.len().min(2)]) {
            return Err(MultipartError::MalformedDelimiter);
        }
        let searched = before.saturating_sub(EMPTY_LINE.len() - 1);
        let Some(end) = memmem::find(&block[searched..], EMPTY_LINE) else {
            self.input.advance(taken);
            return bounded(block.len(), self.input.len().min(1), self.limits.header_bytes, HEADER_BYTES)
                .map(|_| Step::Again);
        };
        let end = searched + end;
        let headers = PartHeaders::parse(&block[..end], self.limits.headers);
        let headers = headers.map_err(|fault| self.describe(fault))?;
        self.input.advance(end + EMPTY_LINE.len() - before);
        self.state = State::Content;
        // Some senders of empty parts use the empty line as the line end that the next boundary needs.
        self.scanner.at_line_start();
        Ok(Step::Emit(BodyEvent::PartBegin(headers)))
    }

    fn describe(&self, fault: HeaderFault) -> MultipartError {
        match fault {
            HeaderFault::TooMany => {
                MultipartError::TooMuch { what: "too many headers in one part", limit: self.limits.headers }
            }
            HeaderFault::Malformed(problem) => MultipartError::MalformedHeaders { part: self.parts, problem },
        }
    }

    fn content(&mut self) -> Step {
        match self.scanner.scan(&mut self.input) {
            Scan::NeedMore => return Step::NeedMore,
            Scan::Data(data) => return Step::Emit(BodyEvent::Data(data)),
            Scan::Delimiter => self.state = State::DelimiterLine { padding: 0 },
            Scan::Close => self.state = State::Closing,
        }
        Step::Emit(BodyEvent::PartEnd)
    }

    fn close(&mut self) -> Step {
        self.state = State::Epilogue { skipped: 0 };
        Step::Emit(BodyEvent::Done)
    }

    fn epilogue(&mut self, skipped: usize) -> Result<Step, MultipartError> {
        let limit = self.limits.epilogue_bytes;
        let arrived = self.input.len();
        let skipped = bounded(skipped, arrived, limit, "too many bytes after its closing boundary")?;
        self.input.clear();
        self.state = State::Epilogue { skipped };
        Ok(Step::NeedMore)
    }
}

const EMPTY_LINE: &[u8] = b"\r\n\r\n";
const HEADER_BYTES: &str = "too many bytes in the headers of one part";
