//! Writes one gzip member (RFC 1952) of stored and deflated parts.
//!
//! This room writes the stored blocks (RFC 1951, section 3.2.4) itself, around bytes that the caller reads straight
//! into the output buffer. A raw deflate state writes the deflated parts. Before each stored part, that state is
//! flushed to a byte boundary and reset. Otherwise it would refer to earlier bytes by a distance that leaves out the
//! stored part.

use std::io::{self, Write};

use flate2::{Compress, Compression, Crc, FlushCompress};

/// Method 8, no flags, no time, no extra flags, unknown system: the same files give the same bytes on every machine.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// An empty stored block with the flag of the last block.
const FINAL_BLOCK: [u8; 5] = [1, 0, 0, 0xff, 0xff];
const BLOCK_HEADER_BYTES: usize = 5;
/// The most content of one stored block.
pub(super) const MAX_BLOCK_BYTES: usize = u16::MAX as usize;
/// How much is written at once: four full stored blocks.
const BUFFER_BYTES: usize = 4 * (BLOCK_HEADER_BYTES + MAX_BLOCK_BYTES);
/// If the buffer has less room than this, it is written out first, so that stored blocks do not become small.
const MIN_ROOM_BYTES: usize = 4096;
/// The compression level. Measured on source code, level 3 packs 150 MB/s and so keeps a gigabit network busy with one
/// core. It is twice as fast as level 6, for 8% more bytes. Level 1 is twice as fast again, but 39% larger.
const LEVEL: u32 = 3;

/// One gzip member that is being written into `out`.
pub(super) struct GzipWriter<W> {
    out: W,
    buffer: Box<[u8]>,
    filled: usize,
    /// `taken_bytes` counts the content; `written_bytes` counts the bytes of the member that have left the buffer.
    taken_bytes: u64,
    written_bytes: u64,
    deflate: Compress,
    deflating: bool,
    crc: Crc,
    /// That of the present part alone, which is not in `crc` yet.
    part: Option<Crc>,
}

impl<W: Write> GzipWriter<W> {
    /// Starts the member. Writes nothing before the buffer is full.
    pub(super) fn new(out: W) -> GzipWriter<W> {
        let mut buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        buffer[..HEADER.len()].copy_from_slice(&HEADER);
        let deflate = Compress::new(Compression::new(LEVEL), false);
        GzipWriter {
            out,
            buffer,
            filled: HEADER.len(),
            taken_bytes: 0,
            written_bytes: 0,
            deflate,
            deflating: false,
            crc: Crc::new(),
            part: None,
        }
    }

    /// Begins a part whose content has a checksum of its own. That costs nothing, because it is combined with that of the member.
    pub(super) fn begin_part(&mut self) {
        self.part = Some(Crc::new());
    }

    /// Ends the part, and returns the checksum of its content.
    pub(super) fn end_part(&mut self) -> u32 {
        let part = self.part.take().unwrap_or_default();
        self.crc.combine(&part);
        part.sum()
    }

    /// How many bytes of content were taken so far.
    pub(super) fn taken_bytes(&self) -> u64 {
        self.taken_bytes
    }

    /// How many bytes the member has so far. Some of them may not be written out yet.
    pub(super) fn made_bytes(&self) -> u64 {
        self.written_bytes + self.filled as u64
    }

    pub(super) fn output(&mut self) -> &mut W {
        &mut self.out
    }

    /// The ratio of the content to the member, both so far.
    pub(super) fn ratio(&self) -> u64 {
        self.taken_bytes / self.made_bytes()
    }

    /// Returns room for the content of one stored block, of `least` bytes or more. [`GzipWriter::commit_stored`] then says how
    /// many bytes were put into it.
    pub(super) fn stored_block(&mut self, least: usize) -> io::Result<&mut [u8]> {
        self.end_deflate()?;
        self.make_room(BLOCK_HEADER_BYTES + least.min(MAX_BLOCK_BYTES))?;
        let start = self.filled + BLOCK_HEADER_BYTES;
        let end = self.buffer.len().min(start + MAX_BLOCK_BYTES);
        Ok(&mut self.buffer[start..end])
    }

    /// Makes a stored block of the first `length` bytes of what [`GzipWriter::stored_block`] returned.
    pub(super) fn commit_stored(&mut self, length: usize) -> io::Result<()> {
        let [low, high] = u16::try_from(length).map_err(io::Error::other)?.to_le_bytes();
        let start = self.filled + BLOCK_HEADER_BYTES;
        self.buffer[self.filled..start].copy_from_slice(&[0, low, high, !low, !high]);
        self.filled = start + length;
        self.part.as_mut().unwrap_or(&mut self.crc).update(&self.buffer[start..self.filled]);
        self.taken_bytes += length as u64;
        Ok(())
    }

