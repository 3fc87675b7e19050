//! Which failed calls are made again, and after which pause. The rules are those of Spark's client.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::ApiFailure;
use cloakroom_core::retry::{Backoff, Failures, WITHOUT_JITTER};

/// The number of attempts. It and the waits between them were measured with Spark 4.3.
const MOST_ATTEMPTS: u32 = 4;
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(100),
    longest: Duration::from_millis(400),
    longest_asked: Duration::from_mins(1),
};

/// How long a call is tried.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    /// After this is cancelled, no further attempt is made.
    pub stop: &'a CancellationToken,
    /// Whether a call is made again after a timeout.
    pub after_timeouts: bool,
}

/// Makes a call, and makes it again after a failure that may be transient.
pub async fn retried<T, F>(patience: Patience<'_>, call: impl Fn() -> F) -> Result<T, ApiFailure>
where
    F: Future<Output = Result<T, ApiFailure>>,
{
    retried_with_doubt(patience, call).await.0
}

/// The same. The second value says whether an attempt without a clear answer may have had an effect.
pub async fn retried_with_doubt<T, F>(
    patience: Patience<'_>,
    call: impl Fn() -> F,
) -> (Result<T, ApiFailure>, bool)
where
    F: Future<Output = Result<T, ApiFailure>>,
{
    let (mut failures, mut was_ambiguous) = (Failures::<()>::default(), false);
    loop {
        let failure = match call().await {
            Ok(answer) => return (Ok(answer), was_ambiguous),
            Err(failure) => failure,
        };
        was_ambiguous |= is_ambiguous(&failure);
        let wait = failures.wait(&BACKOFF, failure.retry_after(), WITHOUT_JITTER);
        if failures.count() == MOST_ATTEMPTS || !is_worth_another(&failure, patience) {
            return (Err(failure), was_ambiguous);
        }
        tracing::debug!(error = %failure, "the API server is asked again");
        tokio::select! {
            () = sleep(wait) => {}
            () = patience.stop.cancelled() => return (Err(failure), was_ambiguous),
        }
    }
}

fn is_worth_another(failure: &ApiFailure, patience: Patience<'_>) -> bool {
    let is_transient = match failure {
        ApiFailure::TimedOut { .. } => patience.after_timeouts,
        failure => failure.is_transient(),
    };
    is_transient && !patience.stop.is_cancelled()
}

/// Whether the call may have had its effect in spite of this failure.
pub fn is_ambiguous(failure: &ApiFailure) -> bool {
    matches!(
        failure,
        ApiFailure::Unreachable { .. }
            | ApiFailure::TimedOut { .. }
            | ApiFailure::Unreadable { .. }
            | ApiFailure::Refused { code: 500.., .. }
    )
}

/// That no connection to the API server at this address is possible, in words for the user of a submission.
pub fn unreachable(address: &str, why: &str) -> String {
    format!(
        "the API server at {address} cannot be reached: {why}: check --master, the network between here and there, and \
         whether it runs"
    )
}

/// A failure in words for the user of a submission.
pub fn said(failure: &ApiFailure) -> String {
    match failure {
        ApiFailure::Unauthorized { message } => {
            format!("the API server does not accept the credentials (401 {message})")
        }
        ApiFailure::Forbidden { message } => format!("the API server does not allow it (403 {message})"),
        ApiFailure::Refused { code: code @ 300..400, message } => {
            format!("what answers is no API server ({code}, {message})")
        }
        failure => failure.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn refused(code: u16) -> ApiFailure {
        ApiFailure::Refused { code, message: String::new() }
    }

    fn throttled(seconds: Option<u64>) -> ApiFailure {
        ApiFailure::Throttled { message: String::new(), retry_after: seconds.map(Duration::from_secs) }
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let stop = CancellationToken::new();
        let patience = Patience { stop: &stop, after_timeouts: false };
        let message = String::new;
        let timed_out = ApiFailure::TimedOut { after: Duration::from_secs(1) };
        for (failure, expected) in [
            (refused(500), true),
            (refused(503), true),
            (throttled(None), true),
            (ApiFailure::Unreachable { why: message() }, true),
            (refused(409), false),
            (refused(422), false),
            (ApiFailure::Forbidden { message: message() }, false),
            (ApiFailure::Unauthorized { message: message() }, false),
            (ApiFailure::NotFound { message: message() }, false),
            (timed_out.clone(), false),
        ] {
            assert_eq!(is_worth_another(&failure, patience), expected, "{failure}");
        }
        assert!(is_worth_another(&timed_out, Patience { after_timeouts: true, ..patience }));
        stop.cancel();
        assert!(!is_worth_another(&refused(500), patience));
    }

    #[test]
    fn an_api_server_that_asks_for_time_gets_it() {
        for (failure, expected) in [
            (refused(500), BACKOFF.first),
            (throttled(None), BACKOFF.first),
            (throttled(Some(0)), BACKOFF.first),
            (throttled(Some(2)), Duration::from_secs(2)),
            (throttled(Some(10_000)), BACKOFF.longest_asked),
        ] {
            let mut failures = Failures::<()>::default();
            assert_eq!(failures.wait(&BACKOFF, failure.retry_after(), WITHOUT_JITTER), expected);
        }
    }

    #[tokio::test]
    async fn a_call_is_made_four_times_at_most() {
        let stop = CancellationToken::new();
        let began = std::time::Instant::now();
        let count = Cell::new(0);
        let outcome = retried(Patience { stop: &stop, after_timeouts: true }, || {
            count.update(|count| count + 1);
            std::future::ready(Err::<(), _>(refused(500)))
        });
        assert_eq!(outcome.await, Err(refused(500)));
        assert_eq!(count.get(), 4);
        assert!(began.elapsed() >= Duration::from_millis(700));
    }

    #[tokio::test]
    async fn nothing_is_tried_again_once_it_is_to_stop() {
        let stop = CancellationToken::new();
        let count = Cell::new(0);
        let outcome = retried(Patience { stop: &stop, after_timeouts: true }, || {
            count.update(|count| count + 1);
            stop.cancel();
            std::future::ready(Err::<(), _>(refused(500)))
        });
        assert!(outcome.await.is_err());
        assert_eq!(count.get(), 1);
    }
}
