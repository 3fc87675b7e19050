//! Files that a setting names by a path or a URI.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use super::error::PlanError;
use super::folder;
use super::needs::Needs;
use super::submitter::{Machine, Submitter};
use cloakroom_spark::uri::has_scheme;
use cloakroom_spark::{DependencyUri, FileUri, RemoteUri, SparkConf};

/// The text of the file that a key names by a path, `file:`, `local:` or an `http(s)` address. Spark reads `local:` on
/// the submitting machine for these keys, and so does this.
pub(super) fn read(
    conf: &SparkConf,
    key: &'static str,
    machine: Machine,
) -> Result<Option<String>, PlanError> {
    let Some(bytes) = read_bytes(conf, key, machine)? else { return Ok(None) };
    let text = folder::text_of(bytes).map_err(|problem| conf.refuse(key, problem))?;
    Ok(Some(text))
}

/// The same as bytes, for files that may not be UTF-8.
pub(super) fn read_bytes(
    conf: &SparkConf,
    key: &'static str,
    machine: Machine,
) -> Result<Option<Vec<u8>>, PlanError> {
    match found(conf, key, machine)? {
        None => Ok(None),
        Some(Found::File(path)) => {
            let bytes = machine.read(path).map_err(|error| conf.refuse(key, folder::unreadable(&error)))?;
            Ok(Some(bytes.to_vec()))
        }
        Some(Found::Web(remote)) => match machine.facts.web.get(&remote) {
            Some(Ok(bytes)) => Ok(Some(bytes.clone())),
            Some(Err(problem)) => Err(refused(key, &remote, problem.clone())),
            None => Err(refused(key, &remote, "it was not collected".to_owned())),
        },
    }
}

/// The place from which a file is read.
enum Found {
    File(PathBuf),
    Web(RemoteUri),
}

fn found(conf: &SparkConf, key: &'static str, machine: Machine) -> Result<Option<Found>, PlanError> {
    let Some(place) = conf.get(key) else { return Ok(None) };
    match DependencyUri::parse(place).map_err(|error| conf.refuse(key, error.to_string()))? {
        DependencyUri::Submitter(file) | DependencyUri::Image(file) => {
            let (literal, decoded) = paths(place, &file, machine.submitter);
            let decoded = decoded.filter(|path| machine.facts.has_file(path));
            Ok(Some(Found::File(decoded.unwrap_or(literal))))
        }
        DependencyUri::Http(remote) => Ok(Some(Found::Web(remote))),
        DependencyUri::OtherScheme(remote) => {
            let problem = "only paths, file:, local:, http: and https: are read here; copy it to one of them";
            Err(refused(key, &remote, problem.to_owned()))
        }
    }
}

/// The path to look at in the first round: the decoded one, if it differs. The file there wins, as in Spark.
pub(super) fn place(place: &str, submitter: &Submitter) -> Option<PathBuf> {
    match DependencyUri::parse(place) {
        Ok(DependencyUri::Submitter(file) | DependencyUri::Image(file)) => paths(place, &file, submitter).1,
        _ => None,
    }
}

/// Adds the file that is read to the needs of the second round.
pub(super) fn needs(conf: &SparkConf, key: &'static str, machine: Machine, needs: &mut Needs) {
    match found(conf, key, machine) {
        Ok(Some(Found::File(path))) => needs.contents.extend([path]),
        Ok(Some(Found::Web(remote))) => needs.web.extend([remote]),
        // A wrong value is refused when the plan reads it.
        Ok(None) | Err(_) => {}
    }
}

/// The path as it is written, and the decoded path if it differs. Spark takes a path for a URI too and decodes it, so
/// it does not find a file with `%20` in its own name. Here that file is read if there is none of the decoded name.
fn paths(place: &str, file: &FileUri, submitter: &Submitter) -> (PathBuf, Option<PathBuf>) {
    let literal = submitter.working_folder.join(file.whole_path());
    let decoded = percent_decode_str(place).decode_utf8().ok().filter(|_| !has_scheme(place));
    let decoded = decoded.map(|path| submitter.working_folder.join(&*path)).filter(|path| *path != literal);
    (literal, decoded)
}

/// A refusal that shows the address without user, query and fragment, which may be secrets.
fn refused(key: &'static str, remote: &RemoteUri, problem: String) -> PlanError {
    PlanError::Remote { key, uri: remote.redacted(), problem }
}
