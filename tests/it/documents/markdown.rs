//! As much of Markdown as the pages use: headings, tables, code, links.

use std::path::{Path, PathBuf};

/// One page.
pub struct Page {
    path: PathBuf,
    text: String,
}

type Row = Vec<String>;

impl Page {
    pub fn new(path: PathBuf, text: String) -> Self {
        Self { path, text }
    }

    pub fn read(path: &Path) -> Self {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::new(path.to_owned(), text)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// A sentence about this page.
    pub fn complain(&self, what: impl std::fmt::Display) -> String {
        let path = self.path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap_or(&self.path);
        format!("{}: {what}", path.display())
    }

    /// The rows of the first table below a heading, cells without their backticks; there must be one.
    pub fn rows(&self, heading: &str) -> Vec<Row> {
        let mut lines = self.prose().into_iter().skip_while(|line| heading_of(line) != Some(heading)).skip(1);
        let table: Vec<_> = lines
            .by_ref()
            .skip_while(|line| !line.starts_with('|') && heading_of(line).is_none())
            .take_while(|line| line.starts_with('|'))
            .collect();
        assert!(table.len() > 2, "{}", self.complain(format!("there is no table below “{heading}”")));
        table.into_iter().skip(2).map(cells).collect()
    }

    /// The rows of the first table below a heading whose first column is called so; there must be one.
    pub fn rows_below(&self, heading: &str, column: &str) -> Vec<Row> {
        let lines: Vec<_> =
            self.prose().into_iter().skip_while(|line| heading_of(line) != Some(heading)).collect();
        let table = lines.split(|line| !line.starts_with('|')).find(|table| {
            table.first().is_some_and(|head| cells(head).first().is_some_and(|name| name == column))
        });
        let missing = || self.complain(format!("there is no table of “{column}” below “{heading}”"));
        table.unwrap_or_else(|| panic!("{}", missing())).iter().skip(2).map(|line| cells(line)).collect()
    }

    /// The lines of prose that are longer than so many characters, each with its number. Tables, blocks and badges
    /// cannot be wrapped.
    pub fn lines_longer_than(&self, width: usize) -> Vec<(usize, &str)> {
        let prose = self.lines().enumerate().filter(|(_, (_, is_code))| !is_code);
        prose
            .map(|(index, (line, _))| (index + 1, line))
            .filter(|(_, line)| line.chars().count() > width)
            .filter(|(_, line)| !line.trim_start().starts_with('|') && !line.starts_with("[!["))
            .collect()
    }

    /// What stands between backticks, and the lines of code blocks.
    pub fn code(&self) -> Vec<String> {
        let spans = self.prose().into_iter().flat_map(|line| line.split('`').skip(1).step_by(2));
        let blocks = self.lines().filter(|(_, is_code)| *is_code).map(|(line, _)| line);
        spans.chain(blocks).map(str::to_owned).collect()
    }

    /// Where links lead to.
    pub fn links(&self) -> Vec<String> {
        let mut links = Vec::new();
        for line in self.prose() {
            let without_code: String = line.split('`').step_by(2).collect();
            let after = without_code.split("](").skip(1);
            links.extend(after.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.to_owned()));
        }
        links
    }

    /// What headings are called in links, as GitHub makes it.
    pub fn anchors(&self) -> Vec<String> {
        let mut anchors: Vec<String> = Vec::new();
        for heading in self.prose().into_iter().filter_map(heading_of) {
            let kept = heading.to_lowercase().replace(' ', "-");
            let kept: String = kept.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect();
            let before = anchors.iter().filter(|anchor| **anchor == kept).count();
            anchors.push(if before == 0 { kept } else { format!("{kept}-{before}") });
        }
        anchors
    }

    fn prose(&self) -> Vec<&str> {
        self.lines().filter(|(_, is_code)| !is_code).map(|(line, _)| line).collect()
    }

    /// Every line, and whether it belongs to a code block.
    fn lines(&self) -> impl Iterator<Item = (&str, bool)> {
        let mut in_fence = false;
        self.text.lines().map(move |line| {
            let is_fence = line.trim_start().starts_with("```");
            in_fence ^= is_fence;
            (line, in_fence || is_fence || line.starts_with("    "))
        })
    }
}

fn heading_of(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    (text.len() < line.len() && text.starts_with(' ')).then(|| text.trim())
}

fn cells(line: &str) -> Row {
    let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
    inner.split('|').map(|cell| cell.trim().replace('`', "")).collect()
}
