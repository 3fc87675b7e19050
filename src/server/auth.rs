//! Who may upload, and who may administer. Downloads are opened by the ticket.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::Mutex;

use super::error::ApiError;
use crate::kubernetes::{ReviewError, Reviews, User};
use crate::metrics::LimitUse;
use crate::protocol::problem::Code;
use crate::resource::{Owner, ResourceSecret};
use crate::spark::keys;
use crate::telemetry::chain;

/// Shorter tokens could be guessed.
const SHORTEST_TOKEN: usize = 16;
/// A token file is looked at again when a token is shown, at most this often.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// And no request waits any longer for that.
const LOOK_PATIENCE: Duration = Duration::from_secs(1);

/// How uploads are authorised.
#[derive(Debug)]
pub enum UploadAuth {
    /// Everybody who reaches the port may upload.
    None,
    /// Whoever shows one of the tokens in a file.
    Token(TokenFile),
    /// Who may create pods in the owner's namespace, as the API server says.
    Kubernetes(Box<Reviews>),
}

/// Who uploads, as far as this server knows.
#[derive(Debug)]
pub(super) struct Uploader(Option<User>);

impl Uploader {
    /// The user's name in the cluster.
    pub(super) fn name(&self) -> Option<&str> {
        self.0.as_ref().map(User::name)
    }
}

impl UploadAuth {
    /// Lets the request pass or says what is missing. What it is for must be permitted as well.
    pub(super) async fn identify(&self, headers: &HeaderMap) -> Result<Uploader, ApiError> {
        let shown = |which: &str| {
            credentials(headers).ok_or_else(|| {
                ApiError::unauthorized(&format!(
                    "uploads to this server need {which}: send it as “Authorization: Bearer TOKEN” \
                     (cloakroom stage: --token-file; cloakroom submit: {})",
                    keys::CLOAKROOM_UPLOAD_TOKEN_FILE
                ))
            })
        };
        match self {
            Self::None => Ok(Uploader(None)),
            Self::Token(file) if file.accepts(shown("its upload token")?.expose()).await => {
                Ok(Uploader(None))
            }
            Self::Token(_) => Err(ApiError::unauthorized(
                "this is not an upload token of this server: ask its admin for the current one",
            )),
            Self::Kubernetes(reviews) => {
                let token = shown("a token of the cluster, such as “kubectl create token” gives")?;
                Ok(Uploader(Some(reviews.authenticate(token.expose()).await?)))
            }
        }
    }

    /// How much is used of the limits for questions about who may upload.
    pub(super) fn limits(&self) -> Vec<LimitUse> {
        match self {
            Self::None | Self::Token(_) => Vec::new(),
            Self::Kubernetes(reviews) => reviews.limits().into(),
        }
    }

    /// Lets the uploader stage for this owner or says why not.
    pub(super) async fn permit(&self, uploader: &Uploader, owner: &Owner) -> Result<(), ApiError> {
        match (self, &uploader.0) {
            (Self::None | Self::Token(_), _) => Ok(()),
            (Self::Kubernetes(reviews), Some(user)) => {
                Ok(reviews.may_create_pods(user, owner.namespace()).await?)
            }
            (Self::Kubernetes(_), None) => Err(ReviewError::NotAuthenticated.into()),
        }
    }
}

impl From<ReviewError> for ApiError {
    fn from(error: ReviewError) -> Self {
        match error {
            ReviewError::NotAuthenticated => Self::unauthorized(
                "the cluster does not know this token, or it has run out: show a current one",
            ),
            ReviewError::Forbidden { .. } => Self::new(
                Code::Forbidden,
                format!("{error}: stage where you may run pods, or ask the cluster's admin for the right"),
            ),
            ReviewError::TooManyUnknown => Self::try_again(
                Code::Overloaded,
                "too many tokens that this server does not know yet are shown to it at once: try again in a moment",
            ),
            ReviewError::Unanswered(_) => {
                tracing::warn!(error = %chain(&error), "upload refused");
                Self::try_again(
                    Code::AuthorizationUnavailable,
                    "the cluster's API server cannot be asked who may upload: try again; this server's log says why",
                )
            }
        }
    }
}

