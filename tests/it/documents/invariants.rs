//! docs/invariants.md is made from the comments that stand before tests.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{files_below, repository};

const PAGE: &str = "docs/invariants.md";

const HEAD: &str = "# Invariants

What stays true, whatever is changed. Each sentence stands before the test that holds it, as a comment that begins with
`Invariant:`. This page is made from these comments by `CLOAKROOM_TEST_WRITE_DOCS=1 cargo test --test it invariants`.
";

#[test]
fn the_page_of_invariants_has_those_that_stand_before_tests() {
    let path = repository().join(PAGE);
    let made = page();
    if std::env::var_os("CLOAKROOM_TEST_WRITE_DOCS").is_some() {
        std::fs::write(&path, made).unwrap();
    } else {
        let there = std::fs::read_to_string(&path).unwrap();
        assert!(made == there, "{PAGE} is not what stands before the tests: make it anew, as it says");
    }
}

fn page() -> String {
    let mut text = HEAD.to_owned();
    for (folder, rows) in all() {
        // Writing to a String does not fail.
        let _ = write!(text, "\n## {folder}\n\n| invariant | file of the test |\n|---|---|\n");
        for (file, invariant) in rows {
            let _ = writeln!(text, "| {invariant} | `{file}` |");
        }
    }
    text
}

/// Those of each crate and of each tier, with the file below it.
fn all() -> BTreeMap<String, Vec<(String, String)>> {
    let mut all = BTreeMap::<String, Vec<_>>::new();
    for top in ["crates", "src", "tests"] {
        for path in files_below(&repository().join(top), "rs") {
            let name = path.strip_prefix(repository()).unwrap().to_str().unwrap();
            let depth = if top == "src" { 1 } else { 2 };
            let (at, _) = name.match_indices('/').nth(depth - 1).unwrap();
            let folder = name[..at].trim_end_matches(".rs");
            let found = of_text(&std::fs::read_to_string(&path).unwrap());
            let rows = found.into_iter().map(|invariant| (name[at + 1..].to_owned(), invariant));
            all.entry(folder.to_owned()).or_default().extend(rows);
        }
    }
    all.retain(|_, rows| !rows.is_empty());
    all.values_mut().for_each(|rows| rows.sort());
    all
}

/// The comments of a file that begin with the word, each on one line and without its full stop.
fn of_text(text: &str) -> Vec<String> {
    let comment = |line: &str| {
        let rest = line.trim_start().strip_prefix("// ")?;
        Some(rest.trim_end().to_owned())
    };
    let mut found = Vec::<String>::new();
    let mut is_open = false;
    for line in text.lines() {
        match comment(line) {
            Some(said) if said.starts_with("Invariant: ") => {
                found.push(said["Invariant: ".len()..].to_owned());
                is_open = true;
            }
            Some(said) if is_open => {
                let open = found.last_mut().unwrap();
                open.push(' ');
                open.push_str(&said);
            }
            _ => is_open = false,
        }
    }
    found.iter().map(|invariant| invariant.trim_end_matches('.').to_owned()).collect()
}

#[test]
fn an_invariant_ends_with_its_comment() {
    let text = "// Invariant: one\n// of two lines.\n/// Docs.\nfn a() {}\n// no\n    // Invariant: two.\n";
    assert_eq!(of_text(text), ["one of two lines", "two"]);
}
