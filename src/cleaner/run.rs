//! The loop.

use std::time::Duration;

use super::Sweeper;
use crate::shutdown::Shutdown;
use crate::telemetry::chain;

/// Sweeps every `interval` until the server stops. A pass that fails is logged and the next one tries again.
pub async fn run(mut sweeper: Sweeper, interval: Duration, shutdown: Shutdown) {
    loop {
        match sweeper.sweep().await {
            Ok(swept) => swept.log(),
            Err(error) => {
                tracing::error!(error = %chain(&error), "the sweep failed; the next one tries again");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = shutdown.requested() => return,
        }
    }
}
