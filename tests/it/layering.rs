//! What cargo cannot say of the code: how long files are, what may end the process, which crates may use which libraries, and
//! what the plan of a submission keeps away from. Which crate uses which is in their manifests, and on the page.

mod circles;
mod purity;
mod size;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use source::{Token, code_without_tests, modules_of_tests, tokens};

/// Libraries that only some crates may use.
const LIBRARIES: [(&str, &[&str]); 5] = [
    ("axum", &["cloakroom-server", "cloakroom-testing"]),
    ("kube", &["cloakroom-cluster", "cloakroom-server", "cloakroom-submit"]),
    ("object_store", &["cloakroom-adapters"]),
    ("reqwest", &["cloakroom-adapters", "cloakroom-outbound", "cloakroom-testing", "cloakroom-transfer"]),
    ("sqlx", &["cloakroom-adapters"]),
];

const LONGEST_FILE: usize = 500;

/// Tests alone use them, and they may end as they like.
const OF_TESTS: [&str; 2] = ["crates/suites", "crates/testing"];

/// A file of a crate.
struct Source {
    /// The folder of the crate, below the project's; empty for the root package.
    of: PathBuf,
    /// Its path below `src`.
    file: PathBuf,
    text: String,
}

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folders of all packages, the root first.
fn packages() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(project().join("crates")).unwrap();
    let mut found: Vec<_> =
        entries.map(|entry| Path::new("crates").join(entry.unwrap().file_name())).collect();
    found.push(PathBuf::new());
    found.sort();
    found
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    for of in packages() {
        let src = project().join(&of).join("src");
        let mut folders = vec![src.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    let is_old_form = path.ends_with("mod.rs");
                    assert!(!is_old_form, "{}: a module has the name of its folder", path.display());
                    // So that all of a room is below its folder.
                    let folder = path.with_extension("");
                    let file = if folder.is_dir() { folder.join("mod.rs") } else { path };
                    let file = file.strip_prefix(&src).unwrap().to_owned();
                    found.push(Source { of: of.clone(), file, text });
                }
            }
        }
    }
    assert!(found.len() > 50, "the sources were not found");
    found
}

/// Whether a file is compiled for tests only.
fn is_of_tests<'a>(sources: impl IntoIterator<Item = &'a Source>) -> impl Fn(&Source) -> bool {
    let modules: Vec<_> = sources
        .into_iter()
        .flat_map(|Source { of, file, text }| {
            modules_of_tests(&tokens(text), file).into_iter().map(move |module| (of.clone(), module))
        })
        .collect();
    assert!(modules.len() > 3, "the modules of tests were not found");
    move |source| {
        let path = source.file.with_extension("");
        OF_TESTS.iter().any(|of| source.of == Path::new(of))
            || modules.iter().any(|(of, module)| *of == source.of && path.starts_with(module))
    }
}

/// What is wrong in the code, each with its place.
fn complaints(sources: &[&Source], wrong: impl Fn(&[Token]) -> Vec<(usize, String)>) -> Vec<String> {
    let place = |source: &Source, line| {
        let file = source.of.join("src").join(&source.file);
        format!("{}:{line}", file.display())
    };
    sources
        .iter()
        .flat_map(|source| {
            let found = wrong(&code_without_tests(&tokens(&source.text)));
            found.into_iter().map(|(line, what)| format!("{}: {what}", place(source, line)))
        })
        .collect()
}

/// What may end the process in the middle of its work.
fn panics(tokens: &[Token]) -> Vec<(usize, String)> {
    let found = tokens.windows(3).filter_map(|three| {
        let [before, name, after] = three else { return None };
        let is_method =
            matches!(name.text.as_str(), "unwrap" | "expect") && before.text == "." && after.text == "(";
        let is_macro = matches!(name.text.as_str(), "todo" | "unimplemented" | "panic" | "unreachable")
            && after.text == "!";
        (is_method || is_macro).then(|| (name.line, format!("{} outside of tests", name.text)))
    });
    found.collect()
}

