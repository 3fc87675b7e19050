//! Logs: text for people, JSON for machines, always on stderr.

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

/// Names of rooms in log filters, with their module paths. So a user's filter stays valid when a room moves to another
/// crate.
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
