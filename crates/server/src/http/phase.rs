//! What the server is at, and what it answers meanwhile: each phase has routes of its own.

use std::sync::OnceLock;

use axum::Router;

use super::router::{self, Entrance, Serves};
use super::state::AppState;
use crate::shutdown::Shutdown;

/// What the server is at. It goes from one to the next and never back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It waits for the data directory, or puts right what a crash interrupted.
    Starting,
    /// All requests are let in.
    Serving,
    /// What was let in is finished; nothing else is let in.
    Stopping,
}

/// The routes of one listener in each phase.
pub(super) struct Phases {
    serves: Serves,
    entrance: Entrance,
    shutdown: Shutdown,
    starting: Router,
    /// With the state that they need: there is none before the start is over.
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

    /// The start is over.
    pub(super) fn serve(&self, state: &AppState) {
        self.later.get_or_init(|| Later {
            serving: router::serving(self.serves, state, &self.entrance),
            stopping: router::stopping(self.serves, state, &self.entrance),
        });
    }

    /// The phase of this moment, and the routes that belong to it.
    pub(super) fn now(&self) -> (Phase, Router) {
        match self.later.get() {
            None => (Phase::Starting, self.starting.clone()),
            Some(later) if self.shutdown.is_requested() => (Phase::Stopping, later.stopping.clone()),
            Some(later) => (Phase::Serving, later.serving.clone()),
        }
    }
}
