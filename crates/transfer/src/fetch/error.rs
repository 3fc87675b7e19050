//! Why fetching failed, in one sentence: which source, at which address, why, and what to check.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::plan::{Origin, PlanError, Source};
use crate::bundle::{PlaceError, UnpackError};
use crate::client::{Answer, Failure};
use cloakroom_core::protocol::digest;
use cloakroom_core::text::chain;
use cloakroom_core::time::format_duration;

/// Why a fetch did not succeed. Except for [`FetchError::Place`] and [`FetchError::Target`], nothing was put into place.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The plan cannot work.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// One source failed, and the others were given up.
    #[error("could not fetch {what} from {address}: {why}{then}", then = .advice.map(|advice| format!("; {advice}")).unwrap_or_default())]
    Source {
        /// What it is to the user.
        what: String,
        /// Where it is, without what can be a secret.
        address: String,
        /// Why.
        why: String,
        /// What to check, where the reason does not say it.
        advice: Option<&'static str>,
    },
    /// One name came from two sources.
    #[error("both {first} and {second} bring {name} to {folder}: rename one of the files, or fetch into two folders", folder = .folder.display())]
    SameName {
        /// One source.
        first: String,
        /// The other.
        second: String,
        /// The file.
        name: String,
        /// Where it would go.
        folder: PathBuf,
    },
    /// What is a file of one source is a folder of another.
    #[error(
        "{file} brings the file {path}, and {folder} needs a folder there: rename one of them, or fetch into two folders",
        path = .path.display()
    )]
    FileAndFolder {
        /// The source with the file.
        file: String,
        /// The source with the folder.
        folder: String,
        /// Where both would be.
        path: PathBuf,
    },
    /// Another process fetches the same, and does not come to an end.
    #[error(
        "another fetch of {what} into {folder} did not end within {limit}: check what else fetches into this folder, or \
         give it more time (mountTimeout, --timeout)",
        folder = .folder.display(), limit = format_duration(*.limit)
    )]
    Busy {
        /// What it is to the user.
        what: String,
        /// The target folder.
        folder: PathBuf,
        /// How long was waited.
        limit: Duration,
    },
    /// What was fetched could not be put where it belongs.
    #[error("could not put {what} into place: {why}")]
    Place {
        /// What it is to the user.
        what: String,
        /// Why.
        why: String,
    },
    /// The target folder.
    #[error("cannot use {folder} for what is fetched (check that the volume is mounted and writable)", folder = .folder.display())]
    Target {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A signal came.
    #[error("stopped by a signal before everything was fetched, so nothing was put into place")]
    Stopped,
}

impl FetchError {
    pub(super) fn of_source(source: &Source, cause: &Cause) -> Self {
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

/// Why one source failed.
#[derive(Debug)]
pub(super) enum Cause {
    /// The way there, for good.
    Failure(Failure),
    /// The server does not know what it had: nothing came yet, or something of it.
    Unknown { answer: Answer, has_begun: bool },
    /// The way there, until time was up.
    TimeUp { last: Failure, limit: Duration },
    /// Time was up while bytes were still coming.
    TooSlow { came: String, limit: Duration },
    /// Other bytes than were announced.
    Damaged { announced: [u8; 32], came: [u8; 32] },
    /// Another bundle than the ticket's.
    OtherThanTicket { how: String },
    /// Not a bundle, or a hostile one.
    Unpack(UnpackError),
    /// Larger than allowed.
    TooLarge { limit: String },
    /// The disk.
    Disk { path: PathBuf, source: io::Error },
    /// The extracting thread is gone.
    Lost,
}

impl Cause {
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
                "what came has the SHA-256 {} and not {}, as announced",
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
            Self::Damaged { .. } => Some("check what stands between here and there, and the stored file"),
            Self::OtherThanTicket { .. } => Some(
                "check that the ticket is as it was given, and that this is the server that gave it, or stage again",
            ),
            Self::Unpack(UnpackError::TooManyEntries { .. }) => Some("raise --max-entries if it is right"),
            Self::Unpack(UnpackError::TooManyBytes { .. }) | Self::TooLarge { .. } => {
                Some("raise --max-unpacked if it is right")
            }
            Self::Unpack(UnpackError::Disk { .. }) | Self::Disk { .. } => {
                Some("check the volume's free space and that it is writable")
            }
            Self::Unpack(_) => Some("check what was staged under this id"),
            Self::Lost => Some("try again"),
        }
    }
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
        Failure::Answered(answer) if answer.status >= 500 => {
            Some("check the staging server's pods and its log")
        }
        other => other.advice(),
    }
}

fn remote_advice(failure: &Failure) -> Option<&'static str> {
    match failure {
        Failure::Answered(answer) if matches!(answer.status, 401 | 403) => {
            Some("check that the address may be read without further credentials")
        }
        Failure::Answered(answer) if answer.status < 500 => Some("check the address"),
        Failure::Answered(_) | Failure::Foreign { .. } => Some("check what serves that address"),
        other => other.advice(),
    }
}
