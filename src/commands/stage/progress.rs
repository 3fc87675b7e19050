//! How an upload gets on: a bar on a terminal, a line for each event elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use cloakroom::client::{RetryNotice, StageObserver, StageRequest};
use cloakroom::spark::format_size;

const BAR: &str = "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";

/// Shows the progress of one upload on stderr.
pub struct StageProgress {
    bar: ProgressBar,
}

impl StageProgress {
    /// Begins to show it; only retries if `quiet`.
    pub fn start(request: &StageRequest, quiet: bool) -> Self {
        let total_bytes = request.plan.total_bytes();
        let on_terminal = std::io::stderr().is_terminal();
        if !quiet && !on_terminal {
            let (count, size) = (request.plan.files().len(), format_size(total_bytes));
            let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
            eprintln!("staging {files}, {size}, to {}", request.server);
        }
        let target =
            if quiet || !on_terminal { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let style = ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self { bar: ProgressBar::with_draw_target(Some(total_bytes), target).with_style(style) }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl StageObserver for StageProgress {
    fn packed(&self, read_bytes: u64) {
        self.bar.set_position(read_bytes);
    }

    fn retrying(&self, notice: &RetryNotice) {
        self.bar.suspend(|| eprintln!("{notice}"));
        self.bar.reset();
    }
}
