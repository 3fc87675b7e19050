//! Builds bundles, honest and hostile, byte by byte, because no library writes invalid archives.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

/// A tar header of one block.
pub type Header = [u8; 512];

/// A `.tar.gz` of plain files.
pub fn tgz(files: &[(&str, &[u8])]) -> Vec<u8> {
    gzip(&tar(files))
}

/// A `.tar` of plain files, with its end mark.
pub fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, content) in files {
        push_entry(&mut bytes, &header(name.as_bytes(), b'0', octal(content.len() as u64)), content);
    }
    ended(bytes)
}

/// A `.tar.gz` of one entry with any header. The header's checksum is corrected.
pub fn tgz_with_raw_header(header: &Header, content: &[u8]) -> Vec<u8> {
    tgz_of(&[(*header, content)])
}

/// A `.tar.gz` of entries with any headers.
pub fn tgz_of(entries: &[(Header, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (header, content) in entries {
        push_entry(&mut bytes, header, content);
    }
    gzip(&ended(bytes))
}

/// A header in GNU tar's form with any name, type and size field.
pub fn header(name: &[u8], kind: u8, size_field: [u8; 12]) -> Header {
    let mut header = [0; 512];
    let kept = name.len().min(100);
    header[..kept].copy_from_slice(&name[..kept]);
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(&size_field);
    header[136..148].copy_from_slice(b"14000000000\0");
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar  \0");
    header
}

/// The same header as the entry of a link.
pub fn linked(mut header: Header, target: &[u8]) -> Header {
    header[157..157 + target.len()].copy_from_slice(target);
    header
}

/// A size field in octal digits, the usual form.
pub fn octal(size_bytes: u64) -> [u8; 12] {
    let mut field = [0; 12];
    field[..11].copy_from_slice(format!("{size_bytes:011o}").as_bytes());
    field
}

/// A size field for sizes too large for octal digits.
pub fn base256(size_bytes: u64) -> [u8; 12] {
    let mut field = [0; 12];
    field[0] = 0x80;
    field[4..].copy_from_slice(&size_bytes.to_be_bytes());
    field
}

/// pax records with correct lengths.
pub fn pax(records: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (key, value) in records {
        let rest = key.len() + value.len() + 3;
        let length =
            (rest..rest + 20).find(|length| rest + length.to_string().len() == *length).unwrap_or(rest);
        bytes.extend_from_slice(format!("{length} {key}={value}\n").as_bytes());
    }
    bytes
}

/// Appends a header with its checksum corrected, and content with its padding.
pub fn push_entry(tar: &mut Vec<u8>, header: &Header, content: &[u8]) {
    let mut header = *header;
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    tar.extend_from_slice(&header);
    tar.extend_from_slice(content);
    tar.resize(tar.len().next_multiple_of(512), 0);
}

/// Adds the two empty blocks that end an archive.
pub fn ended(mut tar: Vec<u8>) -> Vec<u8> {
    tar.resize(tar.len() + 1024, 0);
    tar
}

/// One gzip member.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    gzip_with(|encoder| encoder(bytes))
}

/// One gzip member of bytes that are produced piece by piece and are never in memory together.
fn gzip_with(produce: impl FnOnce(&mut dyn FnMut(&[u8]))) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    produce(&mut |bytes| {
        let written = encoder.write_all(bytes);
        debug_assert!(written.is_ok(), "a vector takes every write");
    });
    encoder.finish().unwrap_or_default()
}

/// One entry of any type that has no content.
pub fn bare(name: &str, kind: u8) -> Vec<u8> {
    tgz_with_raw_header(&header(name.as_bytes(), kind, octal(0)), b"")
}

/// A link of type `1` (hard) or `2` (symbolic), and then a file whose path goes through it.
pub fn through_link(kind: u8, target: &str) -> Vec<u8> {
    let link = linked(header(b"link", kind, octal(0)), target.as_bytes());
    tgz_of(&[(link, b""), (header(b"link/owned", b'0', octal(5)), b"owned")])
}

/// One file under any name.
pub fn named(name: &[u8]) -> Vec<u8> {
    tgz_with_raw_header(&header(name, b'0', octal(5)), b"owned")
}

