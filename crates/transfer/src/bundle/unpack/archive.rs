//! The entries of a tar stream, one after the other. Each entry is checked before it is returned.

use std::io::{BufRead, BufReader, Read};
use std::mem;
use std::time::SystemTime;

use super::UnpackLimits;
use super::error::UnpackError;
use super::file_type::file_type;
use super::header::{BLOCK_BYTES, Block, Header, Kind, has_magic};
use super::pax::Records;
use super::stream::{MAX_END_BYTES, Stream};
use crate::bundle::policy::{NameFault, clean_path, printable};

const BUFFER_BYTES: usize = 256 * 1024;
/// Limits long names and pax records, because they are read into memory. A path has 4 KiB at most, and the attributes
/// need a few more.
const MAX_RECORD_BYTES: u64 = 64 * 1024;

/// A tar stream that is being read.
pub(super) struct Archive<R> {
    stream: BufReader<Stream<R>>,
    limits: UnpackLimits,
    entries: u64,
    claimed_bytes: u64,
    /// The time of all files that have none of their own, from a global record.
    modified: Option<SystemTime>,
}

/// A file or folder that passed the checks.
pub(super) struct Entry {
    /// The cleaned path; empty for the root folder.
    pub(super) name: String,
    pub(super) size_bytes: u64,
    pub(super) content: Content,
}

/// The file type of an entry, and what only that type has.
pub(super) enum Content {
    Folder,
    File { executable: bool, modified: Option<SystemTime> },
}

/// What the records before an entry say about it.
#[derive(Default)]
struct Extensions {
    long_name: Option<Vec<u8>>,
    pax: Option<Records>,
    any: bool,
}

impl<R: Read> Archive<R> {
    /// Recognises the archive by its first bytes.
    pub(super) fn open(input: R, limits: &UnpackLimits) -> Result<Archive<R>, UnpackError> {
        let stream = BufReader::with_capacity(BUFFER_BYTES, Stream::open(input, limits)?);
        Ok(Archive { stream, limits: *limits, entries: 0, claimed_bytes: 0, modified: None })
    }

    /// Returns the next file or folder. The caller must read its content before the next call. After the last entry,
    /// this reads the input to its end.
    pub(super) fn next_entry(&mut self) -> Result<Option<Entry>, UnpackError> {
        let mut extensions = Extensions::default();
        while let Some(header) = self.next_header()? {
            match header.kind {
                Kind::Pax | Kind::GlobalPax | Kind::LongName | Kind::LongLink => {
                    self.extend(&mut extensions, &header)?;
                }
                Kind::Label => self.pass_over(header.size_bytes)?,
                Kind::Listing => {
                    self.pass_over(header.size_bytes)?;
                    let folder = Header { kind: Kind::Folder, size_bytes: 0, ..header };
                    return self.judge(folder, extensions).map(Some);
                }
                _ => return self.judge(header, extensions).map(Some),
            }
        }
        if extensions.any {
            Err(self.bad_header("nothing follows a record for the next entry"))
        } else {
            Ok(None)
        }
    }

    /// Reads content that is no file's.
    fn pass_over(&mut self, size_bytes: u64) -> Result<(), UnpackError> {
        self.claim(size_bytes)?;
        self.read_content(size_bytes, &mut |_| Ok(()))
    }

    /// Counts one entry against the limit.
    pub(super) fn count_entry(&mut self) -> Result<(), UnpackError> {
        self.entries += 1;
        if self.entries > self.limits.max_entries {
            return Err(UnpackError::TooManyEntries { limit: self.limits.max_entries });
        }
        Ok(())
    }

