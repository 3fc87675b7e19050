//! Parses one tar header: 512 bytes in the format of POSIX ustar, GNU tar or Unix V7.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(super) const BLOCK_BYTES: usize = 512;
pub(super) type Block = [u8; BLOCK_BYTES];

/// The fields of a header that unpacking uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) name: Vec<u8>,
    pub(super) kind: Kind,
    pub(super) size_bytes: u64,
    pub(super) executable: bool,
    pub(super) modified: Option<SystemTime>,
}

/// The type of the entry that the header begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    /// pax records for the next entry.
    Pax,
    /// pax records for all following entries.
    GlobalPax,
    /// GNU tar's long name for the next entry.
    LongName,
    /// GNU tar's long link target for the next entry.
    LongLink,
    /// GNU tar's label of the archive, which is no file.
    Label,
    /// A folder of an incremental archive of GNU tar. Its content is a list of the files that the folder had.
    Listing,
    /// A type that is refused; the text names it, with its article.
    Unsupported(&'static str),
}

impl Header {
    /// Parses a header, or says what is wrong with it.
    pub(super) fn parse(block: &Block) -> Result<Header, &'static str> {
        check_sum(block)?;
        Ok(Header {
            kind: kind(block[156]),
            name: name(block),
            size_bytes: number(&block[124..136])?,
            executable: number(&block[100..108]).is_ok_and(|mode| mode & 0o111 != 0),
            modified: time(&block[136..148]),
        })
    }
}

/// Checks for the magic number of POSIX and GNU tar; only Unix V7 tar leaves it out.
pub(super) fn has_magic(head: &[u8]) -> bool {
    head.get(257..).is_some_and(|rest| rest.starts_with(b"ustar"))
}

fn kind(flag: u8) -> Kind {
    match flag {
        0 | b'0' | b'7' => Kind::File,
        b'1' => Kind::Unsupported("a hard link"),
        b'2' => Kind::Unsupported("a symbolic link"),
        b'3' | b'4' => Kind::Unsupported("a device"),
        b'5' => Kind::Folder,
        b'6' => Kind::Unsupported("a named pipe"),
        b'S' => Kind::Unsupported("a sparse file"),
        b'x' => Kind::Pax,
        b'g' => Kind::GlobalPax,
        b'L' => Kind::LongName,
        b'K' => Kind::LongLink,
        b'V' => Kind::Label,
        b'D' => Kind::Listing,
        b'M' => Kind::Unsupported("the rest of a file of another volume"),
        _ => Kind::Unsupported("of an unknown type"),
    }
}

/// The name field. POSIX tar puts a prefix before it; GNU tar uses the prefix field for something else.
fn name(block: &Block) -> Vec<u8> {
    let name = until_nul(&block[..100]);
    let prefix = until_nul(&block[345..500]);
    if &block[257..263] != b"ustar\0" || prefix.is_empty() {
        return name.to_vec();
    }
    [prefix, b"/", name].concat()
}

fn until_nul(field: &[u8]) -> &[u8] {
    field.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Checks the sum of all bytes, with the checksum field counted as spaces. Some early tars added the bytes as signed
/// numbers.
fn check_sum(block: &Block) -> Result<(), &'static str> {
    let sum_field = 148..156;
    let wanted = number(&block[sum_field.clone()]).map_err(|_| "its checksum is not a number")?;
    let (mut plain, mut signed) = (0_u64, 0_i64);
    for (position, &byte) in block.iter().enumerate() {
        let byte = if sum_field.contains(&position) { b' ' } else { byte };
        plain += u64::from(byte);
        signed += i64::from(byte.cast_signed());
    }
    if plain == wanted || u64::try_from(signed) == Ok(wanted) { Ok(()) } else { Err("its checksum is wrong") }
}

/// Parses octal digits, or big-endian bytes after a first bit of 1 (GNU tar, for sizes over 8 GiB).
fn number(field: &[u8]) -> Result<u64, &'static str> {
    match field.first() {
        Some(first) if first & 0xc0 == 0xc0 => Err("it has a negative number"),
        Some(first) if first & 0x80 != 0 => binary(field),
        _ => octal(field),
    }
}

