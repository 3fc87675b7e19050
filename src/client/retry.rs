//! Small requests, made again where another attempt may have another outcome.

use super::failure::Failure;
use super::stage::RetryPolicy;

/// Makes a request until it succeeds, fails for good, or has been made often enough: a server that is being replaced is
/// back soon.
pub async fn retried<T>(
    policy: RetryPolicy,
    request: impl AsyncFn() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut failures = 0;
    loop {
        match request().await {
            Err(failure) if failure.is_transient() && failures + 1 < policy.attempts => failures += 1,
            outcome => return outcome,
        }
        tokio::time::sleep(policy.backoff.delay(failures, rand::random())).await;
    }
}