    /// Passes the content of the current entry to `sink` in pieces, and skips its padding.
    pub(super) fn read_content(
        &mut self,
        size_bytes: u64,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), UnpackError>,
    ) -> Result<(), UnpackError> {
        self.take(size_bytes, sink)?;
        self.take(size_bytes.wrapping_neg() % BLOCK_BYTES as u64, &mut |_| Ok(()))
    }

    fn take(
        &mut self,
        mut left: u64,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), UnpackError>,
    ) -> Result<(), UnpackError> {
        while left > 0 {
            let available = self.stream.fill_buf().map_err(UnpackError::from_io)?;
            if available.is_empty() {
                return Err(UnpackError::Truncated);
            }
            let taken = usize::try_from(left).map_or(available.len(), |left| left.min(available.len()));
            sink(&available[..taken])?;
            self.stream.consume(taken);
            left -= taken as u64;
        }
        Ok(())
    }

    /// Returns the next header, or `None` at the end. An archive without an end mark is accepted, because all readers
    /// accept it.
    fn next_header(&mut self) -> Result<Option<Header>, UnpackError> {
        let mut block: Block = [0; BLOCK_BYTES];
        let read = self.fill(&mut block)?;
        if read == 0 && self.entries > 0 {
            return Ok(None);
        }
        if read == BLOCK_BYTES && block == [0; BLOCK_BYTES] {
            self.expect_zeros()?;
            return Ok(None);
        }
        if self.entries == 0 && !has_magic(&block) && Header::parse(&block).is_err() {
            return Err(UnpackError::NotATar { file_type: file_type(&block[..read]) });
        }
        if read < BLOCK_BYTES {
            return Err(UnpackError::Truncated);
        }
        let header = Header::parse(&block).map_err(|why| self.bad_header(why))?;
        self.count_entry()?;
        Ok(Some(header))
    }

    /// Fills the block, or as much of it as the stream has. Returns how many bytes were read.
    fn fill(&mut self, block: &mut Block) -> Result<usize, UnpackError> {
        let mut filled = 0;
        while filled < BLOCK_BYTES {
            match self.stream.read(&mut block[filled..]).map_err(UnpackError::from_io)? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(filled)
    }

    /// Checks that only a limited number of zeros follows the end mark. Reading them also makes gzip check its
    /// checksum.
    fn expect_zeros(&mut self) -> Result<(), UnpackError> {
        let mut left = MAX_END_BYTES;
        loop {
            let rest = self.stream.fill_buf().map_err(UnpackError::from_io)?;
            if rest.is_empty() {
                return Ok(());
            }
            if rest.len() as u64 > left || rest.iter().any(|&byte| byte != 0) {
                return Err(UnpackError::DataAfterEnd);
            }
            let zeros = rest.len();
            left -= zeros as u64;
            self.stream.consume(zeros);
        }
    }

    fn extend(&mut self, extensions: &mut Extensions, header: &Header) -> Result<(), UnpackError> {
        let body = self.record(header.size_bytes)?;
        match header.kind {
            Kind::GlobalPax => return self.check_global(&body),
            Kind::Pax if extensions.pax.is_none() => extensions.pax = Some(self.records(&body)?),
            Kind::LongName if extensions.long_name.is_none() => {
                extensions.long_name =
                    Some(body.split(|&byte| byte == 0).next().unwrap_or_default().to_vec());
            }
            Kind::LongLink => {}
            _ => {
                return Err(
                    self.bad_header("two records describe the same entry; make it again, as tar czf does")
                );
            }
        }
        extensions.any = true;
        Ok(())
    }

    /// Global records apply to all entries. `git archive` writes them for comments. A time is kept; a name or a size is
    /// refused.
    fn check_global(&mut self, body: &[u8]) -> Result<(), UnpackError> {
        let records = self.records(body)?;
        if records.is_harmless() {
            self.modified = records.modified.or(self.modified);
            Ok(())
        } else {
            Err(self.bad_header("a global record gives every entry the same name or size"))
        }
    }

    fn records(&self, body: &[u8]) -> Result<Records, UnpackError> {
        Records::parse(body).map_err(|why| self.bad_header(why))
    }

    fn record(&mut self, size_bytes: u64) -> Result<Vec<u8>, UnpackError> {
        if size_bytes > MAX_RECORD_BYTES {
            return Err(UnpackError::LongRecord { size_bytes, limit: MAX_RECORD_BYTES });
        }
        self.claim(size_bytes)?;
        let mut body = Vec::new();
        self.read_content(size_bytes, &mut |bytes| {
            body.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(body)
    }

    /// Checks what the header and the records say about an entry.
    fn judge(&mut self, mut header: Header, extensions: Extensions) -> Result<Entry, UnpackError> {
        let mut pax = extensions.pax.unwrap_or_default();
        let raw = mem::take(&mut pax.path).or(extensions.long_name).unwrap_or(header.name);
        // Unix V7 tar has no type for folders, and some writers still rely on the slash. The name in the header does not
        // count: it may be the beginning of a long one, cut behind a slash.
        if header.kind == Kind::File && raw.ends_with(b"/") {
            header.kind = Kind::Folder;
        }
        let size_bytes = pax.size_bytes.unwrap_or(header.size_bytes);
        let unsupported = |what| UnpackError::Unsupported { name: printable(&raw), what };
        match header.kind {
            Kind::Unsupported(what) => return Err(unsupported(what)),
            _ if pax.sparse => return Err(unsupported("a sparse file")),
            Kind::Folder if size_bytes > 0 => return Err(unsupported("a folder with content")),
            _ => {}
        }
        self.claim(size_bytes)?;
        let refused = |source| UnpackError::Name { name: printable(&raw), source };
        let name = clean_path(&raw).map_err(refused)?;
        let content = match header.kind {
            Kind::Folder => Content::Folder,
            _ if name.is_empty() => return Err(refused(NameFault::Empty)),
            _ => {
                let modified = pax.modified.or(self.modified).or(header.modified);
                Content::File { executable: header.executable, modified }
            }
        };
        Ok(Entry { name, size_bytes, content })
    }

    /// Adds up the sizes that headers announce, so that an archive over the limit is refused before its content is
    /// read.
    fn claim(&mut self, size_bytes: u64) -> Result<(), UnpackError> {
        self.claimed_bytes = self.claimed_bytes.saturating_add(size_bytes);
        if self.claimed_bytes > self.limits.max_bytes {
            return Err(UnpackError::TooManyBytes { limit: self.limits.max_bytes });
        }
        Ok(())
    }

    fn bad_header(&self, why: &'static str) -> UnpackError {
        UnpackError::BadHeader { after: self.entries, why }
    }
}
