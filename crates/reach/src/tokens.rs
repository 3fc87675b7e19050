//! Tokens for uploads to a server that asks the cluster. They are requested from the API server, and are good for that
//! server only.

use std::fmt;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use tokio::sync::Mutex;

use cloakroom_cluster::calls::Calls;
use cloakroom_cluster::{ApiFailure, ApiServer};
use cloakroom_core::protocol::v1::UploadAuthKind;
use cloakroom_core::protocol::{LONGEST_CLAIMED_USER, WireName, upload_audience};
use cloakroom_spark::keys;
use cloakroom_transfer::client::{Credential, Failure, HttpClient, ServerAddress, UploadToken, UploadTokens};

/// The life of a token. It is the shortest that the API server gives.
const LIFETIME: Duration = Duration::from_mins(10);

/// An attempt does not begin with a token that ends sooner.
const LEAST_LEFT: Duration = Duration::from_mins(3);

/// The service account whose tokens are requested, and what they are good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadAccount {
    /// The name of the account, in the namespace of the owner.
    pub account: String,
    /// The audience. It comes from the place of the server, and never from the server: a server could name another one.
    pub audience: String,
    /// Whether the server is known to want such tokens.
    pub is_wanted: bool,
}

impl UploadAccount {
    /// The account that `manifests/submitter` makes.
    pub const ACCOUNT: &str = "cloakroom-uploader";

    /// The account for servers in `namespace`.
    pub fn to_server_in(namespace: &str, account: Option<&str>) -> Self {
        let account = account.unwrap_or(Self::ACCOUNT).to_owned();
        Self { account, audience: upload_audience(namespace), is_wanted: false }
    }

    /// The same for a server that says this of its uploads; `None` if it wants no such tokens. A server that says nothing
    /// is asked once it refuses an upload.
    pub fn answered(self, upload_auth: Option<&WireName<UploadAuthKind>>) -> Option<Self> {
        let is_wanted = upload_auth == Some(&WireName::Known(UploadAuthKind::Kubernetes));
        (is_wanted || upload_auth.is_none()).then_some(Self { is_wanted, ..self })
    }
}

/// The tokens for one server.
pub struct RequestedTokens {
    http: HttpClient,
    address: ServerAddress,
    calls: Calls,
    uploader: UploadAccount,
    state: Mutex<TokenState>,
}

#[derive(Default)]
struct TokenState {
    /// Whether the server wants such tokens, as far as is known.
    is_wanted: bool,
    credential: Option<Credential>,
    life: Option<Life>,
    was_taken: bool,
    was_replaced: bool,
}

/// The life of a token, by both clocks of this machine: the one stands still while the machine sleeps, and the other can be
/// set.
struct Life {
    began: (Instant, SystemTime),
    lasts: Duration,
}

impl Life {
    fn begin(lasts: Duration) -> Self {
        Self { began: (Instant::now(), SystemTime::now()), lasts }
    }

    fn left(&self) -> Duration {
        let (instant, time) = self.began;
        let passed = instant.elapsed().max(time.elapsed().unwrap_or_default());
        self.lasts.saturating_sub(passed)
    }
}

impl RequestedTokens {
    /// Tokens of the account in `namespace`, for the server at `address`.
    pub fn new(
        api_server: &ApiServer,
        namespace: &str,
        uploader: UploadAccount,
        http: HttpClient,
        address: ServerAddress,
    ) -> Self {
        let calls = Calls::new(api_server, namespace);
        let state = TokenState { is_wanted: uploader.is_wanted, ..TokenState::default() };
        Self { http, address, calls, uploader, state: Mutex::new(state) }
    }

    /// Asks a server that has refused an upload without a token.
    async fn are_wanted(&self) -> bool {
        let info = self.http.server_info(&self.address).await;
        info.is_ok_and(|info| info.upload_auth == Some(UploadAuthKind::Kubernetes.into()))
    }

    fn check_way(&self) -> Result<(), Failure> {
        if !self.address.is_confidential() {
            let why = format!(
                "it takes tokens of the cluster, and one would travel unencrypted to {}: use an https address, or leave the \
                 address out, so that the API server is the way",
                self.address
            );
            return Err(Failure::Unusable { why });
        }
        Ok(())
    }

    async fn request(&self, state: &mut TokenState) -> Result<Credential, Failure> {
        let UploadAccount { account, audience, .. } = &self.uploader;
        let mut life = Life::begin(LIFETIME);
        let answer = self.calls.request_token(account, audience, LIFETIME).await;
        let answer = answer.map_err(|failure| self.explained(&failure, state.credential.is_some()))?;
        let token = answer.body["status"]["token"].as_str().and_then(UploadToken::from_text);
        let token = token.ok_or_else(|| Failure::NoToken {
            why: "the API server's answer to a request for a token has none".to_owned(),
            is_transient: false,
        })?;
        let seconds = answer.body["spec"]["expirationSeconds"].as_u64();
        let user = match state.credential.take() {
            Some(last) => last.user,
            None => self.calls.own_name().await.filter(|name| can_be_claimed(name)),
        };
        let credential = Credential { token, user };
        state.credential = Some(credential.clone());
        life.lasts = seconds.map_or(LIFETIME, Duration::from_secs);
        state.life = Some(life);
        state.was_taken = false;
        Ok(credential)
    }

