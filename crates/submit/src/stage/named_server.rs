//! The stager of a real submission: it talks over HTTP to the staging server that the plan names.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::future::{self, join_all};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{BundleKind, NoWay, StagePlan, StagedBundles, Stager, StagingError};
use crate::events::{Event, Log, Uploading};
use crate::inputs::Inputs;
use crate::left::Left;
use crate::plan::{Answer, PlanError, Question};
use cloakroom_cluster::ApiServer;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::ResourceId;
use cloakroom_core::text::chain;
use cloakroom_core::time::format_duration;
use cloakroom_reach::{RequestedTokens, ServerPlace, ServerService, unusable};
use cloakroom_transfer::bundle::{PackPlan, Sources};
use cloakroom_transfer::client::{
    Failure, GivenUp, HttpClient, RetryNotice, RetryPolicy, ServerAddress, StageError, StageRequest,
    StagedBefore, Timeouts, Tried, UploadTokens,
};

/// The limit for a whole release. The user waits for it, after a failure or Ctrl-C.
const LONGEST_RELEASE: Duration = Duration::from_secs(10);

/// How many earlier runs the server is asked for at the same time.
const RUNS_AT_ONCE: usize = 8;

/// A stager for the server that each plan names.
#[derive(Clone, Default)]
pub struct NamedServer {
    api_server: Option<ApiServer>,
    before: Option<StagedBefore>,
}

impl NamedServer {
    /// For servers with an address, without a memory.
    pub const BY_ADDRESS: Self = Self { api_server: None, before: None };

    /// With this API server as the way to servers that are named by their Services. Without one, only servers with an
    /// address can be reached. `before` is what this user has staged before.
    pub fn new(api_server: Option<ApiServer>, before: Option<StagedBefore>) -> Self {
        Self { api_server, before }
    }

    async fn seek(
        &self,
        service: &ServerService,
        http: &HttpClient,
        question: &Question,
        log: &Log,
    ) -> Result<Answer, GivenUp> {
        let api_server = self.api_server().map_err(|failure| GivenUp { failure, tried: Tried::Once })?;
        let told = |notice: &RetryNotice| log.waits(notice);
        let reached = service.reach(api_server, http, question.policy, &told).await?;
        log.tell(&Event::Found { service: reached.service.to_string(), way: reached.way(api_server) });
        if let Some(warning) = reached.warning {
            log.tell(&Event::Warned { warning });
        }
        Ok(Answer {
            image: reached.fetch_image,
            upload_auth: reached.upload_auth,
            found: Some((reached.service, reached.internal_url)),
        })
    }

    fn api_server(&self) -> Result<&ApiServer, Failure> {
        self.api_server.as_ref().ok_or_else(|| unusable("no API server is known"))
    }

    fn connect<'a>(&self, plan: &'a StagePlan) -> Result<Connection<'a>, NoWay> {
        let http = HttpClient::trusting(&plan.trusted, Timeouts::default())?;
        let service = match &plan.server {
            ServerPlace::Address(address) => return Ok(self.connection(http, address.clone(), plan)),
            ServerPlace::Service(service) => service,
        };
        let client = self.api_server().and_then(|api_server| service.client(api_server, &http));
        let (http, address) = client
            .map_err(|failure| NoWay::Service { service: service.to_string(), failure: Box::new(failure) })?;
        Ok(self.connection(http, address, plan))
    }

    fn connection<'a>(
        &self,
        http: HttpClient,
        address: ServerAddress,
        plan: &'a StagePlan,
    ) -> Connection<'a> {
        let requested = self.api_server.as_ref().zip(plan.uploader.clone()).map(|(api_server, uploader)| {
            let (http, address) = (http.clone(), address.clone());
            let tokens = RequestedTokens::new(api_server, plan.owner.namespace(), uploader, http, address);
            Arc::new(tokens) as Arc<dyn UploadTokens>
        });
        let before = self.before.clone().filter(|_| plan.may_reuse);
        Connection { http, address, plan, tokens: requested, before }
    }
}

