//! Objects for an application of an external submitter. There is no pod that could own them.

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::error::{CreateCause, CreateError, Leftover, Undo};
use super::{explain, is_about_dry_runs};
use cloakroom_cluster::calls::{Calls, ObjectPath, Patience, retried, retried_with_doubt, said};
use cloakroom_cluster::{ApiFailure, ApiServer};

/// The status of an apply that creates its object.
const CREATED: u16 = 201;

/// Tries the objects by a server-side dry run. Creates nothing.
pub async fn try_companions(
    server: &ApiServer,
    namespace: &str,
    objects: &[Value],
    stop: &CancellationToken,
) -> Result<(), CreateError> {
    let calls = Calls::new(server, namespace);
    let patience = Patience { stop, after_timeouts: false };
    for object in objects {
        let tried = async {
            let path = ObjectPath::new(object, namespace)?;
            match retried(patience, || calls.try_apply(&path, object)).await {
                Err(failure) if !is_about_dry_runs(&failure) => Err(explain::object(&calls, &path, failure)),
                _ => Ok(()),
            }
        };
        let cause = tokio::select! {
            tried = tried => match tried {
                Ok(()) => continue,
                Err(cause) if !stop.is_cancelled() => cause,
                Err(_) => CreateCause::Stopped,
            },
            () = stop.cancelled() => CreateCause::Stopped,
        };
        return Err(CreateError { cause, undo: Undo::Nothing });
    }
    Ok(())
}

/// Tries an object of a name that the user has chosen. Returns whether it is there already. One that something else has made
/// is refused, and one that has another value of `annotation`, because an apply would change it.
pub async fn try_named(
    server: &ApiServer,
    namespace: &str,
    object: &Value,
    annotation: &str,
    stop: &CancellationToken,
) -> Result<bool, CreateError> {
    let calls = Calls::new(server, namespace);
    let patience = Patience { stop, after_timeouts: false };
    let tried = async {
        let path = ObjectPath::new(object, namespace)?;
        let explained = |failure| explain::object(&calls, &path, failure);
        let found = retried(patience, || calls.look(&path, object)).await.map_err(explained)?;
        let value = |object: &Value| object["metadata"]["annotations"][annotation].clone();
        let other = match found.other_managers().next() {
            Some(manager) => Some(format!("made by {manager}")),
            None if found.code == CREATED || value(&found.body) == value(object) => None,
            None => Some(format!("for {}", value(&found.body).as_str().unwrap_or("something else"))),
        };
        if let Some(whose) = other {
            let what = format!("{} in namespace {namespace}", path.called());
            return Err(CreateCause::Foreign { what, whose });
        }
        retried(patience, || calls.try_apply(&path, object)).await.map_err(explained)?;
        Ok(found.code != CREATED)
    };
    let tried = tokio::select! {
        tried = tried => tried,
        () = stop.cancelled() => Err(CreateCause::Stopped),
    };
    tried.map_err(|cause| CreateError { cause, undo: Undo::Nothing })
}

/// Objects that were created.
pub struct Companions {
    calls: Calls,
    /// Each object's path and unique id. The id is `None` if the creation had no answer. The name is enough then,
    /// because it was drawn at random.
    made: Vec<(ObjectPath, Option<String>)>,
}

impl Companions {
    /// Creates the objects. Their names must be drawn at random. After a failure none is left, or the error says which.
    pub async fn make(
        server: &ApiServer,
        namespace: &str,
        objects: &[Value],
        stop: &CancellationToken,
    ) -> Result<Self, CreateError> {
        let mut companions = Self { calls: Calls::new(server, namespace), made: Vec::new() };
        match companions.make_all(namespace, objects, stop).await {
            Ok(()) => Ok(companions),
            Err(cause) => {
                let undo = companions.undo().await;
                let cause = if stop.is_cancelled() { CreateCause::Stopped } else { cause };
                Err(CreateError { cause, undo })
            }
        }
    }

    async fn make_all(
        &mut self,
        namespace: &str,
        objects: &[Value],
        stop: &CancellationToken,
    ) -> Result<(), CreateCause> {
        let patience = Patience { stop, after_timeouts: true };
        for object in objects {
            if stop.is_cancelled() {
                return Err(CreateCause::Stopped);
            }
            let path = ObjectPath::new(object, namespace)?;
            let (answer, was_ambiguous) =
                retried_with_doubt(patience, || self.calls.apply(&path, object)).await;
            match answer {
                Ok(answer) => self.made.push((path, Some(answer.uid().to_owned()))),
                Err(failure) => {
                    let cause = explain::object(&self.calls, &path, failure);
                    if was_ambiguous {
                        self.made.push((path, None));
                    }
                    return Err(cause);
                }
            }
        }
        if stop.is_cancelled() { Err(CreateCause::Stopped) } else { Ok(()) }
    }

    /// Deletes all of them. A request to stop does not interrupt it.
    pub async fn undo(&self) -> Undo {
        let unhurried = CancellationToken::new();
        let patience = Patience { stop: &unhurried, after_timeouts: true };
        let (mut removed, mut left) = (Vec::new(), Vec::new());
        for (path, uid) in &self.made {
            let deleted = retried(patience, || self.delete(path, uid.as_deref())).await;
            match deleted {
                Ok(true) => removed.push(path.called()),
                Ok(false) => {}
                Err(failure) => {
                    let perhaps = if uid.is_none() { "perhaps " } else { "" };
                    left.push(Leftover {
                        is_pod: false,
                        what: format!("{perhaps}{} ({})", path.called(), said(&failure)),
                        command: format!(
                            "kubectl delete {} -n {} {}",
                            path.resource(),
                            self.calls.namespace(),
                            path.name()
                        ),
                    });
                }
            }
        }
        match (removed.is_empty(), left.is_empty()) {
            (_, false) => Undo::Left(left),
            (true, true) => Undo::Nothing,
            (false, true) => Undo::Removed(removed),
        }
    }

    /// Deletes one object, and returns whether it was there. Without an id, the name is enough: we drew it.
    async fn delete(&self, path: &ObjectPath, uid: Option<&str>) -> Result<bool, ApiFailure> {
        match self.calls.delete(path, uid).await {
            Ok(_) => Ok(true),
            Err(ApiFailure::NotFound { .. } | ApiFailure::Refused { code: 409, .. }) => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}
