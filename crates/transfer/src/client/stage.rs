//! Stages a bundle: packs while it uploads, and tries again after failures that may pass.

mod error;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

pub use error::{StageError, TokenInClear};

use super::address::ServerAddress;
use super::failure::Failure;
use super::http::HttpClient;
use super::packing::{Contents, Packed, Start, measure};
use super::retry::{Attempt, Retries, RetryNotice, RetryPolicy};
use super::reuse::{Memory, Reuse, StagedBefore};
use super::secret_file::UploadToken;
use super::upload::{AttemptError, Uploaded, staged, upload, upload_url};
use super::upload_tokens::UploadTokens;
use crate::bundle::{PackError, PackPlan, Sources};
use cloakroom_core::protocol::v1::{self, Ticket};
use cloakroom_core::resource::Owner;
use cloakroom_core::size::format_size;
use cloakroom_core::time::{SparkDuration, format_duration};

/// How many uploads may end without any answer. A whole upload costs much, so there is only one more attempt.
const MOST_SILENCES: u32 = 2;

/// The time limit for releasing a resource with wrong bytes. A proxy that changes the bytes may not answer this request
/// either.
const LONGEST_RELEASE: Duration = Duration::from_secs(5);

/// Bundles from this size on, in bytes, are compared with the server's limit before they are sent. Of a smaller one, the
/// refusal comes soon enough.
const WORTH_ASKING: u64 = 64 << 20;

/// The status of a proxy that takes no body of unknown length.
const LENGTH_REQUIRED: u16 = 411;

/// The time limit for the question about that limit.
const LONGEST_QUESTION: Duration = Duration::from_secs(5);

/// What to stage, where, and for which owner.
#[derive(Debug, Clone)]
pub struct StageRequest {
    pub server: ServerAddress,
    pub owner: Owner,
    /// The longest life of the resource; `None` leaves it to the server.
    pub ttl: Option<SparkDuration>,
    /// How long the resource may stay without being downloaded; `None` leaves it to the server.
    pub unused_timeout: Option<SparkDuration>,
    /// The upload token, if one was given.
    pub token: Option<UploadToken>,
    /// Tokens for a server that wants other ones, if no token was given.
    pub tokens: Option<Arc<dyn UploadTokens>>,
    /// The files of the bundle.
    pub plan: Arc<PackPlan>,
    /// The sources of the files' bytes.
    pub sources: Arc<dyn Sources>,
    /// What this user has staged before; `None` if nothing of it is to be used or remembered.
    pub before: Option<StagedBefore>,
}

impl StageRequest {
    /// What was staged before at this place.
    fn memory(&self) -> Option<Memory> {
        Some(self.before.as_ref()?.at(&self.server, self.owner.namespace()))
    }

    /// What the server is asked for: the owner, and the times.
    fn asked(&self) -> String {
        upload_url(self, v1::RESOURCES).query().unwrap_or_default().to_owned()
    }

    /// Keeps the ticket for [`HttpClient::staged_before`], once the user has it. The owner must name the files.
    pub fn keep_ticket(&self, staged: &Staged) {
        if let Some(memory) = self.memory() {
            memory.keep_ticket(&self.asked(), &staged.json);
        }
    }

    /// [`HttpClient::stage`] checks this, too. A caller that checks it first announces no upload in vain.
    pub fn check_token(&self) -> Result<(), TokenInClear> {
        if self.token.is_some() && !self.server.is_confidential() {
            return Err(TokenInClear { server: self.server.clone() });
        }
        Ok(())
    }

    /// The source of the token, if the server has refused the token.
    fn refused_tokens(&self, failure: &Failure) -> Option<&dyn UploadTokens> {
        let is_refused = matches!(failure, Failure::Answered(answer) if answer.status == 401);
        self.tokens.as_deref().filter(|_| is_refused)
    }

    /// Whether the server has refused the token, and there may be a better one.
    async fn has_another_token(&self, failure: &Failure) -> bool {
        match self.refused_tokens(failure) {
            Some(tokens) => tokens.refused().await,
            None => false,
        }
    }

    /// Why the server has refused a token that the user has not given.
    async fn about_refused(&self, failure: &Failure) -> Option<String> {
        let told = self.refused_tokens(failure)?.about_refused().await?;
        Some(format!("{failure}; {told}"))
    }
}

/// Receives the events of an upload.
pub trait StageObserver: Send + Sync + 'static {
    /// This attempt has read `read_bytes` bytes of the files.
    fn packed(&self, read_bytes: u64);
    /// Only `sent_bytes` were sent, because the server had the rest since then.
    fn reused(&self, _sent_bytes: u64, _since: Timestamp) {}
    /// The whole bundle was sent some seconds ago, and no answer has come. An observer that shows this anyway can
    /// ignore it.
    fn awaiting_answer(&self) {}
    /// An attempt failed, and another one follows. `notice` is `None` if the user has already been told.
    fn retrying(&self, notice: Option<&RetryNotice>);
}

