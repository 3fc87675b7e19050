//! Decides which files are compressed.

/// How a file's bytes go into the bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// Without compression, at the speed of memory.
    Store,
    /// With compression.
    Deflate,
}

/// Extensions of files that are already compressed. Compressing them again takes seconds and gains nothing.
const COMPRESSED: &[&str] = &[
    "jar", "war", "ear", "zip", "whl", "egg", "apk", "nupkg", "gz", "tgz", "bz2", "tbz", "tbz2", "xz", "txz",
    "lzma", "zst", "tzst", "lz4", "lzo", "br", "sz", "snappy", "7z", "rar", "conda", "png", "jpg", "jpeg",
    "gif", "webp", "avif", "heic", "mp3", "mp4", "m4a", "mkv", "mov", "webm", "ogg", "opus", "flac", "woff",
    "woff2", "docx", "xlsx", "pptx", "odt", "ods", "parquet", "orc", "rda", "rds", "rdata", "npz", "pt",
    "pth", "keras", "gpg", "p12", "pfx",
];

impl Method {
    /// Chooses by the extension of the name, ignoring case.
    pub(super) fn for_name(name: &str) -> Method {
        let known = name
            .rsplit_once('.')
            .is_some_and(|(_, ending)| COMPRESSED.iter().any(|known| ending.eq_ignore_ascii_case(known)));
        if known { Method::Store } else { Method::Deflate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_files_are_stored_and_others_deflated() {
        for name in ["a.jar", "A.JAR", "a.tar.gz", "part-0.snappy.parquet", "x.whl", "model.rds"] {
            assert_eq!(Method::for_name(name), Method::Store, "{name}");
        }
        for name in ["a.py", "a.jar.txt", "jar", "data.csv", "a.tar", "."] {
            assert_eq!(Method::for_name(name), Method::Deflate, "{name}");
        }
    }
}
