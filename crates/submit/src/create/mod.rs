//! Sends the objects of a submission, and undoes what was done where that fails.

mod account;
mod companions;
mod error;
mod existing;
mod explain;
mod undo;

use std::fmt;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::undo::{Made, Touched};
use super::calls::{Answer, Calls, ObjectPath, Patience, retried, retried_with_doubt, said};
use super::events::{Log, UnderWay};
use super::log::{Level, in_one_line};
use super::submission::Submission;
use cloakroom_cluster::{ApiFailure, ApiServer};

pub(super) use companions::{Companions, try_companions};
pub use error::{Cause, CreateError, Leftover, Undo};
pub(super) use existing::{Existing, existing};

/// The class that says these things in Spark.
const LOGGER: &str = "Client";

/// The label that says which application a pod belongs to.
const APP_LABEL: &str = "spark-app-selector";

/// A driver pod that is ours.
#[derive(Clone, PartialEq)]
pub struct Created {
    /// Its unique id: a pod of the same name that is made later is another one.
    pub uid: String,
    /// The pod as the API server stored it.
    pub pod: Value,
}

/// Without the pod, which may have secrets in its environment.
impl fmt::Debug for Created {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Created").field("uid", &self.uid).finish_non_exhaustive()
    }
}

/// Asks the API server whether it would make the pod: rights, quota, admission and validation at once. Warns where the
/// driver could not make executors. Makes nothing.
pub(super) async fn dry_run(
    server: &ApiServer,
    submission: &Submission,
    log: &Log,
    stop: &CancellationToken,
) -> Result<(), CreateError> {
    tokio::select! {
        tried = tried(server, submission, log, stop) => tried,
        // Nothing can have been made: there is no answer to wait for.
        () = stop.cancelled() => Err(CreateError { cause: Cause::Stopped, undo: Undo::Nothing }),
    }
}

async fn tried(
    server: &ApiServer,
    submission: &Submission,
    log: &Log,
    stop: &CancellationToken,
) -> Result<(), CreateError> {
    let calls = Calls::new(server, &submission.namespace);
    let patience = Patience { stop, after_timeouts: false };
    let tried = retried(patience, || calls.try_pod(&submission.pod)).await;
    let Err(failure) = tried else {
        account::warn_if_powerless(&calls, submission, log).await;
        return Ok(());
    };
    if is_about_dry_runs(&failure) {
        let message = format!("The pod could not be tried before it is created: {}", said(&failure));
        log.say(Level::Warn, LOGGER, &message);
        account::warn_if_powerless(&calls, submission, log).await;
        return Ok(());
    }
    let cause = if stop.is_cancelled() {
        Cause::Stopped
    } else if matches!(failure, ApiFailure::Refused { code: 409, .. }) {
        let found = retried(patience, || calls.get_pod(&submission.pod_name)).await;
        match found {
            Err(ApiFailure::NotFound { .. }) => explain::pod(&calls, submission, failure),
            found => exists(submission, found.ok().as_ref()),
        }
    } else {
        explain::pod(&calls, submission, failure)
    };
    Err(CreateError { cause, undo: Undo::Nothing })
}

/// Admission webhooks with side effects have no dry run; the API server then refuses it with a 400
/// (<https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run>).
fn is_about_dry_runs(failure: &ApiFailure) -> bool {
    let ApiFailure::Refused { code: 400, message } = failure else { return false };
    message.contains("does not support dry run")
}

/// Makes everything in Spark's order: what must be there before the pod, the pod, that again with the pod as its owner,
/// and the rest. After a failure nothing of it is left, or the error says what; once `stop` is cancelled likewise.
pub(super) async fn make(
    server: &ApiServer,
    submission: &Submission,
    log: &Log,
    stop: &CancellationToken,
) -> Result<Created, CreateError> {
    let calls = Calls::new(server, &submission.namespace);
    let mut creation = Creation { calls, submission, log, stop, made: Made::default() };
    match creation.run_or_say_stopping().await {
        Ok(created) => Ok(created),
        Err(cause) => {
            let undo = undo::undo(&creation.calls, submission, &creation.made).await;
            // Attempts end with the last failure once it is to stop.
            let cause = if stop.is_cancelled() { Cause::Stopped } else { cause };
            Err(CreateError { cause, undo })
        }
    }
}

struct Creation<'a> {
    calls: Calls,
    submission: &'a Submission,
    log: &'a Log,
    stop: &'a CancellationToken,
    made: Made,
}

