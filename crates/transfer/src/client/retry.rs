//! The rules for repeating requests: for how long, after which wait, and what the user is told.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::address::ServerAddress;
use super::failure::Failure;
use super::http::HttpClient;
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::retry::{Backoff, Failures};
use cloakroom_core::time::format_duration;

/// How long to try a server that is known to be there. In this time a server that is replaced finishes its work and its
/// successor starts, and a server with a bucket goes on after its node is lost.
const AFTER_AN_ANSWER: Duration = Duration::from_mins(2);
/// How long to try if no server has ever answered. The address may be wrong, and then a shorter time is better.
const WITHOUT_AN_ANSWER: Duration = Duration::from_secs(30);
/// How long to try if DNS does not know the name. Such a name is mistyped more often than new.
const LONGEST_LOOKUP: Duration = Duration::from_secs(5);
/// How long to try for requests that tidy up. A replaced server is away for less than this.
const BRIEF: Duration = Duration::from_secs(5);
/// The waits between attempts while a person waits.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(200),
    longest: Duration::from_secs(2),
    longest_asked: Duration::from_mins(1),
};

/// How many small requests may end without any answer.
const MOST_SILENCES: u32 = 3;

/// How many uploads may lose their answer. Each of them may have left a bundle that expires unused.
const MOST_LOST: u32 = 12;

/// If an upload goes on for this long before it breaks, the failures before it are over.
const LASTING: Duration = Duration::from_secs(10);
/// How many such uploads there may be. If every upload is cut in the middle, the attempts must end.
const MOST_ROWS: u32 = 10;

/// Receives a notice before a request is repeated.
pub type Told<'a> = &'a (dyn Fn(&RetryNotice) + Send + Sync);

/// For how long a request is repeated, and after which waits. Time counts from the first failure in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How long to try if the server has answered in this run of the program, or if the API server answers that no pod of
    /// its Service can be reached. An error counts, too.
    pub after_an_answer: Duration,
    /// How long to try if nothing has ever answered.
    pub without_an_answer: Duration,
    /// A number of attempts instead of a time, however long they take. 0 counts as 1.
    pub attempts: Option<u32>,
    /// The waits between attempts.
    pub backoff: Backoff,
}

/// Two minutes for a server that has answered, 30 s for one that never has.
impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            after_an_answer: AFTER_AN_ANSWER,
            without_an_answer: WITHOUT_AN_ANSWER,
            attempts: None,
            backoff: BACKOFF,
        }
    }
}

impl RetryPolicy {
    /// The same time limit for every server.
    pub fn within(limit: Duration) -> Self {
        Self { after_an_answer: limit, without_an_answer: limit, ..Self::default() }
    }

    /// A limit of a few seconds, for requests that tidy up while a person waits.
    pub fn brief() -> Self {
        Self::within(BRIEF)
    }

    /// The same policy for a server that is known to have answered.
    pub fn answered(self) -> Self {
        Self { without_an_answer: self.after_an_answer, ..self }
    }

    fn limit(&self, failure: &Failure, has_answered: bool) -> Duration {
        match failure {
            _ if has_answered => self.after_an_answer,
            // Its Service is there.
            Failure::Way { status: Some(502..=504), .. } => self.after_an_answer,
            Failure::UnknownHost { .. } => self.without_an_answer.min(LONGEST_LOOKUP),
            _ => self.without_an_answer,
        }
    }
}

/// The limit of the attempts that follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// A number of attempts.
    Number {
        /// The number of the next attempt, from 2.
        next: u32,
        /// The largest number of attempts.
        most: u32,
        /// The wait before the next attempt.
        wait: Duration,
    },
    /// A time since the first failure in a row.
    Time(Duration),
}

/// A failed attempt, after which others follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryNotice {
    pub server: ServerAddress,
    pub failure: Failure,
    /// The progress of an upload, in words for the user; `None` if nothing was sent.
    pub progress: Option<String>,
    /// The limit of the attempts that follow.
    pub bound: Bound,
}

/// One line for the user.
impl fmt::Display for RetryNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, failure, progress, bound } = self;
        match bound {
            Bound::Number { next, most, wait } => {
                let wait = Duration::from_millis(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
                let why = progress.clone().unwrap_or_else(|| failure.to_string());
                write!(f, "{why}; attempt {next} of {most} in {}", format_duration(wait))
            }
            Bound::Time(limit) => {
                let limit = format_duration(*limit);
                match (failure, progress) {
                    (Failure::Answered(answer), _) if is_shutting_down(failure) => write!(
                        f,
                        "the staging server at {server} is being replaced ({} {}): trying again for up to {limit}",
                        answer.status,
                        Code::ShuttingDown.as_str()
                    ),
                    (Failure::Answered(answer), _) => {
                        write!(
                            f,
                            "the staging server at {server} says: {answer}; trying again for up to {limit}"
                        )
                    }
                    (_, Some(progress)) => write!(f, "{progress}; trying again for up to {limit}"),
                    (Failure::NoToken { why, .. } | Failure::Way { why, .. }, _) => {
                        write!(f, "{why}; trying again for up to {limit}")
                    }
                    _ => write!(
                        f,
                        "the staging server at {server} does not answer ({failure}): waiting up to {limit} for it"
                    ),
                }
            }
        }
    }
}

