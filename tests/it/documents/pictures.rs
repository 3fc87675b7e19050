//! The pictures in docs/pictures are made of the pages' blocks and tables, so they show nothing that the pages do not say
//! as well. Tests type the blocks.

use std::fmt::Write as _;
use std::path::Path;

use cloakroom_testing::documentation::{block, page};

/// The page whose session is shown.
const PAGE: &str = "docs/try.md";

/// A session is shown on a terminal of this width.
const COLUMNS: usize = 100;

/// The size of a letter and the height of a line, in pixels.
const LETTER: f64 = 8.4;
const LINE: usize = 20;

/// The widest bar, and the place where bars begin, in pixels.
const BAR: f64 = 320.0;
const BARS_BEGIN: usize = 290;

/// The longest line beside bars, in letters.
const BESIDE_BARS: usize = 32;

#[test]
fn the_terminal_shows_blocks_of_the_page_to_try() {
    let blocks = [
        block(PAGE, "Stage and fetch", "$ echo hello"),
        block(PAGE, "Stage and fetch", "$ cloakroom fetch"),
        block(PAGE, "Submit", "$ cloakroom submit --deploy-mode cluster"),
        block(PAGE, "Submit", "$ kubectl exec"),
    ];
    is_made_of("terminal", &terminal(&blocks.join("\n")));
}

#[test]
fn the_bars_are_those_of_the_first_table_of_the_benchmarks() {
    let text = page("docs/benchmarks.md");
    let rows = text.lines().skip_while(|line| !line.starts_with("| on one machine")).skip(2);
    let rows: Vec<Row> = rows.take_while(|line| line.starts_with('|')).filter_map(Row::read).collect();
    assert!(rows.len() >= 3, "the table has figures: {rows:?}");
    is_made_of("benchmarks", &bars(&rows));
}

/// Compares a picture with the file, or writes the file where that was asked for.
#[track_caller]
fn is_made_of(name: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/pictures/{name}.svg"));
    if std::env::var_os("CLOAKROOM_TEST_WRITE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, made).unwrap();
    } else {
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            made == there,
            "{} is not made of its page as it is: CLOAKROOM_TEST_WRITE_DOCS=1 cargo test --test it documents::pictures",
            path.display()
        );
    }
}

fn terminal(session: &str) -> String {
    let lines: Vec<(&str, String)> = session
        .lines()
        .flat_map(|line| {
            let color = if line.starts_with("$ ") {
                "#8bd5ca"
            } else if line.starts_with("error:") || line.starts_with("Caused by:") {
                "#ed8796"
            } else {
                "#cad3f5"
            };
            wrapped(line).into_iter().map(move |part| (color, part))
        })
        .collect();
    let width = COLUMNS as f64 * LETTER + 32.0;
    let mut svg = head(
        width,
        lines.len() * LINE + 32,
        "a session on a terminal: stage, fetch, a submission, and its cleanup",
    );
    // Writing to a String does not fail.
    let _ = writeln!(svg, "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#24273a\"/>");
    for (number, (color, text)) in lines.iter().enumerate() {
        let y = 30 + number * LINE;
        let _ = writeln!(svg, "<text x=\"16\" y=\"{y}\" fill=\"{color}\">{}</text>", escaped(text));
    }
    svg + "</svg>\n"
}

/// A line as a terminal breaks it.
fn wrapped(line: &str) -> Vec<String> {
    let letters: Vec<char> = line.chars().collect();
    letters.chunks(COLUMNS).map(|part| part.iter().collect()).collect()
}

/// A row of a table: a task, our time, and the time without cloakroom, as texts and in seconds.
#[derive(Debug)]
struct Row {
    task: String,
    times: [(String, f64); 2],
}

impl Row {
    /// `None` if the row has no two times.
    fn read(line: &str) -> Option<Self> {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [task, ours, theirs] = cells[..] else { return None };
        let time = |cell: &str| Some((cell.replace('`', ""), seconds(cell)?));
        Some(Self { task: task.to_owned(), times: [time(ours)?, time(theirs)?] })
    }
}

/// Reads the beginning of `7 ms` or `9.6 s with …`.
fn seconds(cell: &str) -> Option<f64> {
    let mut words = cell.split(' ');
    let number: f64 = words.next()?.parse().ok()?;
    match words.next()? {
        "ms" => Some(number / 1000.0),
        "s" => Some(number),
        _ => None,
    }
}

/// Two bars for each row, as long as their times are in the proportion of the row.
fn bars(rows: &[Row]) -> String {
    let mut svg = head(1010.0, rows.len() * 76 + 20, "times with cloakroom and without it");
    svg.push_str("<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#ffffff\"/>\n");
    for (number, row) in rows.iter().enumerate() {
        let y = 16 + number * 76;
        let longest = row.times.iter().map(|(_, seconds)| *seconds).fold(0.0, f64::max);
        for (line, part) in folded(&row.task).iter().enumerate() {
            let _ = writeln!(svg, "<text x=\"16\" y=\"{}\">{}</text>", y + 16 + line * 18, escaped(part));
        }
        for (bar, ((text, seconds), color)) in row.times.iter().zip(["#1e66f5", "#9ca0b0"]).enumerate() {
            let (top, width) = (y + bar * 28, (seconds / longest * BAR).max(2.0));
            let _ = writeln!(
                svg,
                "<rect x=\"{BARS_BEGIN}\" y=\"{top}\" width=\"{width:.1}\" height=\"22\" fill=\"{color}\"/>\n\
                 <text x=\"{:.1}\" y=\"{}\">{}</text>",
                BARS_BEGIN as f64 + width + 8.0,
                top + 16,
                escaped(text)
            );
        }
    }
    svg + "</svg>\n"
}

/// The lines of a text, broken between words.
fn folded(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let is_full = lines.last().is_some_and(|line| line.len() + 1 + word.len() > BESIDE_BARS);
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if !is_full => *line = format!("{line} {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn head(width: f64, height: usize, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height}\" \
         font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"14\">\n\
         <title>{}</title>\n<style>text {{ white-space: pre }}</style>\n",
        escaped(title)
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
