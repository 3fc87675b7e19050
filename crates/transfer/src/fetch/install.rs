//! Runs before and after the downloads: finds the sources that are already in place, and then puts all others into
//! place together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::FetchError;
use super::observer::SourceReport;
use super::plan::{FetchPlan, Source};
use super::receipt::Receipt;
use super::source::Fetched;
use crate::bundle::{Folder, PlaceError, RESERVED_PREFIX, check_place, place};
use cloakroom_core::text::harmless;

/// A source, and what is known about it in its target folder.
pub(super) struct Prepared {
    pub source: Source,
    /// The target folder. Every link in its path is followed, so that two spellings of one folder compare as equal.
    pub folder: Arc<Folder>,
    /// The receipt of an earlier run; `None` if there is none.
    receipt: Option<Receipt>,
    /// Whether the receipt is enough, because others may change the files.
    is_writable: bool,
    /// Whether every file of that receipt is still there, with the digest that the ticket promises.
    pub is_there: bool,
}

impl Prepared {
    /// The name of the file that is locked while the source is fetched.
    pub(super) fn lock(&self) -> String {
        format!("{}.lock", self.source.hidden())
    }

    /// Looks for the files of an earlier run.
    pub(super) fn look(&mut self) {
        self.receipt = Receipt::read(&self.folder, &self.source.key());
        let promised = self.source.promise().sha256;
        self.is_there = self.receipt.as_ref().is_some_and(|receipt| {
            promised.is_none_or(|sha256| receipt.is_of(&sha256))
                && (self.is_writable || receipt.is_fulfilled(&self.folder))
        });
    }
}

/// Makes the target folders, and looks for the files of an earlier run. If two targets are two spellings of one folder,
/// their common sources are fetched once.
pub(super) fn prepare(plan: FetchPlan) -> Result<Vec<Prepared>, FetchError> {
    let (mut folders, is_writable) = (BTreeMap::new(), plan.is_writable);
    let mut sources: Vec<Prepared> = Vec::new();
    for source in plan.sources {
        let folder = match folders.get(&source.target) {
            Some(folder) => Arc::clone(folder),
            None => open(&source.target)?,
        };
        folders.insert(source.target.clone(), Arc::clone(&folder));
        let is_known = |present: &Prepared| {
            present.folder.path() == folder.path() && present.source.key() == source.key()
        };
        if !sources.iter().any(is_known) {
            let mut prepared = Prepared { source, folder, receipt: None, is_writable, is_there: false };
            prepared.look();
            sources.push(prepared);
        }
    }
    Ok(sources)
}

/// Opens a target folder, once for all that is written to it.
fn open(target: &Path) -> Result<Arc<Folder>, FetchError> {
    Folder::at(target).map(Arc::new).map_err(|source| FetchError::of_folder(target, source))
}

/// Puts everything into place, or nothing if two sources have the same name. `fetched` has an entry for each of
/// `sources` that was not in place already.
pub(super) fn install(
    sources: &[Prepared],
    mut fetched: BTreeMap<usize, Fetched>,
) -> Result<Vec<SourceReport>, FetchError> {
    check_names(sources, &fetched)?;
    for (index, fetched) in &fetched {
        check_folder(&sources[*index], fetched)?;
    }
    let report_of = |(index, prepared): (usize, &Prepared)| match fetched.remove(&index) {
        Some(fetched) => install_one(prepared, &fetched),
        None => Ok(already_there(prepared)),
    };
    sources.iter().enumerate().map(report_of).collect()
}

/// Checks that every file has one source, and is not a folder of another source. Compares whole paths, because one
/// target can be inside another.
fn check_names(sources: &[Prepared], fetched: &BTreeMap<usize, Fetched>) -> Result<(), FetchError> {
    let mut files: BTreeMap<PathBuf, &Source> = BTreeMap::new();
    let mut folders: BTreeMap<PathBuf, &Source> = BTreeMap::new();
    for (index, prepared) in sources.iter().enumerate() {
        let fetched = fetched.get(&index);
        for name in empty_folders(prepared, fetched) {
            check_not_hidden(prepared, name)?;
            folders.insert(prepared.folder.path().join(name), &prepared.source);
        }
        for name in names(prepared, fetched) {
            check_not_hidden(prepared, name)?;
            if let Some(first) = files.insert(prepared.folder.path().join(name), &prepared.source) {
                return Err(same_name(first, prepared, name));
            }
            for (slash, _) in name.match_indices('/') {
                folders.insert(prepared.folder.path().join(&name[..slash]), &prepared.source);
            }
        }
    }
    let clash = files.iter().find_map(|(path, file)| folders.get(path).map(|folder| (path, file, folder)));
    match clash {
        Some((path, file, folder)) => {
            Err(FetchError::FileAndFolder { file: file.what(), folder: folder.what(), path: path.clone() })
        }
        None => Ok(()),
    }
}