/// A bundle that is on the server.
#[derive(Clone)]
pub struct Staged {
    pub ticket: Ticket,
    /// The ticket as the server wrote it, on one line. It contains the secret.
    pub json: String,
    /// Whether the server may have stored the bundle once more, in an attempt whose answer was lost. That copy expires
    /// unused.
    pub may_be_twice: bool,
    /// Whether it was staged by an earlier run, whose ticket this is.
    pub is_earlier: bool,
}

/// Leaves out the secret.
impl fmt::Debug for Staged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staged").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

impl Staged {
    /// The same with a URL that begins with `base`, for a server that was asked by another address than its clients have.
    pub fn at(mut self, base: &str) -> Self {
        let url = format!("{}{}", base.trim_end_matches('/'), v1::resource_path(&self.ticket.resource_id));
        let in_json = |url: &str| serde_json::Value::from(url).to_string();
        self.json = self.json.replacen(&in_json(&self.ticket.url), &in_json(&url), 1);
        self.ticket.url = url;
        self
    }
}

impl HttpClient {
    /// Stages one bundle, and tries again after every failure that may pass. A failed attempt leaves nothing behind,
    /// with one exception: if only its answer was lost, a second resource may exist, which expires unused. After `stop`
    /// is cancelled, an incomplete upload ends at once. A complete upload gets a few seconds for its answer.
    pub async fn stage(
        &self,
        stop: &CancellationToken,
        request: &StageRequest,
        policy: RetryPolicy,
        observer: Arc<dyn StageObserver>,
    ) -> Result<Staged, StageError> {
        request.check_token()?;
        let retries = Retries::new(policy, MOST_SILENCES);
        let (start, contents) = (Start::Swift, Contents::Whole(None));
        let reuse = Reuse::new(request.memory());
        let mut attempts = Attempts { request, retries, start, contents, reuse, may_be_kept: false };
        attempts.compare(stop).await?;
        self.check_size(request, &attempts.contents).await?;
        loop {
            let (began, observing) = (Instant::now(), Arc::clone(&observer));
            let uploading = upload(self, request, observing, attempts.start, &attempts.contents, stop);
            let error = match uploading.await {
                Ok(uploaded) => return Ok(attempts.succeeded(uploaded, &*observer).await),
                Err(error) => error,
            };
            if attempts.send_otherwise(&error).await? {
                self.check_size(request, &attempts.contents).await?;
                continue;
            }
            let wait = match error {
                // What it sends next was decided.
                AttemptError::Changed => continue,
                AttemptError::Failed { failure, sent_bytes, may_be_kept } => {
                    tokio::select! {
                        biased;
                        has_another = request.has_another_token(&failure) => if has_another {
                            observer.retrying(None);
                            continue;
                        },
                        () = stop.cancelled() => return Err(attempts.stopped(may_be_kept)),
                    }
                    attempts.may_be_kept |= may_be_kept;
                    let all = || attempts.contents.length().unwrap_or_else(|| request.plan.archive_bytes());
                    let archive_bytes = (!may_be_kept).then(all);
                    let progress = match request.about_refused(&failure).await {
                        Some(told) => Some(told),
                        None => how_far(&failure, sent_bytes, archive_bytes),
                    };
                    let (ended, has_answered) = (Instant::now(), self.has_answered());
                    let (failure, may_be_done) = (&failure, may_be_kept);
                    let attempt = Attempt { failure, began, ended, has_answered, may_be_done };
                    let wait = attempts.after(&attempt, progress.as_deref(), &*observer);
                    wait.ok_or_else(|| attempts.failed(&attempt, progress))?
                }
                AttemptError::Pack(error) => return Err(StageError::Pack(error)),
                AttemptError::Stopped { may_be_kept } => return Err(attempts.stopped(may_be_kept)),
                AttemptError::OtherBytes { ticket, sent } => {
                    return Err(self.other_bytes(request, &ticket, sent).await);
                }
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = stop.cancelled() => return Err(attempts.stopped(false)),
            }
        }
    }

