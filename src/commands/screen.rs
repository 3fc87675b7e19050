//! stderr. On a terminal there is one more line below what was said, which is drawn anew as it changes.

use std::fmt;
use std::io::Write as _;
use std::time::Duration;

use cloakroom_core::text::harmless_lines;
use indicatif::{
    HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
};
use rustix::termios::tcgetwinsize;

use super::coloured;

/// How often the line is drawn although nothing has changed: times go on.
const TICK: Duration = Duration::from_millis(250);
/// Where a terminal does not know its width.
const COLUMNS: usize = 80;

/// Clones are the same one.
#[derive(Debug, Clone)]
pub struct Screen {
    below: MultiProgress,
}

impl Screen {
    /// Draws where stderr is a terminal that can do it: not with `TERM=dumb`, nor without `TERM`.
    pub fn stderr() -> Self {
        Self { below: MultiProgress::with_draw_target(ProgressDrawTarget::stderr()) }
    }

    /// Says what is to be said, and draws nothing.
    pub fn plain() -> Self {
        Self { below: MultiProgress::with_draw_target(ProgressDrawTarget::hidden()) }
    }

    /// Whether it draws.
    pub fn is_live(&self) -> bool {
        !self.below.is_hidden()
    }

    /// Says something in lines of its own. Nobody may be listening any more, and the work goes on nevertheless.
    pub fn tell(&self, text: &str) {
        self.below.suspend(|| {
            let _ = writeln!(anstream::stderr(), "{}", coloured(&harmless_lines(text.trim_end())));
        });
    }

    /// Begins the line below; `style` is a template of indicatif.
    pub fn draw(&self, bar: ProgressBar, style: &str) -> ProgressBar {
        let bar = self.below.add(bar.with_style(template(style)));
        if self.is_live() {
            bar.enable_steady_tick(TICK);
        }
        bar
    }

    /// Takes the line below away.
    pub fn clear(&self) {
        // Who has closed the terminal sees no line.
        let _ = self.below.clear();
    }
}

/// A template that is known to be one. `{left}` is the remaining time where there is one: of what does not move,
/// indicatif would say that it has been done.
pub fn template(style: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.with_key("left", |state: &ProgressState, text: &mut dyn fmt::Write| {
        if state.per_sec() >= 1.0 {
            // A line on a terminal is nothing to fail for.
            let _ = write!(text, ", {:#} left", HumanDuration(state.eta()));
        }
    })
}

/// The width of the terminal.
pub fn columns() -> usize {
    let size = tcgetwinsize(std::io::stderr()).ok();
    size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(COLUMNS)
}
