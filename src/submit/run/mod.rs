//! The whole use case: files and settings are collected and planned ([`planned()`]), and the application is tried, staged,
//! made and followed ([`Run`]).

mod error;
mod planned;

use std::pin::pin;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::create::{self, Created};
use super::events::{Event, Log, TakenBack};
use super::follow::{self, Outcome, Pace};
use super::inputs::Inputs;
use super::stage::{StagedBundles, Stager};
use super::submission::Submission;
use super::upload::Upload;
use crate::bundle::Sources;
use crate::kubernetes::ApiServer;

pub use error::RunError;
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
    pub pace: Pace,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        let Self { server, log, stop, pace, .. } = *self;
        Ok(Ended::Followed(follow::follow_at(pace, server, submission, &created, log, stop).await?))
    }

    /// Tries the pod, stages what goes through a server, makes the objects. Nothing that was staged outlives a failure: its
    /// user may submit again, and no application must run twice.
    pub async fn create(&self, submission: &Submission) -> Result<Created, RunError> {
        create::dry_run(self.server, submission, self.log, self.stop).await?;
        let Some(plan) = &submission.staging else { return self.make(submission).await };
        let staged = self.heard(self.stager.stage(plan, self.inputs, self.log, self.stop)).await?;
        let made = self.make(&staged.complete(plan, submission)).await;
        if let Err(error) = &made {
            let is_all = take_back(self.stager, &staged, self.log).await;
            self.say_taken_back(TakenBack::Released, is_all, error);
        }
        made
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
            let is_all = say_left(uploads.iter().filter_map(Upload::undo), log);
            self.say_taken_back(TakenBack::Removed, is_all, error);
        }
        made
    }

    /// A pod that could not be taken back is a broken one without its files, and says so itself.
    fn say_taken_back(&self, how: TakenBack, is_all: bool, error: &RunError) {
        if is_all {
            let may_leave_pod = matches!(error, RunError::Create(error) if error.may_leave_pod());
            self.log.tell(&Event::TakenBack { how, may_leave_pod });
        }
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

/// Releases what was staged, and tells what is left. Whether that is nothing.
pub async fn take_back(stager: &dyn Stager, bundles: &StagedBundles, log: &Log) -> bool {
    say_left(stager.release(bundles).await, log)
}

fn say_left(left: impl IntoIterator<Item = String>, log: &Log) -> bool {
    let left = left.into_iter().map(|what| log.tell(&Event::Left { what }));
    left.count() == 0
}

/// Not on the thread that hears signals: a shared folder may be slow.
async fn copy(
    uploads: Vec<Upload>,
    sources: Arc<dyn Sources>,
    stop: CancellationToken,
) -> Result<(), RunError> {
    let copying = move || uploads.iter().try_for_each(|upload| upload.run(&*sources, &stop));
    Ok(tokio::task::spawn_blocking(copying).await.map_err(RunError::NotCopied)??)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::submit::Drawn;
    use crate::submit::inputs::Local;
    use crate::submit::plan::Request;
    use crate::submit::stage::NamedServer;

    fn is_send<T: Send>(_: &T) {}

    /// Compiled and not called: what runs many submissions may move each of them to another thread.
    fn moved(run: &Run<'_>, submission: &Submission, request: &Request, drawn: &Drawn) {
        is_send(&run.run(submission));
        is_send(&planned(request, &Local, &NamedServer, drawn, run.log));
    }

    #[test]
    fn the_futures_can_move_to_another_thread() {
        let _: fn(&Run<'_>, &Submission, &Request, &Drawn) = moved;
    }
}
