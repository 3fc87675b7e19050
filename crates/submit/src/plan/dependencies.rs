//! Jars, files, archives and Python files: which of them are on this machine, how they travel, and what the driver's
//! lists say.

mod copies;
mod entries;
mod file_names;
mod holders;
mod local_files;
mod places;
pub(super) mod small_files;
mod source;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::download_folders;
use super::error::PlanError;
use super::facts::Kind;
use super::submitter::Machine;
use crate::file_copy::FileCopy;
use crate::randomness::Randomness;
use cloakroom_core::text::chain;
use cloakroom_reach::ServerChoice;
use cloakroom_spark::keys::{JARS, UPLOAD_PATH};
use cloakroom_spark::{MainResource, SparkConf, keys};
use cloakroom_transfer::bundle::{PackPlan, PlannedFile};
use entries::{Entry, List, Reader};
use local_files::no_jar;
use places::{Folders, Places};

/// The application as messages name it, and its place beside the lists.
const APPLICATION: &str = "the application";
/// Spark's word for an application that the driver finds in `spark.jars` (`SparkLauncher.NO_RESOURCE`).
pub const FOUND_IN_JARS: &str = "spark-internal";

/// The driver's lists, and the files that have to travel for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Dependencies {
    /// The lists that changed: key and new value.
    pub lists: Vec<(&'static str, String)>,
    /// The driver's argument for the application.
    pub resource: String,
    /// Files to copy to `spark.kubernetes.file.upload.path`.
    pub uploads: Vec<FileCopy>,
    /// The bundle of jars for the staging server.
    pub jars: Option<PackPlan>,
    /// The bundle of all other files for the staging server.
    pub files: Option<PackPlan>,
    /// Files for the secret, each with its name there.
    pub small_files: Vec<(PathBuf, String)>,
    /// The refusal if the default server cannot be reached. `None` if a server is named or none is needed.
    pub no_way: Option<Box<PlanError>>,
    /// Addresses that the init-container fetches. They may be secrets.
    pub remote_jars: Vec<String>,
    pub remote_files: Vec<String>,
}

impl Dependencies {
    /// Whether there is a bundle for the staging server.
    pub fn are_staged(&self) -> bool {
        self.jars.is_some() || self.files.is_some()
    }

    /// Whether an init-container has something to fetch.
    pub fn need_init_container(&self) -> bool {
        let has_remote = !self.remote_jars.is_empty() || !self.remote_files.is_empty();
        self.are_staged() || has_remote
    }
}

/// How files of this machine travel. One submission has one way for all of them.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// Through a staging server.
    Staged,
    /// By a copy in a folder that pods see as well (`spark.kubernetes.file.upload.path`).
    Copied,
    /// In a secret; only small files, and no jars.
    InSecret,
}

/// Finds every file of this machine, and decides where it goes. Copies and sends nothing. If `is_staged`, every file goes
/// to a server.
pub(super) fn resolve(
    conf: &SparkConf,
    resource: &MainResource,
    is_staged: bool,
    machine: Machine,
    randomness: &Randomness,
    warnings: &mut Vec<String>,
) -> Result<Dependencies, PlanError> {
    let fetches_remote = conf.read(&keys::CLOAKROOM_FETCH_REMOTE)?.unwrap_or_default();
    let mut lists = Reader { conf, machine, fetches_remote }.read(resource)?;
    let jars = lists.iter().filter(|list| list.key == &*JARS).flat_map(|list| &list.entries);
    let jars: BTreeSet<_> = jars.flat_map(Entry::locals).collect();
    warnings.extend(jars.into_iter().filter_map(|jar| no_jar(jar, machine.facts)));
    let is_java = matches!(resource, MainResource::Java(_));
    let mut dependencies = Dependencies::default();
    let mut way = way(conf, is_staged, &lists, warnings);
    if way == Way::InSecret {
        // Files that fit into a secret need no server. All others go to the default one.
        let jars = refuse_jars(&lists, is_java, machine);
        if let Err(no_way) = jars.and_then(|()| small_files::refuse_large(&lists, machine)) {
            (way, dependencies.no_way) = (Way::Staged, Some(Box::new(no_way)));
        }
    }
    if way == Way::Copied {
        dependencies.uploads = copies::place(&mut lists, is_java, conf, machine, randomness)?;
    }
    let folders = folders(conf, way)?;
    let places = places::place(&mut lists, is_java, &folders)?;
    let Some(List { entries, .. }) = lists.pop() else { return Ok(dependencies) };
    dependencies.resource = resource_of(entries, resource);
    dependencies.lists = lists.iter().filter_map(|list| Some((list.key, list.changed()?))).collect();
    dependencies.small_files = places.hand_over(way, &mut dependencies, machine, warnings)?;
    small_files::check(&dependencies.small_files)?;
    Ok(dependencies)
}

