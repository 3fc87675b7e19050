//! `cloakroom submit`: spark-submit's command line, words and exit codes. Everything is told on stderr; stdout is for
//! what was asked for (`--help`, `--dry-run`).

pub(super) mod connect;
mod dry_run;
mod failure;
mod hand_over;
mod progress;
mod request;
pub(super) mod signals;
pub(super) mod sources;
mod usage;
mod verbose;
mod work;

use std::ffi::OsString;
use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;

use crate::cli::submit_help;
use crate::commands::tell;
use hand_over::Successor;
use request::SubmitRequest;

use cloakroom_spark::SubmitArguments;
use cloakroom_spark::arguments::{CommandLine, Defaults, Purpose, Settings, Switch};
use cloakroom_submit::plan::Submitter;

/// What spark-submit ends with where it was asked for nothing.
const EXIT_NOTHING_ASKED: u8 = 255;

/// Does what the command line asks for.
pub async fn run(arguments: Vec<OsString>) -> anyhow::Result<ExitCode> {
    if arguments.is_empty() {
        tell(&submit_help().to_string());
        return Ok(ExitCode::from(EXIT_NOTHING_ASKED));
    }
    let request = SubmitRequest::read(arguments);
    if request.is_for_help() {
        return show_help();
    }
    let done = go(&request).await;
    if request.is_about_a_driver() { done } else { done.map_err(failure::of) }
}

async fn go(request: &SubmitRequest) -> anyhow::Result<ExitCode> {
    let submitter = sources::submitter()?;
    let settings = settings(&request.known(), &submitter);
    if let Ok(Settings { conf, .. }) = &settings
        && let Some(successor) = Successor::of(request, conf, &submitter)?
    {
        return Err(successor.take_over(request).into());
    }
    let line = request.line()?;
    if line.has(Switch::Version) {
        tell(&usage::version());
        return Ok(ExitCode::SUCCESS);
    }
    request.check_text()?;
    let settings = settings?;
    settings.warnings.iter().for_each(|warning| warn(warning));
    if line.has(Switch::Verbose) {
        tell(&verbose::parsed(line, &settings.conf));
    }
    match (line.value(Purpose::Kill), line.value(Purpose::Status)) {
        (Some(submission), _) => work::kill(submission, settings.conf, &submitter).await,
        (None, Some(submission)) => work::status(submission, settings.conf, &submitter).await,
        (None, None) => submit(line, settings, &submitter).await,
    }
}

fn settings(line: &CommandLine, submitter: &Submitter) -> anyhow::Result<Settings> {
    let files = sources::properties_files(line, submitter)?;
    let defaults = Defaults { files, surroundings: submitter.surroundings() };
    Ok(Settings::of(line, &defaults))
}

async fn submit(line: &CommandLine, settings: Settings, submitter: &Submitter) -> anyhow::Result<ExitCode> {
    let arguments = SubmitArguments::new(line, settings.conf, submitter.surroundings())?;
    if line.has(Switch::Verbose) {
        tell(&verbose::application(&arguments));
    }
    work::submit(arguments, submitter, line.has(Switch::DryRun)).await
}

/// On a terminal with colours.
fn show_help() -> anyhow::Result<ExitCode> {
    printed(write!(anstream::stdout(), "{}", submit_help().ansi()))
}

/// In spark-submit's form.
fn warn(text: &str) {
    tell(&format!("Warning: {text}"));
}

/// Gives on stdout what was asked for. A reader that has seen enough is no failure.
fn show(text: &str) -> anyhow::Result<ExitCode> {
    printed(std::io::stdout().write_all(text.as_bytes()))
}

fn printed(result: std::io::Result<()>) -> anyhow::Result<ExitCode> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot write to stdout"),
        _ => Ok(ExitCode::SUCCESS),
    }
}
