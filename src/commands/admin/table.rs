//! Columns.
//!
//! No cell but those of the last column has a space in it, so that `awk` and `sort` find every column by its number.

use cloakroom::text::harmless;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Between two columns.
const GAP: usize = 2;

/// A column is not made narrower than this.
const NARROWEST: usize = 12;

/// Rows of cells under a header.
#[derive(Debug)]
pub(super) struct Table {
    lines: Vec<Vec<String>>,
}

impl Table {
    /// Only a header.
    pub(super) fn new(header: &[&str]) -> Self {
        Self { lines: vec![header.iter().map(ToString::to_string).collect()] }
    }

    /// Adds a row, of as many cells as the header has. What a terminal would take for a command is made harmless.
    pub(super) fn push(&mut self, row: &[String]) {
        self.lines.push(row.iter().map(|cell| harmless(cell)).collect());
    }

    /// How long the longest line is.
    pub(super) fn width(&self) -> usize {
        length(&self.widths())
    }

    /// All of it as text. If a `width` is given and the lines would be longer, the columns `flexible` are shortened, one
    /// after the other as far as they can be, until the lines fit.
    pub(super) fn render(&self, width: Option<usize>, flexible: &[usize]) -> String {
        let mut widths = self.widths();
        for column in flexible {
            let too_much = width.map_or(0, |width| length(&widths).saturating_sub(width));
            let least = NARROWEST.min(widths[*column]);
            widths[*column] = widths[*column].saturating_sub(too_much).max(least);
        }
        self.lines.iter().fold(String::new(), |mut text, cells| {
            line(&mut text, cells, &widths);
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

/// Of a line with these columns.
fn length(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

fn line(text: &mut String, cells: &[String], widths: &[usize]) {
    let mut pending = 0;
    for (cell, width) in cells.iter().zip(widths) {
        let cell = fitted(cell, *width);
        text.extend(std::iter::repeat_n(' ', pending));
        text.push_str(&cell);
        pending = width.saturating_sub(cell.width()) + GAP;
    }
    text.push('\n');
}

/// As much of it as there is room for, with a sign that there is more.
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

/// How many columns the terminal on stdout has; `None` if stdout is none.
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
        assert_eq!(table().render(None, &[1]), expected);
        assert_eq!(table().render(Some(80), &[1]), expected);
    }

    #[test]
    fn one_column_gives_way_to_a_narrow_terminal() {
        let expected = "ID   OWNER            GOES\n\
                        a    Pod/app=demons…  in 23m\n\
                        bcd  Pod/x            next sweep\n";
        assert_eq!(table().render(Some(32), &[1]), expected);
        assert!(table().render(Some(5), &[1]).contains("a    Pod/app=dem…  in 23m\n"), "but not all of it");
    }

    #[test]
    fn a_wide_character_takes_two_places() {
        assert_eq!(fitted("資源資源", 8), "資源資源");
        assert_eq!(fitted("資源資源", 6), "資源…");
        assert_eq!(fitted("e\u{301}te\u{301}", 3), "e\u{301}te\u{301}");
        let mut table = Table::new(&["A", "B"]);
        table.push(&["資源".to_owned(), "x".to_owned()]);
        assert_eq!(table.render(None, &[0]), "A     B\n資源  x\n");
    }

    #[test]
    fn what_a_terminal_would_obey_is_not_printed() {
        let mut table = Table::new(&["A"]);
        table.push(&["\u{1b}[31mred\n\u{202e}".to_owned()]);
        assert_eq!(table.render(None, &[0]), "A\n\u{fffd}[31mred\u{fffd}\u{fffd}\n");
    }
}
