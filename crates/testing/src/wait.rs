//! Waiting for something to become true, with a bound.

use std::future::Future;
use std::time::Duration;

/// Far longer than any wait here takes: only a failing test reaches it.
pub const BOUND: Duration = Duration::from_secs(30);

/// Waits until `condition` holds. If it does not hold in time, the test fails with `what`.
pub async fn until<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let looking = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(BOUND, looking).await.is_ok(), "waited in vain until {what}");
}

/// [`until`] for conditions that are not asynchronous.
pub async fn until_true(what: &str, mut condition: impl FnMut() -> bool) {
    until(what, || std::future::ready(condition())).await;
}
