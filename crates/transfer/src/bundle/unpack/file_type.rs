//! What the first bytes of a file say that it is, for people who sent the wrong one.

use memchr::memmem;

const MAGIC: &[(&[u8], &str)] = &[
    (b"PK\x03\x04", "a zip or jar file"),
    (b"PK\x05\x06", "an empty zip or jar file"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"\xfd7zXZ\0", "an xz file"),
    (b"BZh", "a bzip2 file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z file"),
    (b"\x04\x22\x4d\x18", "an lz4 file"),
    (b"Rar!", "a rar file"),
    (b"PAR1", "a parquet file"),
    (b"\x7fELF", "a program"),
    (b"%PDF", "a PDF document"),
    (b"{", "a JSON document, perhaps an error message"),
];

/// A name for it, with its article.
pub(super) fn file_type(head: &[u8]) -> &'static str {
    if head.is_empty() {
        return "an empty file";
    }
    if let Some((_, name)) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)) {
        return name;
    }
    if head.trim_ascii_start().starts_with(b"<")
        && memmem::find(&head.to_ascii_lowercase(), b"<html").is_some()
    {
        return "a web page, perhaps an error page or a login page";
    }
    let text = head.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    if text { "plain text" } else { "binary data of no known kind" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_files_are_called_by_their_name() {
        assert_eq!(file_type(b""), "an empty file");
        assert_eq!(file_type(b"PK\x03\x04rest"), "a zip or jar file");
        assert_eq!(
            file_type(b"\n<!DOCTYPE html>\n<HTML>"),
            "a web page, perhaps an error page or a login page"
        );
        assert_eq!(file_type(b"hello\n"), "plain text");
        assert_eq!(file_type(b"\0\x01\x02"), "binary data of no known kind");
    }
}
