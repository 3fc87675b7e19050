//! The reasons why fetching failed. Each message is one sentence: the source, its address, the reason, and what to
//! check.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::plan::{FetchPlanError, Origin, Source};
use crate::bundle::{PlaceError, UnpackError};
use crate::client::{Answer, Failure};
use cloakroom_core::protocol::digest;
use cloakroom_core::text::chain;
use cloakroom_core::time::format_duration;

/// The reason why a fetch failed. Except for [`FetchError::Place`] and [`FetchError::Target`], nothing was put into
/// place.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The plan is not usable.
    #[error(transparent)]
    Plan(#[from] FetchPlanError),
    /// One source failed, and the other downloads were stopped.
    #[error("could not fetch {what} from {address}: {why}{then}", then = .advice.map(|advice| format!("; {advice}")).unwrap_or_default())]
    Source {
        what: String,
        /// The source's address, without the parts that can be secret.
        address: String,
        why: String,
        /// What to check; `None` if the reason already says it.
        advice: Option<&'static str>,
    },
    /// Two sources have a file with the same name.
    #[error("both {first} and {second} bring {name} to {folder}: rename one of the files, or fetch into two folders", folder = .folder.display())]
    SameName { first: String, second: String, name: String, folder: PathBuf },
    /// A path is a file of one source and a folder of another.
    #[error(
        "{file} brings the file {path}, and {folder} needs a folder there: rename one of them, or fetch into two folders",
        path = .path.display()
    )]
    FileAndFolder { file: String, folder: String, path: PathBuf },
    /// Another process fetches the same source, and did not finish in time.
    #[error(
        "another fetch of {what} into {folder} did not end within {limit}: check what else fetches into this folder, or \
         give it more time (mountTimeout, --timeout)",
        folder = .folder.display(), limit = format_duration(*.limit)
    )]
    Busy { what: String, folder: PathBuf, limit: Duration },
    /// The fetched files could not be moved to the target folder.
    #[error("could not put {what} into place: {why}")]
    Place { what: String, why: String },
    /// The target folder cannot be used.
    #[error(
        "cannot put fetched files into {folder}{check}",
        folder = .folder.display(),
        check = if says_what_to_do(.source) { "" } else { " (check that the volume is mounted and writable)" }
    )]
    Target { folder: PathBuf, source: io::Error },
    /// A signal stopped the fetch.
    #[error("stopped by a signal before everything was fetched, so nothing was put into place")]
    Stopped,
}

impl FetchError {
    pub(super) fn of_source(source: &Source, cause: &SourceCause) -> Self {
        let (what, address) = (source.what(), source.address());
        Self::Source { what, address, why: cause.why(), advice: cause.advice(source) }
    }

    pub(super) fn of_place(source: &Source, error: &PlaceError) -> Self {
        Self::Place { what: source.what(), why: chain(error) }
    }

    pub(super) fn of_folder(folder: &Path, source: io::Error) -> Self {
        Self::Target { folder: folder.to_owned(), source }
    }
}

/// The reason why one source failed.
#[derive(Debug)]
pub(super) enum SourceCause {
    /// The exchange with the server failed, and a retry cannot help.
    Failure(Failure),
    /// The server does not know the resource. `has_begun` says whether some of its bytes came before.
    Unknown { answer: Answer, has_begun: bool },
    /// The exchange with the server failed until the time was over.
    TimeUp { last: Failure, limit: Duration },
    /// The time was over while bytes were still coming. `came` is words for the user.
    TooSlow { came: String, limit: Duration },
    /// The digest of the bytes is not the announced one.
    Damaged { announced: [u8; 32], came: [u8; 32] },
    /// The server has another bundle than the one in the ticket.
    OtherThanTicket { how: String },
    /// The bundle is invalid or hostile.
    Unpack(UnpackError),
    /// The file is larger than the limit.
    TooLarge { limit: String },
    /// The operating system refused to write.
    Disk { path: PathBuf, source: io::Error },
    /// The extracting thread ended without a result.
    Lost,
}

