//! Modules of one room that use each other in a circle. A folder counts as one module, and so does the room's own `mod.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::source::{code_without_tests, names_below, tokens};

/// What stands in the file of the room itself.
const OWN: &str = "mod";

/// Who uses whom among the modules right below `room`, each with all that is in it.
fn uses(room: &Path, sources: &[(PathBuf, String)]) -> BTreeMap<String, BTreeSet<String>> {
    let module_of = |file: &Path| {
        let below = file.strip_prefix(room).ok()?.components().next()?;
        Some(below.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned())
    };
    let modules: BTreeSet<String> = sources.iter().filter_map(|(file, _)| module_of(file)).collect();
    let mut uses = BTreeMap::<String, BTreeSet<String>>::new();
    for (file, text) in sources {
        let Some(module) = module_of(file) else { continue };
        let tokens = code_without_tests(&tokens(text));
        // Below its own file the room's modules need no path.
        let others = match &*module {
            OWN => {
                tokens.windows(2).filter(|two| two[1].text == "::").map(|two| two[0].text.clone()).collect()
            }
            _ => names_below(&tokens, file, room),
        };
        // What is no module stands in the file of the room.
        let others =
            others.into_iter().map(|other| if modules.contains(&other) { other } else { OWN.to_owned() });
        uses.entry(module.clone()).or_default().extend(others.filter(|other| *other != module));
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
        source("submit/plan/a.rs", "use super::b::X;"),
        source("submit/plan/b/mod.rs", "use super::c;"),
        source("submit/plan/b/x.rs", "use crate::submit::plan::d::Y;"),
        source("submit/plan/c.rs", ""),
        source("submit/plan/d.rs", "fn f() { super::e::f(); }\n#[cfg(test)]\nmod t { use super::super::a; }"),
        source("submit/plan/e.rs", "use std::fs;"),
    ];
    let room = Path::new("submit/plan");
    assert_eq!(circle(room, &sources), [""; 0]);
    sources.push(source("submit/plan/e/y.rs", "use super::super::{b, c};"));
    assert_eq!(circle(room, &sources), ["b", "d", "e"]);
    sources.pop();
    sources.push(source("submit/plan/mod.rs", "mod d;\npub use d::Y;\npub fn f() { b::f() }"));
    assert_eq!(circle(room, &sources), [""; 0]);
    sources.push(source("submit/plan/e/y.rs", "use super::super::{Y, f};"));
    assert_eq!(circle(room, &sources), ["b", "d", "e", "mod"]);
}
