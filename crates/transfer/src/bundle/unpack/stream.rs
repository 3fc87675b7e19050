//! The tar bytes of a bundle: recognised, inflated and counted.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Chain, Cursor, ErrorKind, Read};
use std::mem;
use std::rc::Rc;

use flate2::bufread::GzDecoder;

use super::UnpackLimits;
use super::error::UnpackError;
use super::file_type::file_type;
use super::header::has_magic;

const INPUT_BUFFER_BYTES: usize = 128 * 1024;
/// What has to be seen to recognise a tar archive: its first header.
const HEAD_BYTES: u64 = 512;
const GZIP_MAGIC: &[u8] = b"\x1f\x8b";
/// Header and padding that an entry takes beside its content.
const OVERHEAD_BYTES: u64 = 1024;
/// What may follow the end mark: tar fills its last record with zeros, 10 KiB normally and more for tapes.
pub(super) const MAX_END_BYTES: u64 = 16 * 1024 * 1024;
/// Past so much, what comes out is held against what went in: 40 MB of zeros unpack to 40 GB, within every limit
/// that real bundles need.
pub(in crate::bundle) const BOMB_FLOOR_BYTES: u64 = 256 * 1024 * 1024;
/// Logs and CSV reach 10 to 50; deflate's own bound is 1032.
pub(in crate::bundle) const MAX_RATIO: u64 = 200;

type Input<R> = BufReader<Chain<Cursor<Vec<u8>>, Marked<R>>>;

/// Reads the tar bytes. Its errors carry an [`UnpackError`] inside.
pub(super) struct Stream<R> {
    layer: Layer<R>,
    left_bytes: u64,
    came_out: u64,
    went_in: Rc<Cell<u64>>,
    limits: UnpackLimits,
}

enum Layer<R> {
    Gzip(Box<GzDecoder<Input<R>>>),
    Plain(Input<R>),
    End,
}

impl<R: Read> Stream<R> {
    /// Looks at the first bytes and refuses what is neither gzip nor tar.
    pub(super) fn open(input: R, limits: &UnpackLimits) -> Result<Stream<R>, UnpackError> {
        let went_in = Rc::new(Cell::new(0));
        let mut input = Marked { input, read_bytes: Rc::clone(&went_in) };
        let mut head = Vec::new();
        input.by_ref().take(HEAD_BYTES).read_to_end(&mut head).map_err(UnpackError::from_io)?;
        let gzip = head.starts_with(GZIP_MAGIC);
        if !gzip && !has_magic(&head) {
            return Err(UnpackError::NotABundle { looks_like: file_type(&head) });
        }
        let input = BufReader::with_capacity(INPUT_BUFFER_BYTES, Cursor::new(head).chain(input));
        let layer = if gzip { Layer::Gzip(Box::new(GzDecoder::new(input))) } else { Layer::Plain(input) };
        Ok(Stream { layer, left_bytes: most_bytes(limits), came_out: 0, went_in, limits: *limits })
    }

    /// What follows a gzip member: another one, the zeros that tapes and disks leave, or the end.
    fn after_member(&mut self, mut input: Input<R>) -> io::Result<()> {
        if input.fill_buf()?.first() == GZIP_MAGIC.first() {
            self.layer = Layer::Gzip(Box::new(GzDecoder::new(input)));
            return Ok(());
        }
        loop {
            let rest = input.fill_buf()?;
            if rest.is_empty() {
                return Ok(());
            }
            if rest.iter().any(|&byte| byte != 0) {
                return Err(UnpackError::TrailingData.into_io());
            }
            let zeros = rest.len();
            input.consume(zeros);
        }
    }

    fn count(&mut self, bytes: usize) -> io::Result<usize> {
        match self.left_bytes.checked_sub(bytes as u64) {
            Some(left) => self.left_bytes = left,
            None => return Err(UnpackError::TooManyBytes { limit: self.limits.max_bytes }.into_io()),
        }
        self.came_out += bytes as u64;
        if self.came_out > BOMB_FLOOR_BYTES && self.came_out / MAX_RATIO > self.went_in.get() {
            return Err(UnpackError::Bomb { ratio: MAX_RATIO }.into_io());
        }
        Ok(bytes)
    }
}

impl<R: Read> Read for Stream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() {
            let read = match &mut self.layer {
                Layer::Gzip(decoder) => decoder.read(buffer).map_err(gzip_fault)?,
                Layer::Plain(input) => input.read(buffer)?,
                Layer::End => return Ok(0),
            };
            if read > 0 {
                return self.count(read);
            }
            if let Layer::Gzip(decoder) = mem::replace(&mut self.layer, Layer::End) {
                self.after_member(decoder.into_inner())?;
            }
        }
        Ok(0)
    }
}

/// All that an honest archive within the limits can take.
fn most_bytes(limits: &UnpackLimits) -> u64 {
    limits
        .max_entries
        .saturating_mul(OVERHEAD_BYTES)
        .saturating_add(MAX_END_BYTES)
        .saturating_add(limits.max_bytes)
}

/// The decoder's own errors; those of the source are marked and pass.
fn gzip_fault(error: io::Error) -> io::Error {
    match error.downcast::<UnpackError>() {
        Ok(marked) => marked,
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => UnpackError::Truncated,
        Err(error) => UnpackError::Corrupt(error),
    }
    .into_io()
}

/// Marks the source's errors, so that a broken connection is never taken for a broken archive.
struct Marked<R> {
    input: R,
    read_bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for Marked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.input.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(UnpackError::Read(error).into_io()),
                Ok(read) => {
                    self.read_bytes.set(self.read_bytes.get() + read as u64);
                    return Ok(read);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloakroom_testing::bundles;

    #[test]
    fn a_bomb_is_refused_long_before_the_limit_of_bytes() {
        let zeros = bundles::gzip(&vec![0; usize::try_from(BOMB_FLOOR_BYTES).unwrap() + (1 << 20)]);
        let mut stream = Stream::open(&zeros[..], &UnpackLimits::default()).unwrap();
        let read = io::copy(&mut stream, &mut io::sink()).map_err(UnpackError::from_io);
        assert!(matches!(read, Err(UnpackError::Bomb { .. })));
        assert!(stream.came_out <= BOMB_FLOOR_BYTES + (1 << 20));
    }

    #[test]
    fn what_comes_out_is_counted_whatever_the_headers_say() {
        let limits = UnpackLimits { max_entries: 2, max_bytes: 1000 };
        let most = most_bytes(&limits);
        assert_eq!(most, 1000 + 2 * 1024 + 16 * 1024 * 1024);
        for (size_bytes, fits) in [(most, true), (most + 1, false)] {
            let zeros = bundles::gzip(&vec![0; usize::try_from(size_bytes).unwrap()]);
            let mut stream = Stream::open(&zeros[..], &limits).unwrap();
            let read = io::copy(&mut stream, &mut io::sink()).map_err(UnpackError::from_io);
            assert_eq!(read.is_ok(), fits);
            assert!(fits || matches!(read, Err(UnpackError::TooManyBytes { limit: 1000 })));
        }
    }
}
