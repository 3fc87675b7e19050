//! `cloakroom submit`: spark-submit's command line, words and exit codes. Everything is told on stderr; stdout is for
//! what was asked for (`--help`, `--dry-run`).

mod connect;
mod dry_run;
mod sources;
mod usage;
mod verbose;
mod work;

use std::process::ExitCode;

use anyhow::bail;

use cloakroom::spark::SubmitArguments;
use cloakroom::spark::arguments::{CommandLine, Defaults, Purpose, Settings, Switch};
use cloakroom::submit::plan::Submitter;

/// Does what the command line asks for.
pub async fn run(arguments: Vec<String>) -> anyhow::Result<ExitCode> {
    let line = CommandLine::parse(arguments)?;
    if line.is_empty() {
        eprint!("{}", usage::USAGE);
        return Ok(ExitCode::FAILURE);
    }
    if line.has(Switch::Help) {
        print!("{}", usage::USAGE);
        return Ok(ExitCode::SUCCESS);
    }
    if line.has(Switch::Version) {
        eprintln!("{}", usage::version());
        return Ok(ExitCode::SUCCESS);
    }
    let submitter = sources::submitter()?;
    let settings = settings(&line, &submitter)?;
    match (line.value(Purpose::Kill), line.value(Purpose::Status)) {
        (Some(_), Some(_)) => bail!("--kill and --status exclude each other: leave one of them out"),
        (Some(submission), None) => work::kill(submission, settings.conf, &submitter).await,
        (None, Some(submission)) => work::status(submission, settings.conf, &submitter).await,
        (None, None) => submit(&line, settings, &submitter).await,
    }
}

fn settings(line: &CommandLine, submitter: &Submitter) -> anyhow::Result<Settings> {
    let files = sources::properties_files(line, submitter)?;
    let defaults = Defaults { files, variables: &submitter.variables, folder: &submitter.working_folder };
    let settings = Settings::of(line, &defaults);
    settings.warnings.iter().for_each(|warning| warn(warning));
    if line.has(Switch::Verbose) {
        eprint!("{}", verbose::parsed(line, &settings.conf));
    }
    Ok(settings)
}

async fn submit(line: &CommandLine, settings: Settings, submitter: &Submitter) -> anyhow::Result<ExitCode> {
    let arguments = SubmitArguments::new(line, settings.conf, &submitter.working_folder)?;
    if line.has(Switch::Verbose) {
        eprint!("{}", verbose::application(&arguments));
    }
    work::submit(arguments, submitter, line.has(Switch::DryRun)).await
}

/// In spark-submit's form.
fn warn(text: &str) {
    eprintln!("Warning: {text}");
}
