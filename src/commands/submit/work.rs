//! What goes to the API server: submitting, `--kill`, `--status`.

use std::pin::pin;
use std::process::ExitCode;

use anyhow::Context as _;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::progress::{self, Progress, STAGING};
use super::signals::Signals;
use super::{connect, dry_run, tell, warn};
use crate::commands::screen::Screen;

use cloakroom::client::RetryNotice;
use cloakroom::kubernetes::ApiServer;
use cloakroom::spark::arguments::{java_options, master};
use cloakroom::spark::{SparkConf, SubmitArguments, keys};
use cloakroom::submit::create::{self, CreateError, Created};
use cloakroom::submit::inputs::Local;
use cloakroom::submit::jobs::{self, SubmissionId};
use cloakroom::submit::plan::{Asking, PlanError, Request, Submitter};
use cloakroom::submit::stage::{StagedBundles, StagingError};
use cloakroom::submit::{Drawn, Level, Log, StagePlan, Submission, Upload, UploadError, follow, run};

const DEFAULT_NAMESPACE: &str = "default";

/// Checks everything, and then makes it, or prints it.
pub async fn submit(
    arguments: SubmitArguments,
    submitter: &Submitter,
    is_dry_run: bool,
) -> anyhow::Result<ExitCode> {
    let server = connect::connect(&arguments.conf, submitter)?;
    let screen = Screen::stderr();
    let signals = Signals::watch(&screen)?;
    let planned = tokio::select! {
        biased;
        () = signals.stop.cancelled() => {
            tell("stopped before the application was submitted (nothing was created)");
            return Ok(signals.exit_code());
        }
        planned = planned(arguments, submitter, &screen, is_dry_run) => planned,
    };
    let submission = planned?;
    submission.warnings.iter().for_each(|warning| warn(warning));
    if is_dry_run {
        return dry_run::print(&submission);
    }
    let log = progress::log(&screen);
    let work =
        Work { server: &server, submission: &submission, screen: &screen, log: &log, stop: &signals.stop };
    let ended = work.run().await;
    screen.clear();
    Ok(ended?.map_or_else(|| signals.exit_code(), ExitCode::from))
}

async fn planned(
    arguments: SubmitArguments,
    submitter: &Submitter,
    screen: &Screen,
    is_dry_run: bool,
) -> Result<Submission, PlanError> {
    let told = |notice: &RetryNotice| screen.tell(&notice.to_string());
    let asking = if is_dry_run { Asking::Preview } else { Asking::Allowed { attempts: None } };
    let request = Request { arguments, submitter: submitter.clone(), asking };
    let drawn = Drawn::new(Timestamp::now(), &mut rand::rng());
    run::planned(&request, &Local, &drawn, &told).await
}

/// One submission.
struct Work<'a> {
    server: &'a ApiServer,
    submission: &'a Submission,
    screen: &'a Screen,
    log: &'a Log,
    /// Somebody asks to stop.
    stop: &'a CancellationToken,
}

