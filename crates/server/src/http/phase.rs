//! The phases of the server. Each phase has its own routes.

use std::sync::OnceLock;

use axum::Router;

use super::router::{self, Entrance, Serves};
use super::state::AppState;
use crate::shutdown::Shutdown;

/// A phase of the server. The server never goes back to an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The server waits for the data directory, or finishes what a crash interrupted.
    Starting,
    /// The server lets all requests in.
    Serving,
    /// The server finishes the requests that it has let in, and lets no others in.
    Stopping,
}

/// The routes of one listener for each phase.
pub(super) struct Phases {
    serves: Serves,
    entrance: Entrance,
    shutdown: Shutdown,
    starting: Router,
    /// Set when the start is over, because these routes need a state that does not exist before.
    later: OnceLock<Later>,
}

struct Later {
    serving: Router,
    stopping: Router,
}

impl Phases {
    pub(super) fn new(serves: Serves, entrance: Entrance, shutdown: Shutdown) -> Self {
        let starting = router::starting(serves, &entrance);
        Self { serves, entrance, shutdown, starting, later: OnceLock::new() }
    }

    /// Ends the start.
    pub(super) fn serve(&self, state: &AppState) {
        self.later.get_or_init(|| Later {
            serving: router::serving(self.serves, state, &self.entrance),
            stopping: router::stopping(self.serves, state, &self.entrance),
        });
    }

    /// The present phase, and its routes.
    pub(super) fn now(&self) -> (Phase, Router) {
        match self.later.get() {
            None => (Phase::Starting, self.starting.clone()),
            Some(later) if self.shutdown.is_requested() => (Phase::Stopping, later.stopping.clone()),
            Some(later) => (Phase::Serving, later.serving.clone()),
        }
    }
}
