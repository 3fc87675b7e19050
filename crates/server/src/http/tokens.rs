//! Token files: a client that sends one of their tokens may upload, or administer.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};
use tokio::sync::Mutex;

use cloakroom_core::protocol::token_line::{TokenLine, TokenLineError};
use cloakroom_core::protocol::webhdfs::{KeyLine, KeyLineError};
use cloakroom_core::reload::{Reload, Seen};
use cloakroom_core::resource::ResourceSecret;
use cloakroom_core::size::format_size;
use cloakroom_core::text::{chain, without_mark};

/// The least number of characters of a token. A shorter one could be guessed.
const SHORTEST_TOKEN: usize = 16;
/// The largest length of a token in bytes: clients read no longer one.
const LONGEST_TOKEN: usize = 16 << 10;
/// The shortest time between two checks whether a token file has changed. It is checked when a client sends a token.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The longest time that a request waits for such a check.
const LOOK_PATIENCE: Duration = Duration::from_secs(1);

/// What the tokens of a file allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenUse {
    Upload,
    /// To list and remove all resources, and to sweep.
    Admin,
    /// To upload by WebHDFS for one namespace.
    WebHdfs,
}

impl fmt::Display for TokenUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Upload => "upload token",
            Self::Admin => "admin token",
            Self::WebHdfs => "upload key",
        })
    }
}

impl TokenUse {
    /// What a line of the file has.
    fn example(self) -> String {
        match self {
            Self::Upload | Self::Admin => format!("a token of at least {SHORTEST_TOKEN} characters"),
            Self::WebHdfs => "a namespace and its key, NAMESPACE token-…,".to_owned(),
        }
    }
}

/// Tokens in a file, one on each line. The file is read again when it changes. Or the one token that the server made
/// for this run. Clones share the tokens.
#[derive(Debug, Clone)]
pub struct TokenFile(Arc<KnownTokens>);

#[derive(Debug)]
struct KnownTokens {
    /// The file; `None` for a token that was made for this run.
    path: Option<PathBuf>,
    usage: TokenUse,
    tokens: RwLock<Tokens>,
    /// Locked while the file is checked.
    file: Arc<Mutex<Reload>>,
}

type Tokens = Vec<(TokenHash, KnownToken)>;

/// A token that was found.
#[derive(Debug, Clone)]
pub(super) struct KnownToken {
    /// The name of its holder; `None` if its line has none.
    pub(super) name: Option<Arc<str>>,
}

/// The SHA-256 of a token.
struct TokenHash([u8; 32]);

/// Shows no hash.
impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

/// The token file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error("cannot read the {usage} file {}", path.display())]
    Unreadable {
        usage: TokenUse,
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The file has no token.
    #[error("the {usage} file {} is empty: put {} on a line", path.display(), usage.example())]
    Empty { usage: TokenUse, path: PathBuf },
    /// A token is so short that it could be guessed.
    #[error("the {usage} file {} has a token of less than {SHORTEST_TOKEN} characters in line {line}: make a longer one, for example by “openssl rand -base64 32”", path.display())]
    Short { usage: TokenUse, path: PathBuf, line: usize },
    /// No HTTP header can carry a token.
    #[error("the {usage} file {} has a token in line {line} that no client can send: it must be printable ASCII, and at most {} long", path.display(), format_size(LONGEST_TOKEN as u64))]
    Unsendable { usage: TokenUse, path: PathBuf, line: usize },
    /// Two lines have the same token with different names.
    #[error("the {usage} file {} has in line {line} the {usage} of an earlier line, with another name: give each name one of its own", path.display())]
    TwoNames { usage: TokenUse, path: PathBuf, line: usize },
    /// A line begins like one with a name, and does not have that form.
    #[error("the {usage} file {} cannot be understood in line {line}: {source}", path.display())]
    Line {
        usage: TokenUse,
        path: PathBuf,
        line: usize,
        /// The error in the line. It repeats nothing of the line.
        source: TokenLineError,
    },
    /// A line has no namespace with its key.
    #[error("the {} file {} cannot be understood in line {line}: {source}", TokenUse::WebHdfs, path.display())]
    KeyLine {
        path: PathBuf,
        line: usize,
        /// The error in the line. It repeats nothing of the line.
        source: KeyLineError,
    },
}

impl TokenFile {
    /// Reads the file for the first time.
    pub fn open(path: &Path, usage: TokenUse) -> Result<Self, TokenFileError> {
        let (tokens, seen) = read(path, usage)?;
        if tokens.is_empty() {
            return Err(TokenFileError::Empty { usage, path: path.to_owned() });
        }
        Ok(Self::new(Some(path.to_owned()), usage, tokens, seen))
    }

    /// Holds the one token that was made for this run.
    pub fn made(token: &ResourceSecret, usage: TokenUse) -> Self {
        let hash = TokenHash(Sha256::digest(token.expose().as_bytes()).into());
        Self::new(None, usage, vec![(hash, KnownToken { name: None })], Seen::default())
    }

    fn new(path: Option<PathBuf>, usage: TokenUse, tokens: Tokens, seen: Seen) -> Self {
        let file = Arc::new(Mutex::new(Reload::new(seen)));
        Self(Arc::new(KnownTokens { path, usage, tokens: RwLock::new(tokens), file }))
    }

