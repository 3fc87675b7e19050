//! Small files without a staging server. They travel in a secret, as in kubespark.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::entries::{Entry, List};
use crate::plan::error::PlanError;
use crate::plan::facts::{Facts, Kind};
use crate::plan::folder;
use crate::plan::submitter::Machine;
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

/// Refuses files that are too large together.
pub(super) fn refuse_large(lists: &[List], machine: Machine) -> Result<(), PlanError> {
    let (mut total, mut seen) = (0, BTreeSet::new());
    for path in lists.iter().flat_map(|list| &list.entries).flat_map(Entry::locals) {
        if !seen.insert(path) {
            continue;
        }
        total += match machine.facts.kind(path) {
            Ok(Kind::File { size_bytes, .. }) => *size_bytes,
            // It is refused where it is placed or read.
            Ok(Kind::Folder | Kind::Special) | Err(_) => 0,
        };
        if total > MOST_BYTES {
            let why = format!(" (without a server at most {} travel in a secret)", format_size(MOST_BYTES));
            return Err(PlanError::NoWay { place: PLACE, file: path.display().to_string(), why });
        }
    }
    Ok(())
}

/// Refuses files that cannot have their names.
pub(super) fn check(files: &[(PathBuf, String)]) -> Result<(), PlanError> {
    for (path, name) in files {
        // Kubernetes reserves such names in volumes (`validateLocalNonReservedPath`).
        if name.starts_with("..") {
            let problem = format!(
                "cannot be called “{name}” in a secret, where no name begins with ..: give another name behind #, or \
                 rename it"
            );
            return Err(refuse(path, problem));
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
