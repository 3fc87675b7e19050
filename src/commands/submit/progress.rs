//! How uploads get on: a bar on a terminal, and a line in Spark's format for each that has ended.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::commands::stage::progress::StageProgress;

use cloakroom::client::{StageObserver, StageRequest};
use cloakroom::protocol::v1::Ticket;
use cloakroom::spark::format_size;
use cloakroom::submit::stage::Uploads;
use cloakroom::submit::{Level, Log};

/// Who says it.
const LOGGER: &str = "Staging";

/// Shows one upload after the other.
pub struct Progress<'a> {
    log: &'a Log,
    current: Mutex<Option<(Arc<StageProgress>, Instant)>>,
}

impl<'a> Progress<'a> {
    /// Nothing is shown yet.
    pub fn new(log: &'a Log) -> Self {
        Self { log, current: Mutex::new(None) }
    }
}

impl Uploads for Progress<'_> {
    fn begins(&self, _: &'static str, request: &StageRequest) -> Arc<dyn StageObserver> {
        let progress = Arc::new(StageProgress::start(request, false));
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
            self.log.say(Level::Info, LOGGER, &message);
        }
    }
}
