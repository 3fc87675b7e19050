//! The actions that call the API server: submitting, `--kill`, `--status`.

use std::process::ExitCode;

use jiff::Timestamp;

use super::connect::WantedApiServer;
use super::signals::Signals;
use super::{connect, dry_run, progress, tell};
use crate::commands::screen::Screen;
use crate::commands::stage::staged_before;

use cloakroom_cluster::ApiServer;
use cloakroom_spark::arguments::{java_options, master};
use cloakroom_spark::{SparkConf, SubmitArguments, keys};
use cloakroom_submit::follow::FollowIntervals;
use cloakroom_submit::inputs::Local;
use cloakroom_submit::jobs::{self, SubmissionId};
use cloakroom_submit::plan::{Asking, Request, Submitter};
use cloakroom_submit::run::{self, Ended, Run};
use cloakroom_submit::stage::NamedServer;
use cloakroom_submit::{Log, Randomness, Submission};

const DEFAULT_NAMESPACE: &str = "default";

/// Checks everything, and then creates the objects, or prints them.
pub async fn submit(
    arguments: SubmitArguments,
    submitter: &Submitter,
    screen: &Screen,
    is_dry_run: bool,
) -> anyhow::Result<ExitCode> {
    let server = connect::connect(WantedApiServer::read(&arguments.conf)?, submitter).await?;
    let signals = Signals::watch(screen)?;
    let log = progress::log(screen);
    let asking = if is_dry_run { Asking::Preview } else { Asking::Allowed { attempts: None } };
    let request = Request { arguments, submitter: submitter.clone(), asking };
    let randomness = Randomness::new(Timestamp::now(), &mut rand::rng());
    let stager = NamedServer::new(Some(server.clone()), staged_before());
    let planned = tokio::select! {
        biased;
        () = signals.stop.cancelled() => {
            tell("stopped before the application was submitted (nothing was created)");
            return Ok(signals.exit_code());
        }
        planned = run::planned(&request, &Local, &stager, &randomness, &log) => planned,
    };
    let submission = planned?;
    if is_dry_run {
        return dry_run::print(&submission);
    }
    let run = Run {
        server: &server,
        inputs: &Local,
        stager: &stager,
        log: &log,
        stop: &signals.stop,
        intervals: FollowIntervals::default(),
    };
    let ended = run.run(&submission).await;
    let ended = match ended {
        Ok(ended) => exit_code(&ended, &submission),
        Err(error) if error.is_stopped() => {
            screen.tell(&error.to_string());
            None
        }
        Err(error) => {
            screen.clear();
            return Err(error.into());
        }
    };
    screen.clear();
    Ok(ended.map_or_else(|| signals.exit_code(), ExitCode::from))
}

/// No exit code means that a signal stopped it.
fn exit_code(ended: &Ended, submission: &Submission) -> Option<u8> {
    match ended {
        Ended::Deployed => Some(0),
        Ended::Followed(outcome) => outcome.exit_code(submission.follow.exit_code),
    }
}

/// `--kill`
pub async fn kill(submission: &str, conf: SparkConf, submitter: &Submitter) -> anyhow::Result<ExitCode> {
    let Job { server, master, id, conf } = Job::connect(submission, conf, submitter).await?;
    let grace_period = conf.read(&keys::DELETION_GRACE_PERIOD)?;
    let grace_period_seconds = grace_period.map(|period| period.as_secs());
    jobs::kill(&server, &master, &id, grace_period_seconds, &Log::new(tell)).await?;
    Ok(ExitCode::SUCCESS)
}

/// `--status`
pub async fn status(submission: &str, conf: SparkConf, submitter: &Submitter) -> anyhow::Result<ExitCode> {
    let Job { server, master, id, .. } = Job::connect(submission, conf, submitter).await?;
    jobs::status(&server, &master, &id, &Log::new(tell)).await?;
    Ok(ExitCode::SUCCESS)
}

/// An application that was submitted before.
struct Job {
    server: ApiServer,
    master: String,
    id: SubmissionId,
    conf: SparkConf,
}

impl Job {
    async fn connect(submission: &str, mut conf: SparkConf, submitter: &Submitter) -> anyhow::Result<Self> {
        java_options::check(&conf)?;
        let master = master::normalise(&mut conf)?;
        conf.fill_in(submitter.surroundings())?;
        let namespace = conf.get(&keys::NAMESPACE).unwrap_or(DEFAULT_NAMESPACE);
        let id = SubmissionId::parse(submission, namespace)?;
        Ok(Self {
            server: connect::connect(WantedApiServer::read(&conf)?, submitter).await?,
            master,
            id,
            conf,
        })
    }
}
