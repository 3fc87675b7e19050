//! Signals that stop a submission, and the exit code for each of them.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::commands::screen::Screen;

/// 128 plus the number of SIGTERM, as shells report it.
const EXIT_TERMINATED: u8 = 143;
/// The same for SIGINT.
const EXIT_INTERRUPTED: u8 = 130;
/// The same for SIGHUP.
const EXIT_HUNG_UP: u8 = 129;

/// SIGINT, SIGTERM and SIGHUP (the terminal is closed): the first one stops the work, a second one ends the process at
/// once.
pub struct Signals {
    /// Cancelled by the first signal.
    pub stop: CancellationToken,
    exit_code: Arc<AtomicU8>,
}

impl Signals {
    /// Starts to listen. Before a signal ends the process, the progress lines on `screen` are removed.
    pub fn watch(screen: &Screen) -> anyhow::Result<Self> {
        let mut interrupted = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
        let mut terminated = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
        let mut hung_up = hang_up()?;
        let signals = Self { stop: CancellationToken::new(), exit_code: Arc::default() };
        let (stop, exit_code) = (signals.stop.clone(), Arc::clone(&signals.exit_code));
        let screen = screen.clone();
        tokio::spawn(async move {
            loop {
                let code = tokio::select! {
                    _ = interrupted.recv() => EXIT_INTERRUPTED,
                    _ = terminated.recv() => EXIT_TERMINATED,
                    () = next(hung_up.as_mut()) => EXIT_HUNG_UP,
                };
                if stop.is_cancelled() {
                    screen.clear();
                    std::process::exit(code.into());
                }
                exit_code.store(code, Ordering::Relaxed);
                stop.cancel();
            }
        });
        Ok(signals)
    }

    /// The exit code for the first signal.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit_code.load(Ordering::Relaxed))
    }
}

/// Under `nohup` the signal is ignored from the start, and listening would undo that.
fn hang_up() -> anyhow::Result<Option<Signal>> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if ignores_hang_up(&status) {
        return Ok(None);
    }
    signal(SignalKind::hangup()).context("cannot wait for SIGHUP").map(Some)
}

/// Reads the line `SigIgn` of `proc_pid_status(5)`: a hexadecimal mask of 64 bits, whose lowest bit is SIGHUP's.
fn ignores_hang_up(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Returns when the signal comes; never without a listener.
async fn next(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_is_ignored_from_the_start_is_known() {
        for (status, expected) in [
            ("Name:\tx\nSigIgn:\t0000000000001001\n", true),
            ("SigIgn:\t0000000000001000\n", false),
            ("", false),
        ] {
            assert_eq!(ignores_hang_up(status), expected, "{status}");
        }
    }
}
