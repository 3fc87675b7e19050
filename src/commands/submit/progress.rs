//! How a submission gets on, on stderr: lines in Spark's format; on a terminal below them the upload that is under way,
//! and then how the application is.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::commands::screen::Screen;
use crate::commands::stage::progress::StageProgress;

use cloakroom::client::{RetryNotice, StageObserver, StageRequest};
use cloakroom::protocol::v1::Ticket;
use cloakroom::spark::format_size;
use cloakroom::submit::stage::Uploads;
use cloakroom::submit::{Level, Log, Status};

/// Who tells of uploads.
pub const STAGING: &str = "Staging";

/// `Running for 00:03:12, 4 executors`
const STATUS: &str = "{spinner} {prefix} for {elapsed_precise}{msg}";

/// The log of a submission. On a terminal the status line of Spark, which comes every second, is one line below the
/// others instead.
pub fn log(screen: &Screen) -> Log {
    let lines = screen.clone();
    let log = Log::new(move |text| lines.tell(text));
    if !screen.is_live() {
        return log;
    }
    let (screen, line) = (screen.clone(), Mutex::new(None));
    log.with_status(move |status| show(&screen, &line, status))
}

/// Times are counted from the beginning of a phase.
fn show(screen: &Screen, line: &Mutex<Option<ProgressBar>>, status: &Status) {
    let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
    let line = line.get_or_insert_with(|| {
        screen.draw(ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()), STATUS)
    });
    if line.prefix() != status.phase {
        line.reset_elapsed();
        line.set_prefix(status.phase.clone());
    }
    line.set_message(match status.executors {
        0 => String::new(),
        1 => ", 1 executor".to_owned(),
        more => format!(", {more} executors"),
    });
}

/// Shows one upload after the other.
pub struct Progress<'a> {
    screen: &'a Screen,
    log: &'a Log,
    current: Mutex<Option<(Arc<StageProgress>, Instant)>>,
}

impl<'a> Progress<'a> {
    /// Nothing is shown yet.
    pub fn new(screen: &'a Screen, log: &'a Log) -> Self {
        Self { screen, log, current: Mutex::new(None) }
    }
}

impl Uploads for Progress<'_> {
    fn begins(&self, what: &'static str, request: &StageRequest) -> Arc<dyn StageObserver> {
        let progress = Arc::new(StageProgress::among_others(self.screen, what, request));
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        *current = Some((Arc::clone(&progress), Instant::now()));
        progress
    }

    fn ends(&self, what: &'static str, ticket: Option<&Ticket>) {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((progress, started)) = current else { return };
        progress.end();
        if let Some(ticket) = ticket {
            let (id, size) = (&ticket.resource_id, format_size(ticket.size_bytes));
            let seconds = started.elapsed().as_secs_f64();
            let message = format!("Staged the {what}, {size}, as {id} in {seconds:.1} s");
            self.log.say(Level::Info, STAGING, &message);
        }
    }
    fn waits(&self, notice: &RetryNotice) {
        self.screen.tell(&notice.to_string());
    }
}
