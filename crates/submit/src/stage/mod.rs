//! Brings files of this machine to the staging server before the pod is made, and takes them back where that fails.

mod error;
mod named_server;
mod stager;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::advice::Named;
use super::plan::InitObjects;
use super::submission::Submission;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::Owner;
use cloakroom_core::time::SparkDuration;
use cloakroom_transfer::bundle::PackPlan;
use cloakroom_transfer::client::{RetryPolicy, ServerAddress, TrustedCertificates, UploadToken};

pub use error::StagingError;
pub use named_server::NamedServer;
pub use stager::Stager;

/// One of the two bundles of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BundleKind {
    /// What goes to the class path.
    Jars,
    /// Everything else.
    Files,
}

impl fmt::Display for BundleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Jars => "jars",
            Self::Files => "files",
        })
    }
}

/// What goes to a staging server, for whom, and the objects that tell the init-container of it.
#[derive(Clone, PartialEq)]
pub struct StagePlan {
    /// As this machine reaches it.
    pub server: ServerAddress,
    /// The driver's pod.
    pub owner: Owner,
    /// Upper bound on the bundles' life.
    pub ttl: Option<SparkDuration>,
    /// How long they may stay without being downloaded, instead of what the server says.
    pub unused_timeout: Option<SparkDuration>,
    /// How long the server is waited for.
    pub policy: RetryPolicy,
    /// How the server was given.
    pub named: Named,
    /// What the server wants to see from whoever uploads.
    pub token: Option<UploadToken>,
    /// What is trusted beside the system's certificates.
    pub trusted: TrustedCertificates,
    /// One bundle of jars.
    pub jars: Option<Arc<PackPlan>>,
    /// One bundle of everything else.
    pub files: Option<Arc<PackPlan>>,
    /// They are complete once both tickets are known.
    pub objects: InitObjects,
}

impl StagePlan {
    /// The bundles, in the order in which they are uploaded.
    pub fn bundles(&self) -> impl Iterator<Item = (BundleKind, &Arc<PackPlan>)> {
        of_each(self.jars.as_ref(), self.files.as_ref())
    }
}

/// The tickets of bundles that are on the server. Nothing owns them until the application is there.
#[derive(Debug, Clone, Default)]
pub struct StagedBundles {
    /// Of the jars.
    pub jars: Option<Ticket>,
    /// Of everything else.
    pub files: Option<Ticket>,
}

impl StagedBundles {
    /// Adds a ticket.
    pub fn add(&mut self, what: BundleKind, ticket: Ticket) {
        match what {
            BundleKind::Jars => self.jars = Some(ticket),
            BundleKind::Files => self.files = Some(ticket),
        }
    }

    /// Those that there are.
    pub fn tickets(&self) -> impl Iterator<Item = (BundleKind, &Ticket)> {
        of_each(self.jars.as_ref(), self.files.as_ref())
    }

    /// The objects with the tickets in them.
    pub(super) fn fill(&self, objects: &InitObjects) -> Vec<Value> {
        objects.make(self.jars.as_ref(), self.files.as_ref())
    }

    /// The submission with the tickets in its objects.
    pub(super) fn complete(&self, plan: &StagePlan, submission: &Submission) -> Submission {
        let mut complete = submission.clone();
        for object in self.fill(&plan.objects) {
            let is_it = |other: &&mut Value| {
                other["kind"] == object["kind"] && other["metadata"]["name"] == object["metadata"]["name"]
            };
            if let Some(place) = complete.after_pod.iter_mut().find(is_it) {
                *place = object;
            }
        }
        complete
    }

    /// When the first of them goes if nobody uses it.
    pub(super) fn expires_at(&self) -> Option<Timestamp> {
        self.tickets().map(|(_, ticket)| ticket.expires_at).min()
    }
}

fn of_each<'a, T>(jars: Option<&'a T>, files: Option<&'a T>) -> impl Iterator<Item = (BundleKind, &'a T)> {
    let each = [(BundleKind::Jars, jars), (BundleKind::Files, files)];
    each.into_iter().filter_map(|(what, one)| Some((what, one?)))
}
