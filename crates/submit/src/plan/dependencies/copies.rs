//! `spark.kubernetes.file.upload.path`: copies of local files in a folder that pods see as well
//! (`KubernetesUtils.uploadFileUri`).

use std::path::{Path, PathBuf};

use super::entries::{Entry, List, keeps_fragment};
use super::{APPLICATION, FOUND_IN_JARS, UPLOAD_PATH};
use crate::file_copy::FileCopy;
use crate::plan::error::PlanError;
use crate::plan::submitter::Machine;
use crate::randomness::Randomness;
use cloakroom_spark::{DependencyUri, SparkConf};

/// The folder that files are copied to: the URI as it was written, and the path on this machine.
struct Target {
    uri: String,
    folder: PathBuf,
}

/// The folder for copies. It is read only if there is something to copy: without local files, any value is accepted.
fn target(conf: &SparkConf, machine: Machine) -> Result<Target, PlanError> {
    let uri = conf.get(&UPLOAD_PATH).unwrap_or_default();
    match DependencyUri::parse(uri).map_err(|error| conf.refuse(&UPLOAD_PATH, error.to_string()))? {
        DependencyUri::Submitter(file) => {
            let folder = machine.path(file.whole_path());
            Ok(Target { uri: uri.to_owned(), folder })
        }
        other => {
            let problem = "it must be a folder that this machine and the pods see under the same path, such as \
                           file:///mnt/shared: other file systems need Spark's own libraries; stage the files \
                           through a cloakroom server (`spark.kubernetes.resourceStagingServer.uri`), put them into \
                           the image (local:///…) or on a web server instead"
                .to_owned();
            Err(PlanError::Remote { key: &UPLOAD_PATH, uri: other.redacted(), problem })
        }
    }
}

/// Decides where each file is copied to. Copies nothing.
pub(super) fn place(
    lists: &mut [List],
    is_java: bool,
    conf: &SparkConf,
    machine: Machine,
    randomness: &Randomness,
) -> Result<Vec<FileCopy>, PlanError> {
    let mut uploads = Vec::new();
    for list in lists.iter_mut().filter(|list| list.has_local()) {
        if list.key == APPLICATION && is_java {
            // The jar is in `spark.jars` too and is copied with that list. Spark then sends `spark-internal`.
            list.entries = vec![Entry::Placed(FOUND_IN_JARS.to_owned())];
            continue;
        }
        let target = target(conf, machine)?;
        let mut entries = Vec::new();
        for entry in std::mem::take(&mut list.entries) {
            let Entry::Local { files, name } = entry else {
                entries.push(entry);
                continue;
            };
            for file in files {
                let copy = copy(&target, &file, randomness, &mut uploads);
                entries.push(Entry::Placed(written(list.key, copy, name.as_deref())));
            }
        }
        list.entries = entries;
    }
    Ok(uploads)
}

/// The URI of the copy. Like Spark, each file gets a folder of its own, so that equal names do not clash.
fn copy(target: &Target, from: &Path, randomness: &Randomness, uploads: &mut Vec<FileCopy>) -> String {
    let name = from.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = format!("spark-upload-{}", randomness.copy(uploads.len()));
    uploads.push(FileCopy { from: from.to_owned(), to: target.folder.join(&folder).join(&name) });
    format!("{}/{folder}/{name}", target.uri)
}

/// The entry for a copy. Spark loses a name behind `#`, except for archives. It writes archives with Java's
/// `UriBuilder`, which gives `file:/x` for `file:///x`.
fn written(key: &str, copy: String, name: Option<&str>) -> String {
    match name {
        _ if !keeps_fragment(key) => copy,
        Some(name) => format!("{}#{name}", one_slash(&copy)),
        None => one_slash(&copy),
    }
}

/// `file:/x` for `file:///x`.
fn one_slash(uri: &str) -> String {
    match uri.strip_prefix("file:///") {
        Some(path) => format!("file:/{path}"),
        None => uri.to_owned(),
    }
}
