//! The whole use case: files and settings are collected and planned ([`planned()`]), and the application is tried, staged,
//! made and followed ([`Run`]). For one that something else submits ([`handed_over`]), files are staged and handed over
//! ([`HandOver`]).

mod error;
mod hand_over;
mod planned;

use std::pin::pin;
use std::sync::Arc;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::create::{self, Created};
use super::events::{Event, Log, TakenBack};
use super::file_copy::FileCopy;
use super::follow::{self, FollowError, FollowIntervals, Outcome};
use super::inputs::Inputs;
use super::left::Left;
use super::stage::{StagePlan, StagedBundles, Stager};
use super::submission::Submission;
use cloakroom_cluster::ApiServer;
use cloakroom_transfer::bundle::Sources;

pub use error::{Failed, NotTaken, RunError};
pub use hand_over::{HandOver, HandedOver};
pub use planned::{handed_over, planned};

/// What a submission is run with.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Where the application is made.
    pub server: &'a ApiServer,
    /// Where its files come from.
    pub inputs: &'a dyn Inputs,
    /// Where they go.
    pub stager: &'a dyn Stager,
    /// Hears what happens.
    pub log: &'a Log,
    /// Once it is cancelled, everything is taken back, or the application is left alone where it is there already.
    pub stop: &'a CancellationToken,
    /// How the application is followed.
    pub intervals: FollowIntervals,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "ended", rename_all = "kebab-case")]
pub enum Ended {
    /// The application is there, and is not to be waited for.
    Deployed,
    /// What was seen of it last.
    Followed(Outcome),
}

impl Run<'_> {
    /// Creates the application, and follows it unless it is not to be waited for.
    pub async fn run(&self, submission: &Submission) -> Result<Ended, RunError> {
        let created = self.create(submission).await?;
        if !submission.follow.wait {
            create::say_deployed(submission, self.log);
            return Ok(Ended::Deployed);
        }
        Ok(Ended::Followed(self.follow(submission, &created).await?))
    }

    /// Tries the pod, stages what goes through a server, makes the objects. Nothing that was staged outlives a failure: its
    /// user may submit again, and no application must run twice.
    pub async fn create(&self, submission: &Submission) -> Result<Created, RunError> {
        create::dry_run(self.server, submission, self.log, self.stop).await?;
        let Some(plan) = &submission.staging else { return self.make(submission).await };
        let staged = self.heard(self.stager.stage(plan, self.inputs, self.log, self.stop)).await?;
        let made = self.make(&staged.complete(plan, submission)).await;
        if let Err(error) = &made {
            take_back(self.stager, plan, &staged, self.log, may_leave_pod(error)).await;
        }
        made
    }

    /// Tells what happens to an application until it has ended.
    pub async fn follow(&self, submission: &Submission, created: &Created) -> Result<Outcome, FollowError> {
        let Self { server, log, stop, intervals, .. } = *self;
        follow::follow(intervals, server, submission, created, log, stop).await
    }

    /// Copies what goes to `spark.kubernetes.file.upload.path`, makes the objects. Copies do not outlive a failure.
    async fn make(&self, submission: &Submission) -> Result<Created, RunError> {
        let Self { server, log, stop, .. } = *self;
        let uploads = &submission.uploads;
        if uploads.is_empty() {
            return Ok(create::make(server, submission, log, stop).await?);
        }
        let made = match self.heard(copy(uploads.clone(), self.inputs.sources(), stop.clone())).await {
            Ok(()) => create::make(server, submission, log, stop).await.map_err(RunError::from),
            Err(error) => Err(error),
        };
        if let Err(error) = &made {
            let left = uploads.iter().filter_map(FileCopy::undo);
            say_taken_back(TakenBack::Removed, left, log, may_leave_pod(error));
        }
        made
    }

    /// Tells at once that it is to stop, and waits for what is under way.
    async fn heard<T>(&self, work: impl Future<Output = T> + Send) -> T {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            outcome = &mut work => return outcome,
            () = self.stop.cancelled() => {}
        }
        self.log.tell(&Event::Stopping);
        work.await
    }
}

/// A pod that could not be taken back is a broken one without its files.
fn may_leave_pod(error: &RunError) -> bool {
    matches!(error, RunError::Create(error) if error.may_leave_pod())
}

/// Releases what was staged, and tells what became of it.
async fn take_back(
    stager: &dyn Stager,
    plan: &StagePlan,
    bundles: &StagedBundles,
    log: &Log,
    may_leave_pod: bool,
) {
    let left = stager.release(plan, bundles).await;
    say_taken_back(TakenBack::Released, left, log, may_leave_pod);
}

fn say_taken_back(how: TakenBack, left: impl IntoIterator<Item = Left>, log: &Log, may_leave_pod: bool) {
    let left = left.into_iter().map(|left| log.tell(&Event::Left(left)));
    if left.count() == 0 {
        log.tell(&Event::TakenBack { how, may_leave_pod });
    }
}

/// Not on the thread that hears signals: a shared folder may be slow.
async fn copy(
    uploads: Vec<FileCopy>,
    sources: Arc<dyn Sources>,
    stop: CancellationToken,
) -> Result<(), RunError> {
    let copying = move || uploads.iter().try_for_each(|upload| upload.run(&*sources, &stop));
    Ok(tokio::task::spawn_blocking(copying).await.map_err(RunError::NotCopied)??)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Drawn;
    use crate::inputs::Local;
    use crate::plan::Request;
    use crate::plan::external_submitter::{ExternalRequest, ExternalSubmission};
    use crate::stage::NamedServer;

    fn is_send<T: Send>(_: &T) {}

    /// Compiled and not called: what runs many submissions may move each of them to another thread.
    fn moved(run: &Run<'_>, submission: &Submission, request: &Request, drawn: &Drawn) {
        is_send(&run.run(submission));
        is_send(&planned(request, &Local, &NamedServer, drawn, run.log));
    }

    /// The same for what is handed over.
    fn handed(run: &HandOver<'_>, external: &ExternalSubmission, request: &ExternalRequest, drawn: &Drawn) {
        is_send(&run.run(external, |_| Ok(())));
        is_send(&handed_over(request, &Local, &NamedServer, drawn, run.log));
    }

    #[test]
    fn the_futures_can_move_to_another_thread() {
        let _: fn(&Run<'_>, &Submission, &Request, &Drawn) = moved;
        let _: fn(&HandOver<'_>, &ExternalSubmission, &ExternalRequest, &Drawn) = handed;
    }

    #[test]
    fn how_it_ended_is_data() {
        for (ended, expected) in [
            (Ended::Deployed, r#"{"ended":"deployed"}"#),
            (
                Ended::Followed(Outcome::Failed { exit_code: Some(3) }),
                r#"{"ended":"followed","outcome":"failed","exit_code":3}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&ended).unwrap(), expected);
        }
    }
}
