//! The pages are compared with the program: each code, flag, metric and link on a page exists.

mod archive;
mod blocks;
mod exit_codes;
mod invariants;
mod keys;
mod markdown;
mod metrics;
mod pictures;
mod private_files;
mod sizes;
mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use cloakroom_core::protocol::problem::Code;
use cloakroom_testing::documentation::{self, output::is_shown};
use cloakroom_testing::process;
use markdown::Page;

const COMMANDS: [&str; 8] = ["serve", "stage", "fetch", "submit", "ls", "show", "rm", "clean"];

/// Names in the environment that tests, benchmarks and builds read, and the program does not.
const OF_OTHERS: [&str; 5] =
    ["CLOAKROOM_TEST_", "CLOAKROOM_CI_", "CLOAKROOM_BENCH_", "CLOAKROOM_RELEASE_", "CLOAKROOM_REVISION"];

/// Names a real spark-submit.
const SPARK_SUBMIT: &str = "CLOAKROOM_SPARK_SUBMIT";

/// What a cell says where a flag has no environment name or no default.
const NOTHING: &str = "–";

// Invariant: the error codes, flags, metrics, sizes and links of the pages are those of the program.
#[test]
fn every_error_code_is_in_the_api_page_with_its_status() {
    let known: BTreeMap<_, _> =
        Code::ALL.iter().map(|code| (code.as_str().to_owned(), code.status().to_string())).collect();
    assert_nothing(&about_codes(&page("docs/api.md"), &known));
}

#[test]
fn every_flag_is_documented_with_its_environment_name_and_default() {
    for (command, path, section) in [
        ("serve", "docs/reference/flags.md", "Flags"),
        ("stage", "docs/clients.md", "Flags of stage"),
        ("fetch", "docs/clients.md", "Flags of fetch"),
        ("submit", "docs/submit-reference.md", "Options"),
        ("ls", "docs/reference/flags.md", "Flags of ls"),
        ("show", "docs/reference/flags.md", "Flags of show"),
        ("rm", "docs/reference/flags.md", "Flags of rm"),
        ("clean", "docs/reference/flags.md", "Flags of clean"),
    ] {
        assert_nothing(&about_flags(&page(path), section, &flags_of(command)));
    }
}

#[test]
fn every_metric_is_documented_with_its_type_and_labels() {
    let exported = metrics::exported();
    let registered = metrics::registered();
    // What is registered and never happens in that test would be documented by nobody.
    assert_eq!(exported.len(), registered.len(), "{:?}\n{registered:?}", exported.keys());
    assert_nothing(&metrics::about(&page("docs/reference/metrics-and-logs.md"), &exported));
}

#[test]
fn no_page_names_a_flag_or_an_environment_name_that_does_not_exist() {
    let flags = all_flags();
    for page in pages() {
        assert_nothing(&about_unknown_names(&page, &flags));
    }
}

#[test]
fn every_page_wraps_its_prose_at_120_columns() {
    let paths =
        tracked_files().into_iter().filter(|path| path.extension().is_some_and(|found| found == "md"));
    for page in paths.map(|path| Page::read(&path)) {
        let long = page.lines_longer_than(120);
        let complaints: Vec<_> = long
            .into_iter()
            .map(|(number, line)| page.complain(format!("line {number} is too long: {line}")))
            .collect();
        assert_nothing(&complaints);
    }
}

#[test]
fn every_size_on_the_architecture_page_is_the_codes() {
    assert_nothing(&sizes::about(&page("docs/architecture.md"), source_of_a_room));
}

/// The text of `ROOM/…/FILE.rs`, in whichever crate the room is; a crate of one room has its name.
fn source_of_a_room(file: &str) -> Option<String> {
    let crates = repository().join("crates");
    let folders = std::fs::read_dir(&crates).unwrap().map(|entry| entry.unwrap().path());
    let of_room = folders.map(|folder| folder.join("src").join(file));
    let of_crate = file.split_once('/').map(|(room, rest)| crates.join(room).join("src").join(rest));
    let found = of_room.chain(of_crate).find(|path| path.is_file())?;
    std::fs::read_to_string(found).ok()
}

/// So that a new block cannot be forgotten.
#[test]
fn every_block_of_the_pages_is_typed_by_a_test_or_listed_with_a_reason() {
    let blocks = all_blocks();
    assert!(blocks.len() > 100, "{}", blocks.len());
    let read = |file: &str| std::fs::read_to_string(repository().join(file)).ok();
    assert_nothing(&blocks::about(&blocks, documentation::table::TABLE, read));
}

