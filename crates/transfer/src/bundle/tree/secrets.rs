//! Private keys and credentials, recognised by their names.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use memchr::memmem;

use super::{PackRules, unreadable};
use crate::bundle::plan::{PackError, PlannedFile, shown};
use crate::bundle::sources::open_file;

const FILES: [&str; 6] = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".netrc", ".env"];
const FOLDERS: [&str; 3] = [".ssh", ".aws", ".kube"];
const EXAMPLES: [&str; 3] = [".env.example", ".env.sample", ".env.template"];
/// In every form of PEM file with a key.
const PRIVATE_KEY: &[u8] = b"PRIVATE KEY";
const PIECE_BYTES: usize = 64 * 1024;
/// How many of them an error names.
const MOST_NAMED: usize = 5;

/// The files that look like secrets.
#[derive(Debug, Default)]
pub struct SecretFiles {
    /// Not all of them.
    named: Vec<PathBuf>,
    count: usize,
}

impl SecretFiles {
    /// Looks at a file, which is `real` without links: the name of either can say it.
    pub(in crate::bundle) fn look(
        &mut self,
        rules: &PackRules,
        file: &PlannedFile,
        real: &Path,
    ) -> Result<(), PackError> {
        if rules.include_secrets {
            return Ok(());
        }
        let path = Path::new(&file.name);
        let names = [path.strip_prefix(rules.top()).unwrap_or(path), real];
        let mut is_secret = names.iter().any(|path| is_named_so(path));
        if !is_secret && names.iter().any(|path| is_pem(path)) {
            is_secret = has_private_key(real).map_err(|source| unreadable(&file.path, source))?;
        }
        if is_secret {
            self.count += 1;
            if self.named.len() < MOST_NAMED {
                self.named.push(file.path.clone());
            }
        }
        Ok(())
    }

    pub(in crate::bundle) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// “a/.env, b/.env and 3 more”
impl fmt::Display for SecretFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, path) in self.named.iter().enumerate() {
            write!(f, "{}{}", if number == 0 { "" } else { ", " }, shown(path))?;
        }
        match self.count - self.named.len() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

fn is_named_so(path: &Path) -> bool {
    let lower = |part: &OsStr| part.to_string_lossy().to_lowercase();
    let name = path.file_name().map(lower).unwrap_or_default();
    let is_environment = name.starts_with(".env.") && !EXAMPLES.contains(&&*name);
    let mut folders = path.parent().into_iter().flatten().map(lower);
    FILES.contains(&&*name) || is_environment || folders.any(|folder| FOLDERS.contains(&&*folder))
}

fn is_pem(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("pem"))
}

fn has_private_key(path: &Path) -> io::Result<bool> {
    let (mut file, finder) = (open_file(path)?, memmem::Finder::new(PRIVATE_KEY));
    let (mut piece, mut kept) = (vec![0; PIECE_BYTES], 0);
    loop {
        let filled = match file.read(&mut piece[kept..]) {
            Ok(0) => return Ok(false),
            Ok(read) => kept + read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if finder.find(&piece[..filled]).is_some() {
            return Ok(true);
        }
        // The words may be on both sides of a cut.
        let rest = filled.saturating_sub(PRIVATE_KEY.len() - 1);
        piece.copy_within(rest..filled, 0);
        kept = filled - rest;
    }
}