fn names<'a>(prepared: &'a Prepared, fetched: Option<&'a Fetched>) -> Vec<&'a str> {
    match (fetched, &prepared.receipt) {
        (Some(fetched), _) => fetched.tree.files.iter().map(|file| file.name.as_str()).collect(),
        (None, Some(receipt)) => receipt.names().collect(),
        (None, None) => Vec::new(),
    }
}

fn empty_folders<'a>(prepared: &'a Prepared, fetched: Option<&'a Fetched>) -> &'a BTreeSet<String> {
    static NONE: BTreeSet<String> = BTreeSet::new();
    match (fetched, &prepared.receipt) {
        (Some(fetched), _) => &fetched.tree.empty_folders,
        (None, Some(receipt)) => receipt.empty_folders(),
        (None, None) => &NONE,
    }
}

/// Refuses hidden names. Otherwise a bundle could contain a forged receipt, even for a target inside its own.
fn check_not_hidden(prepared: &Prepared, name: &str) -> Result<(), FetchError> {
    if !name.split('/').any(|part| part.starts_with(RESERVED_PREFIX)) {
        return Ok(());
    }
    let why = format!(
        "it has a file {name}, and names that begin with {RESERVED_PREFIX} are not for bundles; rename it",
        name = harmless(name)
    );
    Err(FetchError::Place { what: prepared.source.what(), why })
}

fn same_name(first: &Source, second: &Prepared, name: &str) -> FetchError {
    FetchError::SameName {
        first: first.what(),
        second: second.source.what(),
        name: harmless(name),
        folder: second.source.target.clone(),
    }
}

/// Checks whether something else is in the way. This runs for all sources before the first is put into place.
fn check_folder(prepared: &Prepared, fetched: &Fetched) -> Result<(), FetchError> {
    check_place(&fetched.folder, &fetched.tree, &prepared.folder)
        .and_then(|()| Receipt::check(&prepared.folder, &prepared.source.key()))
        .map_err(|error: PlaceError| FetchError::of_place(&prepared.source, &error))
}

/// Puts one source into place. Writes the receipt last, so that it never lists files that are not there. If a run is
/// killed before that, only whole files are left, and the next run accepts them as its own.
fn install_one(prepared: &Prepared, fetched: &Fetched) -> Result<SourceReport, FetchError> {
    let folder = &*prepared.folder;
    place(&fetched.folder, &fetched.tree, folder)
        .map_err(|error: PlaceError| FetchError::of_place(&prepared.source, &error))?;
    let receipt = Receipt::new(&prepared.source.key(), &fetched.sha256, &fetched.tree);
    // Removed before the receipt is written: a receipt also means that nothing hidden is left.
    let removed = folder.remove(prepared.source.hidden());
    removed.map_err(|source| FetchError::of_folder(fetched.folder.path(), source))?;
    receipt.write(folder).map_err(|source| FetchError::of_folder(folder.path(), source))?;
    Ok(SourceReport {
        what: prepared.source.what(),
        files: fetched.tree.files.len(),
        downloaded_bytes: fetched.downloaded_bytes,
        elapsed: fetched.elapsed,
        was_there: false,
    })
}

fn already_there(prepared: &Prepared) -> SourceReport {
    SourceReport {
        what: prepared.source.what(),
        files: prepared.receipt.as_ref().map_or(0, |receipt| receipt.names().count()),
        downloaded_bytes: 0,
        elapsed: std::time::Duration::ZERO,
        was_there: true,
    }
}

/// Removes what was extracted and not put into place. A folder that cannot be removed is left to the next run, which
/// removes it first. Sources that were in place already are skipped, because another run may be fetching them.
pub(super) fn clean(sources: &[Prepared]) {
    for prepared in sources.iter().filter(|prepared| !prepared.is_there) {
        if let Err(error) = prepared.folder.remove(prepared.source.hidden()) {
            tracing::debug!(%error, path = %prepared.folder.path().display(), "a hidden folder is left behind");
        }
    }
}
