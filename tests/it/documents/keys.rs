//! The tables of keys in docs/reference/keys.md are those of the registry, and no key is written anywhere else.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cloakroom_spark::keys::{Entry, KeyTable, TABLES};

use super::repository;

/// What the tables stand between.
const BEGIN: &str = "<!-- keys: made from crates/spark/src/keys by CLOAKROOM_TEST_WRITE_DOCS=1 cargo test --test it documents::keys -->\n";
const END: &str = "<!-- end of keys -->\n";

/// Tables of kubespark's properties files, which docs/migrating.md is about.
const OF_OLD_FILES: &str = "properties file";

#[test]
fn the_reference_page_of_submit_has_the_tables_of_the_registry() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/keys.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has no place for the tables");
    let (_, after) = rest.split_once(END).expect("the tables have no end");
    let made = format!("{before}{BEGIN}{}{END}{after}", tables());
    if std::env::var_os("CLOAKROOM_TEST_WRITE_DOCS").is_some() {
        std::fs::write(&path, made).unwrap();
    } else {
        assert!(made == page, "the tables of keys are not the registry's: make them anew, as the page says");
    }
}

fn tables() -> String {
    let of_submit = TABLES.iter().filter(|table| !table.title.contains(OF_OLD_FILES));
    of_submit.map(|table| format!("\n{}", text(table))).collect::<String>() + "\n"
}

fn text(table: &KeyTable) -> String {
    let mut text =
        format!("## {}\n\n| key | value | default | what it does |\n|---|---|---|---|\n", table.title);
    for entry in table.entries {
        let default = entry.default.map_or("–".to_owned(), quoted);
        // Writing to a String does not fail.
        let _ = writeln!(text, "| {} | {} | {default} | {} |", named(entry), value(entry), meaning(entry));
    }
    text
}

fn named(entry: &Entry) -> String {
    let mark = if entry.is_substituted { " ¹" } else { "" };
    format!("`{}`{mark}", entry.name)
}

fn value(entry: &Entry) -> &str {
    match (entry.value, entry.names_files) {
        ("", true) => "file of this machine",
        ("", false) => "text",
        (value, _) => value,
    }
}

/// Defaults that are values, and not descriptions of one.
fn quoted(default: &str) -> String {
    if default.contains(' ') { default.to_owned() } else { format!("`{default}`") }
}

fn meaning(entry: &Entry) -> String {
    let mut text = entry.meaning.trim().to_owned();
    if let Some(version) = entry.since {
        let _ = write!(text, "; from Spark {version} on");
    }
    if let Some(version) = entry.until {
        let _ = write!(text, "; up to Spark {version}");
    }
    for name in entry.alternatives {
        let _ = write!(text, "; else `{name}`");
    }
    if let Some(name) = entry.older_name {
        let _ = write!(text, "; kubespark's `{name}`");
    }
    text
}

#[test]
fn keys_are_written_in_the_registry_and_in_tests_alone() {
    let root = repository();
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    sources(&root.join("crates"), &mut files);
    assert!(files.len() > 100, "the sources were not found");
    let literals: Vec<String> = files.iter().flat_map(|path| literals(root, path)).collect();
    assert!(literals.is_empty(), "keys outside the registry:\n{}", literals.join("\n"));
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        let is_skipped = ["tests", "tests.rs", "testing", "keys", "keys.rs", "reading_tests.rs"]
            .iter()
            .any(|skipped| name == *skipped);
        if path.is_dir() && !is_skipped {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_skipped {
            found.push(path);
        }
    }
}

/// Lines with a key in quotation marks, up to the file's tests.
fn literals(root: &Path, path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let is_key = |line: &str| line.contains("\"spark.") && !line.contains("\"spark.properties\"");
    let found = product.lines().enumerate().filter(|(_, line)| is_key(line));
    let name = path.strip_prefix(root).unwrap().display();
    found.map(|(at, line)| format!("{name}:{}: {}", at + 1, line.trim())).collect()
}
