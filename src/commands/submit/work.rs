//! What goes to the API server: submitting, `--kill`, `--status`.

use std::process::ExitCode;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::progress::Progress;
use super::signals::Signals;
use super::{connect, dry_run, tell, warn};

use cloakroom::kubernetes::ApiServer;
use cloakroom::spark::arguments::master;
use cloakroom::spark::{SparkConf, SubmitArguments, keys};
use cloakroom::submit::create::{self, CreateError, Created};
use cloakroom::submit::jobs::{self, SubmissionId};
use cloakroom::submit::plan::{self, Submitter};
use cloakroom::submit::stage::StagingError;
use cloakroom::submit::{Log, Submission, follow};

const DEFAULT_NAMESPACE: &str = "default";
const GRACE_PERIOD: &str = "spark.kubernetes.appKillPodDeletionGracePeriod";

/// Checks everything, and then makes it, or prints it.
pub async fn submit(
    arguments: SubmitArguments,
    submitter: &Submitter,
    is_dry_run: bool,
) -> anyhow::Result<ExitCode> {
    let server = connect::connect(&arguments.conf, submitter)?;
    let submission = plan::plan(arguments, submitter, Timestamp::now(), &mut rand::rng()).await?;
    submission.warnings.iter().for_each(|warning| warn(warning));
    if is_dry_run {
        return dry_run::print(&submission);
    }
    let log = log();
    let signals = Signals::watch()?;
    match run(&server, &submission, &log, &signals.stop).await? {
        Some(code) => Ok(ExitCode::from(code)),
        None => Ok(signals.exit_code()),
    }
}

/// Creates the application and waits for its end, unless it is not to be waited for. No exit code means that somebody
/// stopped it.
async fn run(
    server: &ApiServer,
    submission: &Submission,
    log: &Log,
    stop: &CancellationToken,
) -> anyhow::Result<Option<u8>> {
    let created = match create(server, submission, log, stop).await {
        Err(error) if is_stopped(&error) => {
            tell(&error.to_string());
            return Ok(None);
        }
        created => created?,
    };
    if !submission.follow.wait {
        create::say_deployed(submission, log);
        return Ok(Some(0));
    }
    let outcome = follow::follow(server, submission, &created, log, stop).await?;
    Ok(outcome.exit_code(submission.follow.exit_code))
}

/// Tries the pod, stages what goes through a server, makes the objects. Nothing that was staged outlives a failure.
async fn create(
    server: &ApiServer,
    submission: &Submission,
    log: &Log,
    stop: &CancellationToken,
) -> anyhow::Result<Created> {
    create::dry_run(server, submission, log, stop).await?;
    let Some(plan) = &submission.staging else { return make(server, submission, log, stop).await };
    let staged = plan.upload(&Progress::new(log), stop).await?;
    let made = match staged.check().await {
        Ok(()) => make(server, &staged.complete(plan, submission), log, stop).await,
        Err(error) => Err(error.into()),
    };
    if made.is_err() {
        staged.release().await.iter().for_each(|left| warn(left));
    }
    made
}

/// Copies what goes to `spark.kubernetes.file.upload.path`, makes the objects. Copies do not outlive a failure.
async fn make(
    server: &ApiServer,
    submission: &Submission,
    log: &Log,
    stop: &CancellationToken,
) -> anyhow::Result<Created> {
    let made = match submission.uploads.iter().try_for_each(plan::Upload::run) {
        Ok(()) => create::make(server, submission, log, stop).await.map_err(anyhow::Error::from),
        Err(error) => Err(error.into()),
    };
    if made.is_err() {
        submission.uploads.iter().for_each(plan::Upload::undo);
    }
    made
}

/// Whether it did not come about because somebody asked for it.
fn is_stopped(error: &anyhow::Error) -> bool {
    error.downcast_ref::<CreateError>().is_some_and(CreateError::is_stopped)
        || error.downcast_ref::<StagingError>().is_some_and(StagingError::is_stopped)
}

/// `--kill`
pub async fn kill(submission: &str, conf: SparkConf, submitter: &Submitter) -> anyhow::Result<ExitCode> {
    const WHAT: &str = "a whole number of seconds";
    let (server, master, id) = job(submission, conf.clone(), submitter)?;
    let grace_period_seconds = conf.number(GRACE_PERIOD, WHAT)?;
    jobs::kill(&server, &master, &id, grace_period_seconds, &log()).await?;
    Ok(ExitCode::SUCCESS)
}

/// `--status`
pub async fn status(submission: &str, conf: SparkConf, submitter: &Submitter) -> anyhow::Result<ExitCode> {
    let (server, master, id) = job(submission, conf, submitter)?;
    jobs::status(&server, &master, &id, &log()).await?;
    Ok(ExitCode::SUCCESS)
}

fn job(
    submission: &str,
    mut conf: SparkConf,
    submitter: &Submitter,
) -> anyhow::Result<(ApiServer, String, SubmissionId)> {
    let master = master::normalise(&mut conf)?;
    let namespace = conf.get(keys::NAMESPACE).unwrap_or(DEFAULT_NAMESPACE);
    let id = SubmissionId::parse(submission, namespace)?;
    Ok((connect::connect(&conf, submitter)?, master, id))
}

fn log() -> Log {
    Log::new(tell)
}
