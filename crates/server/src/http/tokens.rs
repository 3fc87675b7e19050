//! Token files: a client that sends one of their tokens may upload, or administer.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use sha2::{Digest as _, Sha256};
use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};
use tokio::sync::Mutex;

use cloakroom_core::protocol::token_line::{TokenLine, TokenLineError};
use cloakroom_core::resource::ResourceSecret;
use cloakroom_core::text::chain;

/// The least number of characters of a token. A shorter one could be guessed.
const SHORTEST_TOKEN: usize = 16;
/// The shortest time between two checks whether a token file has changed. It is checked when a client sends a token.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The longest time that a request waits for such a check.
const LOOK_PATIENCE: Duration = Duration::from_secs(1);

/// What the tokens of a file allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenUse {
    /// To upload.
    Upload,
    /// To list and remove all resources, and to sweep.
    Admin,
}

impl fmt::Display for TokenUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Upload => "upload",
            Self::Admin => "admin",
        })
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
    /// Locked while the file is checked; the time of the last check.
    looked: Arc<Mutex<Instant>>,
}

#[derive(Debug)]
struct Tokens {
    modified: Option<SystemTime>,
    known: Vec<(TokenHash, KnownToken)>,
}

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
    #[error("cannot read the {usage} token file {}", path.display())]
    Unreadable {
        /// What its tokens allow.
        usage: TokenUse,
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The file has no token.
    #[error("the {usage} token file {} is empty: put a token of at least {SHORTEST_TOKEN} characters on a line", path.display())]
    Empty {
        /// What its tokens allow.
        usage: TokenUse,
        /// The path of the file.
        path: PathBuf,
    },
    /// A token is so short that it could be guessed.
    #[error("the {usage} token file {} has a token of less than {SHORTEST_TOKEN} characters in line {line}: make a longer one, for example by “openssl rand -base64 32”", path.display())]
    Short {
        /// What its tokens allow.
        usage: TokenUse,
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
    },
    /// Two lines have the same token with different names.
    #[error("the {usage} token file {} has in line {line} the token of an earlier line, with another name: give each name a token of its own", path.display())]
    TwoNames {
        /// What its tokens allow.
        usage: TokenUse,
        /// The path of the file.
        path: PathBuf,
        /// The number of the second line, from 1.
        line: usize,
    },
    /// A line begins like one with a name, and does not have that form.
    #[error("the {usage} token file {} cannot be understood in line {line}: {source}", path.display())]
    Line {
        /// What its tokens allow.
        usage: TokenUse,
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// The error in the line. It repeats nothing of the line.
        source: TokenLineError,
    },
}

impl TokenFile {
    /// Reads the file for the first time.
    pub fn open(path: &Path, usage: TokenUse) -> Result<Self, TokenFileError> {
        let tokens = RwLock::new(read(path, usage)?);
        let looked = Arc::new(Mutex::new(Instant::now()));
        Ok(Self(Arc::new(KnownTokens { path: Some(path.to_owned()), usage, tokens, looked })))
    }

    /// Holds the one token that was made for this run.
    pub fn made(token: &ResourceSecret, usage: TokenUse) -> Self {
        let hash = TokenHash(Sha256::digest(token.expose().as_bytes()).into());
        let tokens = Tokens { modified: None, known: vec![(hash, KnownToken { name: None })] };
        let looked = Arc::new(Mutex::new(Instant::now()));
        Self(Arc::new(KnownTokens { path: None, usage, tokens: RwLock::new(tokens), looked }))
    }

    /// Whether the token was made for this run. Such a token is in the data directory.
    pub(super) fn is_of_this_run(&self) -> bool {
        self.0.path.is_none()
    }

    /// Finds a token; `None` if it is not one of these.
    pub(super) async fn find(&self, token: &str) -> Option<KnownToken> {
        self.look_again().await;
        let shown: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let tokens = self.0.tokens.read().unwrap_or_else(PoisonError::into_inner);
        // Every token is compared, so that the time does not show which one it was.
        let mut place = u64::MAX;
        for (at, (hash, _)) in (0_u64..).zip(&tokens.known) {
            place.conditional_assign(&at, hash.0.ct_eq(&shown));
        }
        let (_, known) = tokens.known.get(usize::try_from(place).ok()?)?;
        Some(known.clone())
    }

    /// Checks the file on a thread that may block, and only once at a time. So a file system that does not answer holds
    /// up one thread, and each request only for a short time.
    async fn look_again(&self) {
        if self.0.path.is_none() {
            return;
        }
        let Ok(mut looked) = Arc::clone(&self.0.looked).try_lock_owned() else { return };
        if looked.elapsed() < LOOK_AGAIN {
            return;
        }
        let known = Arc::clone(&self.0);
        let looking = tokio::task::spawn_blocking(move || {
            if known.path.as_deref().is_some_and(|path| modified(path) != known.modified()) {
                known.read_again();
            }
            *looked = Instant::now();
        });
        let _ = tokio::time::timeout(LOOK_PATIENCE, looking).await;
    }

    /// Reads the file again, even if it has not changed. It blocks.
    pub fn read_again(&self) {
        self.0.read_again();
    }
}

impl KnownTokens {
    fn modified(&self) -> Option<SystemTime> {
        self.tokens.read().unwrap_or_else(PoisonError::into_inner).modified
    }

    /// Reads the file. If that fails, the old tokens stay, because a failed rotation must not lock clients out.
    fn read_again(&self) {
        let Some(path) = &self.path else { return };
        let now = modified(path);
        match read(path, self.usage) {
            Ok(tokens) => {
                *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
                tracing::info!(path = %path.display(), "read the {} tokens again", self.usage);
            }
            Err(error) => {
                tracing::warn!(error = %chain(&error), "the {} tokens stay as they were", self.usage);
                // The file is not read again before its next change, so that the log has one line for each failure.
                self.tokens.write().unwrap_or_else(PoisonError::into_inner).modified = now;
            }
        }
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

fn read(path: &Path, usage: TokenUse) -> Result<Tokens, TokenFileError> {
    // The time is taken before the content, so that a change in between is noticed the next time.
    let modified = modified(path);
    let text = fs::read_to_string(path).map_err(|source| TokenFileError::Unreadable {
        usage,
        path: path.to_owned(),
        source,
    })?;
    let mut known: Vec<(TokenHash, KnownToken)> = Vec::new();
    for (line, read) in TokenLine::of_file(&text) {
        let refused = |source| TokenFileError::Line { usage, path: path.to_owned(), line, source };
        let TokenLine { name, token } = read.map_err(refused)?;
        if token.len() < SHORTEST_TOKEN {
            return Err(TokenFileError::Short { usage, path: path.to_owned(), line });
        }
        if name.is_none() && token.contains(char::is_whitespace) {
            tracing::warn!(
                "the {usage} token file {} has a token with a blank in line {line}: if its first word is a name, write \
                 name=NAME TOKEN",
                path.display()
            );
        }
        let hash = TokenHash(Sha256::digest(token.as_bytes()).into());
        let is_same = |(other, _): &&(TokenHash, KnownToken)| bool::from(other.0.ct_eq(&hash.0));
        if known.iter().find(is_same).is_some_and(|(_, other)| other.name.as_deref() != name) {
            return Err(TokenFileError::TwoNames { usage, path: path.to_owned(), line });
        }
        known.push((hash, KnownToken { name: name.map(Into::into) }));
    }
    if known.is_empty() {
        Err(TokenFileError::Empty { usage, path: path.to_owned() })
    } else {
        Ok(Tokens { modified, known })
    }
}
