//! The order to stop, which all parts of the process can see at the same time.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// SIGXFSZ on every Linux target of Rust's tier 1 (signal(7)).
const SIGXFSZ: i32 = 25;

/// Whether the process was asked to stop, and whether it must stop at once. Clones share the state.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    requested: CancellationToken,
    hurried: CancellationToken,
}

impl Shutdown {
    /// Asks all parts to stop as soon as they have finished their current work.
    pub fn request(&self) {
        self.requested.cancel();
    }

    /// Whether a stop was requested.
    pub fn is_requested(&self) -> bool {
        self.requested.is_cancelled()
    }

    /// Waits until a stop is requested.
    pub async fn requested(&self) {
        self.requested.cancelled().await;
    }

    /// Asks all parts to stop at once.
    pub fn hurry(&self) {
        self.request();
        self.hurried.cancel();
    }

    /// Waits until a stop at once is requested.
    pub async fn hurried(&self) {
        self.hurried.cancelled().await;
    }

    /// Requests a stop at the first SIGTERM (from Kubernetes) or SIGINT (from a terminal), and a stop at once at the
    /// second one.
    pub fn on_signals(&self) -> std::io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        // By default SIGXFSZ ends the process. A limit on the size of files should only fail the write that exceeds it.
        // A listener that ignores the signal is enough for that.
        let too_large = signal(SignalKind::from_raw(SIGXFSZ))?;
        // SIGUSR1 and SIGUSR2 mean nothing here. Listening for them keeps them from ending the process.
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