impl SourceCause {
    fn why(&self) -> String {
        match self {
            Self::Failure(failure) => failure.to_string(),
            Self::Unknown { answer, has_begun: false } => {
                format!(
                    "the server knows no resource with this id and secret ({answer})",
                    answer = status(answer)
                )
            }
            Self::Unknown { answer, has_begun: true } => {
                format!(
                    "the download had begun, and now the server does not know the resource any more ({answer})",
                    answer = status(answer)
                )
            }
            Self::TimeUp { last: Failure::Refused, limit } => {
                format!("connection refused for {}", format_duration(*limit))
            }
            Self::TimeUp { last, limit } => format!("{last} (tried for {})", format_duration(*limit)),
            Self::TooSlow { came, limit } => format!("{came} within {}", format_duration(*limit)),
            Self::Damaged { announced, came } => format!(
                "the downloaded bytes have the SHA-256 {}, but the server announced {}",
                digest::to_hex(came),
                digest::to_hex(announced)
            ),
            Self::OtherThanTicket { how } => {
                format!("the ticket and the server disagree about the bundle ({how}), so nothing was placed")
            }
            Self::Unpack(error) => format!("the bundle was not extracted: {}", chain(error)),
            Self::TooLarge { limit } => format!("it is larger than {limit}"),
            Self::Disk { path, source } => format!("cannot write {}: {source}", path.display()),
            Self::Lost => "extracting stopped without saying why".to_owned(),
        }
    }

    fn advice(&self, source: &Source) -> Option<&'static str> {
        match self {
            Self::Failure(failure) | Self::TimeUp { last: failure, .. } => match source.origin {
                Origin::Staged { .. } => staged_advice(failure),
                Origin::Remote(_) => remote_advice(failure),
            },
            Self::Unknown { has_begun: false, .. } => Some(
                "either the secret is another resource's, or the server has lost its data (does its volume outlast its \
                 pod?): submit or stage it again",
            ),
            Self::Unknown { has_begun: true, .. } => Some(
                "it was replaced by one without its data: give it a volume that outlasts its pod, and submit or stage it again",
            ),
            Self::TooSlow { .. } => Some("check the network, or give it more time (mountTimeout, --timeout)"),
            Self::Damaged { .. } => Some("check the proxies in between, and the stored file"),
            Self::OtherThanTicket { .. } => {
                Some("check that the ticket is unchanged and from this server, or stage again")
            }
            Self::Unpack(UnpackError::TooManyEntries { .. }) => Some("raise --max-entries if it is right"),
            Self::Unpack(UnpackError::TooManyBytes { .. }) | Self::TooLarge { .. } => {
                Some("raise --max-unpacked if it is right")
            }
            Self::Unpack(UnpackError::Disk { source, .. }) | Self::Disk { source, .. }
                if says_what_to_do(source) =>
            {
                None
            }
            Self::Unpack(UnpackError::Disk { .. }) | Self::Disk { .. } => {
                Some("check the volume's free space and that it is writable")
            }
            Self::Unpack(_) => Some("check what was staged under this id"),
            Self::Lost => Some("try again"),
        }
    }
}

/// Errors in this program's own words say what to do, and those of the operating system do not.
fn says_what_to_do(error: &io::Error) -> bool {
    error.raw_os_error().is_none()
}

fn status(answer: &Answer) -> String {
    match &answer.code {
        Some(code) => format!("{} {code}", answer.status),
        None => answer.status.to_string(),
    }
}

fn staged_advice(failure: &Failure) -> Option<&'static str> {
    match failure {
        Failure::Refused | Failure::ConnectTimeout { .. } | Failure::Unreachable { .. } => Some(
            "check that the staging server runs, that this is its address for pods, and that a NetworkPolicy lets this \
                 pod reach it",
        ),
        Failure::UnknownHost { .. } => Some(
            "check the staging server's name (its Service and namespace) and that this pod may ask the cluster's DNS",
        ),
        Failure::Answered(answer) if answer.status >= 500 && answer.proxy.is_none() => {
            Some("check the staging server's pods and its log")
        }
        other => other.advice(),
    }
}

fn remote_advice(failure: &Failure) -> Option<&'static str> {
    match failure {
        Failure::Answered(answer) if answer.proxy.is_some() => failure.advice(),
        Failure::Answered(answer) if matches!(answer.status, 401 | 403) => {
            Some("check that the address may be read without further credentials")
        }
        Failure::Answered(answer) if answer.status < 500 => Some("check the address"),
        Failure::Answered(_) | Failure::Foreign { .. } => Some("check what serves that address"),
        other => other.advice(),
    }
}
