//! Uploads local files to the staging server before the pod is created, and releases them if a step fails.

mod error;
mod named_server;
mod stager;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::plan::InitObjects;
use super::submission::Submission;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::Owner;
use cloakroom_core::time::SparkDuration;
use cloakroom_reach::{NamedBy, ServerPlace, UploadAccount};
use cloakroom_transfer::bundle::PackPlan;
use cloakroom_transfer::client::{RetryPolicy, TrustedCertificates, UploadToken};

pub use error::{NoWay, StagingError};
pub use named_server::NamedServer;
pub use stager::Stager;

/// One of the two bundles of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BundleKind {
    /// Jars, for the class path.
    Jars,
    /// All other files.
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

/// What goes to a staging server, the owner of it, and the objects that tell the init-container what to fetch.
#[derive(Clone, PartialEq)]
pub struct StagePlan {
    /// Where the server is, from this machine.
    pub server: ServerPlace,
    /// The owner of the bundles, normally the driver's pod.
    pub owner: Owner,
    /// The longest time that the server keeps the bundles.
    pub ttl: Option<SparkDuration>,
    /// How long the server keeps bundles that are not downloaded, in place of its own limit.
    pub unused_timeout: Option<SparkDuration>,
    /// How long to wait for a server that does not answer.
    pub policy: RetryPolicy,
    /// Whether a bundle may have parts of an earlier one.
    pub may_reuse: bool,
    /// Where the user has named the server.
    pub named: NamedBy,
    /// The upload token, if one is given.
    pub token: Option<UploadToken>,
    /// The account whose tokens are requested if the server wants them; `None` beside a token.
    pub uploader: Option<UploadAccount>,
    /// Certificates to trust in addition to the system's.
    pub trusted: TrustedCertificates,
    pub jars: Option<Arc<PackPlan>>,
    /// The bundle of all other files.
    pub files: Option<Arc<PackPlan>>,
    /// The objects for the init-container. They are complete once the tickets are known.
    pub objects: InitObjects,
}

impl StagePlan {
    /// The bundles, in the order in which they are uploaded.
    pub fn bundles(&self) -> impl Iterator<Item = (BundleKind, &Arc<PackPlan>)> {
        of_each(self.jars.as_ref(), self.files.as_ref())
    }
}

/// The tickets of bundles that are on the server. Until the application is created, they have no owner.
#[derive(Debug, Clone, Default)]
pub struct StagedBundles {
    pub jars: Option<Ticket>,
    pub files: Option<Ticket>,
}

impl StagedBundles {
    /// Sets the ticket of a bundle.
    pub fn add(&mut self, what: BundleKind, ticket: Ticket) {
        match what {
            BundleKind::Jars => self.jars = Some(ticket),
            BundleKind::Files => self.files = Some(ticket),
        }
    }

    /// The tickets, each with its bundle.
    pub fn tickets(&self) -> impl Iterator<Item = (BundleKind, &Ticket)> {
        of_each(self.jars.as_ref(), self.files.as_ref())
    }

    /// The objects with the tickets in them.
    pub(super) fn fill(&self, objects: &InitObjects) -> Vec<Value> {
        objects.make(self.jars.as_ref(), self.files.as_ref())
    }

    /// The submission with the tickets in its objects. The plan has objects of the same names with placeholders.
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

    /// When the server deletes the first bundle if it is not downloaded before.
    pub(super) fn expires_at(&self) -> Option<Timestamp> {
        self.tickets().map(|(_, ticket)| ticket.expires_at).min()
    }
}

fn of_each<'a, T>(jars: Option<&'a T>, files: Option<&'a T>) -> impl Iterator<Item = (BundleKind, &'a T)> {
    let each = [(BundleKind::Jars, jars), (BundleKind::Files, files)];
    each.into_iter().filter_map(|(what, one)| Some((what, one?)))
}
