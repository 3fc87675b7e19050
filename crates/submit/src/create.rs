//! Creates the objects of a submission, and deletes them again if a step fails.

mod companions;
mod error;
mod existing;
mod explain;
mod undo;

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::undo::{Made, Touched};
use super::events::{Level, Log, UnderWay};
use super::submission::Submission;
use cloakroom_cluster::calls::{Answer, Calls, ObjectPath, Patience, retried, retried_with_doubt, said};
use cloakroom_cluster::{ApiFailure, ApiServer};
use cloakroom_core::text::in_one_line;
use cloakroom_spark::keys;

pub(super) use companions::try_companions;
pub use companions::{Companions, try_named};
pub use error::{CreateCause, CreateError, Leftover, Undo};
pub(super) use existing::{Existing, existing};

/// The class that logs these lines in Spark.
const LOGGER: &str = "Client";

/// The label with the application's id.
const APP_LABEL: &str = "spark-app-selector";

/// The driver pod that this submission has created.
#[derive(Clone, PartialEq)]
pub struct Created {
    /// Its unique id. A later pod of the same name has another one.
    pub uid: String,
    /// The pod as the API server has stored it.
    pub pod: Value,
}

/// The pod is left out, because its environment may have secrets.
impl fmt::Debug for Created {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Created").field("uid", &self.uid).finish_non_exhaustive()
    }
}

