//! What docs/submit-troubleshooting.md shows of failures, held against what is printed.

use std::path::Path;

/// The section with one heading for each failure.
const SECTION: &str = "## Failures and what to do";

/// Stands for whatever is different each time: within a line for a part of it, alone for any number of lines.
const ANYTHING: &str = "…";

/// A block of code below a heading of the section; the first one is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    pub heading: &'static str,
    pub number: usize,
}

impl Block {
    /// Line by line; blanks at the ends of lines do not count.
    pub fn assert_shows(self, told: &str) {
        let page = page();
        let shown = blocks(&page).into_iter().find(|(block, _)| *block == (self.heading, self.number));
        let shown = shown.map(|(_, lines)| lines).unwrap_or_default();
        let told: Vec<&str> = told.lines().collect();
        assert!(matches(&shown, &told), "{self:?}\n{}\n\nis not\n\n{}", shown.join("\n"), told.join("\n"));
    }
}

/// What is wrong with the page if `held` are all that tests look at.
pub fn complaints(held: &[Block]) -> Vec<String> {
    let page = page();
    let shown: Vec<_> = blocks(&page).into_iter().map(|(block, _)| block).collect();
    let unheld = shown.iter().filter(|(heading, number)| {
        !held.iter().any(|block| block.heading == *heading && block.number == *number)
    });
    let missing = held.iter().filter(|block| !shown.contains(&(block.heading, block.number)));
    unheld
        .map(|block| format!("no test looks at {block:?}"))
        .chain(missing.map(|block| format!("{block:?} is not there")))
        .collect()
}

fn page() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/submit-troubleshooting.md"))
        .unwrap()
}

/// Each block by its heading and number, with its lines. A line that is indented further goes on with the one before.
fn blocks(page: &str) -> Vec<((&str, usize), Vec<String>)> {
    let section = page.split_once(SECTION).map_or("", |(_, rest)| rest);
    let section = section.split("\n## ").next().unwrap_or_default();
    let (mut blocks, mut heading, mut number, mut is_in_block) = (Vec::new(), "", 0, false);
    for line in section.lines() {
        let code = line.strip_prefix("    ");
        if let Some(found) = line.strip_prefix("### ") {
            (heading, number) = (found, 0);
        }
        match (code, is_in_block) {
            (Some(code), false) => {
                blocks.push(((heading, number), vec![code.trim().to_owned()]));
                number += 1;
            }
            (Some(code), true) => add(&mut blocks.last_mut().unwrap().1, code),
            (None, _) => {}
        }
        // Blank lines alone do not part two blocks.
        is_in_block = code.is_some() || (is_in_block && line.is_empty());
    }
    blocks
}

fn add(lines: &mut Vec<String>, code: &str) {
    match (code.strip_prefix("  "), lines.last_mut()) {
        (Some(more), Some(last)) => *last = format!("{last} {}", more.trim()),
        _ => lines.push(code.trim().to_owned()),
    }
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

/// A page that shows something else than what is printed is found.
pub fn finds_mistakes() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    for (shown, told, expected) in [
        ("a\nb", "a\nb", true),
        ("a\nb", "a", false),
        ("a", "a\nb", false),
        ("a\n…", "a\nb\nc", true),
        ("…\nc", "a\nb\nc", true),
        ("…\nd\n…", "a\nb\nc", false),
        ("x … y … z", "x 1 y 2 z", true),
        ("x … y", "x 1 z", false),
        ("x …", "y 1", false),
    ] {
        let told: Vec<&str> = told.lines().collect();
        assert_eq!(matches(&lines(shown), &told), expected, "{shown} / {told:?}");
    }
    let page =
        format!("{SECTION}\n\n### A\n\n    one\n      more\n    two\n\nb\n\n    three\n\n## C\n\n    x\n");
    let expected = [(("A", 0), lines("one more\ntwo")), (("A", 1), lines("three"))];
    assert_eq!(blocks(&page), expected);
}
