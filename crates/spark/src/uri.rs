//! The place of a dependency, by Spark's rules: on the submitting machine, in the image, or remote.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use thiserror::Error;

#[cfg(test)]
mod tests;

use super::java_text::trim;
use cloakroom_core::text::escaped;

/// The longest file name that Linux file systems accept, in bytes (`NAME_MAX`).
const LONGEST_FILE_NAME_BYTES: usize = 255;

/// One entry of `spark.jars`, `spark.files` or a similar list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DependencyUri {
    /// A file of the submitting machine: no scheme, or `file:`.
    Submitter(FileUri),
    /// A file in the image: `local:`.
    Image(FileUri),
    /// A file that every HTTP client can fetch: `http:` or `https:`.
    Http(RemoteUri),
    /// A file that only Spark can fetch, with the right library: any other scheme (`hdfs:`, `s3a:`, …).
    OtherScheme(RemoteUri),
}

/// A URI with a path of a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUri {
    text: String,
    path: PathBuf,
    fragment: Option<String>,
}

/// A URI that is fetched over a network. `Debug` leaves out what may be secret.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemoteUri {
    text: String,
    scheme: String,
}

impl DependencyUri {
    /// Classifies one entry. Without a scheme, the text up to a `#` is the path, unchanged. The path of a `file:` or
    /// `local:` URI is percent-decoded.
    pub fn parse(text: &str) -> Result<Self, UriError> {
        let text = text.trim_ascii();
        if text.is_empty() {
            return Err(UriError::Empty);
        }
        let Some((scheme, rest)) = split_scheme(text) else {
            return FileUri::plain(text).map(Self::Submitter);
        };
        if scheme.len() == 1 && rest.starts_with(['\\', '/']) {
            return Err(UriError::OfWindows { path: text.to_owned() });
        }
        let scheme = scheme.to_ascii_lowercase();
        match scheme.as_str() {
            "file" => FileUri::parse(text, scheme, rest).map(Self::Submitter),
            "local" => FileUri::parse(text, scheme, rest).map(Self::Image),
            "http" | "https" => RemoteUri::http(text, scheme).map(Self::Http),
            _ => Ok(Self::OtherScheme(RemoteUri::new(text, scheme))),
        }
    }

    /// The URI as it was written. Not for messages, because a remote URI may contain a secret.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Submitter(file) | Self::Image(file) => &file.text,
            Self::Http(remote) | Self::OtherScheme(remote) => &remote.text,
        }
    }

    /// The URI for messages.
    pub fn redacted(&self) -> String {
        match self {
            Self::Submitter(file) | Self::Image(file) => file.text.clone(),
            Self::Http(remote) | Self::OtherScheme(remote) => remote.redacted(),
        }
    }
}

impl FileUri {
    fn plain(text: &str) -> Result<Self, UriError> {
        let (path, fragment) = split_fragment(text);
        if path.is_empty() {
            return Err(UriError::Empty);
        }
        let uri = text.to_owned();
        // Some settings have no fragments and use the whole text as the path.
        if text.contains('\0') {
            return Err(UriError::NulInPath { uri });
        }
        Ok(Self { text: uri, path: PathBuf::from(path), fragment })
    }

    fn parse(text: &str, scheme: String, rest: &str) -> Result<Self, UriError> {
        let (rest, fragment) = split_fragment(rest);
        let rest = rest.split('?').next().unwrap_or_default();
        let path = match rest.strip_prefix("//") {
            None => rest,
            Some(authority) => {
                let (host, path) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
                if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                    let (uri, host) = (text.to_owned(), host.to_owned());
                    return Err(UriError::HostInPath { uri, scheme, host });
                }
                path
            }
        };
        let uri = text.to_owned();
        let path: Vec<u8> = percent_decode_str(path).collect();
        if path.is_empty() {
            return Err(UriError::NoPath { uri, scheme });
        }
        if path.contains(&0) || text.contains('\0') {
            return Err(UriError::NulInPath { uri });
        }
        Ok(Self { text: uri, path: OsString::from_vec(path).into(), fragment })
    }

    /// The path; percent-decoded if the text has a scheme.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path for settings without fragments: in a text without a scheme, a `#` is part of the path.
    pub fn whole_path(&self) -> &Path {
        match split_scheme(&self.text) {
            None => Path::new(&self.text),
            Some(_) => &self.path,
        }
    }

    /// The text after `#`: the name under which Spark unpacks an archive.
    pub fn fragment(&self) -> Option<&str> {
        self.fragment.as_deref()
    }
}

impl RemoteUri {
    fn new(text: &str, scheme: String) -> Self {
        let text = text.to_owned();
        Self { text, scheme }
    }

    fn http(text: &str, scheme: String) -> Result<Self, UriError> {
        let remote = Self::new(text, scheme);
        match remote.authority() {
            "" => Err(UriError::NoHost { uri: remote.redacted(), scheme: remote.scheme }),
            _ => Ok(remote),
        }
    }

