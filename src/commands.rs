//! One composition root for each subcommand: the only places that read the environment and build clients.

pub mod admin;
mod credentials;
pub mod fetch;
mod local;
pub mod manual;
mod old_entrypoint;
mod screen;
pub mod serve;
pub mod stage;
mod stdout;
pub mod submit;
pub mod variables;

use std::io::Write as _;

use anstyle::AnsiColor;
use cloakroom_core::text::{chain, harmless_lines};
pub use old_entrypoint::arguments;

/// Writes a text to stderr. Errors are ignored: if stderr is closed, the work goes on.
pub fn tell(text: &str) {
    let _ = writeln!(anstream::stderr(), "{}", coloured(&harmless_lines(text.trim_end())));
}

/// The text with the colours of clap's own messages. Except on a terminal, `anstream` removes them again (`NO_COLOR`,
/// `CLICOLOR`, `CLICOLOR_FORCE`).
pub fn coloured(text: &str) -> String {
    const SIGNS: [(&str, AnsiColor); 2] = [("error:", AnsiColor::Red), ("warning:", AnsiColor::Yellow)];
    for (sign, colour) in SIGNS {
        if let Some(rest) = text.strip_prefix(sign) {
            let style = colour.on_default().bold();
            return format!("{style}{sign}{style:#}{rest}");
        }
    }
    text.to_owned()
}

/// The exit code of bad arguments, as clap has it.
pub const USAGE: u8 = 2;

/// Bad arguments that can be parsed: they contradict each other, or something is missing.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(String);

/// Returns a [`UsageError`] from a function, as `anyhow::bail!` returns other errors.
macro_rules! refuse {
    ($($words:tt)*) => {
        return Err($crate::commands::UsageError::new(format!($($words)*)).into())
    };
}
pub(crate) use refuse;

impl UsageError {
    /// `text` says what is wrong and what to write instead.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Another room's error about an argument, with its causes.
    pub fn from_error(error: &dyn std::error::Error) -> Self {
        Self(chain(error))
    }
}
