//! The stager of a real submission: it talks over HTTP to the staging server that the plan names.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::future::join_all;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{BundleKind, StagePlan, StagedBundles, Stager, StagingError};
use crate::events::{Event, Log, Uploading};
use crate::inputs::Inputs;
use crate::left::Left;
use crate::plan::{PlanError, Question};
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::text::chain;
use cloakroom_core::time::format_duration;
use cloakroom_transfer::bundle::{PackPlan, Sources};
use cloakroom_transfer::client::{
    Failure, GivenUp, HttpClient, RetryNotice, RetryPolicy, SetupError, StageError, StageRequest, Timeouts,
};

/// The limit for a whole release. The user waits for it, after a failure or Ctrl-C.
const LONGEST_RELEASE: Duration = Duration::from_secs(10);

/// A stager for the server that each plan names.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamedServer;

#[async_trait]
impl Stager for NamedServer {
    async fn image(&self, question: &Question, log: &Log) -> Result<Option<String>, PlanError> {
        let http = HttpClient::trusting(&question.trusted, Timeouts::default())
            .map_err(|error| PlanError::NoClient { problem: chain(&error) })?;
        let server = &question.server;
        let told = |notice: &RetryNotice| log.waits(notice);
        let asked = http.retried(server, question.policy, &told, || http.server_info(server));
        let info = asked.await.map_err(|given_up| PlanError::ServerNotAsked {
            server: server.to_string(),
            given_up: Box::new(given_up),
            named: question.named,
        })?;
        Ok(info.fetch_image)
    }

    async fn stage(
        &self,
        plan: &StagePlan,
        inputs: &dyn Inputs,
        log: &Log,
        stop: &CancellationToken,
    ) -> Result<StagedBundles, StagingError> {
        let server = Connection::to(plan)?;
        let (mut staged, mut left) = (StagedBundles::default(), Vec::new());
        let done = match server.upload(inputs.sources(), &mut staged, &mut left, log, stop).await {
            Ok(()) => server.check(&staged, log, stop).await,
            failed => failed,
        };
        if let Err(error) = done {
            left.extend(server.release(&staged).await);
            return Err(error.with_left(left));
        }
        for left in left {
            log.tell(&Event::Left(left));
        }
        Ok(staged)
    }

    async fn release(&self, plan: &StagePlan, staged: &StagedBundles) -> Vec<Left> {
        match Connection::to(plan) {
            Ok(server) => server.release(staged).await,
            Err(error) => {
                staged.tickets().map(|(what, ticket)| left(plan, what, ticket, chain(&error))).collect()
            }
        }
    }
}

/// An HTTP client for the server of one plan.
struct Connection<'a> {
    http: HttpClient,
    plan: &'a StagePlan,
}

impl<'a> Connection<'a> {
    fn to(plan: &'a StagePlan) -> Result<Self, SetupError> {
        Ok(Self { http: HttpClient::trusting(&plan.trusted, Timeouts::default())?, plan })
    }

    /// Uploads the bundles one after the other. Adds their tickets to `staged`, and to `left` what may be there without
    /// one.
    async fn upload(
        &self,
        sources: Arc<dyn Sources>,
        staged: &mut StagedBundles,
        left: &mut Vec<Left>,
        log: &Log,
        stop: &CancellationToken,
    ) -> Result<(), StagingError> {
        for (what, bundle) in self.plan.bundles() {
            if stop.is_cancelled() {
                return Err(StagingError::Stopped { left: Vec::new() });
            }
            let request = self.request(bundle, &sources);
            request.check_token().map_err(|error| self.upload_failed(what, error.into()))?;
            let observer = log.uploading(what, &Uploading::from(&request));
            let began = Instant::now();
            match self.http.stage(stop, &request, self.plan.policy, observer).await {
                Ok(uploaded) => {
                    if uploaded.may_be_twice {
                        left.push(Left::Twice { what, server: self.plan.server.to_string() });
                    }
                    log.tell(&Event::Staged {
                        what,
                        resource_id: uploaded.ticket.resource_id.clone(),
                        size_bytes: uploaded.ticket.size_bytes,
                        seconds: began.elapsed().as_secs_f64(),
                    });
                    staged.add(what, uploaded.ticket);
                }
                Err(error) => {
                    log.tell(&Event::NotStaged { what });
                    return Err(self.upload_failed(what, error));
                }
            }
        }
        Ok(())
    }

