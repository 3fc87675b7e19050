//! Takes back what was made, and nothing else.

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::error::{Leftover, Undo};
use super::{APP_LABEL, Created};
use crate::calls::{Answer, Calls, ObjectPath, Patience, delete_options, is_ambiguous, retried, said};
use crate::submission::Submission;
use cloakroom_cluster::ApiFailure;

/// Kinds of which a submission draws the names, so that none of them can have existed before.
const DRAWN: [&str; 4] = ["configmaps", "networkpolicies.networking.k8s.io", "secrets", "services"];

/// What was made, as far as it is known.
#[derive(Default)]
pub(super) struct Made {
    /// The pod that is ours.
    pub(super) pod: Option<Created>,
    /// Whether the pod may be there, or may still come, although nobody has seen it.
    pub(super) is_pod_unknown: bool,
    /// Applied before the pod was made.
    pub(super) before: Vec<(ObjectPath, Touched)>,
    /// Applied with the pod as their owner; the objects are without it.
    pub(super) after: Vec<(ObjectPath, Value, Touched)>,
}

/// What an apply did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Touched {
    /// It made the object, with this unique id.
    New(String),
    /// The object had been there before.
    Existed,
    /// It did nothing.
    Not,
    /// Nobody knows.
    Unsure,
}

impl Touched {
    /// By the answer: 201 where the object was made. `is_sure` says that no earlier attempt can have made it.
    pub(super) fn after(answer: &Result<Answer, ApiFailure>, is_sure: bool) -> Self {
        match answer {
            Ok(answer) if answer.code == 201 => Self::New(answer.uid().to_owned()),
            Ok(_) if is_sure => Self::Existed,
            Err(failure) if is_sure && !is_ambiguous(failure) => Self::Not,
            _ => Self::Unsure,
        }
    }
}

impl Made {
    /// What became of an object that was applied before the pod.
    pub(super) fn before(&self, path: &ObjectPath) -> Option<&Touched> {
        self.before.iter().find(|(known, _)| known == path).map(|(_, touched)| touched)
    }
}

/// Undoes it all: not by halves where somebody asks to stop.
pub(super) async fn undo(calls: &Calls, submission: &Submission, made: &Made) -> Undo {
    let unhurried = CancellationToken::new();
    let undoing =
        Undoing { calls, submission, patience: Patience { stop: &unhurried, after_timeouts: true } };
    let (mut removed, mut left) = (Vec::new(), Vec::new());
    if let Some(pod) = &made.pod {
        let outcome = undoing.pod(pod, &made.after).await;
        outcome.map_or_else(|leftover| left.push(leftover), |name| removed.push(name));
    } else if made.is_pod_unknown {
        left.push(undoing.leftover("perhaps the pod, whose creation had no answer".to_owned()));
    }
    for (path, touched) in &made.before {
        match undoing.object(path, touched).await {
            Ok(name) => removed.extend(name),
            Err(leftover) => left.push(leftover),
        }
    }
    match (removed.is_empty(), left.is_empty()) {
        (_, false) => Undo::Left(left),
        (true, true) => Undo::Nothing,
        (false, true) => Undo::Removed(removed),
    }
}

struct Undoing<'a> {
    calls: &'a Calls,
    submission: &'a Submission,
    patience: Patience<'a>,
}

