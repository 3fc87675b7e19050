//! Deletes what a submission has created, and nothing else.

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::error::{Leftover, Undo};
use super::{APP_LABEL, Created};
use crate::submission::Submission;
use cloakroom_cluster::ApiFailure;
use cloakroom_cluster::calls::{
    Answer, Calls, ObjectPath, Patience, delete_options, is_ambiguous, retried, said,
};

/// Kinds whose objects have drawn names in a submission. So no object of such a name existed before.
const DRAWN: [&str; 4] = ["configmaps", "networkpolicies.networking.k8s.io", "secrets", "services"];

/// What was created so far.
#[derive(Default)]
pub(super) struct Made {
    /// Our pod, if its creation is certain.
    pub(super) pod: Option<Created>,
    /// Whether the pod may exist, or may still be created by a call without an answer.
    pub(super) is_pod_unknown: bool,
    /// Objects that were applied before the pod.
    pub(super) before: Vec<(ObjectPath, Touched)>,
    /// Objects that were applied with the pod as their owner. They are stored here without the owner.
    pub(super) after: Vec<(ObjectPath, Value, Touched)>,
}

/// The effect of an apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Touched {
    /// It created the object, which has this unique id.
    New(String),
    /// It changed an object that existed before.
    Existed,
    /// It had no effect.
    Not,
    /// The effect is not known, because an attempt had no answer.
    Unsure,
}

impl Touched {
    /// The effect by the answer's status: 201 says that the object was created. `is_sure` says that no earlier attempt
    /// can have created it.
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
    /// The effect on an object that was applied before the pod.
    pub(super) fn before(&self, path: &ObjectPath) -> Option<&Touched> {
        self.before.iter().find(|(known, _)| known == path).map(|(_, touched)| touched)
    }
}

/// Deletes everything that was created. A request to stop does not interrupt it.
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
    /// Deletes the pod by its unique id. Kubernetes then deletes everything that it owns. So objects that existed
    /// before are first released from this owner.
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
            // The pod is gone already. If there is one of its name, it is another pod.
            Err(ApiFailure::NotFound { .. } | ApiFailure::Refused { code: 409, .. }) => {
                Ok(format!("pod {name}"))
            }
            Err(failure) => Err(self.leftover(format!("pod {name}, and what it owns ({})", said(&failure)))),
        }
    }

    /// Removes our owner from an object that existed before. The same apply without the owner does that.
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

    /// Whether the name has the application's id in it. The id is random, so the object did not exist before.
    fn is_named_after_us(&self, path: &ObjectPath) -> bool {
        path.name().contains(&self.submission.app_id)
    }

    fn is_named_by_us(&self, path: &ObjectPath) -> bool {
        DRAWN.contains(&path.resource().as_str()) || self.is_named_after_us(path)
    }

    /// The pod as something left. The command selects by label, so that it never deletes the pod of another
    /// application.
    fn leftover(&self, what: String) -> Leftover {
        let Submission { namespace, app_id, .. } = self.submission;
        let command = format!("kubectl delete pod -n {namespace} -l {APP_LABEL}={app_id}");
        Leftover { what, command, is_pod: true }
    }
}

/// Whether `object` was created before `pod`. Kubernetes writes these times in one format, so they can be compared as
/// texts.
fn is_older(object: &Value, pod: &Value) -> bool {
    let made = |object: &Value| object["metadata"]["creationTimestamp"].as_str().map(str::to_owned);
    made(object) < made(pod)
}

fn is_owned(object: &Value, owner: &str) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.into_iter().flatten().any(|reference| reference["uid"] == owner)
}
