//! The progress of an upload: a bar on a terminal, a line for each event elsewhere.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use cloakroom_core::lock::lock;
use cloakroom_core::size::format_size;
use cloakroom_submit::{BundleKind, Uploading};
use cloakroom_transfer::client::{RetryNotice, StageObserver};

use crate::commands::screen::{Screen, columns, template, transfer_style};

/// In place of bar and figures once everything is sent: the server makes it durable before it answers.
const AWAITED: &str = "{prefix}all of {total_bytes} sent, waiting for the server's answer for {elapsed}";
/// In place of bar and figures before another attempt.
const WAITING: &str = "{spinner} {prefix}waiting for the staging server";

/// How often a line tells how far an upload is where there is no bar.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// The progress of the current upload. Uploads of one run follow each other.
#[derive(Default)]
pub struct Uploads(Mutex<Option<Arc<StageProgress>>>);

impl Uploads {
    /// Starts to show the next upload.
    pub fn begin(&self, progress: StageProgress) -> Arc<StageProgress> {
        let progress = Arc::new(progress);
        *lock(&self.0) = Some(Arc::clone(&progress));
        progress
    }

    /// Removes the bar of the current upload.
    pub fn end(&self) {
        if let Some(upload) = lock(&self.0).take() {
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
    /// The server's address for the line about waiting; `None` if quiet.
    server: Option<String>,
    /// Whether everything was sent, so that the server's answer is awaited.
    is_awaited: AtomicBool,
    /// Whether the server does not answer or is not ready.
    is_away: AtomicBool,
    /// When the last line was printed, or the upload began.
    told: Mutex<Instant>,
}

impl StageProgress {
    /// Starts to show an upload; only its retries if `quiet`.
    pub fn start(screen: &Screen, upload: &Uploading, quiet: bool) -> Self {
        if quiet {
            return Self::on(screen.clone(), "", upload, None);
        }
        screen.tell(&announced(upload));
        Self::on(screen.clone(), "", upload, Some(upload.server.clone()))
    }

    /// Starts to show an upload on a screen that shows more than this upload.
    pub fn among_others(screen: &Screen, what: BundleKind, upload: &Uploading) -> Self {
        screen.tell(&announced(upload));
        Self::on(screen.clone(), &format!("{what} "), upload, Some(upload.server.clone()))
    }

    fn on(screen: Screen, prefix: &str, upload: &Uploading, server: Option<String>) -> Self {
        let total_bytes = upload.size_bytes;
        let style = transfer_style(columns());
        // The screen draws it, and no other target.
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
            told: Mutex::new(Instant::now()),
        }
    }

    /// The line about how far the upload is, if it is time for one.
    fn line(&self, read_bytes: u64, now: Instant) -> Option<String> {
        let mut told = lock(&self.told);
        if now.saturating_duration_since(*told) < LINE_EVERY {
            return None;
        }
        *told = now;
        Some(format!("{} of {} done", format_size(read_bytes), format_size(self.total_bytes)))
    }

    /// Removes the bar.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

fn announced(upload: &Uploading) -> String {
    let (count, size) = (upload.files, format_size(upload.size_bytes));
    let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    format!("staging {files}, {size}, to {}", upload.server)
}

/// The time alone, of another day with the date.
fn clock_time(at: &Zoned, now: &Zoned) -> String {
    let form = if at.date() == now.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    at.strftime(form).to_string()
}

impl StageObserver for StageProgress {
    fn packed(&self, read_bytes: u64) {
        if self.is_away.swap(false, Ordering::Relaxed) {
            self.bar.reset();
            self.bar.set_style(template(&self.style));
        }
        self.bar.set_position(read_bytes);
        if self.server.is_some()
            && !self.screen.is_live()
            && let Some(line) = self.line(read_bytes, Instant::now())
        {
            self.screen.tell(&line);
        }
        if read_bytes >= self.total_bytes && !self.is_awaited.swap(true, Ordering::Relaxed) {
            self.bar.reset_elapsed();
            self.bar.set_style(template(AWAITED));
        }
    }

    fn reused(&self, sent_bytes: u64, since: Timestamp) {
        if self.server.is_some() {
            let since = clock_time(&since.to_zoned(TimeZone::system()), &Zoned::now());
            let sent = format_size(sent_bytes);
            self.screen.tell(&format!("{sent} of it travelled: the server had the rest since {since}"));
        }
    }

    /// Prints a line, but not on a terminal: there the progress line says it.
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
    fn without_a_bar_a_line_every_half_minute_tells_how_far_it_is() {
        let upload = Uploading { files: 1, size_bytes: 3 << 30, server: "http://h:1".to_owned() };
        let progress = StageProgress::on(Screen::plain(), "", &upload, Some(upload.server.clone()));
        let begin = *progress.told.lock().unwrap();
        let at = |seconds, read_bytes| progress.line(read_bytes, begin + Duration::from_secs(seconds));
        assert_eq!(at(29, 1 << 30), None);
        assert_eq!(at(31, 1 << 30).as_deref(), Some("1 GiB of 3 GiB done"));
        assert_eq!(at(60, 2 << 30), None);
        assert_eq!(at(61, 2 << 30).as_deref(), Some("2 GiB of 3 GiB done"));
    }
}
