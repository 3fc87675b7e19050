//! Logs: text for people, JSON for machines, always on stderr.

use std::io::{self, Write};
use std::sync::Arc;

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

/// Crates whose log lines are hidden: kube logs each failed call, and the texts of `object_store` may have addresses with signatures.
/// This program logs a failure in its own words, and only when it changes.
const QUIET: [&str; 3] = ["kube_client", "kube_runtime", "object_store"];

/// Names of rooms in log filters, with their module paths. So a user's filter stays valid when a room moves to another
/// crate.
const ROOMS: [(&str, &str); 18] = [
    ("cloakroom::bucket", "cloakroom_adapters::bucket"),
    ("cloakroom::bundle", "cloakroom_transfer::bundle"),
    ("cloakroom::cleaner", "cloakroom_server::cleaner"),
    ("cloakroom::client", "cloakroom_transfer::client"),
    ("cloakroom::clock", "cloakroom_core::clock"),
    ("cloakroom::fetch", "cloakroom_transfer::fetch"),
    ("cloakroom::kubernetes", "cloakroom_cluster"),
    ("cloakroom::ledger", "cloakroom_adapters::sqlite"),
    ("cloakroom::log", "cloakroom_storage::log"),
    ("cloakroom::outbound", "cloakroom_outbound"),
    ("cloakroom::owners", "cloakroom_server::owners"),
    ("cloakroom::place", "cloakroom_adapters::place"),
    ("cloakroom::ready", "cloakroom_storage::ready"),
    ("cloakroom::server", "cloakroom_server::http"),
    ("cloakroom::shutdown", "cloakroom_server::shutdown"),
    ("cloakroom::staging", "cloakroom_storage::rules"),
    ("cloakroom::store", "cloakroom_adapters::disk"),
    ("cloakroom::submit", "cloakroom_submit"),
];

/// A directive such as `cloakroom::staging::claim=debug`, with the place of its room.
fn moved(directive: &str) -> String {
    let directive = directive.trim();
    let end = directive.find(['=', '[']).unwrap_or(directive.len());
    let (target, rest) = directive.split_at(end);
    let within =
        |room: &str| target.strip_prefix(room).filter(|below| below.is_empty() || below.starts_with("::"));
    let found = ROOMS.iter().find_map(|(room, path)| Some((path, within(room)?)));
    found.map_or_else(|| directive.to_owned(), |(path, below)| format!("{path}{below}{rest}"))
}

/// Starts logging. `filter` is in the syntax of `RUST_LOG`, for example `info`, `cloakroom=debug` or
/// `cloakroom::staging=debug`.
pub fn start(format: LogFormat, filter: &str) -> Result<(), ParseError> {
    let filter = filter.split(',').map(moved).collect::<Vec<_>>().join(",");
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

/// Starts logging for a client whose user wants to know more. `tell` prints a line.
pub fn start_verbose(tell: impl Fn(&str) + Send + Sync + 'static) {
    let tell = Arc::new(tell);
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new("cloakroom=debug"))
        .with_writer(move || Lines(Arc::clone(&tell)))
        .with_target(false)
        .with_ansi(false)
        .without_time()
        .log_internal_errors(false);
    let _ = builder.try_init();
}

/// Whether log lines have colours: on a terminal, unless `NO_COLOR`, `CLICOLOR` or `CLICOLOR_FORCE` says otherwise.
fn has_colours() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}

/// Makes whole log lines safe to show, because they have names of users and text from other programs. The subscriber
/// itself escapes only control characters.
struct Harmless<W> {
    format: LogFormat,
    to: W,
}

/// The subscriber writes each line with one call.
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

/// Hands on whole lines.
struct Lines<F>(Arc<F>);

impl<F: Fn(&str)> Write for Lines<F> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        (self.0)(&String::from_utf8_lossy(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    /// The files of the crates that log, each by the path of its module, such as `cloakroom_storage::rules::claim`.
    fn logging() -> BTreeSet<String> {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
        let mut modules = BTreeSet::new();
        for name in entries(&crates) {
            // Nothing of it is in the program.
            if name.ends_with("testing") {
                continue;
            }
            let krate = format!("cloakroom_{}", name.file_name().unwrap().to_str().unwrap());
            collect(&name.join("src"), &krate, &mut modules);
        }
        modules
    }

    fn collect(folder: &Path, module: &str, modules: &mut BTreeSet<String>) {
        for path in entries(folder) {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let below =
                if ["lib", "mod"].contains(&name) { module.to_owned() } else { format!("{module}::{name}") };
            if path.is_dir() {
                collect(&path, &below, modules);
            } else if fs::read_to_string(&path).unwrap().contains("tracing::") {
                modules.insert(below);
            }
        }
    }

    fn entries(folder: &Path) -> Vec<PathBuf> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    fn is_in(module: &str, room: &str) -> bool {
        module.strip_prefix(room).is_some_and(|below| below.is_empty() || below.starts_with("::"))
    }

    #[test]
    fn each_room_of_the_table_logs_and_each_module_that_logs_is_in_a_room() {
        let modules = logging();
        for (room, path) in ROOMS {
            assert!(modules.iter().any(|module| is_in(module, path)), "{room}: nothing logs in {path}");
        }
        for module in &modules {
            assert!(ROOMS.iter().any(|(_, path)| is_in(module, path)), "no filter names {module}");
        }
    }

    #[test]
    fn a_filter_names_whole_targets() {
        for (filter, expected) in [
            ("cloakroom::staging=debug", "cloakroom_storage::rules=debug"),
            (" cloakroom::staging::claim[x]=trace", "cloakroom_storage::rules::claim[x]=trace"),
            ("cloakroom::submit", "cloakroom_submit"),
            ("cloakroom::serverless=debug", "cloakroom::serverless=debug"),
            ("other[cloakroom::server]=info", "other[cloakroom::server]=info"),
            ("cloakroom=debug", "cloakroom=debug"),
            ("info", "info"),
        ] {
            assert_eq!(moved(filter), expected);
        }
    }

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
