//! When to stop, told to everybody at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The number on every Linux that Rust's tier 1 has (signal(7)).
const SIGXFSZ: i32 = 25;

/// Whether the process was asked to stop, and whether to do so without waiting. Clones share the answer.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    requested: CancellationToken,
    hurried: CancellationToken,
}

impl Shutdown {
    /// Asks everybody to stop when they have finished what they are at.
    pub fn request(&self) {
        self.requested.cancel();
    }

    /// Whether anybody did.
    pub fn is_requested(&self) -> bool {
        self.requested.is_cancelled()
    }

    /// Returns when somebody does.
    pub async fn requested(&self) {
        self.requested.cancelled().await;
    }

    /// Asks everybody to stop now.
    pub fn hurry(&self) {
        self.request();
        self.hurried.cancel();
    }

    /// Returns when somebody does.
    pub async fn hurried(&self) {
        self.hurried.cancelled().await;
    }

    /// Asks everybody to stop at SIGTERM (Kubernetes) or SIGINT (a terminal), and to hurry at the next of them.
    pub fn on_signals(&self) -> std::io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        // Its default is to end the process, where a limit on the size of files should only fail the write that
        // passes it. Listening for it is enough.
        let too_large = signal(SignalKind::from_raw(SIGXFSZ))?;
        // They mean nothing here, and are no reason to end.
        let users = [signal(SignalKind::user_defined1())?, signal(SignalKind::user_defined2())?];
        let mut next = async move || {
            tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            }
        };
        let shutdown = self.clone();
        tokio::spawn(async move {
            let _listening = (too_large, users);
            tracing::info!("got {}: finishing what is in flight", next().await);
            shutdown.request();
            tracing::info!("got {} again: stopping at once", next().await);
            shutdown.hurry();
        });
        Ok(())
    }
}
