//! How an upload gets on: a bar on a terminal, a line for each event elsewhere.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget};

use cloakroom_core::size::format_size;
use cloakroom_submit::{BundleKind, Uploading};
use cloakroom_transfer::client::{RetryNotice, StageObserver};

use crate::commands::screen::{Screen, columns, template};

/// What follows the bar: `120.00 MiB of 300.00 MiB, 85.00 MiB/s, 2s left`.
const FIGURES: &str = "{bytes} of {total_bytes}, {bytes_per_sec}{left}";
/// Once everything was read: the server makes it durable before it answers.
const AWAITED: &str = "{prefix}all of {total_bytes} sent, waiting for the server's answer for {elapsed}";
/// Where it is tried again.
const WAITING: &str = "{spinner} {prefix}waiting for the staging server";
/// As much room as the figures take, with what stands before the bar.
const COLUMNS_OF_FIGURES: usize = 60;
const LONGEST_BAR: usize = 40;
/// A shorter one says nothing.
const SHORTEST_BAR: usize = 8;

/// The upload that is shown among others, one after the other.
#[derive(Default)]
pub struct Uploads(Mutex<Option<Arc<StageProgress>>>);

impl Uploads {
    /// Begins to show the next one.
    pub fn begin(&self, progress: StageProgress) -> Arc<StageProgress> {
        let progress = Arc::new(progress);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&progress));
        progress
    }

    /// Takes its bar away.
    pub fn end(&self) {
        if let Some(upload) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            upload.end();
        }
    }
}

/// Shows the progress of one upload on stderr.
pub struct StageProgress {
    screen: Screen,
    bar: ProgressBar,
    total_bytes: u64,
    style: String,
    /// Who is told to be waited for; nobody is, if it is quiet.
    server: Option<String>,
    /// All of it was sent.
    is_awaited: AtomicBool,
    /// It is not there, or not ready.
    is_away: AtomicBool,
}

impl StageProgress {
    /// Begins to show it; only retries if `quiet`.
    pub fn start(upload: &Uploading, quiet: bool) -> Self {
        let screen = if quiet { Screen::plain() } else { Screen::stderr() };
        if quiet {
            return Self::on(screen, "", upload, None);
        }
        screen.tell(&announced(upload));
        Self::on(screen, "", upload, Some(upload.server.clone()))
    }

    /// Begins to show it on a screen where there is more than that.
    pub fn among_others(screen: &Screen, what: BundleKind, upload: &Uploading) -> Self {
        screen.tell(&announced(upload));
        Self::on(screen.clone(), &format!("{what} "), upload, Some(upload.server.clone()))
    }

    fn on(screen: Screen, prefix: &str, upload: &Uploading, server: Option<String>) -> Self {
        let total_bytes = upload.size_bytes;
        let style = style(columns());
        // The screen is where it is drawn.
        let bar = ProgressBar::with_draw_target(Some(total_bytes), ProgressDrawTarget::hidden());
        let bar = screen.draw(bar.with_prefix(prefix.to_owned()), &style);
        Self {
            screen,
            bar,
            total_bytes,
            style,
            server,
            is_awaited: AtomicBool::default(),
            is_away: AtomicBool::default(),
        }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

fn announced(upload: &Uploading) -> String {
    let (count, size) = (upload.files, format_size(upload.size_bytes));
    let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    format!("staging {files}, {size}, to {}", upload.server)
}

/// The figures are more than the bar where there is little room.
fn style(columns: usize) -> String {
    let room = columns.saturating_sub(COLUMNS_OF_FIGURES).min(LONGEST_BAR);
    let bar = if room < SHORTEST_BAR { String::new() } else { format!("{{bar:{room}}} ") };
    format!("{{prefix}}{bar}{FIGURES}")
}

impl StageObserver for StageProgress {
    fn packed(&self, read_bytes: u64) {
        if self.is_away.swap(false, Ordering::Relaxed) {
            self.bar.reset();
            self.bar.set_style(template(&self.style));
        }
        self.bar.set_position(read_bytes);
        if read_bytes >= self.total_bytes && !self.is_awaited.swap(true, Ordering::Relaxed) {
            self.bar.reset_elapsed();
            self.bar.set_style(template(AWAITED));
        }
    }

    /// A terminal has the line below.
    fn awaiting_answer(&self) {
        if let Some(server) = self.server.as_ref().filter(|_| !self.screen.is_live()) {
            self.screen.tell(&format!("all of it is sent; waiting for the answer of {server}"));
        }
    }

    fn retrying(&self, notice: Option<&RetryNotice>) {
        if let Some(notice) = notice {
            self.screen.tell(&notice.to_string());
        }
        self.is_awaited.store(false, Ordering::Relaxed);
        self.is_away.store(true, Ordering::Relaxed);
        self.bar.set_style(template(WAITING));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_takes_what_the_figures_leave() {
        assert!(style(200).contains("{bar:40} {bytes}") && style(80).contains("{bar:20} {bytes}"));
        for columns in [40, 67] {
            assert_eq!(style(columns), format!("{{prefix}}{FIGURES}"));
        }
    }
}
