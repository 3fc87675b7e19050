//! Files that a setting names by a path or a URI.

use std::borrow::Cow;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use super::error::PlanError;
use super::folder;
use super::machine::Machine;
use super::needs::Needs;
use super::submitter::Submitter;
use cloakroom_spark::uri::has_scheme;
use cloakroom_spark::{DependencyUri, FileUri, RemoteUri, SparkConf};

/// The text of the file that a key names: a path, `file:`, `local:` (which is read here as well, as Spark does), or an
/// `http(s)` address.
pub(super) fn read(
    conf: &SparkConf,
    key: &'static str,
    machine: Machine,
) -> Result<Option<String>, PlanError> {
    let Some(bytes) = read_bytes(conf, key, machine)? else { return Ok(None) };
    let text = folder::text_of(bytes).map_err(|problem| conf.refuse(key, problem))?;
    Ok(Some(text))
}

/// The same, before it is known to be text.
pub(super) fn read_bytes(
    conf: &SparkConf,
    key: &'static str,
    machine: Machine,
) -> Result<Option<Vec<u8>>, PlanError> {
    let Some(place) = conf.get(key) else { return Ok(None) };
    let uri = DependencyUri::parse(place).map_err(|error| conf.refuse(key, error.to_string()))?;
    match uri {
        DependencyUri::Submitter(file) | DependencyUri::Image(file) => {
            let [literal, decoded] = paths(place, &file, machine.submitter);
            let path = decoded.filter(|path| machine.facts.has_file(path)).or(literal).unwrap_or_default();
            let bytes = machine.read(path).map_err(|error| conf.refuse(key, folder::unreadable(&error)))?;
            Ok(Some(bytes.to_vec()))
        }
        DependencyUri::Http(remote) => match machine.facts.web.get(&remote) {
            Some(Ok(bytes)) => Ok(Some(bytes.clone())),
            Some(Err(problem)) => Err(refused(key, &remote, problem.clone())),
            None => Err(refused(key, &remote, "it was not collected".to_owned())),
        },
        DependencyUri::OtherScheme(remote) => {
            let problem = "only paths, file:, local:, http: and https: are read here; copy it to one of them";
            Err(refused(key, &remote, problem.to_owned()))
        }
    }
}

/// What has to be collected for that.
pub(super) fn needs(place: &str, submitter: &Submitter, needs: &mut Needs) {
    match DependencyUri::parse(place) {
        Ok(DependencyUri::Submitter(file) | DependencyUri::Image(file)) => {
            let [literal, decoded] = paths(place, &file, submitter);
            needs.places.extend(decoded.clone());
            needs.contents.extend([literal, decoded].into_iter().flatten());
        }
        Ok(DependencyUri::Http(remote)) => {
            needs.web.insert(remote);
        }
        _ => {}
    }
}

/// The path as it is written, and as a URI. A path is a URI to Spark as well. One with `%` in its own name, which Spark
/// does not find, is read here.
fn paths(place: &str, file: &FileUri, submitter: &Submitter) -> [Option<PathBuf>; 2] {
    let decoded = percent_decode_str(place).decode_utf8().ok().map(Cow::into_owned);
    let decoded = decoded.filter(|_| !has_scheme(place)).map(|path| submitter.working_folder.join(path));
    [Some(submitter.working_folder.join(file.whole_path())), decoded]
}

/// The address without what may be a secret in it.
fn refused(key: &'static str, remote: &RemoteUri, problem: String) -> PlanError {
    PlanError::Remote { key, uri: remote.redacted(), problem }
}
