//! The submitting machine as the plan sees it: its surroundings and the collected facts. Nothing is read here.

use std::path::{Path, PathBuf};

use super::facts::{Facts, Unread};
use super::submitter::Submitter;

#[derive(Clone, Copy)]
pub(super) struct Machine<'a> {
    pub submitter: &'a Submitter,
    pub facts: &'a Facts,
}

impl<'a> Machine<'a> {
    /// The whole path of a path that may be relative.
    pub fn path(self, path: impl AsRef<Path>) -> PathBuf {
        self.submitter.working_folder.join(path)
    }

    /// The collected bytes of a file.
    pub fn read(self, path: impl AsRef<Path>) -> Result<&'a [u8], Unread> {
        self.facts.read(&self.path(path))
    }
}
