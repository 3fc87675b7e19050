//! What the lists of dependencies name, each entry with where it is.

use std::path::{Path, PathBuf};

use super::{APPLICATION, ARCHIVES};
use crate::spark::{
    DEPENDENCY_LISTS, DependencyUri, FileUri, MainResource, RemoteUri, SparkConf, split_list,
};
use crate::submit::plan::error::PlanError;
use crate::submit::plan::globs;
use crate::submit::plan::submitter::Submitter;

/// One entry of a list, or the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// Files of this machine, several where it was a pattern, and the name behind `#`.
    Local { files: Vec<PathBuf>, name: Option<String> },
    /// On the web, to be fetched by the init-container, and the name behind `#`.
    Web { uri: RemoteUri, name: Option<String> },
    /// Where it will be for the driver.
    Placed(String),
    /// Left to Spark, as it was written.
    Other(String),
}

impl Entry {
    /// The first file of this machine that it stands for.
    pub fn local(&self) -> Option<&Path> {
        match self {
            Self::Local { files, .. } => files.first().map(PathBuf::as_path),
            _ => None,
        }
    }
}

/// A list by its key, or the application by what it is called.
pub(super) struct List {
    pub key: &'static str,
    pub entries: Vec<Entry>,
}

impl List {
    /// The list with what was placed, which comes first; `None` if nothing was.
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

    /// Whether something in it is on this machine.
    pub fn has_local(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry, Entry::Local { .. }))
    }
}

/// Reads every list, and the application as the last one.
pub(super) struct Reader<'a> {
    pub conf: &'a SparkConf,
    pub submitter: &'a Submitter,
    /// Whether the init-container fetches what is on the web, and not Spark.
    pub fetches_remote: bool,
}

impl Reader<'_> {
    pub fn read(&self, resource: &MainResource) -> Result<Vec<List>, PlanError> {
        // First, although it is the last: a jar is in `spark.jars` as well, where nobody wrote it.
        let application = self.application(resource)?;
        let mut lists = Vec::new();
        for key in DEPENDENCY_LISTS {
            let texts = split_list(self.conf.get(key).unwrap_or_default());
            let entries = texts.map(|text| self.entry(key, text)).collect::<Result<_, _>>()?;
            lists.push(List { key, entries });
        }
        lists.push(List { key: APPLICATION, entries: vec![application] });
        Ok(lists)
    }

    fn entry(&self, key: &'static str, text: &str) -> Result<Entry, PlanError> {
        match DependencyUri::parse(text).map_err(|error| self.conf.refuse(key, error.to_string()))? {
            DependencyUri::Submitter(file) => {
                Ok(Entry::Local { files: self.files(key, &file)?, name: file.fragment().map(str::to_owned) })
            }
            DependencyUri::Http(uri) if self.fetches_remote => {
                let name = uri.as_str().split_once('#').map(|(_, name)| name.to_owned());
                Ok(Entry::Web { uri, name })
            }
            DependencyUri::OtherScheme(remote) if remote.scheme() != "ftp" && globs::is_pattern(text) => {
                let problem = "patterns are expanded on this machine only; name each file".to_owned();
                Err(PlanError::Remote { key, uri: remote.redacted(), problem })
            }
            other => Ok(Entry::Other(other.as_str().to_owned())),
        }
    }

    /// The file, or those that match where it is a pattern.
    fn files(&self, key: &'static str, uri: &FileUri) -> Result<Vec<PathBuf>, PlanError> {
        let path = self.submitter.working_folder.join(uri.path());
        let refuse = |problem: String| {
            let file = uri.path().display().to_string();
            PlanError::LocalFile { place: key, file, problem }
        };
        if path.is_file() {
            return Ok(vec![path]);
        }
        if path.is_dir() {
            return Err(refuse("is a folder; name the files in it, or pack it".to_owned()));
        }
        if !globs::is_pattern(&path.to_string_lossy()) {
            return Err(refuse("does not exist on this machine".to_owned()));
        }
        let files = globs::expand(&path).map_err(|error| refuse(format!("cannot be looked up: {error}")))?;
        match files.len() {
            0 => Err(refuse("matches no file of this machine".to_owned())),
            1 => Ok(files),
            _ if uri.fragment().is_some() => {
                Err(refuse("matches more than one file, and has one name for them".to_owned()))
            }
            _ => Ok(files),
        }
    }

    fn application(&self, resource: &MainResource) -> Result<Entry, PlanError> {
        let uri = resource.uri();
        let refuse =
            |problem: String| PlanError::LocalFile { place: APPLICATION, file: uri.to_owned(), problem };
        // Words such as `spark-internal` are no files.
        if uri == super::FOUND_IN_JARS {
            return Ok(Entry::Other(uri.to_owned()));
        }
        match DependencyUri::parse(uri).map_err(|error| refuse(format!("cannot be read: {error}")))? {
            DependencyUri::Submitter(file) => {
                let path = self.submitter.working_folder.join(file.path());
                if !path.is_file() {
                    return Err(refuse("does not exist on this machine".to_owned()));
                }
                Ok(Entry::Local { files: vec![path], name: None })
            }
            DependencyUri::Http(remote) if self.fetches_remote => Ok(Entry::Web { uri: remote, name: None }),
            _ => Ok(Entry::Other(uri.to_owned())),
        }
    }
}

/// Whether entries of a list keep what stands behind `#`.
pub(super) fn keeps_fragment(key: &str) -> bool {
    key == ARCHIVES
}
