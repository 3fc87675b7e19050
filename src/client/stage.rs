//! Staging: packing while uploading, and trying again what is safe to try again.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::address::ServerAddress;
use super::backoff::Backoff;
use super::failure::Failure;
use super::http::HttpClient;
use super::packing::Start;
use super::secret_file::UploadToken;
use super::upload::{UploadError, upload};
use crate::bundle::{PackError, PackPlan};
use crate::protocol::v1::Ticket;
use crate::resource::Owner;
use crate::spark::{SparkDuration, format_duration, format_size};
use crate::telemetry::chain;

/// No server's `Retry-After` makes a person wait any longer for one attempt.
const LONGEST_RETRY_AFTER: Duration = Duration::from_mins(1);

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
}

/// How often to try, and how long to wait in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// At most so many attempts; 0 is taken as 1.
    pub attempts: u32,
    /// The waits.
    pub backoff: Backoff,
}

/// Five attempts within a few seconds.
impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 5, backoff: Backoff::default() }
    }
}

/// Hears how an upload gets on.
pub trait StageObserver: Send + Sync + 'static {
    /// So many bytes of the files were read in this attempt.
    fn packed(&self, read_bytes: u64);
    /// All of it was sent, and for some seconds there was no answer. Whoever shows that anyway need not be told.
    fn awaiting_answer(&self) {}
    /// An attempt failed, and another one follows.
    fn retrying(&self, notice: &RetryNotice);
}

/// An attempt that failed, and when the next one follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryNotice {
    /// Why it failed.
    pub why: String,
    /// The number of the next attempt, from 2.
    pub next_attempt: u32,
    /// How many there can be.
    pub attempts: u32,
    /// How long until then.
    pub wait: Duration,
}

