//! One attempt to stage a bundle.

use std::sync::Arc;

use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use reqwest::{Response, Url};
use tokio_util::sync::CancellationToken;

use super::answer::has_content_type;
use super::failure::Failure;
use super::http::HttpClient;
use super::packing::{Contents, Packed, Packing, Start};
use super::stage::{StageObserver, StageRequest, Staged};
use super::upload_tokens::Credential;
use crate::bundle::{PackError, Segment};
use cloakroom_core::protocol::recipe::RECIPE_LENGTH;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::protocol::{BUNDLE_CONTENT_TYPE, CLAIMED_USER, digest, v1};
use cloakroom_core::resource::ResourceId;
use cloakroom_core::text;

/// The reason why one attempt failed.
#[derive(Debug)]
pub(super) enum AttemptError {
    /// The files could not be packed.
    Pack(PackError),
    /// The exchange failed after `sent_bytes`. With `may_be_kept` the server may have stored the bundle, and only its
    /// answer was lost.
    Failed { failure: Failure, sent_bytes: u64, may_be_kept: bool },
    /// The ticket has another size or digest than the sent bytes.
    OtherBytes { ticket: Box<Ticket>, sent: String },
    /// The files have other bytes than when the bundle was measured.
    Changed,
    /// The caller stopped the attempt before the answer came.
    Stopped { may_be_kept: bool },
}

/// A bundle that the server has.
pub(super) struct Uploaded {
    pub staged: Staged,
    pub segments: Vec<Segment>,
}

/// The URL that `request` is posted to, with the owner in the query.
pub(super) fn upload_url(request: &StageRequest, path: &str) -> Url {
    let mut url = request.server.join(path);
    let owner = &request.owner;
    {
        let mut query = url.query_pairs_mut();
        query.append_pair(v1::query::NAMESPACE, owner.namespace());
        query.append_pair(v1::query::KIND, owner.kind().as_str());
        for (key, value) in owner.labels() {
            query.append_pair(v1::query::LABEL, &format!("{key}={value}"));
        }
        let times = [(v1::query::TTL, request.ttl), (v1::query::UNUSED_TIMEOUT, request.unused_timeout)];
        for (name, time) in times.into_iter().filter_map(|(name, time)| time.map(|time| (name, time))) {
            query.append_pair(name, &time.to_string());
        }
        if let Some(name) = owner.name() {
            query.append_pair(v1::query::NAME, name);
        }
    }
    url
}

/// Packs and sends the bundle once.
pub(super) async fn upload(
    http: &HttpClient,
    request: &StageRequest,
    observer: Arc<dyn StageObserver>,
    start: Start,
    contents: &Contents,
    stop: &CancellationToken,
) -> Result<Uploaded, AttemptError> {
    let credential = tokio::select! {
        credential = credential(request) => credential?,
        () = stop.cancelled() => return Err(AttemptError::Stopped { may_be_kept: false }),
    };
    let (plan, sources) = (Arc::clone(&request.plan), Arc::clone(&request.sources));
    let (packing, body) = Packing::start(plan, sources, Arc::clone(&observer), start, contents);
    let mut post = match contents {
        Contents::Whole(_) => http.to_server().post(upload_url(request, v1::RESOURCES)),
        Contents::Splice(splice) => {
            let url = upload_url(request, &v1::spliced_path(&splice.source));
            http.to_server().post(url).header(RECIPE_LENGTH, splice.recipe.len())
        }
    };
    post = post.header(CONTENT_TYPE, BUNDLE_CONTENT_TYPE).body(body);
    if let Some(length) = contents.length() {
        post = post.header(CONTENT_LENGTH, length);
    }
    if let Some(Credential { token, user }) = &credential {
        post = post.bearer_auth(token.expose());
        if let Some(user) = user {
            post = post.header(CLAIMED_USER, user.as_bytes());
        }
    }
    let answered = tokio::select! {
        answered = http.ask(post) => answered,
        failure = packing.stalled(http.timeouts(), &*observer) => Err(failure),
        () = packing.stopped(stop) => return Err(AttemptError::Stopped { may_be_kept: packing.is_complete() }),
    };
    match answered {
        Ok(response) if response.status().is_success() => accepted(http, response, packing, contents).await,
        Ok(response) => {
            let token = credential.iter().map(|shown| shown.token.expose());
            let secrets: Vec<&str> = token.chain(contents.secret()).collect();
            // A refusal may come while the body is still being sent. It is read to its end before packing stops, because
            // stopping breaks the connection.
            let failure = http.answered(response, &secrets).await;
            Err(aborted(failure, packing, contents).await)
        }
        Err(failure) => Err(aborted(failure, packing, contents).await),
    }
}

