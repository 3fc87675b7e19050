//! The table of rooms and floors (docs/architecture.md), held against every `.rs` file under `src`.

mod circles;
mod purity;
mod source;

use std::fmt;
use std::path::{Path, PathBuf};

use source::{Token, code_without_tests, modules_of_tests, roots, tokens};

/// Rooms from the bottom up; those that do not exist yet are simply absent.
const FLOORS: [&[&str]; 6] = [
    &["resource", "protocol", "bundle", "spark"],
    &["store", "ledger", "owners", "client", "kubernetes"],
    &["staging"],
    &["cleaner", "submit", "fetch"],
    &["server"],
    &["main", "cli", "commands"],
];

/// Used from anywhere, and using no room themselves.
const LEAVES: [&str; 6] = ["descriptors", "telemetry", "metrics", "shutdown", "clock", "text"];

/// Who may use whom on the same floor.
const NEIGHBOURS: [(&str, &[&str]); 5] = [
    ("owners", &["kubernetes"]),
    ("main", &["cli", "commands"]),
    ("commands", &["cli"]),
    // The default owner kind.
    ("protocol", &["resource"]),
    // Which names Kubernetes takes.
    ("spark", &["resource"]),
];

/// Crates that only some rooms know.
const CRATES: [(&str, &[&str]); 4] = [
    ("axum", &["server"]),
    ("sqlx", &["ledger"]),
    ("reqwest", &["client"]),
    ("kube", &["owners", "kubernetes", "submit"]),
];

const LONGEST_FILE: usize = 500;

/// Something that is not as the table says.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    file: PathBuf,
    line: usize,
    what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.what)
    }
}

/// The room of a file, by its path below `src`.
fn room_of(file: &Path) -> String {
    let first = file.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

fn floor_of(room: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&room))
}

fn may_use(room: &str, other: &str) -> Result<(), String> {
    if room == other || LEAVES.contains(&other) && !LEAVES.contains(&room) {
        return Ok(());
    }
    let Some(above) = floor_of(other) else { return Err(format!("{other} is on no floor of the table")) };
    let Some(own) = floor_of(room) else { return Err(format!("{room} is a leaf, and uses {other}")) };
    let is_neighbour = NEIGHBOURS.iter().any(|(who, whom)| *who == room && whom.contains(&other));
    if above < own || is_neighbour {
        Ok(())
    } else if above == own {
        Err(format!("{room} uses its neighbour {other} on floor {own}"))
    } else {
        Err(format!("{room} on floor {own} uses {other} on floor {above}"))
    }
}

fn check(file: &Path, text: &str, is_test: bool) -> Vec<Violation> {
    let room = room_of(file);
    let violation = |line, what| Violation { file: file.to_owned(), line, what };
    let mut found = Vec::new();
    if room != "lib" {
        let tokens = tokens(text);
        for (other, line) in roots(&tokens, file) {
            found.extend(may_use(&room, &other).err().map(|what| violation(line, what)));
        }
        found.extend(crates(&tokens, &room).map(|(line, what)| violation(line, what)));
    }
    if !is_test {
        found.extend(panics(&code_without_tests(&tokens(text))).map(|(line, what)| violation(line, what)));
    }
    let lines = text.lines().count();
    if lines > LONGEST_FILE {
        found.push(violation(lines, format!("{lines} lines: {LONGEST_FILE} at most")));
    }
    found
}

/// Uses of crates that belong to other rooms.
fn crates(tokens: &[Token], room: &str) -> impl Iterator<Item = (usize, String)> {
    tokens.iter().enumerate().filter_map(move |(at, token)| {
        let (name, rooms) = CRATES.iter().find(|(name, _)| token.text == *name)?;
        let is_after = |text: &str| at > 0 && tokens[at - 1].text == text;
        let is_path = tokens.get(at + 1).is_some_and(|next| next.text == "::") || is_after("use");
        // `client::reqwest` or `x.kube` is something else of that name.
        let is_crate = is_path && !is_after(".") && (!is_after("::") || at < 2 || tokens[at - 2].text == "{");
        (is_crate && !rooms.contains(&room))
            .then(|| (token.line, format!("{name} outside of {}", rooms.join(", "))))
    })
}

