//! The entries of the lists of dependencies, each with the place of its file.

use std::path::{Path, PathBuf};

use super::APPLICATION;
use super::file_names::folder_fault;
use super::local_files::LocalEntry;
use crate::plan::error::PlanError;
use crate::plan::needs::is_pattern;
use crate::plan::submitter::Machine;
use cloakroom_spark::keys::{ARCHIVES, DEPENDENCY_LISTS};
use cloakroom_spark::{DependencyUri, MainResource, RemoteUri, SparkConf, split_list};

/// One entry of a list, or the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// Files of this machine (several for a pattern), and the name behind `#`.
    Local { files: Vec<PathBuf>, name: Option<String> },
    /// An address that the init-container fetches, and the name behind `#`.
    Web { uri: RemoteUri, name: Option<String> },
    /// The URI at which the driver will find the file.
    Placed(String),
    /// An entry that goes to Spark as it was written.
    Other(String),
}

impl Entry {
    /// The local files of the entry.
    pub fn locals(&self) -> &[PathBuf] {
        match self {
            Self::Local { files, .. } => files,
            _ => &[],
        }
    }

    /// The first local file of the entry.
    pub fn local(&self) -> Option<&Path> {
        self.locals().first().map(PathBuf::as_path)
    }
}

/// A list by its key, or the application by the name that messages have for it.
pub(super) struct List {
    pub key: &'static str,
    pub entries: Vec<Entry>,
}

impl List {
    /// The new value of the list. Placed entries come first, as Spark puts uploaded files first. It is `None` if there
    /// are none.
    pub fn changed(&self) -> Option<String> {
        let placed = self.entries.iter().filter_map(|entry| match entry {
            Entry::Placed(uri) => Some(uri.as_str()),
            _ => None,
        });
        let others = self.entries.iter().filter_map(|entry| match entry {
            Entry::Other(uri) => Some(uri.as_str()),
            _ => None,
        });
        let mut uris: Vec<&str> = placed.collect();
        if uris.is_empty() {
            return None;
        }
        uris.extend(others);
        Some(uris.join(","))
    }

    /// Whether an entry is a file of this machine.
    pub fn has_local(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry, Entry::Local { .. }))
    }
}

/// Reads every list, and the application as the last one.
pub(super) struct Reader<'a> {
    pub conf: &'a SparkConf,
    pub machine: Machine<'a>,
    /// Whether the init-container fetches `http(s)` entries, in place of Spark.
    pub fetches_remote: bool,
}

impl Reader<'_> {
    pub fn read(&self, resource: &MainResource) -> Result<Vec<List>, PlanError> {
        // A jar that is the application is in `spark.jars` too. It is read first, so that a message about it names the
        // application, and not a list that the user did not write.
        let application = self.application(resource)?;
        let mut lists = Vec::new();
        for key in DEPENDENCY_LISTS {
            let entries = self.entries(key)?;
            lists.push(List { key, entries });
        }
        lists.push(List { key: APPLICATION, entries: vec![application] });
        Ok(lists)
    }

    fn entries(&self, key: &'static str) -> Result<Vec<Entry>, PlanError> {
        let (mut entries, mut before) = (Vec::new(), None);
        for (at, text) in split_list(self.conf.get(key).unwrap_or_default()).enumerate() {
            entries.push(self.entry(key, text, at + 1, before)?);
            before = Some(text);
        }
        Ok(entries)
    }

    fn entry(
        &self,
        key: &'static str,
        text: &str,
        number: usize,
        before: Option<&str>,
    ) -> Result<Entry, PlanError> {
        // The message has the entry's number only: an entry that cannot be parsed may have a secret in it.
        let unusable = |problem| PlanError::Remote { key, uri: format!("entry {number}"), problem };
        match DependencyUri::parse(text).map_err(|error| unusable(error.to_string()))? {
            DependencyUri::Submitter(uri) => {
                let entry = LocalEntry { place: key, uri: &uri, number, before };
                let files = entry.files(self.machine)?;
                let name = uri.fragment().map(str::to_owned);
                check_folder(key, name.as_deref()).map_err(|problem| {
                    let file = uri.path().display().to_string();
                    PlanError::LocalFile { place: key, file, problem }
                })?;
                Ok(Entry::Local { files, name })
            }
            DependencyUri::Http(uri) if self.fetches_remote => {
                let name = uri.as_str().split_once('#').map(|(_, name)| name.to_owned());
                check_folder(key, name.as_deref()).map_err(|problem| PlanError::Remote {
                    key,
                    uri: uri.redacted(),
                    problem,
                })?;
                Ok(Entry::Web { uri, name })
            }
            DependencyUri::OtherScheme(remote) if remote.scheme() != "ftp" && is_pattern(text) => {
                let problem = "patterns are expanded on this machine only; name each file".to_owned();
                Err(PlanError::Remote { key, uri: remote.redacted(), problem })
            }
            other => Ok(Entry::Other(other.as_str().to_owned())),
        }
    }

    fn application(&self, resource: &MainResource) -> Result<Entry, PlanError> {
        let uri = resource.uri();
        // This word is no path, although it would parse as one.
        if uri == super::FOUND_IN_JARS {
            return Ok(Entry::Other(uri.to_owned()));
        }
        let unusable = |problem| PlanError::Application { problem };
        match DependencyUri::parse(uri).map_err(|error| unusable(error.to_string()))? {
            DependencyUri::Submitter(file) => {
                let entry = LocalEntry { place: APPLICATION, uri: &file, number: 1, before: None };
                let path = entry.file(self.machine)?;
                Ok(Entry::Local { files: vec![path], name: None })
            }
            DependencyUri::Http(remote) if self.fetches_remote => Ok(Entry::Web { uri: remote, name: None }),
            _ => Ok(Entry::Other(uri.to_owned())),
        }
    }
}

/// Checks the name behind `#` of an archive, which is the folder that Spark unpacks it to.
fn check_folder(key: &str, name: Option<&str>) -> Result<(), String> {
    match name.filter(|_| keeps_fragment(key)).and_then(|name| Some((name, folder_fault(name)?))) {
        Some((name, fault)) => Err(format!(
            "cannot be unpacked as “{name}”: {fault}; behind # stands the name of one folder in the driver's working \
             directory, such as #env"
        )),
        None => Ok(()),
    }
}

/// Whether Spark keeps the name behind `#` in this list. Spark's driver fails on it in `spark.files` and
/// `spark.submit.pyFiles` (“URI has a fragment component”), so staging renames such a file itself.
pub(super) fn keeps_fragment(key: &str) -> bool {
    *key == *ARCHIVES
}
