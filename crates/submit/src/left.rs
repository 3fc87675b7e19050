//! Files that a failed or stopped submission could not take back.

use std::fmt;

use serde::Serialize;

use super::stage::BundleKind;

/// A file or bundle of an application that is still there, or may be. Its `Display` is a message for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Left {
    /// A bundle that the staging server has not released.
    Staged {
        what: BundleKind,
        /// Its resource id, which is no secret.
        resource_id: String,
        server: String,
        why: String,
    },
    /// Perhaps a bundle: all of its bytes were sent, and no answer came. So its resource id is not known.
    Unanswered { what: BundleKind, server: String },
    /// Perhaps the same bundle once more, without a ticket: an earlier upload had no answer.
    Twice { what: BundleKind, server: String },
    /// A copy, or a folder that was made for one, in the folder of `spark.kubernetes.file.upload.path`.
    Copy { path: String, why: String },
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Staged { what, resource_id, server, why } => write!(
                f,
                "the staged {what} (resource {resource_id} at {server}) could not be released: {why}; they expire unused"
            ),
            Self::Unanswered { what, server } => write!(
                f,
                "perhaps the {what}, at {server}: everything was sent, and no answer came; they expire unused"
            ),
            Self::Twice { what, server } => write!(
                f,
                "perhaps the {what} a second time, at {server}: an upload of them had no answer; they expire unused"
            ),
            Self::Copy { path, why } => write!(f, "{path} could not be removed: {why}"),
        }
    }
}
