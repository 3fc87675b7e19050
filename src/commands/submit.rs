//! `cloakroom submit`: spark-submit's command line, messages and exit codes. Messages go to stderr. stdout has only the
//! output of `--help` and `--dry-run`.

pub(super) mod connect;
mod dry_run;
mod fabric8;
mod failure;
mod hand_over;
mod invocation;
mod progress;
pub(super) mod signals;
pub(super) mod sources;
mod work;

use std::ffi::OsString;
use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;

use crate::cli::submit_help;
use crate::commands::screen::Screen;
use crate::commands::tell;
use connect::ChosenApiServer;
use hand_over::Successor;
use invocation::Invocation;

use cloakroom_reach::ServerChoice;
use cloakroom_spark::SubmitArguments;
use cloakroom_spark::arguments::{CommandLine, Defaults, Purpose, Settings, Switch};
use cloakroom_spark::conf::shown_redacted;
use cloakroom_submit::plan::Submitter;

/// spark-submit's exit code without arguments.
const EXIT_NO_ARGUMENTS: u8 = 255;

/// Does what the command line asks for.
pub async fn run(arguments: Vec<OsString>) -> anyhow::Result<ExitCode> {
    if arguments.is_empty() {
        tell(&submit_help().to_string());
        return Ok(ExitCode::from(EXIT_NO_ARGUMENTS));
    }
    let invocation = Invocation::read(arguments);
    if invocation.is_for_help() {
        return show_help();
    }
    let done = go(&invocation).await;
    if invocation.is_about_a_driver() { done } else { done.map_err(failure::of) }
}

async fn go(invocation: &Invocation) -> anyhow::Result<ExitCode> {
    let submitter = sources::submitter()?;
    let settings = settings(&invocation.known(), &submitter);
    if let Ok(Settings { conf, .. }) = &settings
        && let Some(successor) = Successor::new(invocation, conf, &submitter)?
    {
        return Err(successor.take_over(invocation).into());
    }
    invocation.warning().iter().for_each(|warning| warn(warning));
    let line = invocation.line()?;
    if line.has(Switch::Version) {
        tell(&version());
        return Ok(ExitCode::SUCCESS);
    }
    invocation.check_text()?;
    for warning in super::variables::near_misses("submit") {
        warn(&warning);
    }
    let mut settings = settings?;
    settings.warnings.iter().for_each(|warning| warn(warning));
    if line.has(Switch::Verbose) {
        settings.conf.iter().for_each(|(key, value)| tell(&shown_redacted(key, value)));
    }
    let chosen = connect::choose_master(&mut settings.conf, &submitter)?;
    if let Some(chosen) = chosen.as_ref().filter(|_| invocation.is_about_a_driver()) {
        tell(&format!("asking {chosen}"));
    }
    match (line.value(Purpose::Kill), line.value(Purpose::Status)) {
        (Some(submission), _) => work::kill(submission, settings.conf, &submitter).await,
        (None, Some(submission)) => work::status(submission, settings.conf, &submitter).await,
        (None, None) => submit(line, settings, chosen, &submitter).await,
    }
}

fn settings(line: &CommandLine, submitter: &Submitter) -> anyhow::Result<Settings> {
    let files = sources::properties_files(line, submitter)?;
    let defaults = Defaults { files, surroundings: submitter.surroundings() };
    let mut settings = Settings::resolve(line, &defaults);
    ServerChoice::complete(&mut settings.conf, &submitter.variables);
    Ok(settings)
}

async fn submit(
    line: &CommandLine,
    settings: Settings,
    chosen: Option<ChosenApiServer>,
    submitter: &Submitter,
) -> anyhow::Result<ExitCode> {
    let is_dry_run = line.has(Switch::DryRun);
    let arguments = SubmitArguments::new(line, settings.conf, submitter.surroundings())?;
    if let Some(chosen) = chosen {
        let what = if is_dry_run { "these are the objects for" } else { "submitting to" };
        tell(&format!("{what} {chosen}"));
    }
    let screen = Screen::with(false, line.has(Switch::Verbose));
    work::submit(arguments, submitter, &screen, is_dry_run).await
}

/// Prints the help, on a terminal with colours.
fn show_help() -> anyhow::Result<ExitCode> {
    printed(write!(anstream::stdout(), "{}", submit_help().ansi()))
}

/// Prints a warning in spark-submit's form.
fn warn(text: &str) {
    tell(&format!("Warning: {text}"));
}

/// Prints on stdout. A reader that closes the pipe, as `head` does, is no failure.
fn show(text: &str) -> anyhow::Result<ExitCode> {
    printed(std::io::stdout().write_all(text.as_bytes()))
}

fn printed(result: std::io::Result<()>) -> anyhow::Result<ExitCode> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot write to stdout"),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// The version of Spark whose objects are created unless a setting names another one.
const NEWEST_SPARK: &str = cloakroom_submit::plan::NEWEST_SPARK;

/// The text of `--version`. Programs look for the word `version` and read what follows it.
fn version() -> String {
    format!(
        "Spark version {NEWEST_SPARK} (its objects are made; no Spark is needed here)\ncloakroom {}\n\
         Type --help for more information.",
        env!("CARGO_PKG_VERSION")
    )
}
