//! Modules of one room that import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::source::{code_without_tests, names_below, tokens};

/// Who uses whom among the modules right below `room`, each with all that is in it.
fn uses(room: &Path, sources: &[(PathBuf, String)]) -> BTreeMap<String, BTreeSet<String>> {
    let mut uses = BTreeMap::<String, BTreeSet<String>>::new();
    for (file, text) in sources {
        let Ok(below) = file.strip_prefix(room) else { continue };
        let module = below.components().next().unwrap().as_os_str().to_string_lossy();
        let module = module.trim_end_matches(".rs").to_owned();
        if module == "mod" {
            continue;
        }
        let others = names_below(&code_without_tests(&tokens(text)), file, room);
        let others = others.into_iter().filter(|other| *other != module);
        uses.entry(module.clone()).or_default().extend(others);
    }
    uses
}

/// The modules that are in circles: those that are left when everything that uses none of the rest is taken away, and
/// everything that none of the rest uses.
pub fn circle(room: &Path, sources: &[(PathBuf, String)]) -> Vec<String> {
    let mut uses = uses(room, sources);
    loop {
        let left: BTreeSet<String> = uses.keys().cloned().collect();
        let used: BTreeSet<String> = uses.values().flatten().cloned().collect();
        uses.retain(|module, others| !others.is_disjoint(&left) && used.contains(module));
        if uses.len() == left.len() {
            return left.into_iter().collect();
        }
    }
}

#[test]
fn a_circle_is_found_and_what_only_leads_to_it_is_not_in_it() {
    let source = |file: &str, text: &str| (PathBuf::from(file), text.to_owned());
    let mut sources = vec![
        source("plan/a.rs", "use super::b::X;"),
        source("plan/b/mod.rs", "use super::c;"),
        source("plan/b/x.rs", "use crate::plan::d::Y;"),
        source("plan/c.rs", ""),
        source("plan/d.rs", "fn f() { super::e::f(); }\n#[cfg(test)]\nmod t { use super::super::a; }"),
        source("plan/e.rs", "use std::fs;"),
    ];
    let room = Path::new("plan");
    assert_eq!(circle(room, &sources), [""; 0]);
    sources.push(source("plan/e/y.rs", "use super::super::{b, c};"));
    assert_eq!(circle(room, &sources), ["b", "d", "e"]);
}