#[test]
fn no_page_writes_a_ticket_or_a_token_where_other_users_can_read_it() {
    assert_nothing(&private_files::about(&all_blocks()));
}

/// The blocks of all pages that are tracked or listed.
fn all_blocks() -> Vec<documentation::Block> {
    let is_page = |name: &String| name.ends_with(".md") && name != "CHANGELOG.md";
    let names = tracked_files().into_iter().filter_map(|path| {
        path.strip_prefix(repository()).unwrap().to_str().map(str::to_owned).filter(is_page)
    });
    let listed = documentation::table::TABLE.iter().map(|row| row.page.to_owned());
    blocks::of_pages(names.chain(listed))
}

#[test]
fn every_link_leads_somewhere() {
    for page in pages() {
        assert_nothing(&about_links(&page));
    }
}

#[test]
fn the_pages_of_a_releases_archive_link_to_nothing_outside_of_it() {
    let parts = archive::parts(&std::fs::read_to_string(repository().join("packaging/release")).unwrap());
    for page in pages() {
        assert_nothing(&archive::about(&page, repository(), &parts));
    }
}

#[test]
fn the_repository_stands_alone() {
    for path in tracked_files() {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        assert_nothing(&about_foreign_words(&path, &text));
    }
}

#[test]
fn output_that_a_block_does_not_show_is_found() {
    for (shown, told, expected) in [
        ("a\nb", "a\nb", true),
        ("a\nb", "a", false),
        ("a", "a\nb", false),
        ("a\n  b\nc", "a b\nc", true),
        ("a\n…", "a\nb\nc", true),
        ("…\nc", "a\nb\nc", true),
        ("…\nd\n…", "a\nb\nc", false),
        ("x … y … z", "x 1 y 2 z", true),
        ("x … y", "x 1 z", false),
        ("x …", "y 1", false),
    ] {
        assert_eq!(is_shown(shown, told), expected, "{shown} / {told}");
    }
}

#[test]
fn planted_mistakes_in_documents_are_found() {
    let planted = |text: &str| Page::new(repository().join("docs/planted.md"), text.to_owned());
    let known =
        BTreeMap::from([("gone".to_owned(), "410".to_owned()), ("other".to_owned(), "400".to_owned())]);
    let codes = planted("## Errors\n\n| code | status |\n|---|---|\n| `gone` | 404 |\n| `new` | 400 |\n");
    assert_eq!(
        about_codes(&codes, &known),
        [
            "docs/planted.md: `gone` has the status 410, not 404",
            "docs/planted.md: there is no code `new`",
            "docs/planted.md: the code `other` is missing"
        ]
    );
    let known = BTreeMap::from([
        ("--a".to_owned(), Flag { environment: "CLOAKROOM_A".to_owned(), default: "1".to_owned() }),
        ("--b".to_owned(), Flag { environment: NOTHING.to_owned(), default: NOTHING.to_owned() }),
    ]);
    let flags = planted(
        "# F\n\n| flag | environment | default |\n|---|---|---|\n| `--a` | – | 2 |\n| `--c` | – | – |\n",
    );
    assert_eq!(about_flags(&flags, "F", &known).len(), 4);
    assert_eq!(
        about_unknown_names(&planted("`--a 1`, `--nope`, `tar --x`, CLOAKROOM_NOPE"), &known).len(),
        2
    );
    let links =
        planted("# One `a`: b\n[ok](#one-a-b) [no](#two) [no](nope.md) [ok](../README.md) `[code](x.md)`\n");
    assert_eq!(about_links(&links).len(), 2);
    let links = planted("[ok](api.md) [ok](#two) [ok](../manifests/base) [no](../tests) [ok](https://a/b)\n");
    let parts = [PathBuf::from("docs"), PathBuf::from("manifests")];
    assert_eq!(archive::about(&links, repository(), &parts).len(), 1);
    assert_eq!(blocks::planted().len(), 6, "{:#?}", blocks::planted());
    assert_eq!(private_files::planted().len(), 2, "{:#?}", private_files::planted());
    let foreign = format!("a {}main/b", FOREIGN[0]);
    assert_eq!(about_foreign_words(Path::new("x"), &foreign).len(), 1);
}

