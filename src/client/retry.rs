//! Small requests, made again where another attempt may have another outcome.

use super::failure::Failure;
use super::stage::RetryPolicy;

/// So often is waited for an answer that does not come.
const MOST_SILENCES: u32 = 3;

/// Makes a request until it succeeds, fails for good, or has been made often enough: a server that is being replaced is
/// back soon, and one that says nothing is not waited for again and again.
pub async fn retried<T>(
    policy: RetryPolicy,
    request: impl AsyncFn() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (mut failures, mut silences) = (0, 0);
    loop {
        match request().await {
            Err(failure) if failure.is_transient() && failures + 1 < policy.attempts => {
                failures += 1;
                silences += u32::from(failure.is_silence());
                if silences == MOST_SILENCES {
                    return Err(failure);
                }
            }
            outcome => return outcome,
        }
        tokio::time::sleep(policy.backoff.delay(failures, rand::random())).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::super::backoff::Backoff;
    use super::*;

    async fn attempts(failure: Failure) -> u32 {
        let backoff = Backoff { first: Duration::ZERO, longest: Duration::ZERO };
        let made = Cell::new(0);
        let outcome = retried(RetryPolicy { attempts: 5, backoff }, async || {
            made.set(made.get() + 1);
            Err::<(), _>(failure.clone())
        });
        assert_eq!(outcome.await, Err(failure.clone()));
        made.get()
    }

    #[tokio::test]
    async fn whoever_says_nothing_is_asked_less_often_than_whoever_is_not_there_yet() {
        assert_eq!(attempts(Failure::Refused).await, 5);
        assert_eq!(attempts(Failure::NoAnswer { after: Duration::from_secs(10) }).await, 3);
        assert_eq!(attempts(Failure::UnknownIssuer).await, 1);
    }
}
