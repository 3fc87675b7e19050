//! Waiting for something to become true, with a bound.

use std::future::Future;
use std::time::Duration;

/// Far more than anything here takes; reached only when a test fails.
pub const BOUND: Duration = Duration::from_secs(30);

/// Looks again and again until `condition` holds, and fails with `what` if it does not in time.
pub async fn until<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let looking = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(BOUND, looking).await.is_ok(), "waited in vain until {what}");
}

/// [`until`] for conditions that need no waiting themselves.
pub async fn until_true(what: &str, mut condition: impl FnMut() -> bool) {
    until(what, || std::future::ready(condition())).await;
}
