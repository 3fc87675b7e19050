//! The final names of what an init-container or a secret brings into the driver.
//!
//! Jars have one folder, everything else another one, and Spark copies all of it into the driver's working directory: so a
//! name stands for one file across all lists. A jar may get another name, whatever the application opens by its name may
//! not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::entries::{Entry, List, keeps_fragment};
use super::{APPLICATION, JARS};
use crate::bundle::{check_file_name, unique_names};
use crate::spark::{DependencyUri, RemoteUri};
use crate::submit::plan::error::PlanError;

/// What stands for itself in a path (RFC 3986 section 3.3), a few of the odder ones left out.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'+')
    .remove(b'=')
    .remove(b'@');

/// Where things are for the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folders {
    /// Jars, of this machine or of the web.
    pub jars: String,
    /// Anything else of this machine.
    pub files: String,
    /// Anything else of the web.
    pub remote_files: String,
}

/// Files of this machine with their final names, and addresses of what is fetched.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub jars: Vec<(PathBuf, String)>,
    pub files: Vec<(PathBuf, String)>,
    pub remote_jars: Vec<String>,
    pub remote_files: Vec<String>,
    /// What got another name.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    File(PathBuf),
    Web(RemoteUri),
}

/// Names everything that is on this machine or fetched from the web, and puts where it will be in its place.
pub(super) fn place(lists: &mut [List], is_java: bool, folders: &Folders) -> Result<Places, PlanError> {
    let mut placing =
        Placing { folders, places: Places::default(), staged: Names::default(), seen: Names::default() };
    for list in lists.iter() {
        placing.seen.reserve(list);
    }
    let is_jars = |list: &List| list.key == JARS || (list.key == APPLICATION && is_java);
    for list in lists.iter_mut().filter(|list| !is_jars(list)) {
        placing.files(list)?;
    }
    let jars: Vec<&mut List> = lists.iter_mut().filter(|list| is_jars(list)).collect();
    placing.jars(jars)?;
    Ok(placing.places)
}

struct Placing<'a> {
    folders: &'a Folders,
    places: Places,
    /// In the folder of files.
    staged: Names,
    /// In the driver's working directory.
    seen: Names,
}