    /// The file; `None` for a token that was made for this run. Such a token is in the data directory.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Finds a token; `None` if it is not one of these.
    pub(super) async fn find(&self, token: &str) -> Option<KnownToken> {
        self.look_again().await;
        let shown: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let tokens = self.0.tokens.read().unwrap_or_else(PoisonError::into_inner);
        // Every token is compared, so that the time does not show which one it was.
        let mut place = u64::MAX;
        for (at, (hash, _)) in (0_u64..).zip(&*tokens) {
            place.conditional_assign(&at, hash.0.ct_eq(&shown));
        }
        let (_, known) = tokens.get(usize::try_from(place).ok()?)?;
        Some(known.clone())
    }

    /// Checks the file on a thread that may block, and only once at a time. So a file system that does not answer holds
    /// up one thread, and each request only for a short time.
    async fn look_again(&self) {
        if self.0.path.is_none() {
            return;
        }
        let Ok(mut file) = Arc::clone(&self.0.file).try_lock_owned() else { return };
        if !file.is_due(LOOK_AGAIN) {
            return;
        }
        let known = Arc::clone(&self.0);
        let looking = tokio::task::spawn_blocking(move || {
            let now = file.look();
            if file.has_changed(&now) {
                known.renew(&mut file, now);
            }
        });
        let _ = tokio::time::timeout(LOOK_PATIENCE, looking).await;
    }

    /// Reads the file again, even if it has not changed. It blocks.
    pub fn read_again(&self) {
        let mut file = self.0.file.blocking_lock();
        let now = file.look_anew();
        self.0.renew(&mut file, now);
    }
}

impl KnownTokens {
    /// Reads the file. If that fails, the old tokens stay, because a failed rotation must not lock clients out.
    fn renew(&self, file: &mut Reload, now: Seen) {
        let Some(path) = &self.path else { return };
        // A key ends when its line is gone, also the last one. A file of tokens that is empty is more likely half written.
        let read = read(path, self.usage).and_then(|(tokens, seen)| match self.usage {
            TokenUse::Upload | TokenUse::Admin if tokens.is_empty() => {
                Err(TokenFileError::Empty { usage: self.usage, path: path.clone() })
            }
            _ => Ok((tokens, seen)),
        });
        match file.take(now, read) {
            Some(Ok(tokens)) => {
                *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
                tracing::info!(path = %path.display(), "read the {}s again", self.usage);
            }
            Some(Err(error)) => {
                tracing::warn!(error = %chain(&error), "the {}s stay as they were", self.usage);
            }
            None => {}
        }
    }
}

fn read(path: &Path, usage: TokenUse) -> Result<(Tokens, Seen), TokenFileError> {
    let seen = Seen::from_iter([path]);
    let unreadable = |source| TokenFileError::Unreadable { usage, path: path.to_owned(), source };
    let bytes = fs::read(path).map_err(unreadable)?;
    let text = String::from_utf8(without_mark(bytes)).map_err(|_| {
        unreadable(std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not text in UTF-8 or UTF-16"))
    })?;
    let known = match usage {
        TokenUse::Upload | TokenUse::Admin => tokens(&text, path, usage)?,
        TokenUse::WebHdfs => keys(&text, path)?,
    };
    Ok((known, seen))
}

/// The keys of a file, each with its namespace as its name.
fn keys(text: &str, path: &Path) -> Result<Tokens, TokenFileError> {
    let mut known = Tokens::new();
    for (line, text) in (1..).zip(text.lines()) {
        let refused = |source| TokenFileError::KeyLine { path: path.to_owned(), line, source };
        if let Some(KeyLine { namespace, sha256 }) = KeyLine::parse(text).map_err(refused)? {
            add(&mut known, TokenHash(sha256), Some(namespace), (path, TokenUse::WebHdfs, line))?;
        }
    }
    Ok(known)
}

fn tokens(text: &str, path: &Path, usage: TokenUse) -> Result<Tokens, TokenFileError> {
    let (mut known, mut with_blanks) = (Tokens::new(), Vec::new());
    for (line, read) in TokenLine::of_file(text) {
        let refused = |source| TokenFileError::Line { usage, path: path.to_owned(), line, source };
        let TokenLine { name, token } = read.map_err(refused)?;
        if token.len() < SHORTEST_TOKEN {
            return Err(TokenFileError::Short { usage, path: path.to_owned(), line });
        }
        if token.len() > LONGEST_TOKEN || !token.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(TokenFileError::Unsendable { usage, path: path.to_owned(), line });
        }
        if name.is_none() && token.contains(char::is_whitespace) {
            with_blanks.push(line);
        }
        let hash = TokenHash(Sha256::digest(token.as_bytes()).into());
        add(&mut known, hash, name, (path, usage, line))?;
    }
    // A file that cannot be used is read again and again.
    for line in with_blanks {
        tracing::warn!(
            "the {usage} file {} has a token with a blank in line {line}: if its first word is a name, write \
             name=NAME TOKEN",
            path.display()
        );
    }
    Ok(known)
}

/// Adds what a line has. The same token may not have two names.
fn add(
    known: &mut Tokens,
    hash: TokenHash,
    name: Option<&str>,
    (path, usage, line): (&Path, TokenUse, usize),
) -> Result<(), TokenFileError> {
    let is_same = |(other, _): &&(TokenHash, KnownToken)| bool::from(other.0.ct_eq(&hash.0));
    if known.iter().find(is_same).is_some_and(|(_, other)| other.name.as_deref() != name) {
        return Err(TokenFileError::TwoNames { usage, path: path.to_owned(), line });
    }
    known.push((hash, KnownToken { name: name.map(Into::into) }));
    Ok(())
}
