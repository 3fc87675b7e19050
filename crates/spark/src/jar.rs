//! Reads the main class from a jar's manifest.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use thiserror::Error;
use zip::ZipArchive;
use zip::result::ZipError;

const MANIFEST: &str = "META-INF/MANIFEST.MF";
/// The longest accepted manifest, far longer than a real one.
const LONGEST_MANIFEST_BYTES: u64 = 1 << 20;

/// The reason why a jar does not name its main class.
#[derive(Debug, Error)]
pub enum JarError {
    /// The file is missing or unreadable.
    #[error("cannot read {path}", path = .path.display())]
    Unreadable {
        path: PathBuf,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// The file is not a zip file, or is damaged.
    #[error("{path} is not a jar", path = .path.display())]
    NotAJar {
        path: PathBuf,
        /// The reason of the zip library.
        #[source]
        source: ZipError,
    },
    /// The jar has no manifest, or the manifest has no `Main-Class`.
    #[error("no main class set in JAR {path}; please specify one with --class", path = .path.display())]
    NoMainClass { path: PathBuf },
}

/// Returns the `Main-Class` of a jar's manifest.
pub fn main_class(path: &Path) -> Result<String, JarError> {
    let not_a_jar = |source| JarError::NotAJar { path: path.to_owned(), source };
    let file = open(path).map_err(|source| JarError::Unreadable { path: path.to_owned(), source })?;
    let mut archive = ZipArchive::new(file).map_err(not_a_jar)?;
    let mut text = Vec::new();
    match archive.by_name(MANIFEST) {
        Ok(manifest) => {
            let read = manifest.take(LONGEST_MANIFEST_BYTES).read_to_end(&mut text);
            read.map_err(|error| not_a_jar(error.into()))?;
        }
        Err(ZipError::FileNotFound) => {}
        Err(error) => return Err(not_a_jar(error)),
    }
    main_attribute(&String::from_utf8_lossy(&text), "Main-Class")
        .ok_or_else(|| JarError::NoMainClass { path: path.to_owned() })
}

/// Opens a regular file. Opening a pipe would wait for its writer, perhaps without end.
fn open(path: &Path) -> io::Result<File> {
    let kind = fs::metadata(path)?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        return Err(io::Error::other("it is a pipe, a socket or a device"));
    }
    File::open(path)
}

/// Returns an attribute of a manifest's main section, which ends at the first empty line. A line that begins with a
/// blank continues the line before it (JAR File Specification, "Manifest Specification").
fn main_attribute(manifest: &str, name: &str) -> Option<String> {
    let mut found: Option<String> = None;
    for line in manifest.lines().take_while(|line| !line.is_empty()) {
        match (&mut found, line.strip_prefix(' ')) {
            (Some(value), Some(continued)) => value.push_str(continued),
            (Some(_), None) => break,
            (None, Some(_)) => {}
            (None, None) => found = attribute(line, name),
        }
    }
    found.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

fn attribute(line: &str, name: &str) -> Option<String> {
    let (key, value) = line.split_once(':')?;
    key.eq_ignore_ascii_case(name).then(|| value.trim_start().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_class_is_found_across_lines_and_in_the_main_section_only() {
        let wrapped = "Manifest-Version: 1.0\r\nmain-class: org.example.\r\n Main\r\nX: y\r\n\r\n";
        assert_eq!(main_attribute(wrapped, "Main-Class").as_deref(), Some("org.example.Main"));
        let other = "Manifest-Version: 1.0\n\nName: a\nMain-Class: x.Y\n";
        assert_eq!(main_attribute(other, "Main-Class"), None);
        assert_eq!(main_attribute("Main-Class: \n", "Main-Class"), None);
    }

    #[test]
    fn a_file_that_is_not_a_jar_is_refused_as_such() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "not a zip").unwrap();
        let message = main_class(file.path()).unwrap_err().to_string();
        assert_eq!(message, format!("{} is not a jar", file.path().display()));
    }
}
