//! Output that a page shows, held against what was printed.

use super::blocks;

/// Stands for whatever is different each time: within a line for a part of it, alone for any number of lines.
const ANYTHING: &str = "…";

/// The blocks of one heading of a page; the first one is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Output {
    pub page: &'static str,
    pub heading: &'static str,
    pub number: usize,
}

impl Output {
    /// Fails unless exactly this was printed, line by line; blanks at the ends of lines do not count.
    #[track_caller]
    pub fn assert_shows(&self, told: &str) {
        let blocks = blocks(self.page);
        let shown = blocks.iter().filter(|block| block.is_in(self.heading)).nth(self.number);
        let shown = shown.map_or("", |block| block.text.as_str());
        assert!(is_shown(shown, told), "{self:?}\n{}\n\nis not\n\n{told}", joined(shown).join("\n"));
    }
}

/// Whether a block shows what was told.
pub fn is_shown(shown: &str, told: &str) -> bool {
    matches(&joined(shown), &told.lines().collect::<Vec<_>>())
}

/// The lines of a block. A line that is indented goes on with the one before.
fn joined(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("  "), lines.last_mut()) {
            (Some(more), Some(last)) => *last = format!("{last} {}", more.trim()),
            _ => lines.push(line.trim().to_owned()),
        }
    }
    lines
}

fn matches(shown: &[String], told: &[&str]) -> bool {
    match (shown.split_first(), told.split_first()) {
        (None, None) => true,
        (Some((line, rest)), _) if line == ANYTHING => {
            matches(rest, told) || told.split_first().is_some_and(|(_, after)| matches(shown, after))
        }
        (Some((line, shown)), Some((said, told))) => is_like(line, said.trim()) && matches(shown, told),
        _ => false,
    }
}

fn is_like(shown: &str, said: &str) -> bool {
    let mut parts = shown.split(ANYTHING);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = said.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}