#[async_trait]
impl Stager for NamedServer {
    async fn ask(&self, question: &Question, log: &Log) -> Result<Answer, PlanError> {
        let http = HttpClient::trusting(&question.trusted, Timeouts::default())
            .map_err(|error| PlanError::NoClient { problem: chain(&error) })?;
        let server = match &question.server {
            ServerPlace::Address(address) => address,
            ServerPlace::Service(service) => {
                if let (None, Some(no_way)) = (&self.api_server, &question.no_way) {
                    return Err(*no_way.clone());
                }
                let found = self.seek(service, &http, question, log).await;
                return found.map_err(|given_up| PlanError::ServiceNotReached {
                    server: service.to_string(),
                    given_up: Box::new(given_up),
                    no_way: question.no_way.clone(),
                });
            }
        };
        let told = |notice: &RetryNotice| log.waits(notice);
        let asked = http.retried(server, question.policy, &told, || http.server_info(server));
        let info = asked.await.map_err(|given_up| PlanError::ServerNotAsked {
            server: server.to_string(),
            given_up: Box::new(given_up),
            named: question.named,
        })?;
        Ok(Answer { image: info.fetch_image, upload_auth: info.upload_auth, found: None })
    }

    async fn stage(
        &self,
        plan: &StagePlan,
        inputs: &dyn Inputs,
        log: &Log,
        stop: &CancellationToken,
    ) -> Result<StagedBundles, StagingError> {
        let server = self.connect(plan)?;
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
        match self.connect(plan) {
            Ok(server) => server.release(staged).await,
            Err(error) => {
                staged.tickets().map(|(what, ticket)| left(plan, what, ticket, chain(&error))).collect()
            }
        }
    }

    fn gone<'a>(&'a self, plan: &'a StagePlan, runs: Vec<Vec<(ResourceId, String)>>) -> BoxStream<'a, usize> {
        let Ok(server) = self.connect(plan) else { return stream::empty().boxed() };
        let server = Arc::new(server);
        let asked = stream::iter(runs).enumerate().map(move |(index, tickets)| {
            let server = Arc::clone(&server);
            async move { server.are_gone(&tickets).await.then_some(index) }
        });
        asked.buffer_unordered(RUNS_AT_ONCE).filter_map(future::ready).boxed()
    }
}

/// An HTTP client for the server of one plan.
struct Connection<'a> {
    http: HttpClient,
    address: ServerAddress,
    plan: &'a StagePlan,
    /// Tokens that the server may want.
    tokens: Option<Arc<dyn UploadTokens>>,
    before: Option<StagedBefore>,
}

impl Connection<'_> {
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
            let server = self.plan.server.to_string();
            let observer = log.uploading(what, &Uploading { server, ..Uploading::from(&request) });
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
            server: self.address.clone(),
            owner: self.plan.owner.clone(),
            ttl: self.plan.ttl,
            unused_timeout: self.plan.unused_timeout,
            token: self.plan.token.clone(),
            tokens: self.tokens.clone(),
            plan: Arc::clone(bundle),
            sources: Arc::clone(sources),
            before: self.before.clone(),
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
        let (http, server) = (&self.http, &self.address);
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

    async fn are_gone(&self, tickets: &[(ResourceId, String)]) -> bool {
        for (id, secret) in tickets {
            if !self.http.is_gone(&self.address, id, secret).await.unwrap_or_default() {
                return false;
            }
        }
        true
    }

    /// Releases all bundles. A request to stop does not interrupt it, and [`LONGEST_RELEASE`] limits it.
    async fn release(&self, staged: &StagedBundles) -> Vec<Left> {
        let released = staged.tickets().map(|(what, ticket)| self.release_one(what, ticket));
        join_all(released).await.into_iter().flatten().collect()
    }

    async fn release_one(&self, what: BundleKind, ticket: &Ticket) -> Option<Left> {
        let (http, server) = (&self.http, &self.address);
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