impl Work<'_> {
    /// Creates the application and waits for its end, unless it is not to be waited for. No exit code means that
    /// somebody stopped it.
    async fn run(&self) -> anyhow::Result<Option<u8>> {
        let created = match self.create().await {
            Err(error) if is_stopped(&error) => {
                self.screen.tell(&error.to_string());
                return Ok(None);
            }
            created => created?,
        };
        let Self { server, submission, log, stop, .. } = self;
        if !submission.follow.wait {
            create::say_deployed(submission, log);
            return Ok(Some(0));
        }
        let outcome = follow::follow(server, submission, &created, log, stop).await?;
        Ok(outcome.exit_code(submission.follow.exit_code))
    }

    /// Tries the pod, stages what goes through a server, makes the objects. Nothing that was staged outlives a failure:
    /// whoever is told of one may submit again, and no application must run twice.
    async fn create(&self) -> anyhow::Result<Created> {
        create::dry_run(self.server, self.submission, self.log, self.stop).await?;
        let Some(plan) = &self.submission.staging else { return self.make(self.submission).await };
        let staged = self.heard(self.stage(plan)).await?;
        let made = self.make(&staged.complete(plan, self.submission)).await;
        if let Err(error) = &made {
            self.say_taken_back("What was staged is released again", &staged.release().await, error);
        }
        made
    }

    /// Uploads, and asks for all of it once more just before the pod is made.
    async fn stage(&self, plan: &StagePlan) -> Result<StagedBundles, StagingError> {
        let uploads = Progress::new(self.screen, self.log);
        let staged = plan.upload(&uploads, self.stop).await?;
        match staged.check(&uploads, self.stop).await {
            Ok(()) => Ok(staged),
            Err(error) => Err(error.with_left(staged.release().await)),
        }
    }

    /// Copies what goes to `spark.kubernetes.file.upload.path`, makes the objects. Copies do not outlive a failure.
    async fn make(&self, submission: &Submission) -> anyhow::Result<Created> {
        let uploads = &submission.uploads;
        if uploads.is_empty() {
            return Ok(create::make(self.server, submission, self.log, self.stop).await?);
        }
        let made = match self.heard(copy(uploads.clone(), self.stop.clone())).await {
            Ok(()) => {
                create::make(self.server, submission, self.log, self.stop).await.map_err(anyhow::Error::from)
            }
            Err(error) => Err(error),
        };
        if let Err(error) = &made {
            let left: Vec<_> = uploads.iter().filter_map(Upload::undo).collect();
            self.say_taken_back("What was copied is removed again", &left, error);
        }
        made
    }

    /// Or what is left. A pod that could not be taken back is a broken one without its files, and says so itself.
    fn say_taken_back(&self, what: &str, left: &[String], error: &anyhow::Error) {
        for left in left {
            self.log.say(Level::Warn, STAGING, left);
        }
        let may_leave_pod = error.downcast_ref::<CreateError>().is_some_and(CreateError::may_leave_pod);
        if left.is_empty() && may_leave_pod {
            let message = format!(
                "{what}: the pod that may be left cannot run the application, and fails if it starts"
            );
            self.log.say(Level::Warn, STAGING, &message);
        } else if left.is_empty() {
            self.log.say(Level::Info, STAGING, what);
        }
    }

    /// Says at once that it was heard where somebody asks to stop.
    async fn heard<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            outcome = &mut work => return outcome,
            () = self.stop.cancelled() => {}
        }
        self.log.say(Level::Warn, STAGING, "Stopping: no pod was made, and what is under way is taken back");
        work.await
    }
}

/// Not on the thread that hears signals: a shared folder may be slow.
async fn copy(uploads: Vec<Upload>, stop: CancellationToken) -> anyhow::Result<()> {
    let copying = move || uploads.iter().try_for_each(|upload| upload.run(&stop));
    Ok(tokio::task::spawn_blocking(copying).await.context("the files were not copied")??)
}

/// Whether it did not come about because somebody asked for it.
fn is_stopped(error: &anyhow::Error) -> bool {
    error.downcast_ref::<CreateError>().is_some_and(CreateError::is_stopped)
        || error.downcast_ref::<StagingError>().is_some_and(StagingError::is_stopped)
        || error.downcast_ref::<UploadError>().is_some_and(UploadError::is_stopped)
}

/// `--kill`
pub async fn kill(submission: &str, conf: SparkConf, submitter: &Submitter) -> anyhow::Result<ExitCode> {
    let Job { server, master, id, conf } = Job::of(submission, conf, submitter)?;
    let grace_period_seconds = conf.read(&keys::DELETION_GRACE_PERIOD)?;
    jobs::kill(&server, &master, &id, grace_period_seconds, &Log::new(tell)).await?;
    Ok(ExitCode::SUCCESS)
}

/// `--status`
pub async fn status(submission: &str, conf: SparkConf, submitter: &Submitter) -> anyhow::Result<ExitCode> {
    let Job { server, master, id, .. } = Job::of(submission, conf, submitter)?;
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
    fn of(submission: &str, mut conf: SparkConf, submitter: &Submitter) -> anyhow::Result<Self> {
        java_options::check(&conf)?;
        let master = master::normalise(&mut conf)?;
        conf.fill_in(submitter.surroundings())?;
        let namespace = conf.get(&keys::NAMESPACE).unwrap_or(DEFAULT_NAMESPACE);
        let id = SubmissionId::parse(submission, namespace)?;
        Ok(Self { server: connect::connect(&conf, submitter)?, master, id, conf })
    }
}
