//! Logs: text for people, JSON for machines, always on stderr.

use std::error::Error;

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

/// Starts logging. `filter` is in the syntax of `RUST_LOG`, for example `info` or `cloakroom=debug`.
pub fn start(format: LogFormat, filter: &str) -> Result<(), ParseError> {
    let quiet =
        QUIET.into_iter().filter(|target| !filter.contains(target)).map(|target| format!("{target}=off"));
    let filter: Vec<String> = std::iter::once(filter.to_owned()).chain(quiet).collect();
    let filter = EnvFilter::builder().parse(filter.join(","))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
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

/// The error and all its causes, in one line.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        // Many errors repeat their source in their own text.
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}
