//! The use cases. [`planned()`] collects files and plans an application. [`Run`] tries, stages, creates and follows it.
//! [`handed_over`] plans for an application of an external submitter. [`HandOver`] stages its files and hands them
//! over.

mod error;
mod hand_over;
mod planned;

use std::sync::{Arc, Mutex};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::create::{self, Created};
use super::events::{Event, Log, TakenBack, UnderWay};
use super::file_copy::{Copies, FileCopy};
use super::follow::{self, FollowError, FollowIntervals, Outcome};
use super::inputs::Inputs;
use super::left::Left;
use super::stage::{StagePlan, StagedBundles, Stager};
use super::submission::Submission;
use cloakroom_cluster::ApiServer;
use cloakroom_core::lock::lock;
use cloakroom_transfer::bundle::Sources;

pub use error::{Failed, NotTaken, RunError};
pub use hand_over::{HandOver, HandedOver};
pub use planned::{handed_over, planned};

/// The parts that a submission works with.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// The cluster in which the application is created.
    pub server: &'a ApiServer,
    /// The source of its files.
    pub inputs: &'a dyn Inputs,
    /// The target of its files.
    pub stager: &'a dyn Stager,
    /// The receiver of events.
    pub log: &'a Log,
    /// If it is cancelled before the application is created, everything is taken back. After that, only the waiting
    /// ends.
    pub stop: &'a CancellationToken,
    pub intervals: FollowIntervals,
}

/// The end of a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "ended", rename_all = "kebab-case")]
pub enum Ended {
    /// The application is created, and the settings say not to wait for it.
    Deployed,
    /// The application was followed until this outcome.
    Followed(Outcome),
}

impl Run<'_> {
    /// Creates the application. Follows it, unless `waitAppCompletion` is false.
    pub async fn run(&self, submission: &Submission) -> Result<Ended, RunError> {
        let created = self.create(submission).await?;
        if !submission.follow.wait {
            create::say_deployed(submission, self.log);
            return Ok(Ended::Deployed);
        }
        Ok(Ended::Followed(self.follow(submission, &created).await?))
    }

    /// Tries the pod, stages files, and creates the objects. After a failure, everything staged is released. A pod
    /// that could not be deleted then has no files. So the application cannot run twice if the user submits again.
    pub async fn create(&self, submission: &Submission) -> Result<Created, RunError> {
        create::dry_run(self.server, submission, self.log, self.stop).await?;
        let Some(plan) = &submission.staging else { return self.make(submission).await };
        let Self { inputs, stager, log, stop, .. } = *self;
        let staging = stager.stage(plan, inputs, log, stop);
        let staged = log.saying_stopping(UnderWay::Files, stop, staging).await?;
        let made = self.make(&staged.complete(plan, submission)).await;
        if let Err(error) = &made {
            take_back(stager, plan, &staged, log, may_leave_pod(error)).await;
        }
        made
    }

    /// Reports what happens to an application until it has ended.
    pub async fn follow(&self, submission: &Submission, created: &Created) -> Result<Outcome, FollowError> {
        let Self { server, log, stop, intervals, .. } = *self;
        follow::follow(intervals, server, submission, created, log, stop).await
    }

    /// Copies files to `spark.kubernetes.file.upload.path`, and creates the objects. After a failure, the copies are
    /// removed.
    async fn make(&self, submission: &Submission) -> Result<Created, RunError> {
        let Self { server, log, stop, .. } = *self;
        let uploads = &submission.uploads;
        if uploads.is_empty() {
            return Ok(create::make(server, submission, log, stop).await?);
        }
        let copies = Arc::default();
        let copying = copy(uploads.clone(), self.inputs.sources(), stop.clone(), Arc::clone(&copies));
        let made = match log.saying_stopping(UnderWay::Files, stop, copying).await {
            Ok(()) => create::make(server, submission, log, stop).await.map_err(RunError::from),
            Err(error) => Err(error),
        };
        let copies = lock(&copies);
        if let Err(error) = &made
            && !copies.is_empty()
        {
            say_taken_back(TakenBack::Removed, copies.undo(), log, may_leave_pod(error));
        }
        drop(copies);
        made
    }
}

/// Whether the pod may still be there. Without its files it cannot run the application.
fn may_leave_pod(error: &RunError) -> bool {
    matches!(error, RunError::Create(error) if error.may_leave_pod())
}

/// Releases the bundles, and reports what became of them.
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

/// Copies the files on a blocking thread, because a shared folder may be slow and signals must still be heard.
async fn copy(
    uploads: Vec<FileCopy>,
    sources: Arc<dyn Sources>,
    stop: CancellationToken,
    copies: Arc<Mutex<Copies>>,
) -> Result<(), RunError> {
    let copying = move || {
        let mut copies = lock(&copies);
        uploads.iter().try_for_each(|upload| copies.add(upload, &*sources, &stop))
    };
    Ok(tokio::task::spawn_blocking(copying).await.map_err(RunError::NotCopied)??)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Randomness;
    use crate::inputs::Local;
    use crate::plan::Request;
    use crate::plan::external_submitter::{ExternalRequest, ExternalSubmission};
    use crate::stage::NamedServer;

    fn is_send<T: Send>(_: &T) {}

    /// Compiled and never called. A service that runs many submissions moves each future between threads.
    fn moved(run: &Run<'_>, submission: &Submission, request: &Request, randomness: &Randomness) {
        is_send(&run.run(submission));
        is_send(&planned(request, &Local, &NamedServer::BY_ADDRESS, randomness, run.log));
    }

    /// The same for a handover.
    fn handed(
        run: &HandOver<'_>,
        external: &ExternalSubmission,
        request: &ExternalRequest,
        randomness: &Randomness,
    ) {
        is_send(&run.run(external, |_| Ok(())));
        is_send(&handed_over(request, &Local, &NamedServer::BY_ADDRESS, randomness, run.log));
    }

    // Invariant: the whole use case can move between threads, and tells what happens as data.
    #[test]
    fn the_futures_can_move_to_another_thread() {
        let _: fn(&Run<'_>, &Submission, &Request, &Randomness) = moved;
        let _: fn(&HandOver<'_>, &ExternalSubmission, &ExternalRequest, &Randomness) = handed;
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