impl Placing<'_> {
    fn files(&mut self, list: &mut List) -> Result<(), PlanError> {
        let mut entries = Vec::new();
        for entry in std::mem::take(&mut list.entries) {
            match sources(&entry) {
                None => entries.push(entry),
                Some((sources, name)) => {
                    for source in sources {
                        entries.push(Entry::Placed(self.file(list.key, source, name)?));
                    }
                }
            }
        }
        list.entries = entries;
        Ok(())
    }

    /// Names one file, and gives its URI.
    fn file(&mut self, key: &'static str, source: Source, name: Option<&str>) -> Result<String, PlanError> {
        let own = source.name(key)?;
        let is_archive = keeps_fragment(key);
        let staged = if is_archive { &own } else { name.unwrap_or(&own) }.to_owned();
        source.check(key, &staged, is_archive || staged == own)?;
        let seen = if is_archive { name.unwrap_or(&own) } else { &staged };
        self.seen.take(key, seen, &source, is_archive)?;
        let folder = match &source {
            Source::File(_) => &self.folders.files,
            Source::Web(_) => &self.folders.remote_files,
        };
        let uri = uri(folder, &staged);
        if self.staged.take(key, &staged, &source, false)? {
            match source {
                Source::File(path) => self.places.files.push((path, staged)),
                Source::Web(remote) => self.places.remote_files.push(address(&remote)),
            }
        }
        Ok(match name.filter(|_| is_archive) {
            Some(name) => format!("{uri}#{name}"),
            None => uri,
        })
    }

    /// Local jars are named last: only they may get numbers.
    fn jars(&mut self, mut lists: Vec<&mut List>) -> Result<(), PlanError> {
        let mut local: Vec<(&'static str, PathBuf)> = Vec::new();
        for list in &lists {
            for source in list.entries.iter().filter_map(sources).flat_map(|(sources, _)| sources) {
                match source {
                    Source::Web(remote) => self.remote_jar(list.key, &remote)?,
                    Source::File(path) if local.iter().any(|(_, known)| *known == path) => {}
                    Source::File(path) => local.push((list.key, path)),
                }
            }
        }
        self.name_jars(local)?;
        lists.iter_mut().try_for_each(|list| self.point_at_jars(list))
    }

    fn remote_jar(&mut self, key: &'static str, remote: &RemoteUri) -> Result<(), PlanError> {
        let source = Source::Web(remote.clone());
        let name = source.name(key)?;
        source.check(key, &name, true)?;
        if self.seen.take(key, &name, &source, false)? {
            self.places.remote_jars.push(address(remote));
        }
        Ok(())
    }

    fn name_jars(&mut self, local: Vec<(&'static str, PathBuf)>) -> Result<(), PlanError> {
        let mut names: Vec<String> = self.seen.0.keys().cloned().collect();
        let taken = names.len();
        for (key, path) in &local {
            let source = Source::File(path.clone());
            let name = source.name(key)?;
            source.check(key, &name, true)?;
            names.push(name);
        }
        let given = unique_names(&names).split_off(taken);
        for (((_, path), name), own) in local.into_iter().zip(given).zip(names.split_off(taken)) {
            if name != own {
                let path = path.display();
                self.places
                    .warnings
                    .push(format!("{path} becomes {name}, because something else is called {own}"));
            }
            self.places.jars.push((path, name));
        }
        Ok(())
    }

    fn point_at_jars(&self, list: &mut List) -> Result<(), PlanError> {
        let mut entries: Vec<Entry> = Vec::new();
        for entry in std::mem::take(&mut list.entries) {
            let Some((sources, _)) = sources(&entry) else {
                entries.push(entry);
                continue;
            };
            for source in sources {
                let name = match &source {
                    Source::File(path) => self.name_of_jar(path),
                    Source::Web(_) => source.name(list.key)?,
                };
                let placed = Entry::Placed(uri(&self.folders.jars, &name));
                // The same jar may be named twice, as when the application's own is in `--jars` too.
                if !entries.contains(&placed) {
                    entries.push(placed);
                }
            }
        }
        list.entries = entries;
        Ok(())
    }

    fn name_of_jar(&self, path: &Path) -> String {
        let found = self.places.jars.iter().find(|(known, _)| known == path);
        found.map(|(_, name)| name.clone()).unwrap_or_default()
    }
}

/// What has to be named in an entry, and the name behind `#`.
fn sources(entry: &Entry) -> Option<(Vec<Source>, Option<&str>)> {
    match entry {
        Entry::Local { files, name } => {
            Some((files.iter().cloned().map(Source::File).collect(), name.as_deref()))
        }
        Entry::Web { uri, name } => Some((vec![Source::Web(uri.clone())], name.as_deref())),
        Entry::Placed(_) | Entry::Other(_) => None,
    }
}

impl Source {
    fn name(&self, key: &'static str) -> Result<String, PlanError> {
        match self {
            Self::File(path) => {
                let name = path.file_name().unwrap_or_default().to_str().map(str::to_owned);
                name.ok_or_else(|| self.refuse(key, "has a name that is not UTF-8: rename it".to_owned()))
            }
            Self::Web(remote) => remote.file_name().map_err(|error| self.refuse(key, error.to_string())),
        }
    }

    /// Whether the name can be a file's, and a list's entry; what is fetched keeps its own.
    fn check(&self, key: &'static str, name: &str, is_own: bool) -> Result<(), PlanError> {
        if let Err(fault) = check_file_name(name) {
            return Err(self.refuse(key, format!("cannot be called “{name}” in the pod: {fault}")));
        }
        if name.contains(',') {
            let problem =
                format!("cannot be called “{name}”: Spark separates the entries of its lists by commas");
            return Err(self.refuse(key, problem));
        }
        match self {
            Self::Web(_) if !is_own => {
                Err(self.refuse(key, format!("keeps its name when it is fetched: leave #{name} out")))
            }
            _ => Ok(()),
        }
    }

    fn refuse(&self, key: &'static str, problem: String) -> PlanError {
        match self {
            Self::File(path) => {
                PlanError::LocalFile { place: key, file: path.display().to_string(), problem }
            }
            Self::Web(remote) => PlanError::Remote { key, uri: remote.redacted(), problem },
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Web(remote) => remote.redacted(),
        }
    }
}

/// Who has a name.
#[derive(Default)]
struct Names(BTreeMap<String, Holder>);

#[derive(PartialEq)]
enum Holder {
    /// Something that is placed here. An archive is unpacked, and so is no file of that name.
    Placed { source: Source, is_archive: bool },
    /// Something that is left to Spark, as it may be shown.
    Left(String),
}

impl Names {
    /// Spark copies what is left to it into the same folder. Among themselves such names are its own affair.
    fn reserve(&mut self, list: &List) {
        for entry in &list.entries {
            let Entry::Other(text) = entry else { continue };
            let Ok(uri) = DependencyUri::parse(text) else { continue };
            let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
            let path = before.split('?').next().unwrap_or_default();
            let own = path.rsplit('/').next().unwrap_or_default();
            let is_renamed = keeps_fragment(list.key) && !fragment.is_empty();
            let name = if is_renamed { fragment } else { own };
            self.0.entry(name.to_owned()).or_insert_with(|| Holder::Left(uri.redacted()));
        }
    }

    /// Whether it was new; an error if something else has the name.
    fn take(
        &mut self,
        key: &'static str,
        name: &str,
        source: &Source,
        is_archive: bool,
    ) -> Result<bool, PlanError> {
        let taker = Holder::Placed { source: source.clone(), is_archive };
        match self.0.get(name) {
            None => {
                self.0.insert(name.to_owned(), taker);
                Ok(true)
            }
            Some(holder) if *holder == taker => Ok(false),
            Some(holder) => {
                let holder = holder.shown();
                let problem = format!(
                    "would be {name} in the driver's working directory, as {holder} is: give one of them another \
                     name (“#name” behind it, or rename it)"
                );
                Err(source.refuse(key, problem))
            }
        }
    }
}

impl Holder {
    fn shown(&self) -> String {
        match self {
            Self::Placed { source, .. } => source.shown(),
            Self::Left(text) => text.clone(),
        }
    }
}

fn uri(folder: &str, name: &str) -> String {
    let folder = folder.trim_end_matches('/');
    format!("file://{}/{}", utf8_percent_encode(folder, ENCODED), utf8_percent_encode(name, ENCODED))
}

/// What is fetched, without the name behind `#`.
fn address(remote: &RemoteUri) -> String {
    remote.as_str().split('#').next().unwrap_or_default().to_owned()
}
