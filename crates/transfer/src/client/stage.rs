//! Staging: packing while uploading, and trying again what is safe to try again.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::address::ServerAddress;
use super::failure::Failure;
use super::http::HttpClient;
use super::packing::Start;
use super::retry::{Attempt, Retries, RetryNotice, RetryPolicy, Tried};
use super::secret_file::UploadToken;
use super::upload::{AttemptError, upload};
use crate::bundle::{PackError, PackPlan, Sources};
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::Owner;
use cloakroom_core::size::format_size;
use cloakroom_core::text::chain;
use cloakroom_core::time::{SparkDuration, format_duration};

/// A server that said nothing to all of an upload is given one more chance, and not all of them.
const MOST_SILENCES: u32 = 2;

/// Something in between that changes what passes may answer to nothing else.
const LONGEST_RELEASE: Duration = Duration::from_secs(5);

/// What to stage, where, and whom for.
#[derive(Debug, Clone)]
pub struct StageRequest {
    /// The server.
    pub server: ServerAddress,
    /// Whom for.
    pub owner: Owner,
    /// Upper bound on the resource's life.
    pub ttl: Option<SparkDuration>,
    /// How long it may stay without being downloaded, instead of what the server says.
    pub unused_timeout: Option<SparkDuration>,
    /// What the server wants to see from whoever uploads.
    pub token: Option<UploadToken>,
    /// The files.
    pub plan: Arc<PackPlan>,
    /// Where their bytes come from.
    pub sources: Arc<dyn Sources>,
}

/// Hears how an upload gets on.
pub trait StageObserver: Send + Sync + 'static {
    /// So many bytes of the files were read in this attempt.
    fn packed(&self, read_bytes: u64);
    /// All of it was sent, and for some seconds there was no answer. Whoever shows that anyway need not be told.
    fn awaiting_answer(&self) {}
    /// An attempt failed, and another one follows. What there is to tell of it was not told before.
    fn retrying(&self, notice: Option<&RetryNotice>);
}

/// A bundle that is on the server.
#[derive(Clone)]
pub struct Staged {
    /// Its ticket.
    pub ticket: Ticket,
    /// The ticket as the server wrote it, on one line. It has the secret in it.
    pub json: String,
}

/// Never shows the secret.
impl fmt::Debug for Staged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staged").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

/// A bundle that is not on the server.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// Somebody on the way could read the token.
    #[error(
        "the upload token would travel unencrypted to {server}, so nothing was sent: \
         use an https address, or leave the token out if the server wants none"
    )]
    TokenInClear {
        /// Where to.
        server: ServerAddress,
    },
    /// The files could not be packed.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// The server did not take it.
    #[error(
        "could not stage to {server}: {why}{tried}{then}{kept}",
        then = then(.failure.advice()),
        kept = kept(*.may_be_kept)
    )]
    Failed {
        /// Where to.
        server: ServerAddress,
        /// Why, and how far it came.
        why: String,
        /// What happened last.
        failure: Failure,
        /// How much was tried.
        tried: Tried,
        /// Whether one of them may have made a resource, whose ticket was lost.
        may_be_kept: bool,
    },
    /// Somebody asked for it.
    #[error("stopped before it was staged to {server}{kept}", kept = kept(*.may_be_kept))]
    Stopped {
        /// Where to.
        server: ServerAddress,
        /// Whether there may be a resource, whose ticket was lost.
        may_be_kept: bool,
    },
    /// What is on the server is not what was sent.
    #[error(
        "{server} stored {stored}, but sent were {sent}: something in between changes what passes; stage it again"
    )]
    OtherBytes {
        /// Where to.
        server: ServerAddress,
        /// What the ticket says.
        stored: String,
        /// What was sent.
        sent: String,
    },
}

impl StageError {
    /// The whole of it with other advice, from somebody who knows how the server was named.
    pub fn advised(&self, advice: impl FnOnce(&Failure) -> Option<String>) -> String {
        match self {
            Self::Failed { server, why, failure, tried, may_be_kept } => {
                let then = then(advice(failure).as_deref());
                format!("could not stage to {server}: {why}{tried}{then}{}", kept(*may_be_kept))
            }
            other => chain(other),
        }
    }

    /// Whether the server may keep a bundle whose ticket nobody has; it expires unused.
    pub fn may_be_kept(&self) -> bool {
        matches!(self, Self::Failed { may_be_kept: true, .. } | Self::Stopped { may_be_kept: true, .. })
    }
}

