//! The loop.

use std::time::Duration;

use super::Sweeper;
use crate::shutdown::Shutdown;

/// Sweeps every `interval` until the server stops. A pass that fails is logged and the next one tries again.
pub async fn run(mut sweeper: Sweeper, interval: Duration, shutdown: Shutdown) {
    loop {
        match sweeper.sweep().await {
            Ok(swept) if swept.expired > 0 || !swept.recovered.is_nothing() => tracing::info!(
                expired = swept.expired,
                interrupted_uploads = swept.recovered.uploads,
                interrupted_deletions = swept.recovered.deletions,
                orphans = swept.recovered.orphans,
                "swept"
            ),
            Ok(_) => tracing::debug!("swept, nothing to do"),
            Err(error) => {
                tracing::error!(error = %error_text(&error), "the sweep failed; the next one tries again")
            }
        }
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = shutdown.requested() => return,
        }
    }
}

fn error_text(error: &dyn std::error::Error) -> String {
    crate::telemetry::chain(error)
}