fn about_codes(page: &Page, known: &BTreeMap<String, String>) -> Vec<String> {
    let rows = page.rows("Errors");
    let mut complaints = Vec::new();
    for row in &rows {
        match known.get(&row[0]) {
            None => complaints.push(page.complain(format!("there is no code `{}`", row[0]))),
            Some(status) if *status != row[1] => {
                complaints
                    .push(page.complain(format!("`{}` has the status {status}, not {}", row[0], row[1])));
            }
            Some(_) => {}
        }
    }
    let missing = known.keys().filter(|code| rows.iter().all(|row| row[0] != **code));
    complaints.extend(missing.map(|code| page.complain(format!("the code `{code}` is missing"))));
    complaints
}

fn about_flags(page: &Page, section: &str, known: &BTreeMap<String, Flag>) -> Vec<String> {
    let rows = page.rows(section);
    let mut complaints = Vec::new();
    for row in &rows {
        let Some(flag) = known.get(&row[0]) else {
            complaints.push(page.complain(format!("{section}: there is no {}", row[0])));
            continue;
        };
        for (what, said, is) in
            [("environment", &row[1], &flag.environment), ("default", &row[2], &flag.default)]
        {
            if said != is {
                complaints.push(
                    page.complain(format!("{section}: the {what} of {} is “{is}”, not “{said}”", row[0])),
                );
            }
        }
    }
    let missing = known.keys().filter(|name| rows.iter().all(|row| row[0] != **name));
    complaints.extend(missing.map(|name| page.complain(format!("{section}: {name} is missing"))));
    complaints
}

fn about_unknown_names(page: &Page, known: &BTreeMap<String, Flag>) -> Vec<String> {
    // Behind `-n` it is a namespace, and the flags are kubectl's. Behind `helm` it is a release.
    let ours = |span: &&String| {
        let without_namespace = span.replace("-n cloakroom ", "");
        let mut words = without_namespace.split_whitespace().map(|word| word.rsplit(['/', '(']).next());
        let is_command = words.any(|word| word == Some("cloakroom")) && !span.contains("systemctl ");
        span.starts_with("--") || (is_command && !span.trim_start_matches([' ', '$']).starts_with("helm "))
    };
    let spans = page.code();
    let words = spans.iter().filter(ours).flat_map(|span| span.split_whitespace());
    let flags = words
        .filter(|word| word.strip_prefix("--").is_some_and(|name| name.starts_with(char::is_alphabetic)));
    let flags = flags
        .map(|word| word.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap_or_default());
    let mut complaints: Vec<_> = flags
        .filter(|flag| !known.contains_key(*flag))
        .map(|flag| page.complain(format!("there is no {flag}")))
        .collect();
    let names = page.text().split(|c: char| !c.is_ascii_uppercase() && c != '_');
    let unknown = names.filter(|name| name.starts_with("CLOAKROOM_")).filter(|name| {
        !OF_OTHERS.iter().any(|prefix| name.starts_with(prefix)) && !known.contains_key(*name)
    });
    complaints.extend(unknown.map(|name| page.complain(format!("nothing reads {name}"))));
    complaints
}

fn about_links(page: &Page) -> Vec<String> {
    let mut complaints = Vec::new();
    for target in page.links() {
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let (path, anchor) =
            target.split_once('#').map_or((target.as_str(), None), |(path, anchor)| (path, Some(anchor)));
        let file =
            if path.is_empty() { page.path().to_owned() } else { page.path().with_file_name("").join(path) };
        if !path.is_empty() && !file.exists() {
            complaints.push(page.complain(format!("{target} leads to no file")));
        } else if let Some(anchor) = anchor {
            let there = if path.is_empty() { page.anchors() } else { Page::read(&file).anchors() };
            if !there.iter().any(|heading| heading == anchor) {
                complaints.push(page.complain(format!("{target} leads to no heading")));
            }
        }
    }
    complaints
}

/// Words of the places where this was written, which mean nothing to anybody else. In halves, so that this file has none.
const FOREIGN: [&str; 5] = [
    concat!("/wo", "rk/"),
    concat!("../sha", "red"),
    concat!("arti", "factory"),
    concat!("index", "-url"),
    concat!("<mirr", "or>"),
];

/// The one registry that Cargo's lock file may name, Cargo's own default.
const REGISTRY: &str = concat!("registry+https://github.com/rust-lang/cra", "tes.io-index");

