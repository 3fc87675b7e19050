//! Which entries of a folder are left out: by its ignore files, by `--exclude`, and `.git` always.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

use ignore::gitignore::{Gitignore, GitignoreBuilder, Glob};
use rustix::fs::{CWD, OFlags};

use super::unreadable;
use crate::bundle::folder::open_regular;
use crate::bundle::plan::PackError;

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

    /// The globs of `--exclude`, compiled.
    pub(in crate::bundle) fn excluded(&self) -> Result<Gitignore, PackError> {
        let mut builder = GitignoreBuilder::new("");
        for glob in &self.exclude {
            add_glob(&mut builder, glob).map_err(|why| PackError::Exclude { glob: glob.clone(), why })?;
        }
        let all = || self.exclude.join(" ");
        builder.build().map_err(|error| PackError::Exclude { glob: all(), why: error.to_string() })
    }
}

/// Whether a text is a glob for [`PackRules::exclude`]; if not, why.
pub fn check_exclude(glob: &str) -> Result<(), String> {
    add_glob(&mut GitignoreBuilder::new(""), glob)
}

/// Unlike a line of an ignore file, it is no comment and takes nothing back.
fn add_glob(builder: &mut GitignoreBuilder, glob: &str) -> Result<(), String> {
    if glob.trim_matches(['/', ' ']).is_empty() {
        return Err("it names nothing".to_owned());
    }
    let escape = if glob.starts_with(['#', '!']) { "\\" } else { "" };
    builder
        .add_line(None, &format!("{escape}{}", with_plain_braces(glob)))
        .map(drop)
        .map_err(|error| error.to_string())
}

/// The rules of the ignore files in the folder at `found`, which is shown as `folder`.
pub(super) fn of_folder(folder: &Path, found: &Path) -> Result<Option<Gitignore>, PackError> {
    let mut builder = GitignoreBuilder::new("");
    for name in IGNORE_FILES {
        let path = folder.join(name);
        let Some(text) = read(&found.join(name)).map_err(|source| unreadable(&path, source))? else {
            continue;
        };
        let refused = |line, error: ignore::Error| {
            let why = error.to_string();
            PackError::IgnoreFile { path: path.clone(), line, why }
        };
        for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            builder
                .add_line(Some(path.clone()), &with_plain_braces(line))
                .map_err(|error| refused(number + 1, error))?;
        }
    }
    let rules = builder.build().map_err(|error| {
        let path = folder.join(IGNORE_FILES[0]);
        PackError::IgnoreFile { path, line: 1, why: error.to_string() }
    })?;
    Ok(Some(rules).filter(|rules| !rules.is_empty()))
}

/// The rule with braces as plain characters: the library takes them for alternatives, and git does not. In a class they are plain for
/// both.
fn with_plain_braces(rule: &str) -> String {
    let (mut plain, mut is_escaped, mut class) = (String::with_capacity(rule.len()), false, 0);
    for char in rule.chars() {
        // How many characters of a class have come; a bracket that is the first one of them does not end it.
        class = match char {
            '[' if class == 0 && !is_escaped => 1,
            '!' | '^' if class == 1 => 1,
            ']' if class > 1 => 0,
            _ if class > 0 => class + 1,
            _ => 0,
        };
        if class == 0 && !is_escaped && ['{', '}'].contains(&char) {
            plain.push('\\');
        }
        plain.push(char);
        is_escaped = char == '\\' && !is_escaped;
    }
    plain
}

/// The text of an ignore file. A link is none, as with git.
fn read(found: &Path) -> io::Result<Option<String>> {
    if !fs::symlink_metadata(found).is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    let (file, mut text) = (open_regular(CWD, found, OFlags::RDONLY)?, Vec::new());
    file.take(LONGEST_IGNORE_FILE + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LONGEST_IGNORE_FILE {
        let why = format!("it has more than {LONGEST_IGNORE_FILE} bytes; no ignore file may");
        return Err(io::Error::new(ErrorKind::FileTooLarge, why));
    }
    // A rule that is no UTF-8 is for names that are none, and those are refused anyway.
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

pub(super) fn by_file(rule: &Glob) -> String {
    format!("by {}", rule.from().unwrap_or(Path::new("a rule")).display())
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