fn way(conf: &SparkConf, is_staged: bool, lists: &[List], warnings: &mut Vec<String>) -> Way {
    let choice = ServerChoice::of_settings(conf);
    let server = choice.naming().map(|(key, _)| key);
    let has_path = conf.get(&UPLOAD_PATH).is_some_and(|path| !is_of_server(path));
    let is_staged = is_staged || server.is_some();
    if is_staged && has_path && lists.iter().any(List::has_local) {
        let of = server.map(|server| format!(" of `{server}`")).unwrap_or_default();
        warnings.push(format!(
            "files of this machine are staged through the server{of}; `{UPLOAD_PATH}` is not used"
        ));
    }
    match (is_staged, has_path) {
        (true, _) => Way::Staged,
        (false, true) => Way::Copied,
        (false, false) => Way::InSecret,
    }
}

/// Whether an upload path is that of a stock spark-submit to a staging server, or to HDFS: no folder of this machine, and its
/// path may have a key in it.
fn is_of_server(path: &str) -> bool {
    ["webhdfs://", "swebhdfs://"].iter().any(|scheme| path.starts_with(scheme))
}

fn folders(conf: &SparkConf, way: Way) -> Result<Folders, PlanError> {
    let (jars, remote_files) = download_folders::folders(conf)?;
    let files = if way == Way::InSecret { small_files::FOLDER.to_owned() } else { remote_files.clone() };
    Ok(Folders { jars, files, remote_files })
}

/// Refuses local jars, because a secret is too small for them. The application's own jar is in `spark.jars` too, but
/// the user did not write it there. So the message names it as the application.
fn refuse_jars(lists: &[List], is_java: bool, machine: Machine) -> Result<(), PlanError> {
    let of =
        |key: &'static str| lists.iter().filter(move |list| list.key == key).flat_map(|list| &list.entries);
    let application = of(APPLICATION).filter(|_| is_java).find_map(Entry::local);
    let jars = of(&JARS).filter_map(Entry::local).filter(|jar| Some(*jar) != application);
    let refused = jars.map(|jar| (&*JARS, jar)).chain(application.map(|jar| (APPLICATION, jar)));
    match refused.into_iter().next() {
        Some((place, file)) => {
            let file =
                file.strip_prefix(&machine.submitter.working_folder).unwrap_or(file).display().to_string();
            Err(PlanError::NoWay { place, file, why: String::new() })
        }
        None => Ok(()),
    }
}

fn resource_of(entries: Vec<Entry>, resource: &MainResource) -> String {
    match entries.into_iter().next() {
        Some(Entry::Placed(uri) | Entry::Other(uri)) => uri,
        _ => resource.uri().to_owned(),
    }
}

impl Places {
    /// Makes the bundles. Without a staging server, the result is the files for the secret.
    fn hand_over(
        self,
        way: Way,
        dependencies: &mut Dependencies,
        machine: Machine,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<(PathBuf, String)>, PlanError> {
        warnings.extend(self.warnings);
        dependencies.remote_jars = self.remote_jars;
        dependencies.remote_files = self.remote_files;
        if way != Way::Staged {
            return Ok(self.files);
        }
        dependencies.jars = bundle(&self.jars, machine)?;
        dependencies.files = bundle(&self.files, machine)?;
        Ok(Vec::new())
    }
}

fn bundle(files: &[(PathBuf, String)], machine: Machine) -> Result<Option<PackPlan>, PlanError> {
    if files.is_empty() {
        return Ok(None);
    }
    let files = files.iter().map(|(path, name)| planned(path, name, machine)).collect::<Result<_, _>>()?;
    PackPlan::from_files(files).map(Some).map_err(|error| PlanError::Bundle { problem: chain(&error) })
}

/// A file of a bundle. An entry that is no file was refused before, so one here is a mistake of this program.
fn planned(path: &Path, name: &str, machine: Machine) -> Result<PlannedFile, PlanError> {
    match machine.facts.kind(path) {
        Ok(Kind::File { size_bytes, modified, .. }) => Ok(PlannedFile {
            path: path.to_owned(),
            real: None,
            name: name.to_owned(),
            size_bytes: *size_bytes,
            modified: *modified,
            executable: false,
        }),
        _ => Err(PlanError::Bundle { problem: format!("{} is not known to be a file", path.display()) }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::plan::{Facts, Submitter};

    #[test]
    fn a_file_that_is_not_known_is_an_error_and_not_left_out() {
        let submitter = Submitter {
            system: BTreeMap::new(),
            variables: BTreeMap::new(),
            user: Ok(String::new()),
            working_folder: PathBuf::from("/"),
        };
        let machine = Machine { submitter: &submitter, facts: &Facts::default() };
        let error = bundle(&[(PathBuf::from("/a.jar"), "a.jar".to_owned())], machine).unwrap_err();
        assert_eq!(error.to_string(), "/a.jar is not known to be a file");
    }
}
