//! The final names of files that an init-container or a secret brings into the driver.
//!
//! Jars are in one folder, all other files in another one. Spark copies both into the driver's working directory, so a
//! name must be one file's across all lists. Only a jar may get another name: applications open the other files by
//! name.

use std::path::PathBuf;

use super::entries::{Entry, List, keeps_fragment};
use super::file_names::{file_uri, fitting, unfit};
use super::holders::Holders;
use super::source::{Source, sources};
use super::{APPLICATION, JARS};
use crate::plan::error::PlanError;
use cloakroom_spark::RemoteUri;
use cloakroom_transfer::bundle::unique_names;

/// The folders of files in the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folders {
    pub jars: String,
    /// For all other local files.
    pub files: String,
    /// For all other files from the web.
    pub remote_files: String,
}

/// Local files with their final names, and the addresses that the init-container fetches.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub jars: Vec<(PathBuf, String)>,
    pub files: Vec<(PathBuf, String)>,
    pub remote_jars: Vec<String>,
    pub remote_files: Vec<String>,
    /// Warnings about jars that got another name.
    pub warnings: Vec<String>,
}

/// A local jar, and the name that it would have without clashes.
struct LocalJar {
    key: &'static str,
    path: PathBuf,
    wanted: String,
}

/// Gives a name to every file that travels or is fetched, and replaces its entry by its URI in the driver.
pub(super) fn place(lists: &mut [List], is_java: bool, folders: &Folders) -> Result<Places, PlanError> {
    let mut placing = Placing {
        folders,
        places: Places::default(),
        staged: Holders::default(),
        seen: Holders::default(),
        jars: Vec::new(),
    };
    for list in lists.iter() {
        placing.seen.reserve(list);
    }
    let is_jars = |list: &List| *list.key == *JARS || (list.key == APPLICATION && is_java);
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
    /// Names in the folder of files.
    staged: Holders,
    /// Names in the driver's working directory.
    seen: Holders,
    /// Local jars with their final names.
    jars: Vec<(LocalJar, String)>,
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

    /// Names one file, and returns its URI in the driver.
    fn file(&mut self, key: &'static str, source: Source, name: Option<&str>) -> Result<String, PlanError> {
        let own = source.name(key)?;
        // An archive keeps its own name, and Spark unpacks it to the name behind `#`. Any other file gets the name
        // behind `#`.
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

    /// Names all jars. Local ones come last, because only they may get another name.
    fn jars(&mut self, mut lists: Vec<&mut List>) -> Result<(), PlanError> {
        let mut local: Vec<LocalJar> = Vec::new();
        for list in &lists {
            for (sources, name) in list.entries.iter().filter_map(sources) {
                for source in sources {
                    match source {
                        Source::Web(remote) => self.remote_jar(list.key, &remote, name)?,
                        Source::File(path) => {
                            let jar = LocalJar::new(list.key, path, name)?;
                            if !local.iter().any(|known| known.is_same(&jar)) {
                                local.push(jar);
                            }
                        }
                    }
                }
            }
        }
        self.name_jars(local)?;
        lists.iter_mut().try_for_each(|list| self.point_at_jars(list))
    }

    fn remote_jar(
        &mut self,
        key: &'static str,
        remote: &RemoteUri,
        name: Option<&str>,
    ) -> Result<(), PlanError> {
        let source = Source::Web(remote.clone());
        let own = source.name(key)?;
        let name = name.unwrap_or(&own);
        source.check(key, name, name == own)?;
        if self.seen.take(key, &own, &source, false)? {
            self.places.remote_jars.push(address(remote));
        }
        Ok(())
    }

    fn name_jars(&mut self, local: Vec<LocalJar>) -> Result<(), PlanError> {
        let mut names = self.seen.names();
        let taken = names.len();
        for jar in &local {
            let name = fitting(&jar.wanted);
            Source::File(jar.path.clone()).check(jar.key, &name, true)?;
            names.push(name);
        }
        let given = unique_names(&names).split_off(taken);
        for ((jar, name), fitting) in local.into_iter().zip(given).zip(names.split_off(taken)) {
            self.places.warnings.extend(jar.warning(&fitting, &name));
            self.places.jars.push((jar.path.clone(), name.clone()));
            self.jars.push((jar, name));
        }
        Ok(())
    }

    fn point_at_jars(&self, list: &mut List) -> Result<(), PlanError> {
        let mut entries: Vec<Entry> = Vec::new();
        for entry in std::mem::take(&mut list.entries) {
            let Some((sources, name)) = sources(&entry) else {
                entries.push(entry);
                continue;
            };
            for source in sources {
                let given = match source {
                    Source::File(path) => self.name_of(&LocalJar::new(list.key, path, name)?),
                    Source::Web(_) => source.name(list.key)?,
                };
                let placed = Entry::Placed(uri(&self.folders.jars, &given));
                // A jar may be in a list twice, for example the application's own if `--jars` names it too.
                if !entries.contains(&placed) {
                    entries.push(placed);
                }
            }
        }
        list.entries = entries;
        Ok(())
    }

    fn name_of(&self, jar: &LocalJar) -> String {
        let found = self.jars.iter().find(|(known, _)| known.is_same(jar));
        found.map(|(_, name)| name.clone()).unwrap_or_default()
    }
}

impl LocalJar {
    fn new(key: &'static str, path: PathBuf, name: Option<&str>) -> Result<Self, PlanError> {
        let wanted = match name {
            Some(name) => name.to_owned(),
            None => Source::File(path.clone()).name(key)?,
        };
        Ok(Self { key, path, wanted })
    }

    /// Whether both are one jar; the list that names it does not matter.
    fn is_same(&self, other: &Self) -> bool {
        self.path == other.path && self.wanted == other.wanted
    }

    /// The warning if the jar got another name than it wanted.
    fn warning(&self, fitting: &str, given: &str) -> Option<String> {
        if given == self.wanted {
            return None;
        }
        let why = match unfit(&self.wanted) {
            _ if given != fitting => format!("something else is called {fitting}"),
            Some(characters) => format!("Spark cannot take {characters} in the name of a file"),
            None => "Spark separates the entries of its lists by commas".to_owned(),
        };
        Some(format!("{} becomes {given}, because {why}", self.path.display()))
    }
}

fn uri(folder: &str, name: &str) -> String {
    let folder = folder.trim_end_matches('/');
    file_uri(&format!("{folder}/{name}"))
}

/// The address to fetch, without the name behind `#`.
fn address(remote: &RemoteUri) -> String {
    remote.as_str().split('#').next().unwrap_or_default().to_owned()
}