    /// What an earlier run has staged for the same owner with the same times, and nobody has fetched. It must have half of its
    /// time left.
    pub async fn staged_before(&self, request: &StageRequest) -> Option<Staged> {
        let (memory, asked) = (request.memory()?, request.asked());
        let staged = staged(memory.ticket(&asked)?.as_bytes()).ok()?;
        if !has_half_left(&staged.ticket, Timestamp::now()) {
            return None;
        }
        match self.resource_metadata(&request.server, &staged.ticket).await {
            Ok(found) => found.first_used_at.is_none().then_some(Staged { is_earlier: true, ..staged }),
            Err(failure) => {
                if matches!(failure.status(), Some(404 | 410)) {
                    memory.forget_ticket(&asked);
                }
                None
            }
        }
    }

    /// Refuses a bundle that the server would refuse after it was sent. A server that gives no answer, or tells no limit,
    /// decides about the upload itself.
    async fn check_size(&self, request: &StageRequest, contents: &Contents) -> Result<(), StageError> {
        let stored = request.plan.stored_bytes();
        if stored < WORTH_ASKING {
            return Ok(());
        }
        let asked = timeout(LONGEST_QUESTION, self.server_info(&request.server)).await;
        let Some(info) = asked.ok().and_then(Result::ok) else { return Ok(()) };
        let server = request.server.clone();
        if let Some(most) = info.max_resource_size.filter(|most| stored > *most) {
            return Err(StageError::TooLarge { server, most, stored });
        }
        let sent = contents.length().unwrap_or(stored);
        if let Some(most) = info.max_proxied_size.filter(|most| self.has_way() && sent > *most) {
            let such_as = info.public_url.map(|url| format!(", such as {url}")).unwrap_or_default();
            return Err(StageError::TooLargeForWay { server, most, stored, such_as });
        }
        Ok(())
    }

    /// Releases the resource with the wrong bytes, and makes the error.
    async fn other_bytes(&self, request: &StageRequest, ticket: &Ticket, sent: String) -> StageError {
        let server = request.server.clone();
        // If this fails, the resource expires unused.
        let _ = timeout(LONGEST_RELEASE, self.release(&server, ticket)).await;
        let stored = format!("{} bytes with SHA-256 {}", ticket.size_bytes, ticket.sha256);
        StageError::OtherBytes { server, stored, sent }
    }
}

/// The attempts to stage one bundle.
struct Attempts<'a> {
    request: &'a StageRequest,
    retries: Retries,
    /// How the next attempt begins.
    start: Start,
    /// What it sends.
    contents: Contents,
    reuse: Reuse,
    may_be_kept: bool,
}

impl Attempts<'_> {
    /// Compares the bundle with those that were staged before, if there are any.
    async fn compare(&mut self, stop: &CancellationToken) -> Result<(), StageError> {
        if self.reuse.is_possible() {
            let packed = tokio::select! {
                packed = self.measured() => packed?,
                () = stop.cancelled() => return Err(self.stopped(false)),
            };
            self.contents = self.reuse.compared(packed);
        }
        Ok(())
    }

    async fn measured(&self) -> Result<Packed, PackError> {
        measure(Arc::clone(&self.request.plan), Arc::clone(&self.request.sources)).await
    }

    /// Whether this failure is over if the bundle is sent in another way, which the next attempt does.
    async fn send_otherwise(&mut self, error: &AttemptError) -> Result<bool, PackError> {
        let (failure, may_be_kept) = match error {
            AttemptError::Failed { failure, may_be_kept, .. } => (failure, *may_be_kept),
            AttemptError::Changed => {
                tracing::debug!("all of the bundle is sent: a file was changed meanwhile");
                self.contents = Contents::Whole(None);
                return Ok(true);
            }
            _ => return Ok(false),
        };
        let contents = match &self.contents {
            Contents::Splice(splice) => self.reuse.after(splice, failure),
            Contents::Whole(None) if failure.status() == Some(LENGTH_REQUIRED) => {
                Some(Contents::Whole(Some(self.measured().await?.size_bytes)))
            }
            Contents::Whole(_) => None,
        };
        let Some(contents) = contents else { return Ok(false) };
        self.contents = contents;
        // A page of something else on the way is no bundle.
        self.may_be_kept |= may_be_kept && !matches!(failure, Failure::Foreign { .. });
        Ok(true)
    }

    async fn succeeded(&self, uploaded: Uploaded, observer: &dyn StageObserver) -> Staged {
        let Uploaded { staged, segments } = uploaded;
        if let Some(splice) = self.contents.splice() {
            observer.reused(splice.body_bytes(), splice.since);
        }
        if let Some(tokens) = &self.request.tokens {
            tokens.taken().await;
        }
        self.reuse.remember(&staged.ticket, segments);
        Staged { may_be_twice: self.may_be_kept, ..staged }
    }

    /// How long to wait before the next attempt; `None` if there is none. Notifies the observer.
    fn after(
        &mut self,
        attempt: &Attempt<'_>,
        progress: Option<&str>,
        observer: &dyn StageObserver,
    ) -> Option<Duration> {
        let failure = attempt.failure;
        let again = self.retries.after(attempt, rand::random());
        let again = again.filter(|_| is_worth_another(failure))?;
        self.start = if failure.is_interruption() { Start::Cautious } else { Start::Swift };
        let notice = again.is_news.then(|| RetryNotice {
            server: self.request.server.clone(),
            failure: failure.clone(),
            progress: progress.map(str::to_owned),
            bound: again.bound,
        });
        observer.retrying(notice.as_ref());
        Some(again.wait)
    }

    fn failed(&self, last: &Attempt<'_>, progress: Option<String>) -> StageError {
        StageError::Failed {
            server: self.request.server.clone(),
            why: progress.unwrap_or_else(|| last.failure.to_string()),
            tried: self.retries.tried(last),
            failure: last.failure.clone(),
            may_be_kept: self.may_be_kept,
        }
    }

    fn stopped(&self, may_be_kept: bool) -> StageError {
        let server = self.request.server.clone();
        StageError::Stopped { server, may_be_kept: may_be_kept || self.may_be_kept }
    }
}

