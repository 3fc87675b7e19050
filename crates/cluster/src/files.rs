//! Files that are read once and checked for changes later.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::connect_error::ConnectError;
use cloakroom_core::reload::Seen;
use cloakroom_core::text::without_mark;

/// Longer than any token, certificate or kubeconfig, in bytes. The limit also ends the reading of a file that has no
/// end.
const LONGEST: u64 = 4 << 20;

/// Reads files, and remembers the stamp of each.
#[derive(Debug, Default)]
pub(super) struct Files(Seen);

/// The content of a file, or of a field in a kubeconfig.
pub(super) struct Content {
    /// The file or field, for messages.
    pub(super) place: String,
    /// The content itself, at most [`LONGEST`] bytes.
    pub(super) bytes: Vec<u8>,
}

impl Content {
    /// Makes an error that names the place.
    pub(super) fn refuse(&self, problem: impl Into<String>) -> ConnectError {
        ConnectError::Content { place: self.place.clone(), problem: problem.into() }
    }
}

impl Files {
    /// Reads a file that `setting` names.
    pub(super) fn read(&mut self, path: &Path, setting: &str) -> Result<Content, ConnectError> {
        self.0.add(path);
        let mut bytes = Vec::new();
        File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes)).map_err(|source| {
            ConnectError::Unreadable { path: path.to_owned(), setting: setting.to_owned(), source }
        })?;
        let bytes = without_mark(bytes);
        Ok(Content { place: format!("{} ({setting})", path.display()), bytes })
    }

    /// Reads a token: one line of characters that a header may carry.
    pub(super) fn token(&mut self, path: &Path, setting: &str) -> Result<String, ConnectError> {
        token(&self.read(path, setting)?)
    }

    pub(super) fn into_seen(self) -> Seen {
        self.0
    }
}

/// The token in a file or in a setting itself, without the white space around it.
pub(super) fn token(content: &Content) -> Result<String, ConnectError> {
    let text = str::from_utf8(&content.bytes).map_or("\0", str::trim);
    if text.is_empty() {
        Err(content.refuse("is empty: it must hold a bearer token"))
    } else if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(text.to_owned())
    } else {
        Err(content.refuse("holds no bearer token: it must be one word of printable ASCII"))
    }
}