fn is_shutting_down(failure: &Failure) -> bool {
    matches!(failure, Failure::Answered(answer) if answer.has_code(Code::ShuttingDown))
}

/// How many attempts there were, or for how long. In messages it follows the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    /// One attempt.
    Once,
    /// This number of attempts.
    Times(u32),
    /// This time since the first failure.
    For(Duration),
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Once => Ok(()),
            Self::Times(attempts) => write!(f, " ({attempts} attempts)"),
            Self::For(time) => {
                write!(f, " (tried for {})", format_duration(Duration::from_secs(time.as_secs())))
            }
        }
    }
}

/// A small request that failed, with no further attempt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{failure}{tried}")]
pub struct GivenUp {
    pub failure: Failure,
    /// How many attempts there were, or for how long.
    pub tried: Tried,
}

/// One failed attempt.
pub(super) struct Attempt<'a> {
    pub failure: &'a Failure,
    pub began: Instant,
    pub ended: Instant,
    /// Whether the server has answered in this run of the program.
    pub has_answered: bool,
    /// Whether the server may have done what the request asks for, and only its answer was lost.
    pub may_be_done: bool,
}

/// The next attempt after a failed one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Again {
    pub wait: Duration,
    pub bound: Bound,
    /// Whether to tell the user, which happens once for each time limit.
    pub is_news: bool,
}

/// The failures of one request.
pub(super) struct Retries {
    policy: RetryPolicy,
    most_silences: u32,
    attempts: u32,
    silences: u32,
    lost: u32,
    rows: u32,
    since: Option<Instant>,
    /// Whether an upload went on for so long that a server must be there, although no answer came.
    has_lasted: bool,
    /// The failures in this row. Each bound in time is told once.
    failures: Failures<Duration>,
}

impl Retries {
    pub(super) fn new(policy: RetryPolicy, most_silences: u32) -> Self {
        Self {
            policy,
            most_silences,
            attempts: 0,
            silences: 0,
            lost: 0,
            rows: 0,
            since: None,
            has_lasted: false,
            failures: Failures::default(),
        }
    }

    /// The next attempt after `attempt`; `None` if that was the last one. `random` is from 0 to 1.
    pub(super) fn after(&mut self, attempt: &Attempt<'_>, random: f64) -> Option<Again> {
        let failure = attempt.failure;
        let since = self.begin_row(attempt);
        self.attempts += 1;
        self.silences += u32::from(failure.is_silence());
        self.lost += u32::from(attempt.may_be_done);
        let is_enough = self.silences >= self.most_silences || self.lost >= MOST_LOST;
        if is_enough || !failure.is_transient() {
            return None;
        }
        let wait = self.failures.wait(&self.policy.backoff, failure.retry_after(), random);
        if let Some(most) = self.policy.attempts {
            let next = self.attempts + 1;
            let bound = Bound::Number { next, most, wait };
            return (next <= most).then_some(Again { wait, bound, is_news: true });
        }
        let limit = self.policy.limit(failure, attempt.has_answered || self.has_lasted);
        let left = limit.saturating_sub(attempt.ended - since);
        let is_news = self.failures.is_news(limit);
        (!left.is_zero()).then(|| Again { wait: wait.min(left), bound: Bound::Time(limit), is_news })
    }

    /// Returns when the current row of failures began. `attempt` may begin a new row.
    fn begin_row(&mut self, attempt: &Attempt<'_>) -> Instant {
        let has_lasted = attempt.failure.is_break() && attempt.ended - attempt.began >= LASTING;
        self.has_lasted |= has_lasted;
        match self.since {
            Some(since) if !has_lasted || self.rows >= MOST_ROWS => since,
            _ => {
                self.rows += 1;
                self.failures.end();
                *self.since.insert(attempt.ended)
            }
        }
    }

    /// How many attempts there were up to `last`, or for how long.
    pub(super) fn tried(&self, last: &Attempt<'_>) -> Tried {
        let time = self.since.map_or(Duration::ZERO, |since| last.ended - since);
        match self.attempts {
            0 | 1 => Tried::Once,
            _ if self.policy.attempts.is_none() && !last.failure.is_silence() && time.as_secs() > 0 => {
                Tried::For(time)
            }
            attempts => Tried::Times(attempts),
        }
    }
}

impl HttpClient {
    /// Repeats a small request to `server` until it succeeds, fails for good, or the limit is reached.
    pub async fn retried<T, F>(
        &self,
        server: &ServerAddress,
        policy: RetryPolicy,
        told: Told<'_>,
        request: impl Fn() -> F,
    ) -> Result<T, GivenUp>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let mut retries = Retries::new(policy, MOST_SILENCES);
        loop {
            let began = Instant::now();
            let failure = match request().await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let (ended, has_answered) = (Instant::now(), self.has_answered());
            let attempt = Attempt { failure: &failure, began, ended, has_answered, may_be_done: false };
            let Some(again) = retries.after(&attempt, rand::random()) else {
                let tried = retries.tried(&attempt);
                return Err(GivenUp { failure, tried });
            };
            if again.is_news {
                let (server, bound) = (server.clone(), again.bound);
                told(&RetryNotice { server, failure, progress: None, bound });
            }
            tokio::time::sleep(again.wait).await;
        }
    }
}

#[cfg(test)]
mod tests;
