//! Reads secrets from files. They are never on the command line, where every user of the machine could read them.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use cloakroom_core::protocol::token_line::{TokenLine, TokenLineError};
use cloakroom_core::text::without_mark;

/// The longest accepted secret. kubespark's secrets have about 1,400 bytes, and the head of a request has no room for
/// much more than this limit.
const LONGEST: u64 = 16 << 10;

/// The reason why a file has no usable secret. The message names the file and its setting.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// The operating system refused to read the file.
    #[error("{setting} names {path}, which cannot be read", path = .path.display())]
    Unreadable { setting: String, path: PathBuf, source: std::io::Error },
    #[error("{setting} names {path}, which is empty: it must hold the secret", path = .path.display())]
    Empty { setting: String, path: PathBuf },
    /// An HTTP header cannot carry the content.
    #[error(
        "{setting} names {path}, whose content is not a secret: it must be one line of printable ASCII",
        path = .path.display()
    )]
    NotText { setting: String, path: PathBuf },
    /// A line is neither a token nor a name and a token.
    #[error("{setting} names {path}, whose line {line} cannot be understood: {source}", path = .path.display())]
    Line {
        setting: String,
        path: PathBuf,
        line: usize,
        /// What is wrong with the line. The text repeats nothing of it.
        source: TokenLineError,
    },
}

/// Reads the first token in the file at `path`, which `setting` names. It may be a server's token file, with several
/// tokens and names.
fn read_token(path: &Path, setting: &str) -> Result<String, SecretFileError> {
    token_of(&read_text(path, setting)?, path, setting)
}

fn token_of(text: &str, path: &Path, setting: &str) -> Result<String, SecretFileError> {
    match TokenLine::of_file(text).next() {
        Some((_, Ok(line))) => checked(line.token, path, setting),
        Some((line, Err(source))) => {
            Err(SecretFileError::Line { setting: setting.to_owned(), path: path.to_owned(), line, source })
        }
        None => checked("", path, setting),
    }
}

/// Reads the one line in the file at `path`, which `setting` (a flag or a property) names.
pub fn read(path: &Path, setting: &str) -> Result<String, SecretFileError> {
    checked(read_text(path, setting)?.trim_end_matches(['\r', '\n']), path, setting)
}

fn read_text(path: &Path, setting: &str) -> Result<String, SecretFileError> {
    let (setting, path) = (setting.to_owned(), path.to_owned());
    let mut bytes = Vec::new();
    // One byte more than the limit is enough to know that the file is too long.
    let opened = File::open(&path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes));
    if let Err(source) = opened {
        return Err(SecretFileError::Unreadable { setting, path, source });
    }
    text_of(bytes, &path, &setting)
}

fn text_of(bytes: Vec<u8>, path: &Path, setting: &str) -> Result<String, SecretFileError> {
    let (setting, path) = (setting.to_owned(), path.to_owned());
    if bytes.len() as u64 > LONGEST {
        return Err(SecretFileError::NotText { setting, path });
    }
    String::from_utf8(without_mark(bytes)).map_err(|_| SecretFileError::NotText { setting, path })
}

fn checked(text: &str, path: &Path, setting: &str) -> Result<String, SecretFileError> {
    let (setting, path) = (setting.to_owned(), path.to_owned());
    if text.trim().is_empty() {
        Err(SecretFileError::Empty { setting, path })
    } else if is_secret(text) {
        Ok(text.to_owned())
    } else {
        Err(SecretFileError::NotText { setting, path })
    }
}

/// Whether an HTTP header can carry the text: one line of printable ASCII that is not blank.
pub fn is_secret(text: &str) -> bool {
    !text.trim().is_empty() && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// A token that allows uploads.
#[derive(Clone, PartialEq, Eq)]
pub struct UploadToken(String);

impl UploadToken {
    /// Reads the first token in the file at `path`, which `setting` names.
    pub fn read(path: &Path, setting: &str) -> Result<Self, SecretFileError> {
        read_token(path, setting).map(Self)
    }

    /// A token that came in an answer; `None` if no header can carry it.
    pub fn from_text(text: &str) -> Option<Self> {
        is_secret(text).then(|| Self(text.to_owned()))
    }

    /// The same for the content of a file that was read before, at least up to the length limit.
    pub fn of_file(bytes: &[u8], path: &Path, setting: &str) -> Result<Self, SecretFileError> {
        token_of(&text_of(bytes.to_vec(), path, setting)?, path, setting).map(Self)
    }

    /// The token's text, for the one header that carries it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Leaves out the token.
impl fmt::Debug for UploadToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UploadToken(…)")
    }
}

/// A token that allows to see and remove every resource.
#[derive(Clone)]
pub struct AdminToken(String);

impl AdminToken {
    /// A token whose text was read before.
    pub fn from_text(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Reads the first token in the file at `path`, which `setting` names.
    pub fn read(path: &Path, setting: &str) -> Result<Self, SecretFileError> {
        read_token(path, setting).map(Self)
    }

    /// The token's text, for the one header that carries it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Leaves out the token.
impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailing_newline_is_not_part_of_the_secret() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        for text in ["s3cret", "s3cret\n", "s3cret\r\n"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(read(&path, "--secret-file").unwrap(), "s3cret");
        }
        assert_eq!(format!("{:?}", UploadToken::read(&path, "--token-file").unwrap()), "UploadToken(…)");
    }

    #[test]
    fn of_a_servers_own_file_the_first_token_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        std::fs::write(&path, "\n  new-token \r\nold-token\n").unwrap();
        let token = AdminToken::read(&path, "--admin-token-file").unwrap();
        assert_eq!((token.expose(), format!("{token:?}").as_str()), ("new-token", "AdminToken(…)"));
        for text in ["\u{feff}the-token\r\n", "name=alice\tthe-token\n", "\u{feff}name=alice \t the-token"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(AdminToken::read(&path, "-").unwrap().expose(), "the-token", "{text:?}");
        }
        std::fs::write(&path, "\nname=al/ice s3cret\n").unwrap();
        let refusal = AdminToken::read(&path, "--admin-token-file").unwrap_err().to_string();
        assert!(refusal.contains("line 2 cannot be understood") && !refusal.contains("s3cret"), "{refusal}");
        std::fs::write(&path, "\n \n").unwrap();
        assert!(matches!(AdminToken::read(&path, "-"), Err(SecretFileError::Empty { .. })));
    }

    #[test]
    fn a_file_without_end_is_not_read_to_its_end() {
        let refusal = read(Path::new("/dev/zero"), "--secret-file");
        assert!(matches!(refusal, Err(SecretFileError::NotText { .. })));
    }

    #[test]
    fn a_file_without_a_secret_is_named_with_its_setting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let refusal = read(&path, "--secret-file").unwrap_err().to_string();
        assert!(
            refusal.starts_with("--secret-file names /") && refusal.contains("cannot be read"),
            "{refusal}"
        );
        for (content, expected) in
            [(&b""[..], "empty"), (b"\n", "empty"), (b"a\nb", "one line"), (b"\xff", "one line")]
        {
            std::fs::write(&path, content).unwrap();
            let refusal = read(&path, "--secret-file").unwrap_err().to_string();
            assert!(refusal.contains(expected) && refusal.contains("/secret"), "{refusal}");
        }
    }
}
