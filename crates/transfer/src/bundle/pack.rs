//! Writes the files of a plan as one `.tar.gz`.

use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use flate2::Crc;
use tar::{EntryType, Header};

use super::gzip::{GzipWriter, MAX_BLOCK_BYTES};
use super::method::Method;
use super::plan::{PackError, PackPlan, PlannedFile};
use super::sources::{FileStamp, Source, Sources};
use super::unpack::{BOMB_FLOOR_BYTES, MAX_RATIO};

const TAR_BLOCK_BYTES: usize = 512;
/// Two empty blocks end an archive.
const END_BYTES: usize = 2 * TAR_BLOCK_BYTES;
const READ_BUFFER_BYTES: usize = 256 * 1024;
/// From these sizes on the packed content of a file depends on that file alone, not on what stands before it. So a later bundle has
/// the same bytes for it. A smaller one is worth no blocks of its own.
const LEAST_ALONE_STORED: u64 = 64 << 10;
const LEAST_ALONE_DEFLATED: u64 = 1 << 20;
/// Smaller files in a row are packed in groups, each of which depends on itself alone, too: one changed file changes one group.
const LEAST_GROUP_BYTES: u64 = 1 << 20;
const MOST_GROUP_BYTES: u64 = 4 << 20;
/// Of so many files one may begin a group. Its name decides, so that the groups stay the same where a file comes or goes.
const NAMES_FOR_GROUP: u32 = 16;
/// Half of the ratio that unpacking accepts, so that readers of every version accept the bundle. Zeros then cost one
/// byte in a hundred.
const LARGEST_RATIO: u64 = MAX_RATIO / 2;
/// Below this, no reader checks the ratio. The bytes that the deflater still holds would also distort it.
const RATIO_FLOOR_BYTES: u64 = BOMB_FLOOR_BYTES / 4;
const FILE_MODE: u32 = 0o644;
const EXECUTABLE_MODE: u32 = 0o755;
const FOLDER_MODE: u32 = 0o755;
/// The name of GNU tar's entry that carries the long name of the next entry.
const LONG_NAME: &[u8] = b"././@LongLink";

/// Writes `plan` into `out` as one gzip member. Calls `on_progress` with the number of source bytes read so far. The
/// same files with the same times give the same bytes, and a large file gives the same bytes wherever it stands.
pub fn pack<W: Write>(
    plan: &PackPlan,
    sources: &dyn Sources,
    out: W,
    on_progress: &mut dyn FnMut(u64),
) -> Result<W, PackError> {
    pack_in_segments(plan, sources, Uncut(out), on_progress).map(|Uncut(out)| out)
}

/// Takes the bytes of a bundle, and is told where the content of large files is: it may be the same in a later bundle. A place is told
/// before the bytes behind it come; some bytes before it may still come.
pub trait BundleOutput: Write {
    /// A content begins at the byte `at` of the bundle, from 0.
    fn file_begins(&mut self, at: u64);

    /// It ends before the byte `at`. `crc` is that of the content before it was packed.
    fn file_ends(&mut self, at: u64, crc: u32);

    /// A group of small files ends before the byte `at`, and another one begins.
    fn group_ends(&mut self, at: u64);
}

struct Uncut<W>(W);

impl<W: Write> Write for Uncut<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write> BundleOutput for Uncut<W> {
    fn file_begins(&mut self, _: u64) {}
    fn file_ends(&mut self, _: u64, _: u32) {}
    fn group_ends(&mut self, _: u64) {}
}

/// The same for an output that wants to know where large files are.
pub fn pack_in_segments<W: BundleOutput>(
    plan: &PackPlan,
    sources: &dyn Sources,
    out: W,
    on_progress: &mut dyn FnMut(u64),
) -> Result<W, PackError> {
    let (gzip, buffer) = (GzipWriter::new(out), vec![0; READ_BUFFER_BYTES]);
    let mut packer = Packer { gzip, buffer, read_bytes: 0, group_bytes: 0, on_progress };
    for folder in plan.empty_folders() {
        packer.put(Method::Deflate, &folder_headers(folder))?;
    }
    for file in plan.files() {
        packer.file(file, sources)?;
    }
    packer.put(Method::Deflate, &[0; END_BYTES])?;
    packer.gzip.finish().map_err(PackError::Write)
}

impl PackPlan {
    /// The size of the archive before it is compressed. The bundle is about as large, or smaller.
    pub fn archive_bytes(&self) -> u64 {
        let entry = |file: &PlannedFile| {
            let parts = [headers(file).len() as u64, file.size_bytes, padding(file.size_bytes).len() as u64];
            parts.into_iter().fold(0, u64::saturating_add)
        };
        let folder = |name: &String| folder_headers(name).len() as u64;
        let entries = self.files().iter().map(entry).chain(self.empty_folders().iter().map(folder));
        entries.fold(END_BYTES as u64, u64::saturating_add)
    }

