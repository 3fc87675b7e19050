//! Before and after the downloads: which sources are there already, and putting all others into place at once.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::error::FetchError;
use super::observer::SourceReport;
use super::plan::{FetchPlan, Source};
use super::receipt::Receipt;
use super::source::{Fetched, remove};
use crate::bundle::{PlaceError, RESERVED_PREFIX, check_place, place};
use cloakroom_core::text::harmless;

/// A source, and what is known of it in its target folder.
pub(super) struct Prepared {
    pub source: Source,
    /// The target with every link in its path followed: two spellings of one folder are one.
    folder: PathBuf,
    /// What an earlier run put there.
    receipt: Option<Receipt>,
    /// Whether all of it is still there.
    pub is_there: bool,
}

impl Prepared {
    /// Where it is extracted before it is put into place.
    pub(super) fn hidden(&self) -> PathBuf {
        self.folder.join(format!("{RESERVED_PREFIX}{}", self.source.key()))
    }

    /// The file that is locked while it is fetched.
    pub(super) fn lock(&self) -> PathBuf {
        self.hidden().with_extension("lock")
    }

    /// Looks for what an earlier run put there.
    pub(super) fn look(&mut self) {
        self.receipt = Receipt::read(&self.folder, &self.source.key());
        let promised = self.source.promise().sha256;
        self.is_there = self.receipt.as_ref().is_some_and(|receipt| {
            promised.is_none_or(|sha256| receipt.is_of(&sha256)) && receipt.is_fulfilled(&self.folder)
        });
    }
}

/// Makes the target folders, and looks for what an earlier run put there. What goes to one folder under two spellings
/// goes there once.
pub(super) fn prepare(plan: FetchPlan) -> Result<Vec<Prepared>, FetchError> {
    let mut folders = BTreeMap::new();
    for target in plan.targets() {
        let made = fs::create_dir_all(target).and_then(|()| target.canonicalize());
        let folder = made.map_err(|source| FetchError::of_folder(target, source))?;
        folders.insert(target.to_owned(), folder);
    }
    let mut sources: Vec<Prepared> = Vec::new();
    for source in plan.sources {
        let folder = folders.get(&source.target).unwrap_or(&source.target).clone();
        let mut prepared = Prepared { source, folder, receipt: None, is_there: false };
        if !sources.iter().any(|present| present.hidden() == prepared.hidden()) {
            prepared.look();
            sources.push(prepared);
        }
    }
    Ok(sources)
}

/// Puts everything into place, or nothing if two sources bring the same name. `fetched` has an entry for each of
/// `sources` that was not there.
pub(super) fn install(
    sources: &[Prepared],
    mut fetched: BTreeMap<usize, Fetched>,
) -> Result<Vec<SourceReport>, FetchError> {
    check_names(sources, &fetched)?;
    for (index, fetched) in &fetched {
        check_folder(&sources[*index], fetched)?;
    }
    let install_one = |(index, prepared): (usize, &Prepared)| match fetched.remove(&index) {
        Some(fetched) => install(prepared, &fetched),
        None => Ok(already_there(prepared)),
    };
    sources.iter().enumerate().map(install_one).collect()
}

/// Every name is one source's file, and no other source's folder. Paths are compared, as one target can be in another.
fn check_names(sources: &[Prepared], fetched: &BTreeMap<usize, Fetched>) -> Result<(), FetchError> {
    let mut files: BTreeMap<PathBuf, &Source> = BTreeMap::new();
    let mut folders: BTreeMap<PathBuf, &Source> = BTreeMap::new();
    for (index, prepared) in sources.iter().enumerate() {
        for name in names(prepared, fetched.get(&index)) {
            check_not_hidden(prepared, name)?;
            if let Some(first) = files.insert(prepared.folder.join(name), &prepared.source) {
                return Err(same_name(first, prepared, name));
            }
            for (slash, _) in name.match_indices('/') {
                folders.insert(prepared.folder.join(&name[..slash]), &prepared.source);
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
        (Some(fetched), _) => fetched.files.iter().map(|file| file.name.as_str()).collect(),
        (None, Some(receipt)) => receipt.names().collect(),
        (None, None) => Vec::new(),
    }
}

/// A bundle could otherwise bring a receipt of its own, also for a target that is in its own.
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

/// Whether anything of somebody else's is in the way, asked for all sources before the first is put into place.
fn check_folder(prepared: &Prepared, fetched: &Fetched) -> Result<(), FetchError> {
    check_place(&prepared.hidden(), &fetched.files, &prepared.folder)
        .map_err(|error: PlaceError| FetchError::of_place(&prepared.source, &error))
}

/// The receipt comes last, so that it never lists what was not put there. A run that is killed before it leaves whole
/// files, which the next run finds to be the same as its own.
fn install(prepared: &Prepared, fetched: &Fetched) -> Result<SourceReport, FetchError> {
    let (hidden, folder) = (prepared.hidden(), prepared.folder.as_path());
    place(&hidden, &fetched.files, folder)
        .map_err(|error: PlaceError| FetchError::of_place(&prepared.source, &error))?;
    let receipt = Receipt::new(&prepared.source.key(), &fetched.sha256, &fetched.files);
    // Before the receipt: whatever finds that one may take it that nothing hidden is left.
    remove(&hidden).map_err(|source| FetchError::of_folder(&hidden, source))?;
    receipt.write(&hidden, folder).map_err(|source| FetchError::of_folder(folder, source))?;
    Ok(SourceReport {
        what: prepared.source.what(),
        files: fetched.files.len(),
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

/// Removes what was extracted and not put into place. What cannot be removed is left to the next run, which
/// removes it first. What was there already was not extracted here: another run may be at work on it.
pub(super) fn clean(sources: &[Prepared]) {
    for prepared in sources.iter().filter(|prepared| !prepared.is_there) {
        if let Err(error) = remove(&prepared.hidden()) {
            tracing::debug!(%error, path = %prepared.hidden().display(), "a hidden folder is left behind");
        }
    }
}
