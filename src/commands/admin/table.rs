//! Tables. Only cells of the last column may contain spaces, so that `awk` and `sort` find every column by its number.

use cloakroom_core::text::harmless;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Spaces between two columns.
const GAP: usize = 2;

/// A column is not made narrower than this.
const NARROWEST: usize = 8;

/// Rows of cells under a header.
#[derive(Debug)]
pub(super) struct Table {
    lines: Vec<Vec<String>>,
}

impl Table {
    /// A table with a header and no rows.
    pub(super) fn new(header: &[&str]) -> Self {
        Self { lines: vec![header.iter().map(ToString::to_string).collect()] }
    }

    /// Adds a row with as many cells as the header. Characters that a terminal would obey are replaced.
    pub(super) fn push(&mut self, row: &[String]) {
        self.lines.push(row.iter().map(|cell| harmless(cell)).collect());
    }

    /// The width of the longest line.
    pub(super) fn width(&self) -> usize {
        length(self.widths().into_iter())
    }

    /// The number of the last column.
    pub(super) fn last(&self) -> usize {
        self.lines.first().map_or(0, |header| header.len().saturating_sub(1))
    }

    /// The whole table as text, for any width.
    pub(super) fn render(&self) -> String {
        self.with(&self.widths().into_iter().enumerate().collect::<Vec<_>>())
    }

    /// The table as text in lines of at most `width`. The columns `flexible` are shortened, the widest first. If that
    /// is not enough, columns are left out in the order of `expendable`.
    pub(super) fn render_within(&self, width: usize, flexible: &[usize], expendable: &[usize]) -> String {
        let mut columns: Vec<(usize, usize)> = self.widths().into_iter().enumerate().collect();
        let least = |&(column, width): &(usize, usize)| {
            if flexible.contains(&column) { width.min(NARROWEST) } else { width }
        };
        for unwanted in expendable {
            if length(columns.iter().map(least)) <= width {
                break;
            }
            columns.retain(|(column, _)| column != unwanted);
        }
        while length(columns.iter().map(|(_, width)| *width)) > width {
            let can_give = columns.iter_mut().filter(|column| column.1 > least(column));
            match can_give.max_by_key(|(_, width)| *width) {
                Some((_, widest)) => *widest -= 1,
                None => break,
            }
        }
        self.with(&columns)
    }

    /// The table with these columns only, each with its width.
    fn with(&self, columns: &[(usize, usize)]) -> String {
        self.lines.iter().fold(String::new(), |mut text, cells| {
            line(&mut text, cells, columns);
            text
        })
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.lines.first().map_or(0, Vec::len);
        let width = |line: &Vec<String>, column: usize| line.get(column).map_or(0, |cell| cell.width());
        let widest = |column| self.lines.iter().map(|line| width(line, column)).max().unwrap_or(0);
        (0..columns).map(widest).collect()
    }
}

/// The length of a line with columns of these widths.
fn length(widths: impl ExactSizeIterator<Item = usize>) -> usize {
    GAP * widths.len().saturating_sub(1) + widths.sum::<usize>()
}

fn line(text: &mut String, cells: &[String], columns: &[(usize, usize)]) {
    let mut pending = 0;
    for (column, width) in columns {
        let cell = fitted(cells.get(*column).map_or("", String::as_str), *width);
        text.extend(std::iter::repeat_n(' ', pending));
        text.push_str(&cell);
        pending = width.saturating_sub(cell.width()) + GAP;
    }
    text.push('\n');
}

/// The cell; if it is too wide, its beginning with an ellipsis.
pub(super) fn fitted(cell: &str, width: usize) -> String {
    if cell.width() <= width {
        return cell.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let mut short: String = cell
        .chars()
        .take_while(|c| {
            let wide = c.width().unwrap_or(0);
            let fits = wide <= room;
            room = room.saturating_sub(wide);
            fits
        })
        .collect();
    short.push('…');
    short
}

/// The width of the terminal on stdout; `None` if stdout is no terminal.
pub(super) fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["ID", "OWNER", "GOES"]);
        table.push(&["a".to_owned(), "Pod/app=demonstration".to_owned(), "in 23m".to_owned()]);
        table.push(&["bcd".to_owned(), "Pod/x".to_owned(), "next sweep".to_owned()]);
        table
    }

    #[test]
    fn columns_stand_below_each_other_and_lines_have_no_blanks_at_their_end() {
        let expected = "ID   OWNER                  GOES\n\
                        a    Pod/app=demonstration  in 23m\n\
                        bcd  Pod/x                  next sweep\n";
        assert_eq!(table().render(), expected);
        assert_eq!(table().render_within(80, &[1], &[]), expected);
    }

    #[test]
    fn columns_give_way_to_a_narrow_terminal() {
        let expected = "ID   OWNER            GOES\n\
                        a    Pod/app=demons…  in 23m\n\
                        bcd  Pod/x            next sweep\n";
        assert_eq!(table().render_within(32, &[1], &[2]), expected);
        let without_the_last = "ID   OWNER\na    Pod/app…\nbcd  Pod/x\n";
        assert_eq!(table().render_within(13, &[1], &[2, 0]), without_the_last);
        assert_eq!(
            table().render_within(5, &[1], &[2, 0]),
            "OWNER\nPod/app…\nPod/x\n",
            "but not all of them"
        );
    }

    #[test]
    fn a_long_cell_leaves_room_for_the_others() {
        let mut table = Table::new(&["NAMESPACE", "OWNER"]);
        table.push(&["n".repeat(63), "Pod/app=demo".to_owned()]);
        let expected = format!("NAMESPACE{}OWNER\n{}…  Pod/app=demo\n", " ".repeat(19), "n".repeat(25));
        assert_eq!(table.render_within(40, &[0, 1], &[]), expected);
        let expected = "NAMESPACE  OWNER\nnnnnnnnn…  Pod/app=…\n";
        assert_eq!(table.render_within(20, &[0, 1], &[]), expected);
    }

    #[test]
    fn a_wide_character_takes_two_places() {
        assert_eq!(fitted("資源資源", 8), "資源資源");
        assert_eq!(fitted("資源資源", 6), "資源…");
        assert_eq!(fitted("e\u{301}te\u{301}", 3), "e\u{301}te\u{301}");
        let mut table = Table::new(&["A", "B"]);
        table.push(&["資源".to_owned(), "x".to_owned()]);
        assert_eq!(table.render(), "A     B\n資源  x\n");
    }

    #[test]
    fn control_characters_are_not_printed() {
        let mut table = Table::new(&["A"]);
        table.push(&["\u{1b}[31mred\n\u{202e}".to_owned()]);
        assert_eq!(table.render(), "A\n\u{fffd}[31mred\u{fffd}\u{fffd}\n");
    }
}
