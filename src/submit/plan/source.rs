//! Files that a setting names by a path or a URI, read on the submitting machine.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::error::PlanError;
use super::folder;
use super::submitter::Submitter;
use crate::client::{HttpClient, Timeouts, Url};
use crate::spark::uri::has_scheme;
use crate::spark::{DependencyUri, RemoteUri, SparkConf, format_size};

/// More than any object of Kubernetes may have.
const LONGEST_DOWNLOAD: usize = 4 << 20;

/// The text of the file that a key names: a path, `file:`, `local:` (which is read here as well, as Spark does), or an
/// `http(s)` address.
pub(super) async fn read(
    conf: &SparkConf,
    key: &'static str,
    submitter: &Submitter,
) -> Result<Option<String>, PlanError> {
    let Some(bytes) = read_bytes(conf, key, submitter).await? else { return Ok(None) };
    let text = folder::text_of(bytes).map_err(|problem| conf.refuse(key, problem))?;
    Ok(Some(text))
}

/// The same, before it is known to be text.
pub(super) async fn read_bytes(
    conf: &SparkConf,
    key: &'static str,
    submitter: &Submitter,
) -> Result<Option<Vec<u8>>, PlanError> {
    let Some(place) = conf.get(key) else { return Ok(None) };
    let uri = DependencyUri::parse(place).map_err(|error| conf.refuse(key, error.to_string()))?;
    match uri {
        DependencyUri::Submitter(file) | DependencyUri::Image(file) => {
            let decoded = percent_decode_str(place).decode_utf8().ok().map(Cow::into_owned);
            let literal = submitter.working_folder.join(file.whole_path());
            // A path is a URI to Spark as well. One with `%` in its own name, which Spark does not find, is read here.
            let decoded =
                decoded.filter(|_| !has_scheme(place)).map(|path| submitter.working_folder.join(path));
            let path = decoded.filter(|path| path.is_file()).unwrap_or(literal);
            let bytes = std::fs::read(path).map_err(|error| conf.refuse(key, folder::unreadable(&error)))?;
            Ok(Some(bytes))
        }
        DependencyUri::Http(remote) => download(key, &remote).await.map(Some),
        DependencyUri::OtherScheme(remote) => {
            let problem = "only paths, file:, local:, http: and https: are read here; copy it to one of them";
            Err(refused(key, &remote, problem.to_owned()))
        }
    }
}

async fn download(key: &'static str, remote: &RemoteUri) -> Result<Vec<u8>, PlanError> {
    let problem = |problem: String| refused(key, remote, problem);
    let url = Url::parse(remote.as_str()).map_err(|error| problem(error.to_string()))?;
    let client = HttpClient::new(&[], Timeouts::default()).map_err(|error| problem(error.to_string()))?;
    let mut download = client.open_file(&url, None).await.map_err(|failure| problem(failure.to_string()))?;
    let mut bytes = Vec::new();
    while let Some(chunk) = download.chunk().await.map_err(|failure| problem(failure.to_string()))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > LONGEST_DOWNLOAD {
            let most = format_size(LONGEST_DOWNLOAD as u64);
            return Err(problem(format!("it is larger than {most}, which no object of Kubernetes can be")));
        }
    }
    Ok(bytes)
}

/// The address without what may be a secret in it.
fn refused(key: &'static str, remote: &RemoteUri, problem: String) -> PlanError {
    PlanError::Remote { key, uri: remote.redacted(), problem }
}
