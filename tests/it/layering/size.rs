//! How much code each crate has: it grows only with a reason, and what became less stays less.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::source::{code_without_tests, modules, tokens};
use super::{is_of_tests, sources};
use crate::ratchet;

/// By how much a crate may be smaller than its number.
const SLACK: usize = 50;

const NUMBERS: &str = "tests/it/layering/code-lines.tsv";

/// The lines with code, without tests, comments and blank lines.
#[test]
fn no_crate_has_more_code_than_its_number() {
    let sources = sources();
    let is_of_tests = is_of_tests(&sources);
    let mut counted = BTreeMap::<String, usize>::new();
    for source in sources.iter().filter(|source| !is_of_tests(source)) {
        let lines: BTreeSet<usize> =
            code_without_tests(&tokens(&source.text)).iter().map(|token| token.line).collect();
        *counted.entry(source.of.join("src").display().to_string()).or_default() += lines.len();
    }
    ratchet::holds(NUMBERS, &counted, SLACK);
}

#[test]
fn every_file_has_code_and_is_a_module() {
    let sources = sources();
    let declared: BTreeSet<PathBuf> = sources
        .iter()
        .flat_map(|source| {
            let modules = modules(&tokens(&source.text), &source.file);
            modules.into_iter().map(|module| source.of.join(module))
        })
        .collect();
    for source in &sources {
        let module = if source.file.ends_with("mod.rs") {
            source.file.parent().unwrap().to_owned()
        } else {
            source.file.with_extension("")
        };
        let is_root = [Path::new("lib"), Path::new("main")].contains(&module.as_path());
        let name = source.of.join("src").join(&source.file).display().to_string();
        assert!(!source.text.trim().is_empty(), "{name} is empty");
        assert!(is_root || declared.contains(&source.of.join(module)), "{name} is no module");
    }
}
