//! One composition root for each subcommand: the only places that read the environment and build clients.

pub mod admin;
pub mod fetch;
mod old_entrypoint;
mod screen;
pub mod serve;
pub mod stage;
pub mod submit;

use std::io::Write as _;

use cloakroom::text::harmless_lines;
pub use old_entrypoint::arguments;

/// Says something on stderr. Nobody may be listening any more, and the work goes on nevertheless.
pub fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", harmless_lines(text.trim_end()));
}

/// The exit code of a command line that makes no sense, as clap has it.
pub const USAGE: u8 = 2;

/// A command line that makes no sense, although it can be parsed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(String);

impl UsageError {
    /// Says what is wrong and what to write instead.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}
