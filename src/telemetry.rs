//! Logs: text for people, JSON for machines, always on stderr.

use std::error::Error;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What kube has to say of each failed call is said here already, in words for people and once for each change.
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
        // It would complain on stderr, and panic where that is closed.
        .log_internal_errors(false);
    // A second start in one process, as in tests, keeps the first subscriber.
    let _ = match format {
        LogFormat::Text => builder.with_ansi(has_colours()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    Ok(())
}

/// Whether stderr is a terminal that is to have colours: `NO_COLOR`, `CLICOLOR` and `CLICOLOR_FORCE` say so.
fn has_colours() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}

/// An error and what caused it, in one line.
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
