//! Small files without a staging server. They travel in a secret, as in kubespark.

use std::path::{Path, PathBuf};

use super::no_way::no_way;
use crate::plan::error::PlanError;
use crate::plan::facts::{Facts, Kind};
use crate::plan::folder;
use cloakroom_core::size::format_size;

/// The mount path of the secret in the driver.
pub(in crate::plan) const FOLDER: &str = "/etc/spark-submitted-files";
/// kubespark's limit for all of them together.
const MOST_BYTES: u64 = 10_240;
const PLACE: &str = "a file to submit";

/// A file with its name in the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::plan) struct SmallFile {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Refuses files that are too large together, or cannot have their names.
pub(super) fn check(files: &[(PathBuf, String)], facts: &Facts) -> Result<(), PlanError> {
    let mut total = 0;
    for (path, name) in files {
        // Kubernetes reserves such names in volumes (`validateLocalNonReservedPath`).
        if name.starts_with("..") {
            let problem = format!(
                "cannot be called “{name}” in a secret, where no name begins with ..: give another name behind #, or \
                 rename it"
            );
            return Err(refuse(path, problem));
        }
        total += match facts.kind(path).map_err(|error| refuse(path, folder::unreadable(&error)))? {
            Kind::File { size_bytes, .. } => *size_bytes,
            Kind::Folder | Kind::Special => 0,
        };
        if total > MOST_BYTES {
            let most = format_size(MOST_BYTES);
            return Err(refuse(
                path,
                no_way(&format!(" (without a server at most {most} travel in a secret)")),
            ));
        }
    }
    Ok(())
}

/// The files with their collected bytes.
pub(in crate::plan) fn read(files: &[(PathBuf, String)], facts: &Facts) -> Result<Vec<SmallFile>, PlanError> {
    let read = files.iter().map(|(path, name)| {
        let bytes = facts.read(path).map_err(|error| refuse(path, folder::unreadable(&error)))?;
        Ok(SmallFile { name: name.clone(), bytes: bytes.to_vec() })
    });
    read.collect()
}

fn refuse(path: &Path, problem: String) -> PlanError {
    PlanError::LocalFile { place: PLACE, file: path.display().to_string(), problem }
}