    /// How many entries unpacking counts: each header, also of a long name, and each folder that it makes.
    pub fn entries(&self) -> usize {
        let folder = |name: &String| folder_headers(name).len();
        let header_bytes = self.files().iter().map(|file| headers(file).len());
        // A long name has a block for its header, and one or more for itself.
        let headers = |bytes: usize| if bytes > TAR_BLOCK_BYTES { 2 } else { 1 };
        header_bytes.chain(self.empty_folders().iter().map(folder)).map(headers).sum::<usize>()
            + self.folders()
    }

    /// The size of the files that are not compressed. The bundle is larger.
    pub fn stored_bytes(&self) -> u64 {
        let stored = self.files().iter().filter(|file| Method::for_name(&file.name) == Method::Store);
        stored.map(|file| file.size_bytes).fold(0, u64::saturating_add)
    }
}

pub(super) fn opened(file: &PlannedFile, sources: &dyn Sources) -> Result<Box<dyn Source>, PackError> {
    let opened = match &file.real {
        Some(real) => sources.open_without_links(real),
        None => sources.open(&file.path),
    };
    opened.map_err(|source| unreadable(&file.path, source))
}

struct Packer<'a, W> {
    gzip: GzipWriter<W>,
    buffer: Vec<u8>,
    read_bytes: u64,
    /// Of the group that has not ended, before it is packed.
    group_bytes: u64,
    on_progress: &'a mut dyn FnMut(u64),
}

impl<W: BundleOutput> Packer<'_, W> {
    /// Writes header, content and padding. The header uses the same method as its file: a deflated header between two
    /// jars would interrupt the stored blocks.
    fn file(&mut self, file: &PlannedFile, sources: &dyn Sources) -> Result<(), PackError> {
        let method = Method::for_name(&file.name);
        let mut source = opened(file, sources)?;
        check_unchanged(file, &*source)?;
        self.end_group_before(file).map_err(PackError::Write)?;
        self.put(method, &headers(file))?;
        let least_alone = match method {
            Method::Store => LEAST_ALONE_STORED,
            Method::Deflate => LEAST_ALONE_DEFLATED,
        };
        let is_alone = file.size_bytes >= least_alone;
        if is_alone {
            self.gzip.end_deflate().map_err(PackError::Write)?;
            self.gzip.begin_part();
            let at = self.gzip.made_bytes();
            self.gzip.output().file_begins(at);
        }
        self.content(method, file, &mut *source)?;
        if is_alone {
            self.gzip.end_deflate().map_err(PackError::Write)?;
            let (at, crc) = (self.gzip.made_bytes(), self.gzip.end_part());
            self.gzip.output().file_ends(at, crc);
            self.gzip.write_out().map_err(PackError::Write)?;
            self.group_bytes = 0;
        }
        check_unchanged(file, &*source)?;
        self.put(method, padding(file.size_bytes))
    }

    /// Ends the group if it is large enough, and if this file may begin one.
    fn end_group_before(&mut self, file: &PlannedFile) -> io::Result<()> {
        let mut name = Crc::new();
        name.update(file.name.as_bytes());
        let may_begin_one =
            name.sum().is_multiple_of(NAMES_FOR_GROUP) || self.group_bytes >= MOST_GROUP_BYTES;
        if self.group_bytes >= LEAST_GROUP_BYTES && may_begin_one {
            self.gzip.end_deflate()?;
            // The cuts between stored blocks depend on what the buffer holds.
            self.gzip.write_out()?;
            let at = self.gzip.made_bytes();
            self.gzip.output().group_ends(at);
            self.group_bytes = 0;
        }
        self.group_bytes += TAR_BLOCK_BYTES as u64 + file.size_bytes;
        Ok(())
    }

    /// Writes exactly as many bytes as the header announces.
    fn content(
        &mut self,
        method: Method,
        file: &PlannedFile,
        source: &mut dyn Source,
    ) -> Result<(), PackError> {
        let mut left = file.size_bytes;
        while left > 0 {
            let read = match method {
                Method::Store => self.store_some(left, file, source)?,
                Method::Deflate => self.deflate_some(left, file, source)?,
            };
            if read == 0 {
                return Err(PackError::Changed { path: file.path.clone() });
            }
            left -= read;
            self.read_bytes += read;
            (self.on_progress)(self.read_bytes);
        }
        Ok(())
    }

    fn store_some(
        &mut self,
        left: u64,
        file: &PlannedFile,
        source: &mut dyn Source,
    ) -> Result<u64, PackError> {
        // The cuts between the blocks of a large file are at the same places of it, whatever the buffer holds.
        let is_alone = file.size_bytes >= LEAST_ALONE_STORED;
        let least = if is_alone { MAX_BLOCK_BYTES } else { 0 };
        let block = self.gzip.stored_block(least).map_err(PackError::Write)?;
        let read = fill(block, left, source).map_err(|source| unreadable(&file.path, source))?;
        self.gzip.commit_stored(read).map_err(PackError::Write)?;
        Ok(read as u64)
    }

    fn deflate_some(
        &mut self,
        left: u64,
        file: &PlannedFile,
        source: &mut dyn Source,
    ) -> Result<u64, PackError> {
        let read = fill(&mut self.buffer, left, source).map_err(|source| unreadable(&file.path, source))?;
        // Unpacking would refuse a file of zeros as a decompression bomb, so part of it is stored.
        let bytes = &self.buffer[..read];
        let looks_like_a_bomb =
            self.gzip.taken_bytes() > RATIO_FLOOR_BYTES && self.gzip.ratio() >= LARGEST_RATIO;
        let written = if looks_like_a_bomb { self.gzip.store(bytes) } else { self.gzip.deflate(bytes) };
        written.map_err(PackError::Write)?;
        Ok(read as u64)
    }

    fn put(&mut self, method: Method, bytes: &[u8]) -> Result<(), PackError> {
        match method {
            Method::Store => self.gzip.store(bytes),
            Method::Deflate => self.gzip.deflate(bytes),
        }
        .map_err(PackError::Write)
    }
}

