//! The requests of an admin to the running server.

use std::time::Duration;

use reqwest::header::ACCEPT;
use reqwest::{Method, Response, Url};
use serde::de::DeserializeOwned;

use super::address::ServerAddress;
use super::answer::has_content_type;
use super::failure::Failure;
use super::http::HttpClient;
use super::secret_file::AdminToken;
use cloakroom_core::protocol::admin::{
    self, AcceptedCluster, Removal, ResourceDetails, ResourcePage, ResumedDeletions, ServerStatus,
    SweepReport, query,
};
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::resource::{OwnerKind, ResourceId};
use cloakroom_core::time::SparkDuration;

/// The longest accepted answer. A full page has about a third of a mebibyte, so a much larger answer is not a page.
const LONGEST_BODY: usize = 16 << 20;

/// The time limit for a sweep, which may delete much or wait for an API server.
const SWEEP: Duration = Duration::from_mins(10);

/// The resources that a request selects. Without any condition it selects all of them.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Only owners in this namespace.
    pub namespace: Option<String>,
    pub kind: Option<OwnerKind>,
    /// Only owners with all of these labels.
    pub labels: Vec<(String, String)>,
    /// Only owners with this name.
    pub name: Option<String>,
    /// Only resources that are kept for one of these reasons.
    pub why: Vec<String>,
    /// Only resources that were never downloaded.
    pub unused: bool,
    /// Only resources that were staged at least this long ago.
    pub older_than: Option<SparkDuration>,
    /// Only resources whose id begins like this.
    pub id: Option<String>,
    /// Tombstones of deleted resources, instead of staged resources.
    pub deleted: bool,
}

/// The client for one server's operational listener.
#[derive(Debug)]
pub struct AdminClient {
    http: HttpClient,
    server: ServerAddress,
    token: AdminToken,
}

/// The reason why an admin's request failed.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// Other machines on the way could read the admin token.
    #[error(
        "the admin token would travel unencrypted to {server}, so nothing was sent: use an address of this machine, as \
         with “kubectl exec” or “kubectl port-forward”, or https"
    )]
    TokenInClear { server: String },
    /// The exchange with the server failed.
    #[error("could not {what} at {server}: {failure}{then}", then = then(.failure))]
    Failed {
        /// What the request would do; it follows “could not”.
        what: String,
        server: String,
        failure: Box<Failure>,
    },
}

impl AdminError {
    /// Whether the server says that it has no such resource.
    pub fn is_unknown_resource(&self) -> bool {
        self.has_code(Code::NotFound)
    }

    /// Whether the server has the resource, but cannot read it, or cannot read when and why it was deleted.
    pub fn is_unreadable_resource(&self) -> bool {
        self.has_code(Code::Internal) || self.has_code(Code::Gone)
    }

    fn has_code(&self, code: Code) -> bool {
        let Self::Failed { failure, .. } = self else { return false };
        matches!(&**failure, Failure::Answered(answer) if answer.has_code(code))
    }
}

fn then(failure: &Failure) -> String {
    const LISTENER: &str = "check that it runs, and that this is its --ops-listen address (--admin-url)";
    // This program checks requests before it sends them. A server of the same version therefore does not refuse them.
    const OLDER: &str =
        "the server is older than this program: write whole ids, and leave out what it does not know";
    let advice = match failure {
        Failure::Refused | Failure::ConnectTimeout { .. } | Failure::Foreign { .. } => Some(LISTENER),
        Failure::Answered(answer) if answer.has_code(Code::NoSuchPath) => Some(LISTENER),
        Failure::Answered(answer) if answer.has_code(Code::InvalidParameter) => Some(OLDER),
        other => other.advice(),
    };
    advice.map(|advice| format!("; {advice}")).unwrap_or_default()
}

impl AdminClient {
    /// Makes a client. Refuses an address to which `token` would travel in clear.
    pub fn new(http: HttpClient, server: ServerAddress, token: AdminToken) -> Result<Self, AdminError> {
        if server.is_confidential() {
            Ok(Self { http, server, token })
        } else {
            Err(AdminError::TokenInClear { server: server.to_string() })
        }
    }

    /// Asks for the server's status.
    pub async fn status(&self) -> Result<ServerStatus, AdminError> {
        let url = self.server.join(admin::STATUS);
        self.ask("ask how the server is", Method::GET, url, self.patience()).await
    }

    /// Lists the resources that `selection` selects, in the order of their ids, with the server's time.
    pub async fn list(&self, selection: &Selection) -> Result<ResourcePage, AdminError> {
        let mut whole = self.page(selection, None).await?;
        while let Some(after) = whole.next.take() {
            let page = self.page(selection, Some(&after)).await?;
            whole.resources.extend(page.resources);
            // Ids come in order. This check ends the loop if a server's pages do not advance.
            whole.next = page.next.filter(|next| *next > after);
        }
        Ok(whole)
    }

