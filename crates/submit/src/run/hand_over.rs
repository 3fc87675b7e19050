//! The use case of `stage --for`: stages files for an application of an external submitter, and hands over what that
//! submitter needs.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::error::{NotTaken, RunError};
use super::take_back;
use crate::create::{Companions, Existing, Undo, existing, try_companions};
use crate::events::{Event, Log, TakenBack, UnderWay};
use crate::inputs::Inputs;
use crate::leftovers::remove_leftovers;
use crate::plan::external_submitter::ExternalSubmission;
use crate::stage::{StagedBundles, Stager};
use cloakroom_cluster::ApiServer;

/// The parts that a handover works with.
#[derive(Clone, Copy)]
pub struct HandOver<'a> {
    /// The cluster in which objects are created, or in which the application of the file is looked for. If it is
    /// `None`, no cluster is used.
    pub server: Option<&'a ApiServer>,
    /// The source of the files.
    pub inputs: &'a dyn Inputs,
    /// The target of the files.
    pub stager: &'a dyn Stager,
    /// The receiver of events.
    pub log: &'a Log,
    /// If it is cancelled, everything is taken back.
    pub stop: &'a CancellationToken,
}

/// The result of a handover.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HandedOver {
    /// Whether the application of the file is in the cluster already and owns the objects.
    pub is_owned: bool,
    /// When the server deletes the first bundle if it is not downloaded before.
    pub expires_at: Option<Timestamp>,
}

impl HandOver<'_> {
    /// Tries the objects, stages, creates the objects, and then calls `take` to hand over the rest. `take` gets the
    /// documents that the user has to apply, in this order. There are none if this program has created the objects.
    /// After a failure, also of `take`, nothing is left, or the error says what.
    pub async fn run(
        &self,
        external: &ExternalSubmission,
        take: impl FnOnce(&[Value]) -> Result<(), NotTaken> + Send,
    ) -> Result<HandedOver, RunError> {
        let uid = self.look(external).await?;
        let (Self { inputs, stager, log, stop, .. }, plan) = (*self, external.staging.as_ref());
        let staged = match plan {
            Some(plan) => {
                let staging = stager.stage(plan, inputs, log, stop);
                log.saying_stopping(UnderWay::Files, stop, staging).await?
            }
            None => StagedBundles::default(),
        };
        let objects = staged.fill(&external.objects);
        let handed_over = self.hand_over(external, objects, uid.as_deref(), take).await;
        if let (Err(_), Some(plan)) = (&handed_over, plan) {
            take_back(stager, plan, &staged, log, false).await;
        }
        handed_over?;
        self.tidy(external).await;
        Ok(HandedOver { is_owned: uid.is_some(), expires_at: staged.expires_at() })
    }

    /// The unique id of the file's application, if it is in the cluster already. Without a file, the objects are tried.
    async fn look(&self, external: &ExternalSubmission) -> Result<Option<String>, RunError> {
        let Some(server) = self.server else { return Ok(None) };
        let (namespace, stop) = (&external.namespace, self.stop);
        let Some(file) = &external.file else {
            try_companions(server, namespace, &external.objects.unticketed(), stop).await?;
            return Ok(None);
        };
        Ok(match existing(server, namespace, file.application(), stop).await? {
            Existing::Uid(uid) => Some(uid),
            Existing::Absent => None,
            Existing::NotAllowed(message) => {
                let (kind, name) = (file.kind(), file.name());
                self.log.warn(&[format!(
                    "cannot find out whether the {kind} {name} exists already, so it will not own its config map and secret: \
                     403 {message}"
                )]);
                None
            }
        })
    }

    async fn hand_over(
        &self,
        external: &ExternalSubmission,
        objects: Vec<Value>,
        uid: Option<&str>,
        take: impl FnOnce(&[Value]) -> Result<(), NotTaken> + Send,
    ) -> Result<(), RunError> {
        let (None, Some(server)) = (&external.file, self.server) else {
            return take(&to_apply(external, objects, uid)).map_err(RunError::NotTaken);
        };
        let (log, stop) = (self.log, self.stop);
        let making = Companions::make(server, &external.namespace, &objects, stop);
        let companions = log.saying_stopping(UnderWay::Objects, stop, making).await?;
        let Err(why) = take(&[]) else { return Ok(()) };
        let undo = companions.undo().await;
        if matches!(undo, Undo::Left(_)) {
            return Err(RunError::NotTakenBack { undo, why });
        }
        log.tell(&Event::TakenBack { how: TakenBack::Deleted, may_leave_pod: false });
        Err(RunError::NotTaken(why))
    }

    /// Removes objects of earlier runs whose files are certainly gone. The handover is done at this point, so a failure
    /// here is ignored.
    async fn tidy(&self, external: &ExternalSubmission) {
        let (Some(server), Some(plan)) = (self.server, &external.staging) else { return };
        let namespace = external.namespace.clone();
        let secrets = tokio::select! {
            removed = remove_leftovers(server, &namespace, self.stager, plan) => removed,
            () = self.stop.cancelled() => return,
        };
        if !secrets.is_empty() {
            self.log.tell(&Event::LeftoversRemoved { namespace, secrets });
        }
    }
}

/// The documents to apply: the objects, and the application of the file. If the application is in the cluster already,
/// it owns the objects.
fn to_apply(external: &ExternalSubmission, mut objects: Vec<Value>, uid: Option<&str>) -> Vec<Value> {
    for object in &mut objects {
        object["metadata"]["namespace"] = json!(external.namespace);
        if let (Some(file), Some(uid)) = (&external.file, uid) {
            object["metadata"]["ownerReferences"] = file.owner_reference(uid);
        }
    }
    match &external.file {
        Some(file) => file.with_objects(objects),
        None => objects,
    }
}