/// Tries the pod by a server-side dry run: rights, quota, admission and validation at once. Warns if the driver could
/// not create executors. Creates nothing.
pub(super) async fn dry_run(
    server: &ApiServer,
    submission: &Submission,
    log: &Log,
    stop: &CancellationToken,
) -> Result<(), CreateError> {
    tokio::select! {
        tried = tried(server, submission, log, stop) => tried,
        // A dry run creates nothing, so its answer need not be waited for.
        () = stop.cancelled() => Err(CreateError { cause: CreateCause::Stopped, undo: Undo::Nothing }),
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
    let failure = match tried {
        Err(failure) => failure,
        Ok(answer) => {
            for warning in &answer.warnings {
                log.say(
                    Level::Warn,
                    LOGGER,
                    &format!("The API server warns about the driver pod: {warning}"),
                );
            }
            warn_if_powerless(&calls, submission, log).await;
            return Ok(());
        }
    };
    if is_about_dry_runs(&failure) {
        let message = format!("The pod could not be tried before it is created: {}", said(&failure));
        log.say(Level::Warn, LOGGER, &message);
        warn_if_powerless(&calls, submission, log).await;
        return Ok(());
    }
    let cause = if stop.is_cancelled() {
        CreateCause::Stopped
    } else if matches!(failure, ApiFailure::Refused { code: 409, .. }) {
        // A pod of that name is one reason for a conflict. A quota that changes at the same time is another one.
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

/// Whether the dry run itself was refused. Admission webhooks with side effects may not support it; the API server then
/// answers 400 (<https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run>).
fn is_about_dry_runs(failure: &ApiFailure) -> bool {
    let ApiFailure::Refused { code: 400, message } = failure else { return false };
    message.contains("does not support dry run")
}

/// Creates everything in Spark's order. First come the objects before the pod (Volcano's `PodGroup`), then the pod.
/// Then the first ones are applied again with the pod as their owner, and the rest follows. After a failure, or once
/// `stop` is cancelled, nothing of it is left, or the error says what.
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
            // Once `stop` is cancelled, retries end with the last failure. That failure is not the cause then.
            let cause = if stop.is_cancelled() { CreateCause::Stopped } else { cause };
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
    async fn run(&mut self) -> Result<Created, CreateCause> {
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

    /// Runs to the end, also after `stop`: a call that is under way is waited for. Otherwise it would not be known
    /// whether the call has created its object.
    async fn run_or_say_stopping(&mut self) -> Result<Created, CreateCause> {
        let (stop, log) = (self.stop, self.log);
        log.saying_stopping(UnderWay::Objects, stop, self.run()).await
    }

    fn go_on(&self) -> Result<(), CreateCause> {
        if self.stop.is_cancelled() { Err(CreateCause::Stopped) } else { Ok(()) }
    }

    fn patience(&self) -> Patience<'_> {
        Patience { stop: self.stop, after_timeouts: true }
    }

    async fn apply_before(&mut self, object: &Value) -> Result<(), CreateCause> {
        self.go_on()?;
        let path = ObjectPath::new(object, &self.submission.namespace)?;
        let touched = self.made.before.len();
        self.made.before.push((path.clone(), Touched::Unsure));
        let (answer, is_sure) = self.apply(&path, object).await;
        self.made.before[touched].1 = Touched::after(&answer, is_sure);
        answer.map(drop).map_err(|failure| explain::object(&self.calls, &path, failure))
    }

    async fn apply_owned(&mut self, object: &Value, owner: &Created) -> Result<(), CreateCause> {
        self.go_on()?;
        let path = ObjectPath::new(object, &self.submission.namespace)?;
        let mut with_owner = object.clone();
        with_owner["metadata"]["ownerReferences"] = json!([owner_reference(self.submission, owner)]);
        let (answer, is_sure) = self.apply(&path, &with_owner).await;
        let touched = match self.made.before(&path) {
            // `made.before` has it already, and `undo` deletes it.
            Some(Touched::New(_) | Touched::Unsure) => Touched::Not,
            _ => Touched::after(&answer, is_sure),
        };
        if touched == Touched::Existed {
            self.warn(&format!(
                "The {} in namespace {} existed already. It now belongs to the driver pod, and is deleted with it",
                path.called(),
                self.submission.namespace
            ));
        }
        self.made.after.push((path.clone(), object.clone(), touched));
        answer.map(drop).map_err(|failure| explain::object(&self.calls, &path, failure))
    }

    /// Applies an object. The second value says whether the answer is certain: no earlier attempt can have had an
    /// effect.
    async fn apply(&self, path: &ObjectPath, object: &Value) -> (Result<Answer, ApiFailure>, bool) {
        let call = || self.calls.apply(path, object);
        let (answer, was_ambiguous) = retried_with_doubt(self.patience(), call).await;
        (answer, !was_ambiguous)
    }

    /// Creates the pod. An attempt without an answer may have created it, and then the next attempt gets a 409. The
    /// label of the existing pod then says whether it is ours.
    async fn create_pod(&mut self) -> Result<Created, CreateCause> {
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

    /// Looks at the pod of our name after an unclear failure, and decides whether it is ours.
    async fn recognise(&mut self, failure: ApiFailure, was_ambiguous: bool) -> Result<Created, CreateCause> {
        // This look is not interrupted by `stop`: a pod that is not found now cannot be deleted later.
        let unhurried = CancellationToken::new();
        let patience = Patience { stop: &unhurried, after_timeouts: true };
        let name = &self.submission.pod_name;
        let found = retried(patience, || self.calls.get_pod(name)).await;
        let is_conflict = matches!(failure, ApiFailure::Refused { code: 409, .. });
        match found {
            Ok(pod) if application_of(&pod.body) == Some(&self.submission.app_id) => {
                self.warn(&format!(
                    "The creation of pod {name} had no answer, but the pod exists: going on with it"
                ));
                Ok(created(pod))
            }
            Ok(pod) => Err(exists(self.submission, Some(&pod))),
            // The conflict was about something else, such as a quota that changed at the same time.
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
            // The pod is not there, or cannot be read. A call that timed out may still create it.
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

fn exists(submission: &Submission, pod: Option<&Answer>) -> CreateCause {
    CreateCause::Exists {
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

/// The owner reference as Spark writes it, without `blockOwnerDeletion`.
fn owner_reference(submission: &Submission, owner: &Created) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "controller": true, "name": submission.pod_name, "uid": owner.uid,
    })
}

/// The line of spark-submit for an application that is not waited for. The second line, with the pod's name, is for
/// Airflow: in the first line it finds the pod only if the namespace is called `spark`.
pub(super) fn say_deployed(submission: &Submission, log: &Log) {
    let Submission { app_name, app_id, namespace, pod_name, .. } = submission;
    let app_name = in_one_line(app_name);
    let message = format!(
        "Deployed Spark application {app_name} with application ID {app_id} and submission ID \
         {namespace}:{pod_name} into Kubernetes\n\t pod name: {pod_name}"
    );
    log.say(Level::Info, LOGGER, &message);
}

/// The longest wait for the answer. It only helps, so it must not delay a submission.
const LONGEST_ACCOUNT_WAIT: Duration = Duration::from_secs(1);

/// Asks whether the driver's service account may create executors, before anything is created. With spark-submit, the driver
/// finds out in its pod.
///
/// Warns if the API server says clearly that the driver's service account may not create pods. This is no error: Spark
/// would run such a driver, and some applications need no executors. Any other answer is ignored, because many roles
/// may not ask.
async fn warn_if_powerless(calls: &Calls, submission: &Submission, log: &Log) {
    let Some(account) = &submission.driver_account else { return };
    match timeout(LONGEST_ACCOUNT_WAIT, calls.may_create_pods(account)).await {
        Ok(Ok(Some(false))) => log.say(Level::Warn, LOGGER, &warning(account, calls.namespace())),
        Ok(Err(failure)) => tracing::debug!(error = %failure, "what the driver may do is not known"),
        Ok(Ok(_)) | Err(_) => {}
    }
}

fn warning(account: &str, namespace: &str) -> String {
    format!(
        "The driver's service account {account} may not create pods in namespace {namespace}, so the driver will get no \
         executors: set {} to an account with the role spark-driver (kubectl apply -k manifests/submitter makes one, \
         called spark)",
        keys::DRIVER_SERVICE_ACCOUNT
    )
}