/// The credential of this attempt; `None` if no token is needed, as far as is known.
async fn credential(request: &StageRequest) -> Result<Option<Credential>, AttemptError> {
    if let Some(token) = &request.token {
        return Ok(Some(Credential { token: token.clone(), user: None }));
    }
    let Some(tokens) = &request.tokens else { return Ok(None) };
    let failed = |failure| AttemptError::Failed { failure, sent_bytes: 0, may_be_kept: false };
    tokens.credential().await.map_err(failed)
}

async fn aborted(failure: Failure, packing: Packing, contents: &Contents) -> AttemptError {
    let is_unclear = is_about_the_answer(&failure);
    unclear(failure, packing, contents, is_unclear).await
}

/// `is_unclear`: whether the server may have stored what it got completely.
async fn unclear(failure: Failure, packing: Packing, contents: &Contents, is_unclear: bool) -> AttemptError {
    let sent_bytes = packing.sent_bytes();
    let may_be_kept = is_unclear && packing.is_complete();
    match packing.abort().await {
        Err(cause) => AttemptError::Pack(cause),
        Ok(Some(packed)) if contents.sha256().is_some_and(|sha256| sha256 != packed.sha256) => {
            AttemptError::Changed
        }
        Ok(_) => AttemptError::Failed { failure, sent_bytes, may_be_kept },
    }
}

/// Whether the server may have stored the bundle all the same. An error of a gateway does not say whether it has.
fn is_about_the_answer(failure: &Failure) -> bool {
    match failure {
        Failure::Answered(answer) => answer.code.is_none() && answer.status >= 500 && answer.status != 503,
        other => other.is_interruption(),
    }
}

async fn accepted(
    http: &HttpClient,
    response: Response,
    packing: Packing,
    contents: &Contents,
) -> Result<Uploaded, AttemptError> {
    let is_json = has_content_type(response.headers(), "application/json");
    let body = match http.whole_body(response).await {
        Ok(body) => body,
        Err(failure) => return Err(aborted(failure, packing, contents).await),
    };
    let staged = match staged(if is_json { &body } else { b"" }) {
        Ok(staged) => staged,
        Err(wrong) => {
            let why = format!("{wrong}, so this is not a cloakroom server");
            return Err(unclear(Failure::Foreign { why }, packing, contents, true).await);
        }
    };
    let packed = packing.finish().await.map_err(AttemptError::Pack)?;
    let staged = check(&packed, staged)?;
    Ok(Uploaded { staged, segments: packed.segments })
}

/// Reads a ticket. Checks its id, because that becomes a part of paths. An error says what is wrong with the answer.
pub(super) fn staged(body: &[u8]) -> Result<Staged, &'static str> {
    const NO_TICKET: &str = "the answer is not a ticket";
    let ticket: Ticket = serde_json::from_slice(body).map_err(|_| NO_TICKET)?;
    ResourceId::parse(&ticket.resource_id).map_err(|_| "the resourceId of the answer is not an id")?;
    let text = std::str::from_utf8(body).map_err(|_| NO_TICKET)?;
    // In JSON, line breaks are only between tokens, so that a blank can replace them.
    let json = text::harmless_json(&text.trim().replace(['\r', '\n', '\t'], " "));
    Ok(Staged { ticket, json, may_be_twice: false, is_earlier: false })
}

fn check(sent: &Packed, staged: Staged) -> Result<Staged, AttemptError> {
    let sha256 = digest::to_hex(&sent.sha256);
    let ticket = &staged.ticket;
    if ticket.size_bytes == sent.size_bytes && ticket.sha256.eq_ignore_ascii_case(&sha256) {
        return Ok(staged);
    }
    let sent = format!("{} bytes with SHA-256 {sha256}", sent.size_bytes);
    Err(AttemptError::OtherBytes { ticket: Box::new(staged.ticket), sent })
}