impl Creation<'_> {
    async fn run(&mut self) -> Result<Created, Cause> {
        let submission = self.submission;
        for object in &submission.before_pod {
            self.apply_before(object).await?;
        }
        self.go_on()?;
        let created = self.create_pod().await?;
        self.made.pod = Some(created.clone());
        for object in submission.before_pod.iter().chain(&submission.after_pod) {
            self.apply_owned(object, &created).await?;
        }
        self.go_on()?;
        Ok(created)
    }

    /// A call that is under way is waited for: nobody could tell what it does after that.
    async fn run_or_say_stopping(&mut self) -> Result<Created, Cause> {
        let (stop, log) = (self.stop, self.log);
        log.saying_stopping(UnderWay::Objects, stop, self.run()).await
    }

    fn go_on(&self) -> Result<(), Cause> {
        if self.stop.is_cancelled() { Err(Cause::Stopped) } else { Ok(()) }
    }

    fn patience(&self) -> Patience<'_> {
        Patience { stop: self.stop, after_timeouts: true }
    }

    async fn apply_before(&mut self, object: &Value) -> Result<(), Cause> {
        self.go_on()?;
        let path = ObjectPath::of(object, &self.submission.namespace)?;
        let touched = self.made.before.len();
        self.made.before.push((path.clone(), Touched::Unsure));
        let (answer, is_sure) = self.apply(&path, object).await;
        self.made.before[touched].1 = Touched::after(&answer, is_sure);
        answer.map(drop).map_err(|failure| explain::object(&self.calls, &path, failure))
    }

    async fn apply_owned(&mut self, object: &Value, owner: &Created) -> Result<(), Cause> {
        self.go_on()?;
        let path = ObjectPath::of(object, &self.submission.namespace)?;
        let mut with_owner = object.clone();
        with_owner["metadata"]["ownerReferences"] = json!([owner_reference(self.submission, owner)]);
        let (answer, is_sure) = self.apply(&path, &with_owner).await;
        let touched = match self.made.before(&path) {
            // It is deleted by itself.
            Some(Touched::New(_) | Touched::Unsure) => Touched::Not,
            _ => Touched::after(&answer, is_sure),
        };
        if touched == Touched::Existed {
            self.warn(&format!(
                "The {} in namespace {} existed already. It now belongs to the driver pod, and goes with it",
                path.called(),
                self.submission.namespace
            ));
        }
        self.made.after.push((path.clone(), object.clone(), touched));
        answer.map(drop).map_err(|failure| explain::object(&self.calls, &path, failure))
    }

    /// The answer, and whether it is the one to the only attempt that can have had an effect.
    async fn apply(&self, path: &ObjectPath, object: &Value) -> (Result<Answer, ApiFailure>, bool) {
        let call = || self.calls.apply(path, object);
        let (answer, was_ambiguous) = retried_with_doubt(self.patience(), call).await;
        (answer, !was_ambiguous)
    }

    /// An attempt that had no answer may have made the pod all the same: its name makes every further attempt a 409,
    /// and its label says whose it is.
    async fn create_pod(&mut self) -> Result<Created, Cause> {
        let call = || self.calls.create_pod(&self.submission.pod);
        let (answer, was_ambiguous) = retried_with_doubt(self.patience(), call).await;
        match answer {
            Ok(answer) if !answer.uid().is_empty() => Ok(created(answer)),
            Ok(_) => {
                let failure = ApiFailure::Unreadable { why: "a pod without a unique id".to_owned() };
                self.recognise(failure, true).await
            }
            Err(failure) if was_ambiguous || matches!(failure, ApiFailure::Refused { code: 409, .. }) => {
                self.recognise(failure, was_ambiguous).await
            }
            Err(failure) => Err(explain::pod(&self.calls, self.submission, failure)),
        }
    }

    async fn recognise(&mut self, failure: ApiFailure, was_ambiguous: bool) -> Result<Created, Cause> {
        // Also where it is to stop: what is not found now cannot be undone.
        let unhurried = CancellationToken::new();
        let patience = Patience { stop: &unhurried, after_timeouts: true };
        let name = &self.submission.pod_name;
        let found = retried(patience, || self.calls.get_pod(name)).await;
        let is_conflict = matches!(failure, ApiFailure::Refused { code: 409, .. });
        match found {
            Ok(pod) if application_of(&pod.body) == Some(&self.submission.app_id) => {
                self.warn(&format!(
                    "No answer came to the creation of pod {name}, and it is there: going on with it"
                ));
                Ok(created(pod))
            }
            Ok(pod) => Err(exists(self.submission, Some(&pod))),
            // A quota that changed meanwhile is a conflict as well, and no pod has the name.
            Err(ApiFailure::NotFound { .. }) if is_conflict && !was_ambiguous => {
                Err(explain::pod(&self.calls, self.submission, failure))
            }
            Err(_) if is_conflict => {
                self.made.is_pod_unknown = was_ambiguous;
                Err(exists(self.submission, None))
            }
            Err(ApiFailure::NotFound { .. }) if !matches!(failure, ApiFailure::TimedOut { .. }) => {
                Err(explain::pod(&self.calls, self.submission, failure))
            }
            // Not there, or not to be seen; a call that hangs may still make it.
            Err(_) => {
                self.made.is_pod_unknown = true;
                Err(explain::pod(&self.calls, self.submission, failure))
            }
        }
    }

    fn warn(&self, message: &str) {
        self.log.say(Level::Warn, LOGGER, message);
    }
}

fn created(answer: Answer) -> Created {
    Created { uid: answer.uid().to_owned(), pod: answer.body }
}

fn exists(submission: &Submission, pod: Option<&Answer>) -> Cause {
    Cause::Exists {
        pod: submission.pod_name.clone(),
        namespace: submission.namespace.clone(),
        whose: match pod.map(|pod| application_of(&pod.body)) {
            Some(Some(application)) => format!("and belongs to application {application}"),
            Some(None) => "and is no Spark application's".to_owned(),
            None => "and cannot be looked at".to_owned(),
        },
    }
}

/// The application that a pod belongs to, by its label.
fn application_of(pod: &Value) -> Option<&str> {
    pod["metadata"]["labels"][APP_LABEL].as_str()
}

/// As Spark writes it: without `blockOwnerDeletion`.
fn owner_reference(submission: &Submission, owner: &Created) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "controller": true, "name": submission.pod_name, "uid": owner.uid,
    })
}

/// What spark-submit says where nobody waits for the application, and the line by which Airflow finds the driver: from the
/// first one it knows pods in a namespace called `spark` only.
pub(super) fn say_deployed(submission: &Submission, log: &Log) {
    let Submission { app_name, app_id, namespace, pod_name, .. } = submission;
    let app_name = in_one_line(app_name);
    let message = format!(
        "Deployed Spark application {app_name} with application ID {app_id} and submission ID \
         {namespace}:{pod_name} into Kubernetes\n\t pod name: {pod_name}"
    );
    log.say(Level::Info, LOGGER, &message);
}
