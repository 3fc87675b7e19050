//! Files are staged for an application that something else submits, and what that has to be given is handed over.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::error::{NotTaken, RunError};
use super::take_back;
use crate::create::{Companions, Existing, Undo, existing, try_companions};
use crate::events::{Event, Log};
use crate::inputs::Inputs;
use crate::leftovers::remove_leftovers;
use crate::plan::external_submitter::ExternalSubmission;
use crate::stage::{StagedBundles, Stager};
use cloakroom_cluster::ApiServer;

/// What files are handed over with.
#[derive(Clone, Copy)]
pub struct HandOver<'a> {
    /// Where the objects are made, or the application of the file is looked for. Without it nothing is asked or made in a
    /// cluster.
    pub server: Option<&'a ApiServer>,
    /// Where the files come from.
    pub inputs: &'a dyn Inputs,
    /// Where they go.
    pub stager: &'a dyn Stager,
    /// Hears what happens.
    pub log: &'a Log,
    /// Once it is cancelled, everything is taken back.
    pub stop: &'a CancellationToken,
}

/// What was handed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HandedOver {
    /// Whether the application of the file is in the cluster already, and owns the objects.
    pub is_owned: bool,
    /// When the first bundle goes if nothing downloads it.
    pub expires_at: Option<Timestamp>,
}

impl HandOver<'_> {
    /// Tries the objects, stages, makes the objects, and then lets `take` hand over the rest. It gets the documents that are
    /// still to be applied, in this order: none where the objects are made. After a failure, also of `take`, nothing is left,
    /// or the error says what.
    pub async fn run(
        &self,
        external: &ExternalSubmission,
        take: impl FnOnce(&[Value]) -> Result<(), NotTaken> + Send,
    ) -> Result<HandedOver, RunError> {
        let uid = self.look(external).await?;
        let (Self { inputs, stager, log, stop, .. }, plan) = (*self, external.staging.as_ref());
        let staged = match plan {
            Some(plan) => stager.stage(plan, inputs, log, stop).await?,
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

    /// The unique id of the file's application, if that is in the cluster. Objects without a file are tried.
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
                    "whether the {kind} {name} is there already cannot be told, so that it will not own its config map and \
                     secret: 403 {message}"
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
        let companions = Companions::make(server, &external.namespace, &objects, self.stop).await?;
        let Err(why) = take(&[]) else { return Ok(()) };
        Err(match companions.undo().await {
            undo @ Undo::Left(_) => RunError::NotTakenBack { undo, why },
            Undo::Nothing | Undo::Removed(_) => RunError::NotTaken(why),
        })
    }

    /// Removes what earlier runs left, as far as that is certain. What was asked for is done: this can fail nothing.
    async fn tidy(&self, external: &ExternalSubmission) {
        let (Some(server), Some(plan)) = (self.server, &external.staging) else { return };
        let namespace = external.namespace.clone();
        let secrets = tokio::select! {
            removed = remove_leftovers(server, &namespace, plan) => removed,
            () = self.stop.cancelled() => return,
        };
        if !secrets.is_empty() {
            self.log.tell(&Event::LeftoversRemoved { namespace, secrets });
        }
    }
}

/// The objects, and with them the application of the file. Where that is in the cluster already, it owns them.
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