fn kept(may_be_kept: bool) -> &'static str {
    if may_be_kept {
        " (all of it was sent: perhaps the server keeps it, until it expires unused)"
    } else {
        ""
    }
}

fn then(advice: Option<&str>) -> String {
    advice.map(|advice| format!("; {advice}")).unwrap_or_default()
}

impl HttpClient {
    /// Stages one bundle. An attempt that failed left nothing behind, except that after a lost answer there may
    /// be a second resource, which expires unused: so all that may pass is tried again. Once `stop` is cancelled an
    /// upload that the server cannot have completely is broken off; the answer to another one is waited for, but not
    /// for long.
    pub async fn stage(
        &self,
        stop: &CancellationToken,
        request: &StageRequest,
        policy: RetryPolicy,
        observer: Arc<dyn StageObserver>,
    ) -> Result<Staged, StageError> {
        if request.token.is_some() && !request.server.is_confidential() {
            return Err(StageError::TokenInClear { server: request.server.clone() });
        }
        let retries = Retries::new(policy, MOST_SILENCES);
        let mut attempts = Attempts { request, retries, start: Start::Swift, may_be_kept: false };
        loop {
            let began = Instant::now();
            let wait = match upload(self, request, Arc::clone(&observer), attempts.start, stop).await {
                Ok(staged) => return Ok(staged),
                Err(AttemptError::Failed { failure, sent_bytes, may_be_kept }) => {
                    attempts.may_be_kept |= may_be_kept;
                    let total_bytes = (!may_be_kept).then(|| request.plan.total_bytes());
                    let progress = how_far(&failure, sent_bytes, total_bytes);
                    let (ended, has_answered) = (Instant::now(), self.has_answered());
                    let (failure, may_be_done) = (&failure, may_be_kept);
                    let attempt = Attempt { failure, began, ended, has_answered, may_be_done };
                    let wait = attempts.after(&attempt, progress.as_deref(), &*observer);
                    wait.ok_or_else(|| attempts.failed(&attempt, progress))?
                }
                Err(AttemptError::Pack(error)) => return Err(StageError::Pack(error)),
                Err(AttemptError::Stopped { may_be_kept }) => return Err(attempts.stopped(may_be_kept)),
                Err(AttemptError::OtherBytes { ticket, sent }) => {
                    return Err(self.other_bytes(request, &ticket, sent).await);
                }
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = stop.cancelled() => return Err(attempts.stopped(false)),
            }
        }
    }

    /// What nobody asked for does not stay.
    async fn other_bytes(&self, request: &StageRequest, ticket: &Ticket, sent: String) -> StageError {
        let server = request.server.clone();
        // Otherwise it expires unused.
        let _ = timeout(LONGEST_RELEASE, self.release(&server, ticket)).await;
        let stored = format!("{} bytes with SHA-256 {}", ticket.size_bytes, ticket.sha256);
        StageError::OtherBytes { server, stored, sent }
    }
}

/// The uploads of one bundle so far.
struct Attempts<'a> {
    request: &'a StageRequest,
    retries: Retries,
    /// How the next one begins.
    start: Start,
    may_be_kept: bool,
}

impl Attempts<'_> {
    /// How long to wait before the next attempt, if there is to be one.
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

/// A 4xx is the server's last word on this request.
fn is_worth_another(failure: &Failure) -> bool {
    let is_final = matches!(failure, Failure::Answered(answer) if answer.status < 500);
    failure.is_transient() && !is_final
}

/// How far an upload came that broke after its beginning. Without a total, all was sent: the bundle may be larger or smaller
/// than its files.
fn how_far(failure: &Failure, sent_bytes: u64, total_bytes: Option<u64>) -> Option<String> {
    if sent_bytes == 0 {
        return None;
    }
    let sent = format_size(sent_bytes);
    let progress = match total_bytes {
        Some(total_bytes) => format!("{sent} of about {}", format_size(total_bytes)),
        None => format!("all of it was sent, {sent}"),
    };
    match failure {
        Failure::Broken { why } => Some(format!("the connection broke after {progress} ({why})")),
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
    fn what_the_server_refuses_is_not_sent_again() {
        let answered = |status: &u16| {
            let answer = Answer { status: *status, code: None, detail: String::new(), retry_after: None };
            is_worth_another(&Failure::Answered(answer))
        };
        assert_eq!((400..600).filter(answered).collect::<Vec<u16>>(), [502, 503, 504]);
    }
}
