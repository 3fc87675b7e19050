//! Upload tokens of short life.

use std::fmt;

use async_trait::async_trait;

use super::failure::Failure;
use super::secret_file::UploadToken;

/// A token, with the name of its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    pub token: UploadToken,
    /// The user for whom an account of several users uploads, for the server's log. The server cannot verify it.
    pub user: Option<String>,
}

/// Gives tokens that may end while an upload is tried. Each attempt asks for one.
#[async_trait]
pub trait UploadTokens: fmt::Debug + Send + Sync {
    /// The credential for an attempt that begins now; `None` if the server wants no such token.
    async fn credential(&self) -> Result<Option<Credential>, Failure>;

    /// The server has taken the last token.
    async fn taken(&self);

    /// The server has refused the last token (401). Returns whether another one is worth an attempt.
    async fn refused(&self) -> bool;

    /// Explains the refused token to the user, as the end of a sentence: its origin, and the next step. `None` if no token was
    /// sent.
    async fn about_refused(&self) -> Option<String>;
}