/// What may end the process in the middle of its work.
fn panics(tokens: &[Token]) -> impl Iterator<Item = (usize, String)> {
    tokens.windows(3).filter_map(|three| {
        let [before, name, after] = three else { return None };
        let is_method =
            matches!(name.text.as_str(), "unwrap" | "expect") && before.text == "." && after.text == "(";
        let is_macro = matches!(name.text.as_str(), "todo" | "unimplemented" | "panic" | "unreachable")
            && after.text == "!";
        (is_method || is_macro).then(|| (name.line, format!("{} outside of tests", name.text)))
    })
}

fn sources() -> Vec<(PathBuf, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![src.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(&src).unwrap().to_owned(), text));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_room_uses_only_what_the_table_of_floors_allows() {
    let sources = sources();
    assert!(sources.len() > 50, "the sources were not found");
    let test_modules: Vec<_> =
        sources.iter().flat_map(|(file, text)| modules_of_tests(&tokens(text), file)).collect();
    assert!(test_modules.len() > 3, "the modules of tests were not found");
    let is_test = |file: &Path| test_modules.iter().any(|module| file.with_extension("").starts_with(module));
    let violations: Vec<_> =
        sources.iter().flat_map(|(file, text)| check(file, text, is_test(file))).collect();
    let lines: Vec<_> = violations.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "in src:\n{}", lines.join("\n"));
}

#[test]
fn no_modules_of_the_plan_import_each_other_in_a_circle() {
    let circle = circles::circle(Path::new("submit/plan"), &sources());
    assert!(circle.is_empty(), "in a circle: {}", circle.join(", "));
}

#[test]
fn the_plan_reads_no_file_no_network_no_clock_and_draws_nothing() {
    let sources = sources();
    let tests: Vec<_> =
        sources.iter().flat_map(|(file, text)| modules_of_tests(&tokens(text), file)).collect();
    let is_test = |file: &Path| tests.iter().any(|module| file.with_extension("").starts_with(module));
    let impure = purity::violations(&sources, is_test);
    assert!(impure.is_empty(), "in src:\n{}", impure.join("\n"));
}

#[test]
fn every_room_is_in_the_table() {
    for (file, _) in sources() {
        let room = room_of(&file);
        let is_known = room == "lib" || LEAVES.contains(&&*room) || floor_of(&room).is_some();
        assert!(is_known, "src/{}: {room} is on no floor", file.display());
    }
}

/// What stands between backticks.
fn in_code(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_page_has_the_same_rooms_on_the_same_floors() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/architecture.md");
    let page = std::fs::read_to_string(page).unwrap();
    let row = |first: &str| {
        let line = page.lines().find(|line| line.starts_with(&format!("| {first} | ")));
        let mut rooms = in_code(line.unwrap().split('|').nth(2).unwrap());
        rooms.sort_unstable();
        rooms
    };
    let sorted = |rooms: &[&'static str]| {
        let mut rooms = rooms.to_vec();
        rooms.sort_unstable();
        rooms
    };
    for (floor, rooms) in FLOORS.iter().enumerate() {
        let named: Vec<_> =
            row(&floor.to_string()).into_iter().map(|room| room.trim_end_matches(".rs")).collect();
        assert_eq!(named, sorted(rooms), "floor {floor}");
    }
    assert_eq!(row("leaves"), sorted(&LEAVES));
    let sentence = page.lines().find_map(|line| line.split_once("On one floor ")).unwrap().1;
    let neighbours: Vec<Vec<&str>> =
        sentence.split(", ").map(|part| in_code(part.trim_start_matches("and "))).collect();
    let expected: Vec<Vec<&str>> =
        NEIGHBOURS.iter().map(|(who, whom)| std::iter::once(who).chain(*whom).copied().collect()).collect();
    for neighbour in &expected {
        assert!(neighbours.contains(neighbour), "{neighbour:?} of {neighbours:?}");
    }
    assert_eq!(neighbours.len(), expected.len());
}

