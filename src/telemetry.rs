//! Logs: text for people, JSON for machines, always on stderr.

use std::io::{self, Write};

use cloakroom_core::text::{harmless_json, is_unfit};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Crates whose log lines are hidden: kube logs each failed call. This program logs a failure in its own words, and
/// only when it changes.
const QUIET: [&str; 2] = ["kube_client", "kube_runtime"];

/// Rooms as filters name them, and where they are: a filter stays good when a room moves to another crate.
const ROOMS: [(&str, &str); 11] = [
    ("cloakroom::bundle", "cloakroom_transfer::bundle"),
    ("cloakroom::cleaner", "cloakroom_server::cleaner"),
    ("cloakroom::client", "cloakroom_transfer::client"),
    ("cloakroom::fetch", "cloakroom_transfer::fetch"),
    ("cloakroom::kubernetes", "cloakroom_cluster"),
    ("cloakroom::ledger", "cloakroom_staging::ledger"),
    ("cloakroom::owners", "cloakroom_server::owners"),
    ("cloakroom::server", "cloakroom_server::http"),
    ("cloakroom::shutdown", "cloakroom_server::shutdown"),
    ("cloakroom::staging", "cloakroom_staging::staging"),
    ("cloakroom::submit", "cloakroom_submit"),
];

/// Starts logging. `filter` is in the syntax of `RUST_LOG`, for example `info`, `cloakroom=debug` or
/// `cloakroom::staging=debug`.
pub fn start(format: LogFormat, filter: &str) -> Result<(), ParseError> {
    let filter = ROOMS.iter().fold(filter.to_owned(), |filter, (room, path)| filter.replace(room, path));
    let quiet =
        QUIET.into_iter().filter(|target| !filter.contains(target)).map(|target| format!("{target}=off"));
    let filter: Vec<String> = std::iter::once(filter.clone()).chain(quiet).collect();
    let filter = EnvFilter::builder().parse(filter.join(","))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || Harmless { format, to: io::stderr() })
        .with_target(false)
        // By default the subscriber reports its own failures on stderr, and panics if stderr is closed.
        .log_internal_errors(false);
    // If logging was started in this process before, as in tests, the first subscriber stays.
    let _ = match format {
        LogFormat::Text => builder.with_ansi(has_colours()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    Ok(())
}

/// Whether log lines have colours: on a terminal, unless `NO_COLOR`, `CLICOLOR` or `CLICOLOR_FORCE` says otherwise.
fn has_colours() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}

/// Names of users, and what other programs say, are in log lines. The subscriber itself escapes only control characters.
struct Harmless<W> {
    format: LogFormat,
    to: W,
}

/// The subscriber writes each line at once.
impl<W: Write> Write for Harmless<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let shown = match self.format {
            LogFormat::Json => harmless_json(&text),
            // The subscriber's own colours begin with U+001B.
            LogFormat::Text => text.replace(|c| is_unfit(c) && !matches!(c, '\n' | '\u{1b}'), "\u{fffd}"),
        };
        self.to.write_all(shown.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_line_has_no_character_that_is_invisible_or_turns_text_round() {
        let name = "a\u{202e}b\u{2028}c\u{200b}d";
        let line = format!("{{\"by\":\"{name}\"}}\n");
        for format in [LogFormat::Json, LogFormat::Text] {
            let mut to = Vec::new();
            Harmless { format, to: &mut to }.write_all(line.as_bytes()).unwrap();
            let shown = String::from_utf8(to).unwrap();
            assert!(!shown.contains(|c| is_unfit(c) && c != '\n'), "{shown:?}");
            match format {
                LogFormat::Text => assert_eq!(shown, "{\"by\":\"a\u{fffd}b\u{fffd}c\u{fffd}d\"}\n"),
                LogFormat::Json => {
                    let read: serde_json::Value = serde_json::from_str(&shown).unwrap();
                    assert_eq!(read["by"], name);
                }
            }
        }
    }
}
