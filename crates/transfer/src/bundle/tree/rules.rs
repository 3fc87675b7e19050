//! Which entries of a folder are left out: by its ignore files, by `--exclude`, and `.git` always.

mod git_glob;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::rc::Rc;

use rustix::fs::{CWD, OFlags};

use super::unreadable;
use crate::bundle::folder::open_regular;
use crate::bundle::plan::{PackError, shown};
pub(in crate::bundle) use git_glob::GitGlob;

/// The later one wins.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".cloakroomignore"];
const LONGEST_IGNORE_FILE: u64 = 1 << 20;
/// How many rules a summary names.
const MOST_NAMED: usize = 4;

pub(super) const BY_GIT: &str = "named .git";
pub(super) const BY_EXCLUDE: &str = "by --exclude";

/// What of the named folders and files is packed, and where it goes.
#[derive(Debug, Clone, Default)]
pub struct PackRules {
    /// Globs as in `.gitignore`, for the paths in a folder.
    pub exclude: Vec<String>,
    /// Whether ignore files do not count.
    pub no_ignore: bool,
    /// Whether private keys and credentials are packed.
    pub include_secrets: bool,
    /// The folder of the bundle that gets everything.
    pub top: Option<String>,
}

impl PackRules {
    pub(in crate::bundle) fn top(&self) -> &str {
        self.top.as_deref().unwrap_or_default()
    }

    /// The globs of `--exclude`.
    pub(in crate::bundle) fn excluded(&self) -> Result<Vec<GitGlob>, PackError> {
        let parsed = |glob: &String| {
            exclude(glob).map_err(|why| PackError::Exclude { glob: glob.clone(), why: why.to_owned() })
        };
        self.exclude.iter().map(parsed).collect()
    }
}

/// Whether a text is a glob for [`PackRules::exclude`]; if not, why.
pub fn check_exclude(glob: &str) -> Result<(), &'static str> {
    exclude(glob).map(drop)
}

fn exclude(glob: &str) -> Result<GitGlob, &'static str> {
    GitGlob::rule(glob).ok_or(
        "in a .gitignore it would leave nothing out; a [ needs its ], and a \\ at the end something after it",
    )
}

/// The rules of the ignore files in one folder, the weakest first, each with what is told of its file.
pub(super) struct FolderRules(Vec<(GitGlob, Rc<str>)>);

impl FolderRules {
    /// Those of the folder at `found`, which is shown as `folder`, if there are any.
    pub fn of(folder: &Path, found: &Path) -> Result<Option<Self>, PackError> {
        let mut rules = Vec::new();
        for name in IGNORE_FILES {
            let path = folder.join(name);
            let Some(text) = read(&path, &found.join(name))? else { continue };
            let by: Rc<str> = format!("by {}", shown(&path)).into();
            let lines = text.strip_prefix('\u{feff}').unwrap_or(&text).split('\n');
            let lines = lines.map(|line| line.strip_suffix('\r').unwrap_or(line));
            rules.extend(lines.filter_map(GitGlob::line).map(|glob| (glob, Rc::clone(&by))));
        }
        Ok((!rules.is_empty()).then_some(Self(rules)))
    }

    /// The last rule for an entry, whose path begins in this folder.
    pub fn last_for(&self, path: &Path, is_folder: bool) -> Option<&(GitGlob, Rc<str>)> {
        let path = path.as_os_str().as_bytes();
        self.0.iter().rev().find(|(glob, _)| glob.fits(path, is_folder))
    }
}

/// The text of an ignore file. A link has no effect for git. What else is no file is left to the walk.
fn read(path: &Path, found: &Path) -> Result<Option<String>, PackError> {
    let unusable = |why: &str| Err(PackError::IgnoreFile { path: path.to_owned(), why: why.to_owned() });
    match fs::symlink_metadata(found) {
        Ok(found) if found.is_symlink() => {
            return unusable("it is a link, which would leave nothing out; put the file in its place");
        }
        Ok(found) if found.is_file() => {}
        _ => return Ok(None),
    }
    let mut text = Vec::new();
    open_regular(CWD, found, OFlags::RDONLY)
        .and_then(|file| file.take(LONGEST_IGNORE_FILE + 1).read_to_end(&mut text))
        .map_err(|source| unreadable(path, source))?;
    if text.len() as u64 > LONGEST_IGNORE_FILE {
        return unusable(&format!("it has more than {LONGEST_IGNORE_FILE} bytes; make it shorter"));
    }
    if text.contains(&0) {
        return unusable("it has a zero byte in it, as UTF-16 has; save it as UTF-8");
    }
    // A rule that is no UTF-8 is for names that are none, and those are refused anyway.
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

/// How many entries were left out, by the rule: “3 files and 1 folder by tree/.gitignore”. What is in a folder that was
/// left out is not counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut(BTreeMap<String, Counts>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    files: usize,
    folders: usize,
}

impl LeftOut {
    pub(super) fn add(&mut self, by: &str, is_folder: bool) {
        let counts = match self.0.get_mut(by) {
            Some(counts) => counts,
            None => self.0.entry(by.to_owned()).or_default(),
        };
        if is_folder {
            counts.folders += 1;
        } else {
            counts.files += 1;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = if self.0.len() > MOST_NAMED + 1 { MOST_NAMED } else { self.0.len() };
        for (number, (by, counts)) in self.0.iter().take(named).enumerate() {
            write!(f, "{}{counts} {by}", if number == 0 { "" } else { ", " })?;
        }
        let mut rest = Counts::default();
        for counts in self.0.values().skip(named) {
            rest = Counts { files: rest.files + counts.files, folders: rest.folders + counts.folders };
        }
        if named < self.0.len() {
            write!(f, ", {rest} by {} other ignore files", self.0.len() - named)?;
        }
        Ok(())
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |count, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
        match (self.files, self.folders) {
            (files, 0) => f.write_str(&counted(files, "file")),
            (0, folders) => f.write_str(&counted(folders, "folder")),
            (files, folders) => write!(f, "{} and {}", counted(files, "file"), counted(folders, "folder")),
        }
    }
}