    /// Explains a token that was not given. `had_one`: whether an earlier request was granted.
    fn explained(&self, failure: &ApiFailure, had_one: bool) -> Failure {
        let (account, namespace) = (&self.uploader.account, self.calls.namespace());
        // manifests/submitter is about this account alone.
        let is_shipped = account == UploadAccount::ACCOUNT;
        let account = format!("the service account {account} in the namespace {namespace}");
        let otherwise = format!(
            "or give a token by --token-file, in a submission by `{}`",
            keys::CLOAKROOM_UPLOAD_TOKEN_FILE
        );
        let why = match failure {
            ApiFailure::Unauthorized { message } => {
                format!(
                    "the API server does not accept the kubeconfig's credentials (401 {message}): renew them"
                )
            }
            ApiFailure::Forbidden { message } if !is_shipped => format!(
                "you may not request a token of {account} (403 {message}): the admin of that namespace gives the right to \
                 create `serviceaccounts/token` of that name; {otherwise}"
            ),
            ApiFailure::Forbidden { message } => format!(
                "you may not request a token of {account} (403 {message}): the admin of that namespace gives the right by \
                 kubectl create rolebinding NAME -n {namespace} --role=cloakroom-token --user=USER; kubectl apply -k \
                 manifests/submitter makes that role; {otherwise}"
            ),
            ApiFailure::NotFound { message } if message.starts_with("namespaces ") => {
                format!("the namespace {namespace} does not exist (404 {message})")
            }
            ApiFailure::NotFound { message } => format!(
                "{account} does not exist (404 {message}): {} makes it; name another one by --upload-service-account, in a \
                 submission by `{}`, {otherwise}",
                if is_shipped {
                    "kubectl apply -k manifests/submitter"
                } else {
                    "kubectl create serviceaccount"
                },
                keys::CLOAKROOM_UPLOAD_SERVICE_ACCOUNT
            ),
            other => format!("no token of {account} can be requested: {other}"),
        };
        // An API server that has just started does not know all roles for a moment. The right was there before.
        let is_forgotten = had_one && matches!(failure, ApiFailure::Forbidden { .. });
        let is_transient = failure.is_transient() || is_forgotten;
        Failure::NoToken { why, is_transient }
    }
}

#[async_trait]
impl UploadTokens for RequestedTokens {
    async fn credential(&self) -> Result<Option<Credential>, Failure> {
        let mut state = self.state.lock().await;
        if !state.is_wanted {
            return Ok(None);
        }
        self.check_way()?;
        let lasts = state.life.as_ref().is_some_and(|life| life.left() >= LEAST_LEFT);
        match &state.credential {
            Some(credential) if lasts => Ok(Some(credential.clone())),
            _ => self.request(&mut state).await.map(Some),
        }
    }

    async fn taken(&self) {
        self.state.lock().await.was_taken = true;
    }

    /// Without a token, the server may want one. A token that was good before may have lost its account, or its key. A second
    /// refusal is final.
    async fn refused(&self) -> bool {
        let mut state = self.state.lock().await;
        if !state.is_wanted {
            state.is_wanted = self.are_wanted().await;
            return state.is_wanted;
        }
        let has_ended = state.life.as_ref().is_some_and(|life| life.left().is_zero());
        let is_worth_another = (state.was_taken || has_ended) && !state.was_replaced;
        if is_worth_another {
            state.was_replaced = true;
            state.life = None;
        }
        is_worth_another
    }

    async fn about_refused(&self) -> Option<String> {
        self.state.lock().await.credential.as_ref()?;
        let UploadAccount { account, audience, .. } = &self.uploader;
        Some(format!(
            "the token was requested from the API server, of the service account {account} for the audience {audience}, which \
             names the server's namespace: if the server is in another one, name that by --server-namespace, in a \
             submission by `{}`",
            keys::CLOAKROOM_SERVER_NAMESPACE
        ))
    }
}

/// Whether a header can carry the name.
fn can_be_claimed(name: &str) -> bool {
    !name.trim().is_empty() && name.len() <= LONGEST_CLAIMED_USER && !name.contains(char::is_control)
}

/// Shows only what the tokens are for.
impl fmt::Debug for RequestedTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestedTokens").field("uploader", &self.uploader).finish_non_exhaustive()
    }
}
