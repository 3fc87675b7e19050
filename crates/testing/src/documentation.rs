//! The code blocks of the documentation, and the test that types each of them.

pub mod output;
pub mod table;

/// A code block of a page, without its indentation.
#[derive(Debug)]
pub struct Block {
    pub page: String,
    /// The headings above it, beginning with the page's title.
    pub headings: Vec<String>,
    pub text: String,
}

/// A command, and the output that the page shows below it.
#[derive(Debug)]
pub struct Shown {
    pub command: String,
    pub output: Vec<String>,
}

impl Block {
    /// Whether its own chapter has this heading.
    pub fn is_in(&self, heading: &str) -> bool {
        self.headings.last().is_some_and(|last| last == heading)
    }

    /// Whether its own chapter or one around it has this heading.
    pub fn is_inside(&self, heading: &str) -> bool {
        self.headings.iter().any(|above| above == heading)
    }

    /// The commands after each `$`, with the lines that a backslash joins to them. A block without `$` is one script,
    /// in which every line has to succeed.
    pub fn commands(&self) -> Vec<Shown> {
        if !self.text.lines().any(|line| line.starts_with("$ ")) {
            return vec![Shown { command: format!("set -e\n{}\nset +e", self.text), output: Vec::new() }];
        }
        let mut shown: Vec<Shown> = Vec::new();
        for line in self.text.lines() {
            match (line.strip_prefix("$ "), shown.last_mut()) {
                (Some(command), _) => {
                    shown.push(Shown { command: command.to_owned(), output: Vec::new() });
                }
                (None, Some(last)) if last.command.ends_with('\\') && last.output.is_empty() => {
                    last.command = format!("{}\n{line}", last.command);
                }
                (None, Some(last)) => last.output.push(line.to_owned()),
                (None, None) => panic!("{}: output without a command: {line}", self.page),
            }
        }
        shown
    }
}

/// The text of a page of this project.
pub fn page(name: &str) -> String {
    let path = crate::project().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The blocks of a page, fenced and indented, in order.
pub fn blocks(name: &str) -> Vec<Block> {
    blocks_of(name, &page(name))
}

/// The only block of a chapter with this beginning.
#[track_caller]
pub fn block(name: &str, heading: &str, beginning: &str) -> String {
    let is_meant = |block: &Block| block.is_in(heading) && block.text.starts_with(beginning);
    let mut found = blocks(name).into_iter().filter(is_meant);
    let block = found.next().unwrap_or_else(|| panic!("{name}, “{heading}” has no block “{beginning}…”"));
    assert!(found.next().is_none(), "{name}, “{heading}” has two blocks “{beginning}…”");
    block.text
}

/// The blocks of a text. As in Markdown, blank lines alone do not separate two indented blocks.
pub fn blocks_of(name: &str, text: &str) -> Vec<Block> {
    let (mut blocks, mut headings) = (Vec::new(), Vec::<(usize, String)>::new());
    let (mut open, mut is_fenced) = (Vec::<&str>::new(), false);
    for line in text.lines().map(Some).chain([None]) {
        let is_fence = line.is_some_and(|line| line.trim_start().starts_with("```"));
        let goes_on = line.is_some_and(|line| {
            !is_fence && (is_fenced || line.starts_with("    ") || (line.is_empty() && !open.is_empty()))
        });
        if let Some(line) = line.filter(|_| goes_on) {
            open.push(line);
            continue;
        }
        if open.iter().any(|line| !line.is_empty()) {
            let headings = headings.iter().map(|(_, heading)| heading.clone()).collect();
            blocks.push(Block { page: name.to_owned(), headings, text: without_indentation(&open) });
        }
        open.clear();
        is_fenced ^= is_fence;
        if let Some((level, heading)) = line.and_then(heading_of) {
            headings.retain(|(above, _)| *above < level);
            headings.push((level, heading.to_owned()));
        }
    }
    blocks
}

fn heading_of(line: &str) -> Option<(usize, &str)> {
    let heading = line.trim_start_matches('#');
    heading.strip_prefix(' ').filter(|_| line.starts_with('#')).map(|text| (line.len() - heading.len(), text))
}

fn without_indentation(lines: &[&str]) -> String {
    let full = lines.iter().filter(|line| !line.is_empty());
    let indentation = full.map(|line| line.len() - line.trim_start().len()).min().unwrap_or_default();
    let lines: Vec<&str> = lines.iter().map(|line| line.get(indentation..).unwrap_or_default()).collect();
    lines.join("\n").trim_end().to_owned()
}
