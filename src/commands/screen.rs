//! Messages on stderr. On a terminal, a progress line below them is redrawn when it changes.

use std::fmt;
use std::io::Write as _;
use std::time::Duration;

use cloakroom_core::text::harmless_lines;
use indicatif::{
    HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
};
use rustix::termios::tcgetwinsize;

use super::coloured;
use crate::telemetry;

/// How often the progress line is redrawn even if nothing happens, because it shows elapsed time.
const TICK: Duration = Duration::from_millis(250);
/// The assumed width of a terminal that reports none.
const COLUMNS: usize = 80;

/// The figures behind the bar of a transfer: `120.00 MiB of 300.00 MiB, 85.00 MiB/s, 2s left`.
const FIGURES: &str = "{bytes} of {total_bytes}, {bytes_per_sec}{left}";
/// The width of the figures, with the prefix before the bar.
const COLUMNS_OF_FIGURES: usize = 60;
const LONGEST_BAR: usize = 40;
/// A shorter bar shows too little to be useful.
const SHORTEST_BAR: usize = 8;

/// Clones share one screen.
#[derive(Debug, Clone)]
pub struct Screen {
    below: MultiProgress,
}

impl Screen {
    /// Draws progress lines if stderr is a terminal that can do it: not with `TERM=dumb`, nor without `TERM`.
    pub fn stderr() -> Self {
        Self { below: MultiProgress::with_draw_target(ProgressDrawTarget::stderr()) }
    }

    /// Of a command with these flags.
    pub fn with(is_quiet: bool, is_verbose: bool) -> Self {
        let screen = if is_quiet { Self::plain() } else { Self::stderr() };
        if is_verbose {
            screen.tell_more();
        }
        screen
    }

    /// Prints messages, and draws no progress lines.
    pub fn plain() -> Self {
        Self { below: MultiProgress::with_draw_target(ProgressDrawTarget::hidden()) }
    }

    /// Whether it draws progress lines.
    pub fn is_live(&self) -> bool {
        !self.below.is_hidden()
    }

    /// Prints a message above the progress line. Errors are ignored: if stderr is closed, the work goes on.
    pub fn tell(&self, text: &str) {
        self.below.suspend(|| {
            let _ = writeln!(anstream::stderr(), "{}", coloured(&harmless_lines(text.trim_end())));
        });
    }

    /// Prints also what is logged.
    pub fn tell_more(&self) {
        let screen = self.clone();
        telemetry::start_verbose(move |line| screen.tell(line));
    }

    /// Starts a progress line; `style` is a template of indicatif.
    pub fn draw(&self, bar: ProgressBar, style: &str) -> ProgressBar {
        let bar = self.below.add(bar.with_style(template(style)));
        if self.is_live() {
            bar.enable_steady_tick(TICK);
        }
        bar
    }

    /// Removes the progress lines.
    pub fn clear(&self) {
        // An error means that the terminal is closed: there is nothing to remove.
        let _ = self.below.clear();
    }
}

/// `style` as a template of indicatif, with the additional key `{left}` for the remaining time. It is empty while the
/// transfer stands still, where indicatif's own key would show 0 s.
pub fn template(style: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.with_key("left", |state: &ProgressState, text: &mut dyn fmt::Write| {
        if state.per_sec() >= 1.0 {
            // The work must not fail because a line cannot be drawn.
            let _ = write!(text, ", {:#} left", HumanDuration(state.eta()));
        }
    })
}

/// The width of the terminal.
pub fn columns() -> usize {
    let size = tcgetwinsize(std::io::stderr()).ok();
    size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(COLUMNS)
}

/// The template of a transfer's line for this width. A narrow terminal shows the figures without the bar.
pub fn transfer_style(columns: usize) -> String {
    let room = columns.saturating_sub(COLUMNS_OF_FIGURES).min(LONGEST_BAR);
    let bar = if room < SHORTEST_BAR { String::new() } else { format!("{{bar:{room}}} ") };
    format!("{{prefix}}{bar}{FIGURES}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_takes_what_the_figures_leave() {
        assert!(transfer_style(200).contains("{bar:40} {bytes}"));
        assert!(transfer_style(80).contains("{bar:20} {bytes}"));
        for columns in [40, 67] {
            assert_eq!(transfer_style(columns), format!("{{prefix}}{FIGURES}"));
        }
    }
}