/// A file with pax records before it.
pub fn with_pax(records: &[(&str, &str)], content: &[u8]) -> Vec<u8> {
    let body = pax(records);
    let file = header(b"file", b'0', octal(content.len() as u64));
    tgz_of(&[(header(b"PaxHeaders/file", b'x', octal(body.len() as u64)), &body), (file, content)])
}

/// A header that claims any size, with no content.
pub fn claiming(size_field: [u8; 12]) -> Vec<u8> {
    tgz_with_raw_header(&header(b"huge", b'0', size_field), b"")
}

/// An extension record (`L`, `K`, `x`, `g`) that really has `size_bytes`.
pub fn long_record(kind: u8, size_bytes: u64) -> Vec<u8> {
    let mut start = Vec::new();
    push_entry(&mut start, &header(b"././@LongLink", kind, octal(size_bytes)), b"");
    gzip_with(|out| {
        out(&start);
        repeat(out, b'x', size_bytes);
    })
}

/// A file of `size_bytes` zeros with a correct size field. As gzip it has a thousandth of that. Members of 16 MiB are
/// repeated, so that even a terabyte is built quickly.
pub fn bomb(size_bytes: u64) -> Vec<u8> {
    const MEMBER_BYTES: u64 = 16 << 20;
    let mut start = Vec::new();
    push_entry(&mut start, &header(b"zeros", b'0', base256(size_bytes)), b"");
    let member = gzip_with(|out| repeat(out, 0, MEMBER_BYTES));
    let mut bundle = gzip(&start);
    for _ in 0..size_bytes / MEMBER_BYTES {
        bundle.extend_from_slice(&member);
    }
    let end_bytes = (size_bytes % MEMBER_BYTES).next_multiple_of(512) + 1024;
    bundle.extend(gzip_with(|out| repeat(out, 0, end_bytes)));
    bundle
}

/// A small archive with `size_bytes` zeros after its end, which belong to no header.
pub fn bomb_behind_the_end(size_bytes: u64) -> Vec<u8> {
    let start = tar(&[("a", b"a")]);
    gzip_with(|out| {
        out(&start);
        repeat(out, 0, size_bytes);
    })
}

/// Any number of empty files.
pub fn many_entries(entries: u64) -> Vec<u8> {
    many(entries, |number| header(format!("{number}").as_bytes(), b'0', octal(0)))
}

/// Any number of records that belong to no file.
pub fn many_global_records(entries: u64) -> Vec<u8> {
    many(entries, |_| header(b"pax_global_header", b'g', octal(0)))
}

fn many(entries: u64, make: impl Fn(u64) -> Header) -> Vec<u8> {
    gzip_with(|out| {
        for number in 0..entries {
            let mut block = Vec::new();
            push_entry(&mut block, &make(number), b"");
            out(&block);
        }
        repeat(out, 0, 1024);
    })
}

fn repeat(out: &mut dyn FnMut(&[u8]), byte: u8, mut left: u64) {
    let piece = [byte; 8 * 1024];
    while left > 0 {
        let now = usize::try_from(left).map_or(piece.len(), |left| left.min(piece.len()));
        out(&piece[..now]);
        left -= now as u64;
    }
}

/// A bundle without its last quarter.
pub fn truncated() -> Vec<u8> {
    let noise: Vec<u8> =
        (0..100_000_u32).map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    let mut bundle = tgz(&[("noise", &noise)]);
    bundle.truncate(bundle.len() * 3 / 4);
    bundle
}

/// A bundle with a wrong CRC at its end.
pub fn wrong_checksum() -> Vec<u8> {
    let mut bundle = tgz(&[("a", b"content")]);
    let crc = bundle.len() - 8;
    bundle[crc] ^= 1;
    bundle
}

/// A bundle with bytes after the gzip member.
pub fn trailing_garbage() -> Vec<u8> {
    [tgz(&[("a", b"content")]), b"#!/bin/sh\nexec sh".to_vec()].concat()
}

/// Two archives that were joined with `cat` before compression.
pub fn joined_archives() -> Vec<u8> {
    gzip(&[tar(&[("a", b"1")]), tar(&[("b", b"2")])].concat())
}