fn found(file: &str, text: &str) -> Vec<(usize, String)> {
    check(Path::new(file), text, file.ends_with("tests.rs"))
        .into_iter()
        .map(|violation| (violation.line, violation.what))
        .collect()
}

#[test]
fn planted_violations_are_found_where_they_are() {
    for (file, text, line, what) in [
        (
            "store/disk/x.rs",
            "//! x\n\nuse crate::server::State;",
            3,
            "store on floor 1 uses server on floor 4",
        ),
        (
            "store/x.rs",
            "fn f() {\n    crate::staging::open();\n}",
            2,
            "store on floor 1 uses staging on floor 2",
        ),
        (
            "store/x.rs",
            "use crate::{\n    resource::X,\n    ledger::{Y, Z},\n};",
            3,
            "store uses its neighbour ledger on floor 1",
        ),
        ("store/x.rs", "use super::super::cleaner::X;", 1, "store on floor 1 uses cleaner on floor 3"),
        (
            "store/x.rs",
            "mod y { use super::super::super::server::X; }",
            1,
            "store on floor 1 uses server on floor 4",
        ),
        ("store/mod.rs", "use super::fetch::X;", 1, "store on floor 1 uses fetch on floor 3"),
        ("clock.rs", "use crate::resource::X;", 1, "clock is a leaf, and uses resource"),
        ("cleaner/run.rs", "use cloakroom::server;", 1, "cleaner on floor 3 uses server on floor 4"),
        ("staging/x.rs", "use axum::http;", 1, "axum outside of server"),
        ("server/x.rs", "type A =\n    sqlx::Error;", 2, "sqlx outside of ledger"),
        ("fetch/x.rs", "use {std::fs, reqwest::Client};", 1, "reqwest outside of client"),
        ("server/x.rs", "fn f() { x.unwrap(); }", 1, "unwrap outside of tests"),
        ("server/x.rs", "fn f() {\n\"}\" ; todo!() }", 2, "todo outside of tests"),
    ] {
        assert_eq!(found(file, text), [(line, what.to_owned())], "{file}: {text}");
    }
    let long = "\n".repeat(LONGEST_FILE + 1);
    assert_eq!(found("server/x.rs", &long).len(), 1);
}

#[test]
fn modules_that_are_compiled_for_tests_only_are_recognised() {
    let text = "mod a; #[cfg(test)]\nmod b;\n#[cfg(test)] mod c { mod d; } mod e;";
    for (file, module) in [
        ("lib.rs", "b"),
        ("bundle/mod.rs", "bundle/b"),
        ("bundle/pack.rs", "bundle/pack/b"),
        ("spark.rs", "spark/b"),
    ] {
        assert_eq!(modules_of_tests(&tokens(text), Path::new(file)), [PathBuf::from(module)], "{file}");
    }
}

#[test]
fn what_is_allowed_is_not_found() {
    for (file, text) in [
        ("server/x.rs", "use crate::{staging::X, store::{self, Y}, telemetry::chain};\nuse axum::http;"),
        ("ledger/x.rs", "use crate::resource::X; use crate::clock::Clock; use sqlx::Row as _;"),
        ("store/disk/x.rs", "use super::super::StoreError; use super::server;"),
        ("store/x.rs", "mod y { fn f() {} use super::super::server::X; } use super::server::X;"),
        (
            "store/x.rs",
            "// crate::server\n/* crate::server /* axum::x */ */ const A: &str = \"crate::server axum::x\";",
        ),
        (
            "store/x.rs",
            "const A: &str = r#\"crate::\"server\"#; const B: char = '\"'; const C: u8 = b'\\''; // axum::",
        ),
        ("store/x.rs", "#[cfg(test)]\nmod tests {\n    fn f<'a>(x: &'a str) { x.unwrap(); panic!() }\n}"),
        ("store/x/tests.rs", "fn f() { x.unwrap() }"),
        ("commands/serve.rs", "use crate::cli::ServeArgs; use cloakroom::server::{self, AppState};"),
    ] {
        assert_eq!(found(file, text), [], "{file}: {text}");
    }
}