impl fmt::Display for RetryNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wait = Duration::from_millis(u64::try_from(self.wait.as_millis()).unwrap_or(u64::MAX));
        let Self { why, next_attempt, attempts, .. } = self;
        write!(f, "{why}; attempt {next_attempt} of {attempts} in {}", format_duration(wait))
    }
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
        "could not stage to {server}: {why}{made}{then}{kept}",
        made = attempts_made(*.attempts),
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
        /// So many attempts were made.
        attempts: u32,
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
            Self::Failed { server, why, failure, attempts, may_be_kept } => {
                let (made, then) = (attempts_made(*attempts), then(advice(failure).as_deref()));
                format!("could not stage to {server}: {why}{made}{then}{}", kept(*may_be_kept))
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

fn attempts_made(attempts: u32) -> String {
    if attempts > 1 { format!(" ({attempts} attempts)") } else { String::new() }
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
        let mut attempts = Attempts { made: 0, silences: 0, start: Start::Swift, may_be_kept: false };
        loop {
            let uploaded = upload(self, request, Arc::clone(&observer), attempts.start, stop).await;
            let wait = match uploaded {
                Ok(staged) => return Ok(staged),
                Err(error) => self.after(error, &mut attempts, request, policy, &*observer).await?,
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = stop.cancelled() => return Err(attempts.stopped(request, false)),
            }
        }
    }

    /// How long to wait before the next attempt, if there is to be one.
    async fn after(
        &self,
        error: UploadError,
        attempts: &mut Attempts,
        request: &StageRequest,
        policy: RetryPolicy,
        observer: &dyn StageObserver,
    ) -> Result<Duration, StageError> {
        attempts.made += 1;
        let (failure, why) = match error {
            UploadError::Failed { failure, sent_bytes, may_be_kept } => {
                attempts.may_be_kept |= may_be_kept;
                let total_bytes = (!may_be_kept).then(|| request.plan.total_bytes());
                let why = how_far(&failure, sent_bytes, total_bytes);
                (failure, why)
            }
            UploadError::Pack(error) => return Err(StageError::Pack(error)),
            UploadError::Stopped { may_be_kept } => return Err(attempts.stopped(request, may_be_kept)),
            UploadError::OtherBytes { ticket, sent } => {
                return Err(self.other_bytes(request, &ticket, sent).await);
            }
        };
        let most = attempts.most(&failure, policy);
        if attempts.made >= most || !is_worth_another(&failure) {
            let Attempts { made, may_be_kept, .. } = *attempts;
            let server = request.server.clone();
            return Err(StageError::Failed { server, why, failure, attempts: made, may_be_kept });
        }
        attempts.start = if failure.is_interruption() { Start::Cautious } else { Start::Swift };
        let wait = wait(&policy.backoff, attempts.made, &failure);
        let next_attempt = attempts.made + 1;
        observer.retrying(&RetryNotice { why, next_attempt, attempts: most, wait });
        Ok(wait)
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

/// What was tried so far.
struct Attempts {
    made: u32,
    /// So many of them ended because nobody answered.
    silences: u32,
    /// How the next one begins.
    start: Start,
    may_be_kept: bool,
}

impl Attempts {
    /// How many there are to be, now that one more has failed so.
    fn most(&mut self, failure: &Failure, policy: RetryPolicy) -> u32 {
        if !matches!(failure, Failure::NoAnswer { .. }) {
            return policy.attempts;
        }
        self.silences += 1;
        policy.attempts.min(self.made + MOST_SILENCES.saturating_sub(self.silences))
    }

    fn stopped(&self, request: &StageRequest, may_be_kept: bool) -> StageError {
        StageError::Stopped { server: request.server.clone(), may_be_kept: may_be_kept || self.may_be_kept }
    }
}

/// A 4xx is the server's last word on this request.
fn is_worth_another(failure: &Failure) -> bool {
    let is_final = matches!(failure, Failure::Answered(answer) if answer.status < 500);
    failure.is_transient() && !is_final
}

/// The server's wish counts, within reason.
fn wait(backoff: &Backoff, failures: u32, failure: &Failure) -> Duration {
    let wished = failure.retry_after().unwrap_or_default().min(LONGEST_RETRY_AFTER);
    backoff.delay(failures, rand::random()).max(wished)
}

/// Without a total, all was sent: the bundle may be larger or smaller than its files.
fn how_far(failure: &Failure, sent_bytes: u64, total_bytes: Option<u64>) -> String {
    let sent = format_size(sent_bytes);
    let progress = match total_bytes {
        Some(total_bytes) => format!("{sent} of about {}", format_size(total_bytes)),
        None => format!("all of it was sent, {sent}"),
    };
    match failure {
        Failure::Broken { why } if sent_bytes > 0 => format!("the connection broke after {progress} ({why})"),
        Failure::Stalled { after } if sent_bytes > 0 => {
            format!("nothing moved for {} after {progress}", format_duration(*after))
        }
        Failure::NoAnswer { after } if sent_bytes > 0 => {
            format!("no answer within {} after {progress}", format_duration(*after))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::Answer;
    use super::*;

    fn answered(status: u16, retry_after: Option<u64>) -> Failure {
        let retry_after = retry_after.map(Duration::from_secs);
        Failure::Answered(Answer { status, code: None, detail: "no".to_owned(), retry_after })
    }

    #[test]
    fn a_break_says_how_far_it_came() {
        let broken = Failure::Broken { why: "reset by peer".to_owned() };
        let why = how_far(&broken, 120 << 20, Some(300 << 20));
        assert_eq!(why, "the connection broke after 120 MiB of about 300 MiB (reset by peer)");
        assert_eq!(how_far(&Failure::Refused, 0, Some(1)), "connection refused");
        let silent = Failure::NoAnswer { after: Duration::from_secs(30) };
        assert_eq!(how_far(&silent, 2048, None), "no answer within 30s after all of it was sent, 2 KiB");
    }

    #[test]
    fn what_the_server_refuses_is_not_sent_again() {
        let retried: Vec<u16> =
            (400..600).filter(|status| is_worth_another(&answered(*status, None))).collect();
        assert_eq!(retried, [502, 503, 504]);
    }

    #[test]
    fn a_server_that_says_nothing_to_all_of_it_gets_one_more_chance() {
        let mut attempts = Attempts { made: 1, silences: 0, start: Start::Swift, may_be_kept: false };
        let policy = RetryPolicy { attempts: 12, ..RetryPolicy::default() };
        assert_eq!(attempts.most(&Failure::Refused, policy), 12);
        let silent = Failure::NoAnswer { after: Duration::from_secs(30) };
        assert_eq!(attempts.most(&silent, policy), 2);
        attempts.made = 2;
        assert_eq!(attempts.most(&silent, policy), 2);
    }

    #[test]
    fn the_servers_wish_to_wait_is_honoured_within_a_minute() {
        let backoff = Backoff::default();
        assert_eq!(wait(&backoff, 1, &answered(503, Some(7))), Duration::from_secs(7));
        assert_eq!(wait(&backoff, 1, &answered(503, Some(86_400))), LONGEST_RETRY_AFTER);
        assert!(wait(&backoff, 1, &answered(503, None)) <= backoff.first);
    }
}
