//! When to stop, told to everybody at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Whether the process was asked to stop. Clones share the answer.
#[derive(Debug, Clone, Default)]
pub struct Shutdown(CancellationToken);

impl Shutdown {
    /// Asks everybody to stop.
    pub fn request(&self) {
        self.0.cancel();
    }

    /// Whether anybody did.
    pub fn is_requested(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Returns when somebody does.
    pub async fn requested(&self) {
        self.0.cancelled().await;
    }

    /// Asks everybody to stop at SIGTERM (Kubernetes) or SIGINT (a terminal).
    pub fn on_signals(&self) -> std::io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let shutdown = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => tracing::info!("got SIGTERM"),
                _ = interrupt.recv() => tracing::info!("got SIGINT"),
            }
            shutdown.request();
        });
        Ok(())
    }
}