/// Code, tests, benchmarks and fuzz targets.
#[test]
fn no_file_is_longer_than_500_lines_and_no_name_than_69_letters() {
    let mut folders: Vec<_> =
        ["src", "crates", "tests", "benches", "fuzz"].map(|name| project().join(name)).into();
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.file_name().unwrap() != "target" {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let lines = text.lines().count();
                assert!(lines <= LONGEST_FILE, "{}: {lines} lines", path.display());
                let names = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
                let long =
                    names.into_iter().find(|name| name.len() >= 70 && !name.contains(char::is_whitespace));
                assert_eq!(long, None, "{}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 500, "only {seen} files were found");
}

#[test]
fn nothing_outside_of_tests_ends_the_process_in_the_middle_of_its_work() {
    let sources = sources();
    let is_of_tests = is_of_tests(&sources);
    let code: Vec<_> = sources.iter().filter(|source| !is_of_tests(source)).collect();
    let found = complaints(&code, panics);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn planted_panics_are_found_where_they_are() {
    for (text, line, what) in [
        ("fn f() { x.unwrap(); }", 1, "unwrap outside of tests"),
        ("fn f() {\n\"}\" ; todo!() }", 2, "todo outside of tests"),
        ("/* \" */\nfn f() { x\n.expect(\"y\") }", 3, "expect outside of tests"),
    ] {
        assert_eq!(panics(&code_without_tests(&tokens(text))), [(line, what.to_owned())], "{text}");
    }
    for text in [
        "#[cfg(test)]\nmod tests {\n    fn f<'a>(x: &'a str) { x.unwrap(); panic!() }\n}",
        "const A: &str = r#\"x.unwrap()\"#; // panic!()",
    ] {
        assert_eq!(panics(&code_without_tests(&tokens(text))), [], "{text}");
    }
}

/// The code of all crates as if each were a module of one crate, so that a path says which crate it leads into.
fn as_one_crate(sources: &[Source]) -> Vec<(PathBuf, String)> {
    let is_of_tests = is_of_tests(sources);
    let code = sources.iter().filter(|source| !is_of_tests(source));
    code.filter_map(|Source { of, file, text }| {
        let name = of.file_name()?.to_str()?;
        let file = if file == Path::new("lib.rs") { Path::new("mod.rs") } else { file };
        let text = text.replace("crate::", &format!("crate::{name}::")).replace("cloakroom_", "crate::");
        Some((Path::new(name).join(file), text))
    })
    .collect()
}

#[test]
fn no_modules_of_the_plan_import_each_other_in_a_circle() {
    let circle = circles::circle(Path::new("submit/plan"), &as_one_crate(&sources()));
    assert!(circle.is_empty(), "in a circle: {}", circle.join(", "));
}

// Invariant: the plan depends only on the request, the facts and the drawn values.
#[test]
fn the_plan_reads_no_file_no_network_no_clock_and_draws_nothing() {
    let found = purity::violations(&as_one_crate(&sources()));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// What a package is called, and what its code depends on.
fn dependencies(of: &Path) -> (String, BTreeSet<String>) {
    let manifest = std::fs::read_to_string(project().join(of).join("Cargo.toml")).unwrap();
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).unwrap().trim_matches('"');
    let section = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let entries = section.take_while(|line| !line.starts_with('[')).filter(|line| !line.starts_with('#'));
    let names = entries.filter_map(|line| line.split(['.', ' ']).next()).filter(|name| !name.is_empty());
    (name.to_owned(), names.map(str::to_owned).collect())
}

#[test]
fn the_libraries_at_the_edges_are_used_by_the_crates_that_may() {
    let packages: BTreeMap<_, _> = packages().iter().map(|of| dependencies(of)).collect();
    for (library, may) in LIBRARIES {
        let uses = |(name, uses): (&String, &BTreeSet<String>)| uses.contains(library).then(|| name.clone());
        assert_eq!(packages.iter().filter_map(uses).collect::<Vec<_>>(), may, "{library}");
    }
}

/// What stands between backticks.
fn in_code(text: &str) -> BTreeSet<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

// Invariant: a crate uses only its dependencies, and docs/architecture.md names the same ones.
#[test]
fn the_page_says_of_each_crate_which_others_it_uses() {
    let page = std::fs::read_to_string(project().join("docs/architecture.md")).unwrap();
    for of in packages() {
        let (_, uses) = dependencies(&of);
        let uses: BTreeSet<_> =
            uses.iter().filter_map(|name| name.strip_prefix("cloakroom-")).map(str::to_owned).collect();
        let name = if of.as_os_str().is_empty() { "src".to_owned() } else { of.display().to_string() };
        let row = page.lines().find(|line| line.starts_with(&format!("| `{name}` | ")));
        let row = row.unwrap_or_else(|| panic!("the page has no row of {name}"));
        assert_eq!(in_code(row.split(" | ").nth(2).unwrap()), uses, "{name}");
    }
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
