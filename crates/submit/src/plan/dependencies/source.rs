//! The source of a file that travels, and the check of its name.

use std::path::PathBuf;

use super::APPLICATION;
use super::entries::{Entry, keeps_fragment};
use super::file_names::{is_split, unfit};
use crate::plan::error::PlanError;
use cloakroom_spark::RemoteUri;
use cloakroom_transfer::bundle::check_file_name;

/// The place that a file comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    File(PathBuf),
    Web(RemoteUri),
}

/// The files of an entry that need a name, and the name behind `#`. It is `None` for an entry that is placed or left to
/// Spark.
pub(super) fn sources(entry: &Entry) -> Option<(Vec<Source>, Option<&str>)> {
    match entry {
        Entry::Local { files, name } => {
            Some((files.iter().cloned().map(Source::File).collect(), name.as_deref()))
        }
        Entry::Web { uri, name } => Some((vec![Source::Web(uri.clone())], name.as_deref())),
        Entry::Placed(_) | Entry::Other(_) => None,
    }
}

impl Source {
    pub fn name(&self, key: &'static str) -> Result<String, PlanError> {
        match self {
            Self::File(path) => {
                let name = path.file_name().unwrap_or_default().to_str().map(str::to_owned);
                name.ok_or_else(|| self.refuse(key, "has a name that is not UTF-8: rename it".to_owned()))
            }
            Self::Web(remote) => remote.file_name().map_err(|error| self.refuse(key, error.to_string())),
        }
    }

    /// Checks a name: it must be possible for a file and in a list. A fetched file keeps its own name.
    pub fn check(&self, key: &'static str, name: &str, is_own: bool) -> Result<(), PlanError> {
        if matches!(self, Self::Web(_)) && !is_own {
            return Err(self.refuse(key, format!("keeps its name when it is fetched: leave #{name} out")));
        }
        let fault = match (unfit(name), check_file_name(name)) {
            (Some(characters), _) => format!("Spark cannot take {characters} in the name of a file"),
            (None, Err(fault)) => fault.to_string(),
            (None, Ok(())) if is_split(name) => {
                "Spark separates the entries of its lists by commas".to_owned()
            }
            (None, Ok(())) => return Ok(()),
        };
        let way_out = self.way_out(key);
        Err(self.refuse(key, format!("cannot be called “{name}” in the pod: {fault}: {way_out}")))
    }

    /// How the user can give the file another name.
    fn way_out(&self, key: &str) -> &'static str {
        match self {
            Self::Web(_) => {
                "what the init-container fetches keeps its name, so download it and give it as a local file"
            }
            Self::File(_) if key == APPLICATION => "rename it",
            Self::File(_) if keeps_fragment(key) => {
                "rename the archive itself: the name behind # is only the folder that it is unpacked to"
            }
            Self::File(_) => "give another name behind #, or rename it",
        }
    }

    pub fn refuse(&self, key: &'static str, problem: String) -> PlanError {
        match self {
            Self::File(path) => {
                PlanError::LocalFile { place: key, file: path.display().to_string(), problem }
            }
            Self::Web(remote) => PlanError::Remote { key, uri: remote.redacted(), problem },
        }
    }

    /// The file for a message. An address is shown without user and query, which may be secrets.
    pub fn shown(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Web(remote) => remote.redacted(),
        }
    }
}
