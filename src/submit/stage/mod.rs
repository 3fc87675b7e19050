//! Brings files of this machine to the staging server before the pod is made, and takes them back where that fails.

mod error;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::plan::InitObjects;
use super::submission::Submission;
use crate::bundle::PackPlan;
use crate::client::{
    Backoff, Failure, HttpClient, RetryPolicy, ServerAddress, StageObserver, StageRequest, Timeouts,
    UploadToken,
};
use crate::protocol::v1::Ticket;
use crate::resource::Owner;
use crate::spark::SparkDuration;

pub use error::StagingError;

/// How often an upload is tried unless somebody says so, and a release.
pub const ATTEMPTS: u32 = 5;

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
    /// How often an upload is tried.
    pub attempts: u32,
    /// What the server wants to see from whoever uploads.
    pub token: Option<UploadToken>,
    /// What is trusted beside the system's certificates.
    pub ca_files: Vec<PathBuf>,
    /// One bundle of jars.
    pub jars: Option<Arc<PackPlan>>,
    /// One bundle of everything else.
    pub files: Option<Arc<PackPlan>>,
    /// They are complete once both tickets are known.
    pub objects: InitObjects,
}

/// Hears of the uploads.
pub trait Uploads: Send + Sync {
    /// One begins: `jars` or `files`. What is returned hears how it gets on.
    fn begins(&self, what: &'static str, request: &StageRequest) -> Arc<dyn StageObserver>;
    /// The one that began last has ended; with a ticket if it is on the server.
    fn ends(&self, what: &'static str, ticket: Option<&Ticket>);
}

/// Bundles that are on the server, and nobody's until the pod is there.
pub struct StagedBundles {
    http: HttpClient,
    server: ServerAddress,
    jars: Option<Ticket>,
    files: Option<Ticket>,
}

/// Without the tickets' secrets.
impl fmt::Debug for StagedBundles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StagedBundles").field("server", &self.server).finish_non_exhaustive()
    }
}

impl StagePlan {
    /// Uploads both bundles. After a failure, or once `stop` is cancelled, none is left.
    pub async fn upload(
        &self,
        uploads: &dyn Uploads,
        stop: &CancellationToken,
    ) -> Result<StagedBundles, StagingError> {
        let http = HttpClient::new(&self.ca_files, Timeouts::default())?;
        let mut staged = StagedBundles { http, server: self.server.clone(), jars: None, files: None };
        for (what, plan) in [("jars", &self.jars), ("files", &self.files)] {
            let Some(plan) = plan else { continue };
            match self.upload_one(&staged.http, what, plan, uploads, stop).await {
                Ok(ticket) if what == "jars" => staged.jars = Some(ticket),
                Ok(ticket) => staged.files = Some(ticket),
                Err(error) => {
                    let left = staged.release().await;
                    return Err(error.with_left(left));
                }
            }
        }
        Ok(staged)
    }

    async fn upload_one(
        &self,
        http: &HttpClient,
        what: &'static str,
        plan: &Arc<PackPlan>,
        uploads: &dyn Uploads,
        stop: &CancellationToken,
    ) -> Result<Ticket, StagingError> {
        let request = StageRequest {
            server: self.server.clone(),
            owner: self.owner.clone(),
            ttl: self.ttl,
            unused_timeout: self.unused_timeout,
            token: self.token.clone(),
            plan: Arc::clone(plan),
        };
        let policy = RetryPolicy { attempts: self.attempts, backoff: Backoff::default() };
        let observer = uploads.begins(what, &request);
        let staged = tokio::select! {
            biased;
            () = stop.cancelled() => Err(StagingError::Stopped { left: Vec::new() }),
            staged = http.stage(&request, policy, observer) => {
                staged.map_err(|why| StagingError::Upload { what, why, left: Vec::new() })
            }
        };
        uploads.ends(what, staged.as_ref().ok().map(|staged| &staged.ticket));
        staged.map(|staged| staged.ticket)
    }
}

impl StagedBundles {
    /// The objects with the tickets in them.
    #[must_use]
    pub fn objects(&self, plan: &StagePlan) -> Vec<Value> {
        plan.objects.make(self.jars.as_ref(), self.files.as_ref())
    }

    /// The submission with the tickets in its objects.
    #[must_use]
    pub fn complete(&self, plan: &StagePlan, submission: &Submission) -> Submission {
        let mut complete = submission.clone();
        for object in self.objects(plan) {
            let is_it = |other: &&mut Value| {
                other["kind"] == object["kind"] && other["metadata"]["name"] == object["metadata"]["name"]
            };
            if let Some(place) = complete.after_pod.iter_mut().find(is_it) {
                *place = object;
            }
        }
        complete
    }

    /// Asks the server whether the tickets are still good, just before the pod is made: whatever is wrong now would only
    /// show in the init-container.
    pub async fn check(&self) -> Result<(), StagingError> {
        for (what, ticket) in self.tickets() {
            let asked = self.trying(async || self.http.resource_metadata(&self.server, ticket).await).await;
            asked.map_err(|failure| StagingError::Lost {
                what,
                id: ticket.resource_id.clone(),
                server: self.server.clone(),
                failure,
            })?;
        }
        Ok(())
    }

    /// Releases everything, not by halves where somebody asks to stop. What is left is said, one text each.
    pub async fn release(&self) -> Vec<String> {
        let mut left = Vec::new();
        for (what, ticket) in self.tickets() {
            let released = self.trying(async || self.http.release(&self.server, ticket).await).await;
            if let Err(failure) = released {
                let id = &ticket.resource_id;
                left.push(format!(
                    "the staged {what} (resource {id} at {}) could not be released: {failure}; they expire unused",
                    self.server
                ));
            }
        }
        left
    }

    /// When the first of them goes if nobody uses it.
    #[must_use]
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.tickets().map(|(_, ticket)| ticket.expires_at).min()
    }

    fn tickets(&self) -> impl Iterator<Item = (&'static str, &Ticket)> {
        let jars = self.jars.iter().map(|ticket| ("jars", ticket));
        jars.chain(self.files.iter().map(|ticket| ("files", ticket)))
    }

    /// A server that is being replaced is back soon.
    async fn trying<T>(&self, request: impl AsyncFn() -> Result<T, Failure>) -> Result<T, Failure> {
        let backoff = Backoff::default();
        let mut failures = 0;
        loop {
            match request().await {
                Err(failure) if failure.is_transient() && failures + 1 < ATTEMPTS => failures += 1,
                outcome => return outcome,
            }
            tokio::time::sleep(backoff.delay(failures, rand::random())).await;
        }
    }
}