    async fn page(&self, selection: &Selection, after: Option<&str>) -> Result<ResourcePage, AdminError> {
        let url = self.list_url(selection, after);
        self.ask("list what is staged", Method::GET, url, self.patience()).await
    }

    /// Asks for everything about one resource or its tombstone. It is an error if the server cannot read it.
    pub async fn show(&self, id: ResourceId) -> Result<ResourceDetails, AdminError> {
        let url = self.server.join(&admin::resource_path(id));
        self.ask(&format!("show resource {id}"), Method::GET, url, self.patience()).await
    }

    /// Deletes a resource. With `only_unused`, deletes it only if it was never downloaded.
    pub async fn remove(&self, id: ResourceId, only_unused: bool) -> Result<Removal, AdminError> {
        let mut url = self.server.join(&admin::resource_path(id));
        if only_unused {
            url.query_pairs_mut().append_pair(query::UNUSED, "true");
        }
        self.ask(&format!("remove resource {id}"), Method::DELETE, url, self.patience()).await
    }

    /// Accepts the cluster that answers the server now as the one to ask about owners. `uid` is its uid, or
    /// `without-uid` if the uid cannot be read.
    pub async fn accept_cluster(&self, uid: &str) -> Result<AcceptedCluster, AdminError> {
        let url = self.server.join(&admin::cluster_path(uid));
        self.ask("accept the cluster", Method::PUT, url, self.patience()).await
    }

    /// Lets sweeps delete again, although the ledger is an earlier copy.
    pub async fn resume_deletions(&self) -> Result<ResumedDeletions, AdminError> {
        let url = self.server.join(admin::RESUME_DELETIONS);
        self.ask("resume deletions", Method::POST, url, self.patience()).await
    }

    /// Starts a sweep, and waits for its end. With `strays`, it also removes the strays that the status counts. What is
    /// held back in the namespace `release_held`, or in `all`, may go.
    pub async fn sweep(&self, strays: bool, release_held: Option<&str>) -> Result<SweepReport, AdminError> {
        let mut url = self.server.join(admin::SWEEPS);
        if let Some(namespace) = release_held {
            url.query_pairs_mut().append_pair(query::RELEASE_HELD, namespace);
        }
        if strays {
            url.query_pairs_mut().append_pair(query::STRAYS, "true");
        }
        self.ask("sweep", Method::POST, url, SWEEP).await
    }

    fn patience(&self) -> Duration {
        self.http.timeouts().connect + self.http.timeouts().stall
    }

    fn list_url(&self, selection: &Selection, after: Option<&str>) -> Url {
        let mut url = self.server.join(admin::RESOURCES);
        let labels = selection.labels.iter().map(|(key, value)| format!("{key}={value}"));
        let older_than = selection.older_than.map(|age| age.to_string());
        let single = [
            (query::AFTER, after),
            (query::NAMESPACE, selection.namespace.as_deref()),
            (query::KIND, selection.kind.as_ref().map(OwnerKind::as_str)),
            (query::NAME, selection.name.as_deref()),
            (query::UNUSED, selection.unused.then_some("true")),
            (query::OLDER_THAN, older_than.as_deref()),
            (query::ID, selection.id.as_deref()),
            (query::DELETED, selection.deleted.then_some("true")),
        ];
        url.query_pairs_mut()
            .append_pair(query::LIMIT, &admin::MAX_PAGE.to_string())
            .extend_pairs(single.into_iter().filter_map(|(name, value)| value.map(|value| (name, value))))
            .extend_pairs(labels.map(|label| (query::LABEL, label)))
            .extend_pairs(selection.why.iter().map(|why| (query::WHY, why)));
        url
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        what: &str,
        method: Method,
        url: Url,
        patience: Duration,
    ) -> Result<T, AdminError> {
        let request = self.http.to_server().request(method, url).header(ACCEPT, "application/json");
        let sending = self.http.send(request.bearer_auth(self.token.expose()));
        let answered = tokio::time::timeout(patience, async {
            let response = sending.await?;
            self.read(response).await
        });
        let answered = answered.await.unwrap_or(Err(Failure::Stalled { after: patience }));
        answered.map_err(|failure| AdminError::Failed {
            what: what.to_owned(),
            server: self.server.to_string(),
            failure: Box::new(failure),
        })
    }

    async fn read<T: DeserializeOwned>(&self, mut response: Response) -> Result<T, Failure> {
        if !response.status().is_success() {
            return Err(self.http.answered(response, &[self.token.expose()]).await);
        }
        let foreign = || Failure::Foreign { why: "the server there is not a cloakroom server".to_owned() };
        if !has_content_type(response.headers(), "application/json") {
            return Err(foreign());
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.http.failure(&error))? {
            body.extend_from_slice(&chunk);
            if body.len() > LONGEST_BODY {
                return Err(foreign());
            }
        }
        serde_json::from_slice(&body).map_err(|_| foreign())
    }
}
