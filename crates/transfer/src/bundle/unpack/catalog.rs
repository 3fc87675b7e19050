//! The names of an archive so far. No name is used twice, and no name is both a file and a folder.

use std::collections::HashMap;

use super::error::UnpackError;
use crate::bundle::policy::printable;

/// How much memory all names together may take. A hundred thousand names of 160 bytes fit.
pub(in crate::bundle) const MAX_NAME_BYTES: usize = 16 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    File,
    Folder,
}

/// Every name so far, with the folders in the paths of files.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    taken: HashMap<String, Taken>,
    name_bytes: usize,
}

impl Catalog {
    /// Takes the name of a file. Returns the folders that it needs and that are new, outermost first.
    pub(super) fn add_file(&mut self, name: &str) -> Result<Vec<String>, UnpackError> {
        let parents = name.rsplit_once('/').map_or("", |(parents, _)| parents);
        let missing = self.missing_folders(parents)?;
        match self.taken.get(name) {
            None => {}
            Some(Taken::File) => return Err(UnpackError::Duplicate { name: printable(name.as_bytes()) }),
            Some(Taken::Folder) => return Err(file_and_folder(name)),
        }
        self.take(name, Taken::File)?;
        self.take_folders(&missing)?;
        Ok(missing)
    }

    /// Takes the name of a folder, which may be known already; the root is empty. Returns the new folders, outermost
    /// first.
    pub(super) fn add_folder(&mut self, name: &str) -> Result<Vec<String>, UnpackError> {
        let missing = self.missing_folders(name)?;
        self.take_folders(&missing)?;
        Ok(missing)
    }

    /// `name` and the folders above it, without those that are known.
    fn missing_folders(&self, name: &str) -> Result<Vec<String>, UnpackError> {
        let mut missing = Vec::new();
        let mut rest = Some(name).filter(|name| !name.is_empty());
        while let Some(folder) = rest {
            match self.taken.get(folder) {
                Some(Taken::Folder) => break,
                Some(Taken::File) => return Err(file_and_folder(folder)),
                None => missing.push(folder.to_owned()),
            }
            rest = folder.rsplit_once('/').map(|(above, _)| above);
        }
        missing.reverse();
        Ok(missing)
    }

    fn take_folders(&mut self, names: &[String]) -> Result<(), UnpackError> {
        names.iter().try_for_each(|name| self.take(name, Taken::Folder))
    }

    fn take(&mut self, name: &str, taken: Taken) -> Result<(), UnpackError> {
        self.name_bytes += name.len();
        if self.name_bytes > MAX_NAME_BYTES {
            return Err(UnpackError::TooManyNames { limit: MAX_NAME_BYTES });
        }
        self.taken.insert(name.to_owned(), taken);
        Ok(())
    }
}

fn file_and_folder(name: &str) -> UnpackError {
    UnpackError::FileAndFolder { name: printable(name.as_bytes()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implied_folders_come_outermost_first_and_only_once() {
        let mut catalog = Catalog::default();
        assert_eq!(catalog.add_file("a/b/c").unwrap(), ["a", "a/b"]);
        assert_eq!(catalog.add_file("a/b/d").unwrap(), [""; 0]);
        assert_eq!(catalog.add_folder("a/e").unwrap(), ["a/e"]);
        assert_eq!(catalog.add_folder("a/e").unwrap(), [""; 0]);
        assert_eq!(catalog.add_folder("").unwrap(), [""; 0]);
    }

    #[test]
    fn a_name_is_one_thing_once() {
        let mut catalog = Catalog::default();
        catalog.add_file("a/b").unwrap();
        assert!(matches!(catalog.add_file("a/b"), Err(UnpackError::Duplicate { .. })));
        assert!(matches!(catalog.add_file("a"), Err(UnpackError::FileAndFolder { .. })));
        assert!(matches!(catalog.add_file("a/b/c"), Err(UnpackError::FileAndFolder { .. })));
        assert!(matches!(catalog.add_folder("a/b"), Err(UnpackError::FileAndFolder { .. })));
    }

    #[test]
    fn names_have_a_bound_together() {
        let mut catalog = Catalog::default();
        let long = "x".repeat(4000);
        let refused = (0..10_000).find_map(|number| catalog.add_file(&format!("{number}{long}")).err());
        assert!(matches!(refused, Some(UnpackError::TooManyNames { .. })));
    }
}
