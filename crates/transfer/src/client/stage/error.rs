//! Why a bundle is not on the server.

use crate::bundle::PackError;
use crate::client::address::ServerAddress;
use crate::client::failure::Failure;
use crate::client::retry::Tried;
use cloakroom_core::size::format_size;
use cloakroom_core::text::chain;

/// An upload token that other machines on the way could read.
#[derive(Debug, thiserror::Error)]
#[error(
    "the upload token would travel unencrypted to {server}, so nothing was sent: \
     use an https address, or leave the token out if the server wants none"
)]
pub struct TokenInClear {
    pub(super) server: ServerAddress,
}

/// The reason why a bundle is not on the server.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// Other machines on the way could read the upload token.
    #[error(transparent)]
    TokenInClear(#[from] TokenInClear),
    /// The files could not be packed.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// The server would refuse the bundle for its size, because it comes through the API server.
    #[error(
        "the bundle is larger than {server} takes through the API server: at most {} (--max-proxied-size), and the jars and \
         other files that are not compressed again have {}; name an address of the server that you reach{such_as}: --server, \
         in a submission spark.kubernetes.resourceStagingServer.uri; or forward its port by kubectl port-forward",
        format_size(*.most), format_size(*.stored)
    )]
    TooLargeForWay {
        server: ServerAddress,
        most: u64,
        stored: u64,
        /// An address, as the end of the advice to name one.
        such_as: String,
    },
    /// The server would refuse the bundle for its size.
    #[error(
        "the bundle is larger than {server} takes: at most {} (--max-resource-size), and the jars and other files that are \
         not compressed again have {}; leave out what the image can have, or ask its admin for more",
        format_size(*.most), format_size(*.stored)
    )]
    TooLarge { server: ServerAddress, most: u64, stored: u64 },
    /// The exchange failed, and no further attempt follows.
    #[error(
        "could not stage to {server}: {why}{tried}{then}{kept}",
        then = then(.failure.advice()),
        kept = kept(*.may_be_kept)
    )]
    Failed {
        server: ServerAddress,
        /// The reason and the progress, in words for the user.
        why: String,
        failure: Failure,
        tried: Tried,
        /// Whether an attempt may have made a resource whose ticket was lost.
        may_be_kept: bool,
    },
    /// The caller stopped staging.
    #[error("stopped before it was staged to {server}{kept}", kept = kept(*.may_be_kept))]
    Stopped {
        server: ServerAddress,
        /// Whether an attempt may have made a resource whose ticket was lost.
        may_be_kept: bool,
    },
    /// The server stored other bytes than were sent.
    #[error(
        "{server} stored {stored}, but this program sent {sent}: something in between changes the bytes; stage it again"
    )]
    OtherBytes { server: ServerAddress, stored: String, sent: String },
}

impl StageError {
    /// The message with other advice, for a caller that knows how the server was named.
    pub fn advised(&self, advice: impl FnOnce(&Failure) -> Option<String>) -> String {
        match self {
            Self::Failed { server, why, failure, tried, may_be_kept } => {
                let then = then(advice(failure).as_deref());
                format!("could not stage to {server}: {why}{tried}{then}{}", kept(*may_be_kept))
            }
            other => chain(other),
        }
    }

    /// Whether the server may keep a bundle whose ticket was lost. It expires unused.
    pub fn may_be_kept(&self) -> bool {
        matches!(self, Self::Failed { may_be_kept: true, .. } | Self::Stopped { may_be_kept: true, .. })
    }
}

fn kept(may_be_kept: bool) -> &'static str {
    if may_be_kept {
        " (all of it was sent: perhaps the server keeps it, until it expires unused)"
    } else {
        ""
    }
}

fn then(advice: Option<&str>) -> String {
    advice.map(|advice| format!("; {advice}")).unwrap_or_default()
}