fn about_foreign_words(path: &Path, text: &str) -> Vec<String> {
    let shown = path.strip_prefix(repository()).unwrap_or(path).display();
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let mut complaints: Vec<_> = lines
        .clone()
        .flat_map(|(number, line)| {
            FOREIGN.iter().filter(move |word| line.contains(**word)).map(move |word| (number, word))
        })
        .map(|(number, word)| format!("{shown}:{number}: “{word}” means nothing outside"))
        .collect();
    if path.ends_with("Cargo.lock") {
        let foreign = lines.filter(|(_, line)| line.starts_with("source = ") && !line.contains(REGISTRY));
        complaints
            .extend(foreign.map(|(number, line)| format!("{shown}:{number}: another registry: {line}")));
    }
    complaints
}

fn assert_nothing(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// What the help of a command says of one flag.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Flag {
    environment: String,
    default: String,
}

/// Every flag and argument of a command, by name, as its help has them.
fn flags_of(command: &str) -> BTreeMap<String, Flag> {
    let output = process::run(&[command, "--help"]);
    let help = String::from_utf8(output.stdout).unwrap();
    let help = process::flags_in(&help);
    let mut entries: Vec<String> = Vec::new();
    for line in help.lines() {
        let indentation = line.len() - line.trim_start().len();
        match indentation {
            0 if !line.is_empty() => entries.push(String::new()),
            1..=6 => entries.push(line.trim().to_owned()),
            _ => {
                if let Some(entry) = entries.last_mut() {
                    entry.push(' ');
                    entry.push_str(line.trim());
                }
            }
        }
    }
    let flags: BTreeMap<_, _> = entries.iter().filter_map(|entry| flag(entry)).collect();
    assert!(flags.len() >= 4, "the help of {command} is read wrong: {help}");
    flags
}

fn flag(entry: &str) -> Option<(String, Flag)> {
    let name = match entry.split_whitespace().find(|word| word.starts_with("--")) {
        Some(name) if entry.starts_with('-') => name.to_owned(),
        _ if entry.starts_with(['[', '<']) => {
            entry.split([']', '>']).next().unwrap_or_default()[1..].to_owned()
        }
        _ => return None,
    };
    let bracketed = |what: &str| {
        let (_, rest) = entry.split_once(&format!("[{what}: "))?;
        rest.split_once(']').map(|(value, _)| value.to_owned())
    };
    let environment = bracketed("env").and_then(|text| text.split('=').next().map(str::to_owned));
    let or_nothing = |text: Option<String>| text.unwrap_or_else(|| NOTHING.to_owned());
    let flag = Flag { environment: or_nothing(environment), default: or_nothing(bracketed("default")) };
    (name != "--help").then_some((name, flag))
}

/// The flags of all commands by name, and the same by the names that they have in the environment.
fn all_flags() -> BTreeMap<String, Flag> {
    let mut flags = BTreeMap::new();
    for (name, flag) in COMMANDS.iter().flat_map(|command| flags_of(command)) {
        flags.insert(flag.environment.clone(), flag.clone());
        flags.insert(name, flag);
    }
    let nothing = Flag { environment: NOTHING.to_owned(), default: NOTHING.to_owned() };
    flags.extend(["--help", "--version"].map(|name| (name.to_owned(), nothing.clone())));
    // A variable without a flag.
    let help = String::from_utf8(process::run(&["submit", "--help"]).stdout).unwrap();
    flags.extend(help.contains(SPARK_SUBMIT).then(|| (SPARK_SUBMIT.to_owned(), nothing)));
    flags
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(path: &str) -> Page {
    Page::read(&repository().join(path))
}

fn pages() -> Vec<Page> {
    let mut paths = files_below(&repository().join("docs"), "md");
    paths.extend(
        ["README.md", "CHANGELOG.md", "charts/cloakroom/README.md"].map(|name| repository().join(name)),
    );
    assert!(paths.len() > 10);
    paths.iter().map(|path| Page::read(path)).collect()
}

fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// What is in the repository; in a tree without one, sources and documents.
fn tracked_files() -> Vec<PathBuf> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(repository()).output();
    match listed {
        Ok(output) if output.status.success() => {
            let names = String::from_utf8(output.stdout).unwrap();
            names.split_terminator('\0').map(|name| repository().join(name)).collect()
        }
        _ => ["src", "crates", "tests", "docs"]
            .iter()
            .flat_map(|folder| {
                ["rs", "md"].map(|extension| files_below(&repository().join(folder), extension))
            })
            .flatten()
            .collect(),
    }
}