    /// Appends a slice as stored blocks.
    pub(super) fn store(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let block = self.stored_block(0)?;
            let (now, later) = bytes.split_at(bytes.len().min(block.len()));
            block[..now.len()].copy_from_slice(now);
            self.commit_stored(now.len())?;
            bytes = later;
        }
        Ok(())
    }

    pub(super) fn deflate(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.part.as_mut().unwrap_or(&mut self.crc).update(bytes);
        self.taken_bytes += bytes.len() as u64;
        self.deflating = true;
        while !bytes.is_empty() {
            self.make_room(0)?;
            let taken = self.step(bytes, FlushCompress::None)?;
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// Ends the member and returns the output.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.end_deflate()?;
        self.make_room(0)?;
        self.append(&FINAL_BLOCK);
        self.append(&self.crc.sum().to_le_bytes());
        self.append(&self.crc.amount().to_le_bytes());
        self.write_out()?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Ends a deflated part at a byte boundary: what follows does not depend on it. The flush is complete once it leaves room in
    /// the buffer (zlib's manual).
    pub(super) fn end_deflate(&mut self) -> io::Result<()> {
        while self.deflating {
            self.make_room(0)?;
            self.step(&[], FlushCompress::Sync)?;
            self.deflating = self.filled == self.buffer.len();
            if !self.deflating {
                self.deflate.reset();
            }
        }
        Ok(())
    }

    /// Calls the deflate state once. Returns how many bytes it took.
    fn step(&mut self, bytes: &[u8], flush: FlushCompress) -> io::Result<usize> {
        let (taken, made) = (self.deflate.total_in(), self.deflate.total_out());
        self.deflate.compress(bytes, &mut self.buffer[self.filled..], flush).map_err(io::Error::other)?;
        self.filled += usize::try_from(self.deflate.total_out() - made).map_err(io::Error::other)?;
        usize::try_from(self.deflate.total_in() - taken).map_err(io::Error::other)
    }

    fn append(&mut self, bytes: &[u8]) {
        let end = self.filled + bytes.len();
        self.buffer[self.filled..end].copy_from_slice(bytes);
        self.filled = end;
    }

    /// Makes room for `least` bytes, and for what is worth it.
    fn make_room(&mut self, least: usize) -> io::Result<()> {
        if self.buffer.len() - self.filled < least.max(MIN_ROOM_BYTES) { self.write_out() } else { Ok(()) }
    }

    pub(super) fn write_out(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer[..self.filled])?;
        self.written_bytes += self.filled as u64;
        self.filled = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use proptest::prelude::*;

    use super::*;

    fn gunzip(member: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        GzDecoder::new(member).read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// Records the length of each write.
    struct Writes(Vec<usize>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.len());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_empty_member_is_whole() {
        assert_eq!(gunzip(&GzipWriter::new(Vec::new()).finish().unwrap()), b"");
    }

    #[test]
    fn text_before_stored_bytes_is_never_pointed_back_to() {
        let text = b"the same words again and again ".repeat(500);
        let mut member = GzipWriter::new(Vec::new());
        let mut expected = Vec::new();
        for round in 0..20_u8 {
            let noise = vec![round; 1000 * usize::from(round)];
            member.deflate(&text).unwrap();
            member.store(&noise).unwrap();
            expected.extend_from_slice(&text);
            expected.extend_from_slice(&noise);
        }
        let member = member.finish().unwrap();
        assert!(gunzip(&member) == expected);
    }

    #[test]
    fn output_goes_out_in_big_pieces() {
        let mut member = GzipWriter::new(Writes(Vec::new()));
        for _ in 0..1000 {
            member.store(&[7; 5000]).unwrap();
        }
        let Writes(sizes) = member.finish().unwrap();
        assert!(
            sizes[..sizes.len() - 1].iter().all(|&size| size > BUFFER_BYTES - MIN_ROOM_BYTES),
            "{sizes:?}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_mix_of_stretches_comes_back(
            stretches in prop::collection::vec((any::<bool>(), any::<u8>(), 0_usize..150_000), 0..12)
        ) {
            let mut member = GzipWriter::new(Vec::new());
            let mut expected = Vec::new();
            for (stored, seed, length) in stretches {
                let mut state = u32::from(seed);
                let bytes: Vec<u8> = (0..length).map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    if stored || seed % 2 == 0 { state.to_be_bytes()[0] } else { state.to_be_bytes()[0] & 3 }
                }).collect();
                if stored { member.store(&bytes).unwrap() } else { member.deflate(&bytes).unwrap() }
                expected.extend_from_slice(&bytes);
            }
            prop_assert!(gunzip(&member.finish().unwrap()) == expected);
        }
    }
}
