//! The name that a bundle was uploaded under. It is kept for `Content-Disposition`.

use std::fmt;

/// A file name without any folder. It is safe to store under, to print and to put into a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileName(String);

/// The text is not a plain file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the file name in the URL is not usable: at most 255 bytes, no / and no \\, no control characters, and neither . nor .."
)]
pub struct FileNameError;

impl FileName {
    /// Accepts 1 to 255 bytes, as Linux file systems do, that are not a path and have no control characters.
    pub fn parse(text: &str) -> Result<Self, FileNameError> {
        let is_path = text == "." || text == ".." || text.contains(['/', '\\']);
        if text.is_empty() || text.len() > 255 || is_path || text.chars().any(char::is_control) {
            return Err(FileNameError);
        }
        Ok(Self(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_not_a_file_name() {
        for text in ["", ".", "..", "a/b", "..\\a", "a\0", "a\r\nb", &"a".repeat(256)] {
            assert_eq!(FileName::parse(text), Err(FileNameError), "{text:?}");
        }
        FileName::parse("déps 1.tgz").unwrap();
    }
}
