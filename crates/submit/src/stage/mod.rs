//! Brings files of this machine to the staging server before the pod is made, and takes them back where that fails.

mod advertised;
mod error;
mod stager;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::advice::Named;
use super::events::{Event, Log, Uploading};
use super::plan::InitObjects;
use super::submission::Submission;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::Owner;
use cloakroom_core::time::{SparkDuration, format_duration};
use cloakroom_transfer::bundle::{PackPlan, Sources};
use cloakroom_transfer::client::{
    Failure, GivenUp, HttpClient, RetryNotice, RetryPolicy, ServerAddress, StageError, StageRequest,
    Timeouts, TrustedCertificates, UploadToken,
};

use advertised::advertised;
pub use error::StagingError;
pub use stager::{NamedServer, Stager};

/// For all of a release: somebody waits for the end, after a failure or Ctrl-C.
const LONGEST_RELEASE: Duration = Duration::from_secs(10);

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

/// Bundles that are on the server, and nobody's until the pod is there.
pub struct StagedBundles {
    http: HttpClient,
    server: ServerAddress,
    policy: RetryPolicy,
    named: Named,
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
    /// Uploads both bundles. After a failure, or once `stop` is cancelled, none is left, or the error says what.
    pub async fn upload(
        &self,
        sources: Arc<dyn Sources>,
        log: &Log,
        stop: &CancellationToken,
    ) -> Result<StagedBundles, StagingError> {
        let http = HttpClient::trusting(&self.trusted, Timeouts::default())?;
        let (server, policy, named) = (self.server.clone(), self.policy, self.named);
        let mut staged = StagedBundles { http, server, policy, named, jars: None, files: None };
        for (what, plan) in [("jars", &self.jars), ("files", &self.files)] {
            let Some(plan) = plan else { continue };
            match self.upload_one(&staged.http, what, (plan, &sources), log, stop).await {
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
        (plan, sources): (&Arc<PackPlan>, &Arc<dyn Sources>),
        log: &Log,
        stop: &CancellationToken,
    ) -> Result<Ticket, StagingError> {
        let request = StageRequest {
            server: self.server.clone(),
            owner: self.owner.clone(),
            ttl: self.ttl,
            unused_timeout: self.unused_timeout,
            token: self.token.clone(),
            plan: Arc::clone(plan),
            sources: Arc::clone(sources),
        };
        let observer = log.uploading(what, &Uploading::from(&request));
        let began = Instant::now();
        let staged = if stop.is_cancelled() {
            let server = self.server.clone();
            Err(StageError::Stopped { server, may_be_kept: false })
        } else {
            http.stage(stop, &request, self.policy, observer).await
        };
        log.tell(&match &staged {
            Ok(staged) => Event::Staged {
                what,
                resource_id: staged.ticket.resource_id.clone(),
                size_bytes: staged.ticket.size_bytes,
                seconds: began.elapsed().as_secs_f64(),
            },
            Err(_) => Event::NotStaged { what },
        });
        staged.map(|staged| staged.ticket).map_err(|error| upload_failed(what, error, self))
    }
}

fn upload_failed(what: &'static str, error: StageError, plan: &StagePlan) -> StagingError {
    let server = &plan.server;
    match error {
        StageError::Stopped { may_be_kept, .. } => {
            let perhaps = format!(
                "perhaps the {what}, at {server}: all was sent, and no answer came; they expire unused"
            );
            StagingError::Stopped { left: may_be_kept.then_some(perhaps).into_iter().collect() }
        }
        why => StagingError::Upload { what, why, named: plan.named, left: Vec::new() },
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
    pub async fn check(&self, log: &Log, stop: &CancellationToken) -> Result<(), StagingError> {
        tokio::select! {
            biased;
            () = stop.cancelled() => Err(StagingError::Stopped { left: Vec::new() }),
            checked = self.check_each(log) => checked,
        }
    }

    async fn check_each(&self, log: &Log) -> Result<(), StagingError> {
        let (http, server) = (&self.http, &self.server);
        for (what, ticket) in self.tickets() {
            let told = |notice: &RetryNotice| log.waits(notice);
            let asked = http.retried(server, self.policy, &told, || http.resource_metadata(server, ticket));
            asked.await.map_err(|given_up| self.not_good(what, ticket, given_up))?;
        }
        Ok(())
    }

    /// Only the server itself knows that a ticket is none any more.
    fn not_good(&self, what: &'static str, ticket: &Ticket, given_up: GivenUp) -> StagingError {
        let (id, server, left) = (ticket.resource_id.clone(), self.server.clone(), Vec::new());
        let failure = &given_up.failure;
        let is_gone = matches!(failure, Failure::Answered(answer) if matches!(answer.status, 404 | 410));
        if is_gone {
            StagingError::Lost { what, id, server, failure: given_up.failure, left }
        } else {
            StagingError::Unchecked { what, id, server, given_up, named: self.named, left }
        }
    }

    /// Releases everything, not by halves where somebody asks to stop, and not for ever where the server is gone. What is
    /// left is said, one text each.
    pub async fn release(&self) -> Vec<String> {
        let released = self.tickets().map(|(what, ticket)| self.release_one(what, ticket));
        join_all(released).await.into_iter().flatten().collect()
    }

    /// What is left, if something is.
    async fn release_one(&self, what: &str, ticket: &Ticket) -> Option<String> {
        let (http, server) = (&self.http, &self.server);
        let releasing = http.retried(server, RetryPolicy::brief(), &|_| {}, || http.release(server, ticket));
        let why = match timeout(LONGEST_RELEASE, releasing).await {
            Ok(Ok(())) => return None,
            Ok(Err(given_up)) => given_up.to_string(),
            Err(_) => format!("no answer within {}", format_duration(LONGEST_RELEASE)),
        };
        let id = &ticket.resource_id;
        Some(format!(
            "the staged {what} (resource {id} at {server}) could not be released: {why}; they expire unused"
        ))
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
}
