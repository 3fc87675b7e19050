//! Tables. Only cells of the last column may contain spaces, so that `awk` and `sort` find every column by its number.

use cloakroom_core::text::harmless;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Spaces between two columns.
const GAP: usize = 2;

/// Rows of cells under a header.
#[derive(Debug)]
pub(super) struct Table<const COLUMNS: usize> {
    lines: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    /// A table with a header and no rows.
    pub(super) fn new(header: [&str; COLUMNS]) -> Self {
        Self { lines: vec![header.map(str::to_owned)] }
    }

    /// Adds a row. Characters that a terminal would obey are replaced.
    pub(super) fn push(&mut self, row: [String; COLUMNS]) {
        self.lines.push(row.map(|cell| harmless(&cell)));
    }

    /// The table as text. On a terminal, lines are cut at its width.
    pub(super) fn render(&self, terminal: Option<usize>) -> String {
        let mut widths = [0; COLUMNS];
        for line in &self.lines {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = cell.width().max(*width);
            }
        }
        self.lines.iter().map(|cells| cut(&line(cells, &widths), terminal) + "\n").collect()
    }
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let mut text = String::new();
    let mut pending = 0;
    for (cell, width) in cells.iter().zip(widths) {
        text.extend(std::iter::repeat_n(' ', pending));
        text.push_str(cell);
        pending = width.saturating_sub(cell.width()) + GAP;
    }
    text
}

/// The line; if it is wider than the terminal, its beginning with an ellipsis.
fn cut(line: &str, terminal: Option<usize>) -> String {
    let Some(width) = terminal.filter(|width| line.width() > *width) else { return line.to_owned() };
    let mut room = width.saturating_sub(1);
    let fits = |c: &char| {
        let left = room.checked_sub(c.width().unwrap_or(0));
        room = left.unwrap_or(room);
        left.is_some()
    };
    line.chars().take_while(fits).chain(['…']).collect()
}

/// The width of the terminal on stdout; `None` if stdout is no terminal.
pub(super) fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other_and_a_terminal_cuts_lines() {
        let mut table = Table::new(["ID", "OWNER", "GOES"]);
        table.push(["a", "Pod/app=x", "in 23m"].map(str::to_owned));
        table.push(["bcd", "Pod/x", "next sweep"].map(str::to_owned));
        let expected = "ID   OWNER      GOES\n\
                        a    Pod/app=x  in 23m\n\
                        bcd  Pod/x      next sweep\n";
        assert_eq!(table.render(None), expected);
        assert_eq!(table.render(Some(26)), expected);
        let expected = "ID   OWNER      GOES\n\
                        a    Pod/app=x  in 23m\n\
                        bcd  Pod/x      next …\n";
        assert_eq!(table.render(Some(22)), expected);
    }

    #[test]
    fn a_wide_character_takes_two_places() {
        assert_eq!(cut("資源資源", Some(8)), "資源資源");
        assert_eq!(cut("資源資源", Some(6)), "資源…");
        assert_eq!(cut("e\u{301}te\u{301}", Some(3)), "e\u{301}te\u{301}");
        let mut table = Table::new(["A", "B"]);
        table.push(["資源".to_owned(), "x".to_owned()]);
        assert_eq!(table.render(None), "A     B\n資源  x\n");
    }

    #[test]
    fn control_characters_are_not_printed() {
        let mut table = Table::new(["A"]);
        table.push(["\u{1b}[31mred\n\u{202e}".to_owned()]);
        assert_eq!(table.render(None), "A\n\u{fffd}[31mred\u{fffd}\u{fffd}\n");
    }
}