    fn request(&self, bundle: &Arc<PackPlan>, sources: &Arc<dyn Sources>) -> StageRequest {
        StageRequest {
            server: self.plan.server.clone(),
            owner: self.plan.owner.clone(),
            ttl: self.plan.ttl,
            unused_timeout: self.plan.unused_timeout,
            token: self.plan.token.clone(),
            plan: Arc::clone(bundle),
            sources: Arc::clone(sources),
        }
    }

    fn upload_failed(&self, what: BundleKind, error: StageError) -> StagingError {
        match error {
            StageError::Stopped { may_be_kept, .. } => {
                let unanswered = Left::Unanswered { what, server: self.plan.server.to_string() };
                StagingError::Stopped { left: may_be_kept.then_some(unanswered).into_iter().collect() }
            }
            why => StagingError::Upload { what, why, named: self.plan.named, left: Vec::new() },
        }
    }

    /// Asks the server whether it still has the bundles, just before the pod is created. Otherwise a loss would appear
    /// only in the init-container.
    async fn check(
        &self,
        staged: &StagedBundles,
        log: &Log,
        stop: &CancellationToken,
    ) -> Result<(), StagingError> {
        tokio::select! {
            biased;
            () = stop.cancelled() => Err(StagingError::Stopped { left: Vec::new() }),
            checked = self.check_each(staged, log) => checked,
        }
    }

    async fn check_each(&self, staged: &StagedBundles, log: &Log) -> Result<(), StagingError> {
        let (http, server) = (&self.http, &self.plan.server);
        let told = |notice: &RetryNotice| log.waits(notice);
        for (what, ticket) in staged.tickets() {
            let asked =
                http.retried(server, self.plan.policy, &told, || http.resource_metadata(server, ticket));
            asked.await.map_err(|given_up| self.not_good(what, ticket, given_up))?;
        }
        Ok(())
    }

    /// The error of a failed check. Only 404 and 410 say that the bundle is gone. A proxy's error does not.
    fn not_good(&self, what: BundleKind, ticket: &Ticket, given_up: GivenUp) -> StagingError {
        let (id, server, left) = (ticket.resource_id.clone(), self.plan.server.clone(), Vec::new());
        let failure = &given_up.failure;
        let is_gone = matches!(failure, Failure::Answered(answer) if matches!(answer.status, 404 | 410));
        if is_gone {
            StagingError::Lost { what, id, server, failure: given_up.failure, left }
        } else {
            StagingError::Unchecked { what, id, server, given_up, named: self.plan.named, left }
        }
    }

    /// Releases all bundles. A request to stop does not interrupt it, and [`LONGEST_RELEASE`] limits it.
    async fn release(&self, staged: &StagedBundles) -> Vec<Left> {
        let released = staged.tickets().map(|(what, ticket)| self.release_one(what, ticket));
        join_all(released).await.into_iter().flatten().collect()
    }

    async fn release_one(&self, what: BundleKind, ticket: &Ticket) -> Option<Left> {
        let (http, server) = (&self.http, &self.plan.server);
        let releasing = http.retried(server, RetryPolicy::brief(), &|_| {}, || http.release(server, ticket));
        let why = match timeout(LONGEST_RELEASE, releasing).await {
            Ok(Ok(())) => return None,
            Ok(Err(given_up)) => given_up.to_string(),
            Err(_) => format!("no answer within {}", format_duration(LONGEST_RELEASE)),
        };
        Some(left(self.plan, what, ticket, why))
    }
}

fn left(plan: &StagePlan, what: BundleKind, ticket: &Ticket, why: String) -> Left {
    let (resource_id, server) = (ticket.resource_id.clone(), plan.server.to_string());
    Left::Staged { what, resource_id, server, why }
}
