//! Looks for an object that is to own objects that are applied later.

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::error::{CreateCause, CreateError, Undo};
use super::explain;
use cloakroom_cluster::calls::{Calls, ObjectPath, Patience, retried};
use cloakroom_cluster::{ApiFailure, ApiServer};

/// The API server's answer about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Existing {
    /// It exists and has this unique id.
    Uid(String),
    /// It does not exist. Perhaps the cluster does not even know its kind.
    Absent,
    /// The user may not read it. The text is the API server's message.
    NotAllowed(String),
}

/// Looks for an object of the same kind and name as `object`.
pub async fn existing(
    server: &ApiServer,
    namespace: &str,
    object: &Value,
    stop: &CancellationToken,
) -> Result<Existing, CreateError> {
    let calls = Calls::new(server, namespace);
    let asked = async {
        let path = ObjectPath::new(object, namespace)?;
        let patience = Patience { stop, after_timeouts: false };
        match retried(patience, || calls.get(&path)).await {
            Ok(answer) => Ok(Existing::Uid(answer.uid().to_owned())),
            Err(ApiFailure::NotFound { .. }) => Ok(Existing::Absent),
            Err(ApiFailure::Forbidden { message }) => Ok(Existing::NotAllowed(message)),
            Err(failure) => Err(explain::seen(&calls, &path, failure)),
        }
    };
    let found = tokio::select! {
        asked = asked => asked,
        () = stop.cancelled() => Err(CreateCause::Stopped),
    };
    found.map_err(|cause| CreateError { cause, undo: Undo::Nothing })
}
