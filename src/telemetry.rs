//! Logs: text for people, JSON for machines, always on stderr.

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

/// Rooms as filters name them, and where they are: a filter stays good when a room moves to another crate.
const ROOMS: [(&str, &str); 11] = [
    ("cloakroom_transfer::bundle", "cloakroom_transfer::bundle"),
    ("cloakroom_server::cleaner", "cloakroom_server::cleaner"),
    ("cloakroom_transfer::client", "cloakroom_transfer::client"),
    ("cloakroom_transfer::fetch", "cloakroom_transfer::fetch"),
    ("cloakroom_cluster", "cloakroom_cluster"),
    ("cloakroom_staging::ledger", "cloakroom_staging::ledger"),
    ("cloakroom_server::owners", "cloakroom_server::owners"),
    ("cloakroom_server::http", "cloakroom_server::http"),
    ("cloakroom_server::shutdown", "cloakroom_server::shutdown"),
    ("cloakroom_staging", "cloakroom_staging::staging"),
    ("cloakroom_submit", "cloakroom_submit"),
];

/// Starts logging. `filter` is in the syntax of `RUST_LOG`, for example `info`, `cloakroom=debug` or
/// `cloakroom_staging=debug`.
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