/// Every attack that the default limits refuse, with a name for the test's report.
pub fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let mut all = hostile_names();
    all.extend(hostile_types());
    all.extend(hostile_sizes());
    all.extend([
        ("truncated", truncated()),
        ("wrong checksum", wrong_checksum()),
        ("trailing garbage", trailing_garbage()),
        ("joined archives", joined_archives()),
        ("an error page", b"<!DOCTYPE html><html><body>502 Bad Gateway</body></html>".to_vec()),
        ("a compressed error page", gzip(b"<!DOCTYPE html><html><body>502 Bad Gateway</body></html>")),
        ("a jar", b"PK\x03\x04\x14\0\x08\x08\x08\0".to_vec()),
        ("nothing", Vec::new()),
        ("nothing, compressed", gzip(b"")),
    ]);
    all
}

fn hostile_names() -> Vec<(&'static str, Vec<u8>)> {
    let long = "d/".repeat(3000);
    vec![
        ("an absolute name", named(b"/tmp/owned")),
        ("a name that climbs out", named(b"../owned")),
        ("a name that climbs out later", named(b"a/b/../../../owned")),
        ("an empty name", named(b"")),
        ("a dot as name", named(b".")),
        ("a line end in a name", named(b"a\nb")),
        ("a terminal sequence in a name", named(b"\x1b[2Jowned")),
        ("a backslash in a name", named(b"..\\owned")),
        ("a drive in a name", named(b"C:/owned")),
        ("a name that is not UTF-8", named(b"\xff\xfe")),
        ("a pax name that climbs out", with_pax(&[("path", "../owned")], b"")),
        ("a NUL in a pax name", with_pax(&[("path", "a\0b")], b"")),
        ("a path too long", with_pax(&[("path", &long)], b"")),
        ("the same name twice", tgz(&[("a", b"1"), ("a", b"2")])),
        ("the same name in two spellings", tgz(&[("a", b"1"), ("./a", b"2")])),
        ("a file below a file", tgz(&[("a", b"1"), ("a/b", b"2")])),
        ("a file over a folder", tgz(&[("a/b", b"1"), ("a", b"2")])),
        ("a folder that climbs out", bare("../owned/", b'5')),
    ]
}

fn hostile_types() -> Vec<(&'static str, Vec<u8>)> {
    let sparse_pax =
        [("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.realsize", "1099511627776")];
    let renaming = pax(&[("path", "../owned")]);
    vec![
        ("a symbolic link", through_link(b'2', "/tmp")),
        ("a hard link", through_link(b'1', "/etc/passwd")),
        ("a character device", bare("null", b'3')),
        ("a block device", bare("disk", b'4')),
        ("a named pipe", bare("pipe", b'6')),
        ("a sparse file of GNU tar", bare("sparse", b'S')),
        ("a sparse file by pax records", with_pax(&sparse_pax, b"")),
        ("an unknown type", bare("volume", b'Z')),
        (
            "a global record that renames",
            tgz_with_raw_header(&header(b"g", b'g', octal(renaming.len() as u64)), &renaming),
        ),
        ("a record for nothing", long_record(b'L', 512)),
    ]
}

fn hostile_sizes() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("an exabyte", claiming(base256(1 << 60))),
        ("the largest number", claiming(base256(u64::MAX))),
        ("a number with more than 64 bits", claiming([0x80, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
        ("a negative size", claiming([0xff; 12])),
        ("a size that is no number", claiming(*b"twelve bytes")),
        ("a terabyte by pax", with_pax(&[("size", "1099511627776")], b"")),
        ("a long name of 8 MiB", long_record(b'L', 8 << 20)),
        ("a long link of 8 MiB", long_record(b'K', 8 << 20)),
        ("pax records of 8 MiB", long_record(b'x', 8 << 20)),
        ("global records of 8 MiB", long_record(b'g', 8 << 20)),
        ("a bomb of 65 GiB", bomb(65 << 30)),
        ("a bomb behind the end", bomb_behind_the_end(64 << 20)),
        ("too many files", many_entries(200_001)),
        ("too many records", many_global_records(200_001)),
    ]
}