fn binary(field: &[u8]) -> Result<u64, &'static str> {
    let mut value = 0_u64;
    for (position, &byte) in field.iter().enumerate() {
        let byte = if position == 0 { byte & 0x3f } else { byte };
        value = value.checked_mul(256).ok_or("it has a number that is too large")? | u64::from(byte);
    }
    Ok(value)
}

/// A time in seconds since 1970. One before 1970 is the two's complement in big-endian bytes.
fn time(field: &[u8]) -> Option<SystemTime> {
    let since = |seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    let Some((&[0xff, ..], low)) =
        field.split_last_chunk::<8>().filter(|(high, _)| high.iter().all(|&byte| byte == 0xff))
    else {
        return number(field).ok().and_then(since);
    };
    let seconds = i64::from_be_bytes(*low);
    UNIX_EPOCH.checked_sub(Duration::from_secs(seconds.unsigned_abs())).filter(|_| seconds < 0)
}

fn octal(field: &[u8]) -> Result<u64, &'static str> {
    let digits = until_nul(field).trim_ascii();
    digits.iter().try_fold(0_u64, |value, &digit| match digit {
        b'0'..=b'7' => Ok(value * 8 + u64::from(digit - b'0')),
        _ => Err("one of its numbers has other characters than digits"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> tar::Header {
        let mut header = tar::Header::new_ustar();
        header.set_path("a/b.jar").unwrap();
        header.set_size(1234);
        header.set_mode(0o755);
        header.set_mtime(99);
        header.set_cksum();
        header
    }

    #[test]
    fn a_plain_header_is_read() {
        let read = Header::parse(header().as_bytes()).unwrap();
        let expected = Header {
            name: b"a/b.jar".to_vec(),
            kind: Kind::File,
            size_bytes: 1234,
            executable: true,
            modified: Some(UNIX_EPOCH + Duration::from_secs(99)),
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn a_posix_prefix_stands_before_the_name() {
        let mut long = header();
        let path = format!("{}/{}", "p".repeat(120), "n".repeat(90));
        long.set_path(&path).unwrap();
        long.set_cksum();
        assert_eq!(Header::parse(long.as_bytes()).unwrap().name, path.into_bytes());
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let whole = *header().as_bytes();
        for position in 0..BLOCK_BYTES {
            let mut broken = whole;
            broken[position] ^= 1;
            let same_number = Header::parse(&broken).is_ok_and(|read| Header::parse(&whole) == Ok(read));
            assert!(
                Header::parse(&broken).is_err() || (148..156).contains(&position) && same_number,
                "{position}"
            );
        }
    }

    #[test]
    fn numbers_are_octal_or_binary_and_never_wrap() {
        assert_eq!(number(b"00000001750\0"), Ok(1000));
        assert_eq!(number(b"   1750 \0\0\0\0"), Ok(1000));
        assert_eq!(number(b"777777777777"), Ok((1 << 36) - 1));
        assert_eq!(number(&[0; 12]), Ok(0));
        assert_eq!(number(&[0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1]), Ok((2 << 32) + 1));
        assert_eq!(number(&[0x80, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]), Ok(u64::MAX));
        assert!(number(&[0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(number(&[0xff; 12]).is_err());
        assert!(number(b"-0000000001\0").is_err());
        assert!(number(b"0000000080\0\0").is_err());
    }

    #[test]
    fn times_may_be_before_1970_and_after_2242() {
        let after = |seconds| Some(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(time(b"00000001750\0"), after(1000));
        assert_eq!(time(b"777777777777"), after((1 << 36) - 1));
        assert_eq!(time(&[0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1]), after((2 << 32) + 1));
        let before = |seconds: i64| [[0xff; 4].as_slice(), &(-seconds).to_be_bytes()].concat();
        assert_eq!(time(&before(1)), Some(UNIX_EPOCH - Duration::from_secs(1)));
        assert_eq!(time(&before(86_400)), Some(UNIX_EPOCH - Duration::from_hours(24)));
        assert_eq!(time(b"soon        "), None);
        assert_eq!(time(&[0x80, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]), None);
    }
}