/// Whether a resource that nobody fetches stays for half of its time from `now` on.
fn has_half_left(ticket: &Ticket, now: Timestamp) -> bool {
    let Ticket { created_at, expires_at, .. } = ticket;
    expires_at.duration_since(now) * 2 >= expires_at.duration_since(*created_at)
}

/// A 4xx answer to an upload is final, even if [`Failure::is_transient`] says that it may pass. The exception is 408: the
/// connection was slow, and the files can be read again.
fn is_worth_another(failure: &Failure) -> bool {
    let is_final =
        matches!(failure, Failure::Answered(answer) if answer.status < 500 && answer.status != 408);
    failure.is_transient() && !is_final
}

/// The progress of an upload that broke, in words for the user. `archive_bytes` is about the size of the bundle; `None`
/// if the whole bundle was sent.
fn how_far(failure: &Failure, sent_bytes: u64, archive_bytes: Option<u64>) -> Option<String> {
    if sent_bytes == 0 {
        return None;
    }
    let sent = format_size(sent_bytes);
    let progress = match archive_bytes {
        Some(archive_bytes) => format!("{sent} of about {}", format_size(archive_bytes)),
        None => format!("all of it was sent, {sent}"),
    };
    match failure {
        Failure::Broken { why } => Some(format!("the connection broke after {progress} ({why})")),
        Failure::Way { why, may_have_arrived: true, .. } => Some(format!("{why}, after {progress}")),
        Failure::Stalled { after } => {
            Some(format!("nothing moved for {} after {progress}", format_duration(*after)))
        }
        Failure::NoAnswer { after } => {
            Some(format!("no answer within {} after {progress}", format_duration(*after)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::Answer;
    use super::*;

    #[test]
    fn a_break_says_how_far_it_came() {
        let broken = Failure::Broken { why: "reset by peer".to_owned() };
        let progress = how_far(&broken, 120 << 20, Some(300 << 20)).unwrap();
        assert_eq!(progress, "the connection broke after 120 MiB of about 300 MiB (reset by peer)");
        assert_eq!(how_far(&broken, 0, Some(1)), None);
        assert_eq!(how_far(&Failure::Refused, 10, Some(1)), None);
        let silent = Failure::NoAnswer { after: Duration::from_secs(30) };
        let progress = how_far(&silent, 2048, None).unwrap();
        assert_eq!(progress, "no answer within 30s after all of it was sent, 2 KiB");
    }

    #[test]
    fn a_ticket_is_given_again_in_the_first_half_of_its_time() {
        let ticket = Ticket {
            resource_id: String::new(),
            resource_secret: String::new(),
            size_bytes: 1,
            sha256: String::new(),
            created_at: Timestamp::from_second(1000).unwrap(),
            expires_at: Timestamp::from_second(1100).unwrap(),
            url: String::new(),
        };
        let at = |second| has_half_left(&ticket, Timestamp::from_second(second).unwrap());
        assert_eq!([1000, 1050, 1051, 1200].map(at), [true, true, false, false]);
    }

    #[test]
    fn a_bundle_that_the_server_refuses_is_not_sent_again() {
        let answered = |status: &u16| {
            let answer =
                Answer { status: *status, code: None, detail: String::new(), retry_after: None, proxy: None };
            is_worth_another(&Failure::Answered(answer))
        };
        assert_eq!((400..600).filter(answered).collect::<Vec<u16>>(), [408, 502, 503, 504]);
    }
}
