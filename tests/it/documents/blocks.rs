//! Whether each block of code of the pages is typed by a test, or is listed with the reason why it is not.

use std::collections::BTreeSet;

use cloakroom_testing::documentation::table::{By, Row};
use cloakroom_testing::documentation::{self, Block};

/// What is wrong with the pages, or with the table. `read` gives the text of a file of the project.
pub fn about(blocks: &[Block], table: &[Row], read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    for block in blocks {
        let found = table.iter().filter(|row| row.is_of(block)).count();
        if found != 1 {
            let place = block.headings.last().map_or("", String::as_str);
            let first = block.text.lines().next().unwrap_or_default();
            complaints.push(format!(
                "{}, “{place}”: {found} rows of the table of crates/testing are about the block “{first}”, not one",
                block.page
            ));
        }
    }
    for row in table {
        let own: Vec<&Block> = blocks.iter().filter(|block| row.is_of(block)).collect();
        let place = format!("{}, “{}”, “{}”", row.page, row.heading, row.beginning);
        if own.is_empty() {
            complaints.push(format!("{place}: the page has no such block"));
        }
        if let Some(complaint) = about_row(row, &own, blocks, &read) {
            complaints.push(format!("{place}: {complaint}"));
        }
    }
    complaints
}

/// All pages of the project's own, and what they show.
pub fn of_pages(files: impl IntoIterator<Item = String>) -> Vec<Block> {
    let pages: BTreeSet<String> = files.into_iter().collect();
    pages.iter().flat_map(|page| documentation::blocks(page)).collect()
}

fn about_row(
    row: &Row,
    own: &[&Block],
    blocks: &[Block],
    read: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    match row.by {
        By::Test(file) => {
            let Some(text) = read(file) else { return Some(format!("there is no {file}")) };
            // Whole chapters are typed where `$` stands before the commands.
            let beginning = if row.beginning.starts_with("$ ") { "" } else { row.beginning };
            let heading = if file.starts_with('.') { "" } else { row.heading };
            let is_read = [row.page, heading, beginning].iter().all(|part| text.contains(part));
            (!is_read).then(|| format!("{file} does not read it"))
        }
        By::Chapter(page, heading) => {
            let there: Vec<String> = blocks
                .iter()
                .filter(|block| block.page == page && block.is_in(heading))
                .flat_map(lines_typed)
                .collect();
            let other = own.iter().flat_map(|block| lines_typed(block)).find(|line| !there.contains(line));
            other.map(|line| format!("{page}, “{heading}” does not have the line “{line}”"))
        }
        By::Text => {
            let has_command = own.iter().any(|block| block.text.starts_with("$ "));
            has_command.then(|| "it has a command".to_owned())
        }
        By::None(why) => why.is_empty().then(|| "there is no reason".to_owned()),
        By::Reader | By::Member => None,
    }
}

fn lines_typed(block: &Block) -> Vec<String> {
    let lines = block.text.lines().map(|line| line.trim_start_matches("$ ").trim().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}

/// What is found in a page and a table with mistakes.
pub fn planted() -> Vec<String> {
    let row = |heading, beginning, by| Row { page: "p.md", heading, beginning, by };
    let text = "# A\n\n    $ one\n    said\n\nb\n\n```yaml\ntwo: 2\n```\n\n## B\n\n- c:\n\n      three\n\n        four\n\n## C\n\n    five\n";
    let blocks = documentation::blocks_of("p.md", text);
    let texts: Vec<&str> = blocks.iter().map(|block| &*block.text).collect();
    assert_eq!(texts, ["$ one\nsaid", "two: 2", "three\n\n  four", "five"]);
    assert_eq!(blocks[2].headings, ["A", "B"]);
    let table = [
        row("A", "$ one", By::Text),
        row("A", "two", By::Test("none.rs")),
        row("A", "two", By::None("")),
        row("B", "three", By::Chapter("p.md", "C")),
        row("C", "six", By::Reader),
    ];
    let mut complaints = about(&blocks, &table, |_| Some("p.md".to_owned()));
    // “two” has two rows, and “five” has none.
    assert_eq!(complaints.iter().filter(|complaint| complaint.contains("not one")).count(), 2);
    complaints.retain(|complaint| !complaint.contains("0 rows"));
    complaints
}