/// The secret in `Authorization`, after `Bearer` or bare, as the original's clients send it.
pub(super) fn credentials(headers: &HeaderMap) -> Option<ResourceSecret> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let secret = match value.split_once(' ') {
        Some((scheme, secret)) if scheme.eq_ignore_ascii_case("bearer") => secret.trim(),
        // What `Bearer $SECRET` comes to where the variable is not set.
        None if value.eq_ignore_ascii_case("bearer") => "",
        _ => value,
    };
    (!secret.is_empty()).then(|| ResourceSecret::from_text(secret))
}

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

/// Tokens, one a line, in a file that is read again when it changes. Clones are the same one.
#[derive(Debug, Clone)]
pub struct TokenFile(Arc<KnownTokens>);

#[derive(Debug)]
struct KnownTokens {
    path: PathBuf,
    usage: TokenUse,
    tokens: RwLock<Tokens>,
    /// Held while the file is looked at.
    looked: Arc<Mutex<Instant>>,
}

#[derive(Debug)]
struct Tokens {
    modified: Option<SystemTime>,
    hashes: Vec<TokenHash>,
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
}

impl TokenFile {
    /// Reads the file for the first time.
    pub fn open(path: &Path, usage: TokenUse) -> Result<Self, TokenFileError> {
        let tokens = RwLock::new(read(path, usage)?);
        let looked = Arc::new(Mutex::new(Instant::now()));
        Ok(Self(Arc::new(KnownTokens { path: path.to_owned(), usage, tokens, looked })))
    }

    /// Whether `token` is one of them.
    pub(super) async fn accepts(&self, token: &str) -> bool {
        self.look_again().await;
        let shown: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let tokens = self.0.tokens.read().unwrap_or_else(PoisonError::into_inner);
        // All are compared, so that the time does not tell which one it was.
        tokens.hashes.iter().fold(false, |found, hash| found | bool::from(hash.0.ct_eq(&shown)))
    }

    /// On a thread that may block, and one at a time: a file system that does not answer keeps one thread, and no request
    /// for long.
    async fn look_again(&self) {
        let Ok(mut looked) = Arc::clone(&self.0.looked).try_lock_owned() else { return };
        if looked.elapsed() < LOOK_AGAIN {
            return;
        }
        let known = Arc::clone(&self.0);
        let looking = tokio::task::spawn_blocking(move || {
            if modified(&known.path) != known.modified() {
                known.read_again();
            }
            *looked = Instant::now();
        });
        let _ = tokio::time::timeout(LOOK_PATIENCE, looking).await;
    }

    /// Reads the file again, changed or not. It blocks.
    pub fn read_again(&self) {
        self.0.read_again();
    }
}

impl KnownTokens {
    fn modified(&self) -> Option<SystemTime> {
        self.tokens.read().unwrap_or_else(PoisonError::into_inner).modified
    }

    /// A file that cannot be read (any more) leaves the tokens as they were: a rotation must not lock people out.
    fn read_again(&self) {
        let now = modified(&self.path);
        match read(&self.path, self.usage) {
            Ok(tokens) => {
                *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
                tracing::info!(path = %self.path.display(), "read the {} tokens again", self.usage);
            }
            Err(error) => {
                tracing::warn!(error = %chain(&error), "the {} tokens stay as they were", self.usage);
                // Not again before the file changes again.
                self.tokens.write().unwrap_or_else(PoisonError::into_inner).modified = now;
            }
        }
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

fn read(path: &Path, usage: TokenUse) -> Result<Tokens, TokenFileError> {
    // Before the content: a change in between is then seen the next time.
    let modified = modified(path);
    let text = fs::read_to_string(path).map_err(|source| TokenFileError::Unreadable {
        usage,
        path: path.to_owned(),
        source,
    })?;
    let mut hashes = Vec::new();
    for (index, token) in text.lines().map(str::trim).enumerate().filter(|(_, token)| !token.is_empty()) {
        if token.len() < SHORTEST_TOKEN {
            return Err(TokenFileError::Short { usage, path: path.to_owned(), line: index + 1 });
        }
        hashes.push(TokenHash(Sha256::digest(token.as_bytes()).into()));
    }
    if hashes.is_empty() {
        Err(TokenFileError::Empty { usage, path: path.to_owned() })
    } else {
        Ok(Tokens { modified, hashes })
    }
}