impl Undoing<'_> {
    /// Deletes the pod by the unique id that our own create returned; the garbage collector takes what it owns. What
    /// was there before must not be among that.
    async fn pod(&self, pod: &Created, owned: &[(ObjectPath, Value, Touched)]) -> Result<String, Leftover> {
        let name = &self.submission.pod_name;
        for (path, object, touched) in owned {
            self.release(path, object, touched, pod).await.map_err(|failure| {
                let existed = if *touched == Touched::Existed { "existed" } else { "may have existed" };
                self.leftover(format!(
                    "pod {name}, because {}, which {existed} before, would go with it ({}): first remove its \
                     ownerReferences",
                    path.called(),
                    said(&failure)
                ))
            })?;
        }
        let options = delete_options(Some(&pod.uid), None);
        match retried(self.patience, || self.calls.delete_pod(name, &options)).await {
            Ok(_) => Ok(format!("pod {name}")),
            // Somebody else has deleted it; of the same name there is none, or another one.
            Err(ApiFailure::NotFound { .. } | ApiFailure::Refused { code: 409, .. }) => {
                Ok(format!("pod {name}"))
            }
            Err(failure) => Err(self.leftover(format!("pod {name}, and what it owns ({})", said(&failure)))),
        }
    }

    /// Makes an object that existed before nobody's again: without our owner, by the same apply.
    async fn release(
        &self,
        path: &ObjectPath,
        object: &Value,
        touched: &Touched,
        pod: &Created,
    ) -> Result<(), ApiFailure> {
        let existed = match touched {
            Touched::New(_) | Touched::Not => return Ok(()),
            Touched::Existed => true,
            Touched::Unsure if self.is_named_by_us(path) => return Ok(()),
            Touched::Unsure => match retried(self.patience, || self.calls.get(path)).await {
                Ok(found) => is_owned(&found.body, &pod.uid) && is_older(&found.body, &pod.pod),
                Err(ApiFailure::NotFound { .. }) => false,
                Err(failure) => return Err(failure),
            },
        };
        if existed {
            retried(self.patience, || self.calls.apply(path, object)).await?;
        }
        Ok(())
    }

    /// Deletes an object that was applied before the pod, if it did not exist before.
    async fn object(&self, path: &ObjectPath, touched: &Touched) -> Result<Option<String>, Leftover> {
        let name = path.called();
        let failed = |failure: ApiFailure| Leftover {
            what: format!("{name} ({})", said(&failure)),
            command: format!(
                "kubectl delete {} -n {} {}",
                path.resource(),
                self.submission.namespace,
                path.name()
            ),
            is_pod: false,
        };
        let uid = match touched {
            Touched::Existed | Touched::Not => return Ok(None),
            Touched::New(uid) => uid.clone(),
            Touched::Unsure => match retried(self.patience, || self.calls.get(path)).await {
                Ok(answer) if self.is_named_after_us(path) => answer.uid().to_owned(),
                Ok(_) | Err(ApiFailure::NotFound { .. }) => return Ok(None),
                Err(failure) => return Err(failed(failure)),
            },
        };
        match retried(self.patience, || self.calls.delete(path, Some(&uid))).await {
            Ok(_) | Err(ApiFailure::NotFound { .. } | ApiFailure::Refused { code: 409, .. }) => {
                Ok(Some(name))
            }
            Err(failure) => Err(failed(failure)),
        }
    }

    /// An application's id is random: what has it in its name cannot have existed before.
    fn is_named_after_us(&self, path: &ObjectPath) -> bool {
        path.name().contains(&self.submission.app_id)
    }

    fn is_named_by_us(&self, path: &ObjectPath) -> bool {
        DRAWN.contains(&path.resource().as_str()) || self.is_named_after_us(path)
    }

    /// By the label: whoever types it deletes no pod of somebody else.
    fn leftover(&self, what: String) -> Leftover {
        let Submission { namespace, app_id, .. } = self.submission;
        let command = format!("kubectl delete pod -n {namespace} -l {APP_LABEL}={app_id}");
        Leftover { what, command, is_pod: true }
    }
}

/// Kubernetes writes all of these times alike, so that text is in the order of time.
fn is_older(object: &Value, pod: &Value) -> bool {
    let made = |object: &Value| object["metadata"]["creationTimestamp"].as_str().map(str::to_owned);
    made(object) < made(pod)
}

fn is_owned(object: &Value, owner: &str) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.into_iter().flatten().any(|reference| reference["uid"] == owner)
}
