//! Files of the submitting machine whose content goes into config maps and secrets.

use std::io;
use std::path::{Path, PathBuf};

use super::facts::{Facts, Unread};
use super::submitter::Machine;
use cloakroom_spark::uri::UriError;
use cloakroom_spark::version::SparkVersion;
use cloakroom_spark::{DependencyUri, SettingError, SparkConf};

/// A regular file of a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FolderFile {
    pub name: String,
    pub path: PathBuf,
    pub size_bytes: u64,
}

type FilesAndWarnings = (Vec<FolderFile>, Vec<String>);

/// The regular files of a folder, sorted by name. Hidden files and links to files are included, as in Spark. A name
/// that no `ConfigMap` can have as a key is left out, with a warning: Spark sends it, and the API server refuses the
/// map.
pub(super) fn regular_files(folder: &Path, facts: &Facts) -> Result<FilesAndWarnings, Unread> {
    let (mut files, mut warnings) = (Vec::new(), Vec::new());
    for (path, size_bytes) in facts.folder(folder)? {
        let (path, size_bytes) = (path.clone(), *size_bytes);
        match path.file_name().and_then(|name| name.to_str()).filter(|name| is_config_map_key(name)) {
            Some(name) => files.push(FolderFile { name: name.to_owned(), path, size_bytes }),
            None => warnings
                .push(format!("{} is left out: no config map can have such a name in it", path.display())),
        }
    }
    files.sort();
    Ok((files, warnings))
}

/// Kubernetes' own rule for keys of config maps and secrets (`IsConfigMapKey` in `k8s.io/apimachinery`).
pub(super) fn is_config_map_key(name: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    name.len() <= 253 && name != "." && !name.starts_with("..") && name.bytes().all(is_good)
}

/// The bytes of the file that a key names by its path. An empty path is no file: joined to the working folder it would be
/// that folder.
pub(super) fn read_file(
    conf: &SparkConf,
    key: &str,
    path: &str,
    machine: Machine,
) -> Result<Vec<u8>, SettingError> {
    if path.is_empty() {
        return Err(
            conf.refuse(key, "give the path of a file of the submitting machine, or leave the key out")
        );
    }
    if let Err(error @ UriError::OfWindows { .. }) = DependencyUri::parse(path) {
        return Err(conf.refuse(key, error.to_string()));
    }
    let bytes = machine.read(path).map_err(|error| conf.refuse(key, unreadable(&error)))?;
    Ok(bytes.to_vec())
}

/// The bytes as text. It is an error if they are not UTF-8.
pub(super) fn text_of(bytes: Vec<u8>) -> Result<String, &'static str> {
    String::from_utf8(bytes)
        .map_err(|_| "this file of the submitting machine must be UTF-8 text, and it is not")
}

/// The bytes as text, as a version of Spark reads files that it passes on. Before 4.1, bytes that are not UTF-8 become
/// replacement characters.
pub(super) fn text_by(version: SparkVersion, bytes: Vec<u8>) -> Result<String, &'static str> {
    if version.refuses_what_is_no_text() {
        return text_of(bytes);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Why a file cannot be read, as a part of a sentence about a setting.
pub(super) fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file on the submitting machine".to_owned(),
        io::ErrorKind::PermissionDenied => "this file of the submitting machine may not be read".to_owned(),
        io::ErrorKind::IsADirectory => {
            "it must be a file of the submitting machine, and it is a folder".to_owned()
        }
        _ => format!("this file of the submitting machine cannot be read: {error}"),
    }
}