pub(super) fn unreadable(path: &Path, source: io::Error) -> PackError {
    PackError::Read { path: path.to_owned(), source }
}

/// Reads until the buffer is full, `left` bytes are read, or the source ends.
fn fill(buffer: &mut [u8], left: u64, source: &mut dyn Source) -> io::Result<usize> {
    let wanted = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
    let mut filled = 0;
    while filled < wanted {
        match source.read(&mut buffer[filled..wanted]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Checks that the open file is still the planned one. A jar must not be half of one build and half of the next.
fn check_unchanged(file: &PlannedFile, source: &dyn Source) -> Result<(), PackError> {
    let stamp = source.stamp().map_err(|source| unreadable(&file.path, source))?;
    if stamp == (FileStamp { size_bytes: file.size_bytes, modified: file.modified }) {
        Ok(())
    } else {
        Err(PackError::Changed { path: file.path.clone() })
    }
}

fn headers(file: &PlannedFile) -> Vec<u8> {
    let mode = if file.executable { EXECUTABLE_MODE } else { FILE_MODE };
    entry_headers(&file.name, mode, file.size_bytes, seconds(file.modified))
}

/// The same of a folder, which has no time: that of its last change would say nothing.
fn folder_headers(name: &str) -> Vec<u8> {
    entry_headers(&format!("{name}/"), FOLDER_MODE, 0, 0)
}

/// The header of an entry; of a folder if the name ends with a slash. If the name is too long for it, an entry with the long
/// name comes first.
fn entry_headers(name: &str, mode: u32, size_bytes: u64, modified: u64) -> Vec<u8> {
    let name = name.as_bytes();
    let mut bytes = Vec::with_capacity(4 * TAR_BLOCK_BYTES);
    let mut main = header(name, size_bytes);
    if name.len() > main.as_old().name.len() {
        let mut long = header(LONG_NAME, name.len() as u64 + 1);
        long.set_entry_type(EntryType::GNULongName);
        long.set_cksum();
        bytes.extend_from_slice(long.as_bytes());
        bytes.extend_from_slice(name);
        bytes.push(0);
        bytes.resize(bytes.len().next_multiple_of(TAR_BLOCK_BYTES), 0);
    }
    if name.ends_with(b"/") {
        main.set_entry_type(EntryType::Directory);
    }
    main.set_mode(mode);
    main.set_mtime(modified);
    main.set_cksum();
    bytes.extend_from_slice(main.as_bytes());
    bytes
}

/// The header of a regular file that all users may read. Its owner is root, whatever the owner here.
fn header(name: &[u8], size_bytes: u64) -> Header {
    let mut header = Header::new_gnu();
    let field = &mut header.as_old_mut().name;
    let kept = name.len().min(field.len());
    field[..kept].copy_from_slice(&name[..kept]);
    header.set_entry_type(EntryType::Regular);
    header.set_mode(FILE_MODE);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size_bytes);
    header
}

fn seconds(modified: Option<SystemTime>) -> u64 {
    modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0, |since| since.as_secs())
}

/// The zeros that fill a file's last tar block.
fn padding(size_bytes: u64) -> &'static [u8] {
    static ZEROS: [u8; TAR_BLOCK_BYTES] = [0; TAR_BLOCK_BYTES];
    let missing = size_bytes.next_multiple_of(TAR_BLOCK_BYTES as u64) - size_bytes;
    ZEROS.get(..usize::try_from(missing).unwrap_or(0)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
