//! Token files: who shows one of their tokens may upload, or administer.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};
use tokio::sync::Mutex;

use cloakroom_core::protocol::token_line::{TokenLine, TokenLineError};
use cloakroom_core::reload::{Reload, Seen};
use cloakroom_core::resource::ResourceSecret;
use cloakroom_core::text::chain;

/// Shorter tokens could be guessed.
const SHORTEST_TOKEN: usize = 16;
/// A token file is looked at again when a token is shown, at most this often.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// And no request waits any longer for that.
const LOOK_PATIENCE: Duration = Duration::from_secs(1);

/// What tokens are good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenUse {
    /// To upload.
    Upload,
    /// To see and remove everything.
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

/// Tokens, one a line, in a file that is read again when it changes; or one that was made for this run. Clones are the same
/// one.
#[derive(Debug, Clone)]
pub struct TokenFile(Arc<KnownTokens>);

#[derive(Debug)]
struct KnownTokens {
    /// `None` for a token that was made for this run: no file can change it.
    path: Option<PathBuf>,
    usage: TokenUse,
    tokens: RwLock<Tokens>,
    /// Held while the file is looked at.
    file: Arc<Mutex<Reload>>,
}

type Tokens = Vec<(TokenHash, KnownToken)>;

/// A token of the file.
#[derive(Debug, Clone)]
pub(super) struct KnownToken {
    /// Whose it is, if its line says so.
    pub(super) name: Option<Arc<str>>,
}

/// SHA-256 of a token.
struct TokenHash([u8; 32]);

/// Never shows the hash.
impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

/// The token file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// It cannot be read.
    #[error("cannot read the {usage} token file {}", path.display())]
    Unreadable {
        /// What its tokens are good for.
        usage: TokenUse,
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It has no token.
    #[error("the {usage} token file {} is empty: put a token of at least {SHORTEST_TOKEN} characters on a line", path.display())]
    Empty {
        /// What its tokens are good for.
        usage: TokenUse,
        /// Which file.
        path: PathBuf,
    },
    /// A token that could be guessed.
    #[error("the {usage} token file {} has a token of less than {SHORTEST_TOKEN} characters in line {line}: make a longer one, for example by “openssl rand -base64 32”", path.display())]
    Short {
        /// What its tokens are good for.
        usage: TokenUse,
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
    },
    /// A token that would have two names.
    #[error("the {usage} token file {} has in line {line} a token of a line before, with another name: give each name a token of its own", path.display())]
    TwoNames {
        /// What its tokens are good for.
        usage: TokenUse,
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
    },
    /// A line that begins like one with a name, and is none.
    #[error("the {usage} token file {} cannot be understood in line {line}: {source}", path.display())]
    Line {
        /// What its tokens are good for.
        usage: TokenUse,
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it. Nothing of the line is repeated.
        source: TokenLineError,
    },
}

impl TokenFile {
    /// Reads the file for the first time.
    pub fn open(path: &Path, usage: TokenUse) -> Result<Self, TokenFileError> {
        let (tokens, seen) = read(path, usage)?;
        Ok(Self::of(Some(path.to_owned()), usage, tokens, seen))
    }

    /// The one token of this run.
    pub fn made(token: &ResourceSecret, usage: TokenUse) -> Self {
        let hash = TokenHash(Sha256::digest(token.expose().as_bytes()).into());
        Self::of(None, usage, vec![(hash, KnownToken { name: None })], Seen::default())
    }

    fn of(path: Option<PathBuf>, usage: TokenUse, tokens: Tokens, seen: Seen) -> Self {
        let file = Arc::new(Mutex::new(Reload::new(seen)));
        Self(Arc::new(KnownTokens { path, usage, tokens: RwLock::new(tokens), file }))
    }

    /// Whether its one token was made for this run, and lies in the data directory.
    pub(super) fn is_of_this_run(&self) -> bool {
        self.0.path.is_none()
    }

    /// What is known of `token`, if it is one of them.
    pub(super) async fn find(&self, token: &str) -> Option<KnownToken> {
        self.look_again().await;
        let shown: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let tokens = self.0.tokens.read().unwrap_or_else(PoisonError::into_inner);
        // All are compared, so that the time does not tell which one it was.
        let mut place = u64::MAX;
        for (at, (hash, _)) in (0_u64..).zip(&*tokens) {
            place.conditional_assign(&at, hash.0.ct_eq(&shown));
        }
        let (_, known) = tokens.get(usize::try_from(place).ok()?)?;
        Some(known.clone())
    }

    /// On a thread that may block, and one at a time: a file system that does not answer keeps one thread, and no request
    /// for long.
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

    /// Reads the file again, changed or not. For a thread that may block.
    pub fn read_again(&self) {
        let mut file = self.0.file.blocking_lock();
        let now = file.look_anew();
        self.0.renew(&mut file, now);
    }
}

impl KnownTokens {
    /// A file that cannot be read (any more) leaves the tokens as they were: a rotation must not lock people out.
    fn renew(&self, file: &mut Reload, now: Seen) {
        let Some(path) = &self.path else { return };
        match file.take(now, read(path, self.usage)) {
            Some(Ok(tokens)) => {
                *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
                tracing::info!(path = %path.display(), "read the {} tokens again", self.usage);
            }
            Some(Err(error)) => {
                tracing::warn!(error = %chain(&error), "the {} tokens stay as they were", self.usage);
            }
            None => {}
        }
    }
}

fn read(path: &Path, usage: TokenUse) -> Result<(Tokens, Seen), TokenFileError> {
    let seen = Seen::from_iter([path]);
    let text = fs::read_to_string(path).map_err(|source| TokenFileError::Unreadable {
        usage,
        path: path.to_owned(),
        source,
    })?;
    let (mut known, mut with_blanks) = (Tokens::new(), Vec::new());
    for (line, read) in TokenLine::of_file(&text) {
        let refused = |source| TokenFileError::Line { usage, path: path.to_owned(), line, source };
        let TokenLine { name, token } = read.map_err(refused)?;
        if token.len() < SHORTEST_TOKEN {
            return Err(TokenFileError::Short { usage, path: path.to_owned(), line });
        }
        if name.is_none() && token.contains(char::is_whitespace) {
            with_blanks.push(line);
        }
        let hash = TokenHash(Sha256::digest(token.as_bytes()).into());
        let is_same = |(other, _): &&(TokenHash, KnownToken)| bool::from(other.0.ct_eq(&hash.0));
        if known.iter().find(is_same).is_some_and(|(_, other)| other.name.as_deref() != name) {
            return Err(TokenFileError::TwoNames { usage, path: path.to_owned(), line });
        }
        known.push((hash, KnownToken { name: name.map(Into::into) }));
    }
    if known.is_empty() {
        return Err(TokenFileError::Empty { usage, path: path.to_owned() });
    }
    // A file that cannot be used is read again and again.
    for line in with_blanks {
        tracing::warn!(
            "the {usage} token file {} has a token with a blank in line {line}: if its first word is a name, write \
             name=NAME TOKEN",
            path.display()
        );
    }
    Ok((known, seen))
}