    /// The URI as it was written, for fetching. User information and query may be secret.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The scheme in lower case, without its colon.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The URI for messages, without user information, query and fragment.
    pub fn redacted(&self) -> String {
        let shown = self.after_scheme().split(['?', '#']).next().unwrap_or_default();
        format!("{}:{}", self.scheme, without_users(shown))
    }

    /// The file's name: the last path segment, percent-decoded, without query and fragment.
    pub fn file_name(&self) -> Result<String, UriError> {
        let segment = self.path().rsplit('/').next().unwrap_or_default();
        file_name(segment).map_err(|problem| UriError::FileName { uri: self.redacted(), problem })
    }

    fn after_scheme(&self) -> &str {
        &self.text[self.scheme.len() + 1..]
    }

    fn authority(&self) -> &str {
        match self.after_scheme().strip_prefix("//") {
            Some(rest) => rest.split(['/', '?', '#']).next().unwrap_or_default(),
            None => "",
        }
    }

    fn path(&self) -> &str {
        let rest = match self.after_scheme().strip_prefix("//") {
            Some(rest) => &rest[self.authority().len()..],
            None => self.after_scheme(),
        };
        rest.split(['?', '#']).next().unwrap_or_default()
    }
}

impl fmt::Debug for RemoteUri {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RemoteUri({})", self.redacted())
    }
}

/// The entries of a comma-separated list as in Spark's `Utils.stringToSeq`: trimmed, without empty ones.
pub fn split_list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(trim).filter(|entry| !entry.is_empty())
}

/// Classifies every entry of a comma-separated list.
pub fn parse_list(text: &str) -> Result<Vec<DependencyUri>, UriError> {
    split_list(text).map(DependencyUri::parse).collect()
}

/// Whether a text begins with the scheme of a URI.
pub fn has_scheme(text: &str) -> bool {
    split_scheme(text).is_some()
}

/// Splits off the scheme, if the text begins with `ALPHA *( ALPHA / DIGIT / "+" / "-" / "." ) ":"` (RFC 3986 §3.1).
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let begins = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    (begins && scheme.bytes().all(allowed)).then_some((scheme, rest))
}

/// Removes the user information before the `@` of an authority. Also does so for an inner URI, as in
/// `jdbc:postgresql://user:secret@host/db`.
fn without_users(text: &str) -> String {
    let mut pieces = text.split("//");
    let mut shown = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find('/').unwrap_or(piece.len());
        let user = piece[..end].rfind('@').map_or(0, |at| at + 1);
        shown.push_str("//");
        shown.push_str(&piece[user..]);
    }
    shown
}

fn split_fragment(text: &str) -> (&str, Option<String>) {
    match text.split_once('#') {
        Some((before, fragment)) => (before, Some(fragment.to_owned())),
        None => (text, None),
    }
}

fn file_name(segment: &str) -> Result<String, &'static str> {
    let name =
        percent_decode_str(segment).decode_utf8().map_err(|_| "is not UTF-8 once it is percent-decoded")?;
    match name.as_ref() {
        "" => Err("is empty"),
        "." | ".." => Err("is the name of a folder"),
        name if name.contains('/') => Err("has an encoded slash in it"),
        name if name.contains(char::is_control) => Err("has a control character in it"),
        name if name.len() > LONGEST_FILE_NAME_BYTES => Err("is longer than 255 bytes"),
        name => Ok(name.to_owned()),
    }
}

/// The text is not the URI of a dependency. Messages show URIs without user information, query and fragment.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UriError {
    /// The text is empty.
    #[error("a path or a URI is missing; write one, such as /opt/app.jar or https://host/app.jar")]
    Empty,
    /// The text is a path of Windows, such as `C:\\libs\\a.jar`.
    #[error("`{}` is a path of Windows, and this program runs on Linux: write where the file is here", escaped(.path))]
    OfWindows { path: String },
    /// The text is only a scheme.
    #[error("`{}` names no path; write one behind the scheme, such as {scheme}:///opt/app.jar", escaped(.uri))]
    NoPath { uri: String, scheme: String },
    /// The URI is like `local://opt/app.jar`, in which the two slashes make the first folder a host.
    #[error(
        "`{}` names the host `{host}`, and a path on another machine cannot be read; \
         write three slashes, {scheme}:///{host}…, if `{host}` is the first folder of the path",
        escaped(.uri), host = escaped(.host)
    )]
    HostInPath { uri: String, scheme: String, host: String },
    /// The URI is an `http:` URI without a host.
    #[error("`{}` names no host; write one, such as {scheme}://host/app.jar", escaped(.uri))]
    NoHost { uri: String, scheme: String },
    /// The path has a NUL, which no file name can have.
    #[error(
        "the path of `{}` has a NUL character in it, which no file name has; remove it or its %00",
        escaped(.uri)
    )]
    NulInPath { uri: String },
    /// The last segment of the URI cannot be a file name.
    #[error(
        "`{}` gives no usable file name: its last path segment {problem}; \
         use a URI that ends in the name of a file, such as https://host/app.jar",
        escaped(.uri)
    )]
    FileName { uri: String, problem: &'static str },
}
