//! The progress of a fetch: a bar on a terminal, a line for each event elsewhere.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::commands::screen::{Screen, columns, template, transfer_style};
use cloakroom_core::lock::lock;
use cloakroom_core::time::format_duration;
use cloakroom_transfer::fetch::FetchObserver;

/// In place of bar and figures while it is not known how much will come.
const OF_UNKNOWN_SIZE: &str = "{spinner} {bytes}, {bytes_per_sec}";

/// Shows the progress of all sources together.
pub(super) struct FetchProgress {
    screen: Screen,
    timeout: Duration,
    /// `None` until the first bytes came, because a fetch that finds its files has nothing to draw.
    bar: Mutex<Option<ProgressBar>>,
    /// The bytes that came of each source, and all of its bytes.
    sources: Mutex<BTreeMap<String, (u64, Option<u64>)>>,
}

impl FetchProgress {
    pub(super) fn new(timeout: Duration) -> Self {
        Self { screen: Screen::stderr(), timeout, bar: Mutex::default(), sources: Mutex::default() }
    }

    /// Removes the bar.
    pub(super) fn end(&self) {
        if let Some(bar) = lock(&self.bar).take() {
            bar.finish_and_clear();
        }
    }

    fn draw(&self, came: u64, all: Option<u64>) {
        let mut bar = lock(&self.bar);
        let style = all.map_or_else(|| OF_UNKNOWN_SIZE.to_owned(), |_| transfer_style(columns()));
        let bar = bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(all, ProgressDrawTarget::hidden());
            self.screen.draw(bar, &style)
        });
        if bar.length() != all {
            bar.set_style(template(&style));
            match all {
                Some(all) => bar.set_length(all),
                None => bar.unset_length(),
            }
        }
        bar.set_position(came);
    }
}

/// The sum of all sources; the second part only if all of them are known.
fn sum(sources: &BTreeMap<String, (u64, Option<u64>)>) -> (u64, Option<u64>) {
    let came = sources.values().map(|(came, _)| came).sum();
    (came, sources.values().map(|(_, all)| *all).sum())
}

impl FetchObserver for FetchProgress {
    fn retrying(&self, what: &str, why: &str) {
        let limit = format_duration(self.timeout);
        self.screen.tell(&format!("{what}: {why}; trying again for up to {limit} in all"));
    }

    fn starting_over(&self, what: &str, why: &str) {
        self.screen.tell(&format!("{what}: {why}; starting over"));
    }

    fn progressed(&self, what: &str, came: u64, all: Option<u64>) {
        if !self.screen.is_live() {
            return;
        }
        let (came, all) = {
            let mut sources = lock(&self.sources);
            sources.insert(what.to_owned(), (came, all));
            sum(&sources)
        };
        self.draw(came, all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_about_all_sources_together() {
        let sources = |all: [Option<u64>; 2]| {
            sum(&BTreeMap::from([("jars".to_owned(), (3, all[0])), ("files".to_owned(), (4, all[1]))]))
        };
        assert_eq!(sources([Some(10), Some(20)]), (7, Some(30)));
        assert_eq!(sources([Some(10), None]), (7, None));
    }
}
