//! The same folder for git and for us.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use cloakroom_testing::needs::{Need, missing, skip};

use super::*;

/// In every folder that gets rules.
const FILES: [&str; 36] = [
    "a", "b", "ab", "ba", "aab", "a-b", "-", "]", "[", "^", "!", "{", "}", ",", "..,", "#a", "!a", "a]",
    "[a]", "[ab]", "{a,b}", "a,b", ".a", "a.b", "a ", "a b", "1", "_", "ä", "d/a", "d/b", "d/d/a", "d/ab/b",
    "d/-/]", "ab.d/a/b", "[]/a-/b",
];
/// Each is the text of one ignore file.
const BY_HAND: [&str; 52] = [
    "[\\]a]",
    "[a\\-b]",
    "[[:alpha:]]",
    "[[:alpha:]-b]",
    "[[:digit:]_]",
    "[[:nothing:]]",
    "[[:a]",
    "[z-a]",
    "[b-a]*",
    "[]a]",
    "[!]a]",
    "[^a]",
    "[a",
    "a[",
    "[]",
    "a\\",
    "a\\/",
    "\\a\\b",
    "{a,b}",
    "[{]",
    "a ",
    "a\\ ",
    "a\\  ",
    "\\#a",
    "\\!a",
    "#a",
    "*a**b",
    "a**/b",
    "a**",
    "d/a**",
    "?**/b",
    "d[/]a",
    "d/**/a",
    "/**",
    "**/",
    "**",
    "*/**/*",
    "d/*",
    "d/*\n!d/a",
    "d/\n!d/a",
    "*\n!*/\n!d/**/a",
    "/*\n!/d\n",
    "a\r\nb\r",
    "\u{feff}a\nb",
    "\u{feff}\u{feff}a\nb",
    "\\",
    "!",
    "/",
    "//a",
    "d//",
    "?",
    "??",
];

fn git(folder: &Path, args: &[&str]) -> Vec<u8> {
    let run = Command::new("git")
        .args(["-c", "core.excludesFile=", "-c", "core.ignoreCase=false"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    run.stdout
}

/// Rules of few characters, the same in each run.
fn by_dice() -> Vec<String> {
    const PARTS: [&str; 30] = [
        "a", "b", "d", "a", "b", "d", "-", "]", "[", "^", "!", "\\", "*", "*", "*", "**", "?", "?", "/",
        "**/", "/**", "{", "}", ",", ".", " ", "#", "\n", "\n!", "[!",
    ];
    const IN_CLASS: [&str; 12] = ["a", "b", "-", "-", "]", "[", "^", "!", "\\", "/", "[:alpha:]", "1"];
    let mut state = 5_u64;
    let mut roll = |sides: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % sides
    };
    let mut rule = || {
        let mut rule = String::new();
        for _ in 0..=roll(4) {
            if roll(3) > 0 {
                rule.push_str(PARTS[roll(PARTS.len())]);
                continue;
            }
            rule.push_str(["[", "[", "[!", "[^"][roll(4)]);
            (0..=roll(4)).for_each(|_| rule.push_str(IN_CLASS[roll(IN_CLASS.len())]));
            rule.push(']');
        }
        rule
    };
    (0..300).map(|_| rule()).collect()
}

#[test]
fn the_walk_leaves_out_what_git_does() {
    if let Some(why) = missing(&[Need::Program("git")]).pop() {
        return skip(&why);
    }
    let outer = Outer::with(&[]);
    git(&outer.path("tree"), &["init", "--quiet"]);
    let rules: Vec<String> = BY_HAND.map(str::to_owned).into_iter().chain(by_dice()).collect();
    for (number, text) in rules.iter().enumerate() {
        for file in FILES {
            outer.add(&format!("tree/{number}/{file}"), "");
        }
        outer.add(&format!("tree/{number}/.gitignore"), text);
    }
    let listed =
        git(&outer.path("tree"), &["ls-files", "-z", "--others", "--exclude-per-directory=.gitignore"]);
    let listed = String::from_utf8(listed).unwrap();
    let by_git: BTreeSet<&str> = listed.split_terminator('\0').collect();
    let plan = outer.tree();
    let by_us: BTreeSet<&str> = plan.files().iter().map(|file| &*file.name).collect();
    let mut differences = String::new();
    for path in by_git.symmetric_difference(&by_us) {
        let (number, name) = path.split_once('/').unwrap();
        let who = if by_git.contains(path) { "we" } else { "git" };
        let rule = &rules[number.parse::<usize>().unwrap()];
        writeln!(differences, "{who} left out {name:?} by {rule:?}").unwrap();
    }
    assert_eq!(differences, "");
    // Most of the rules leave something out, and few leave out all.
    let usual = rules.len() * FILES.len();
    assert!((usual / 3..usual * 9 / 10).contains(&by_us.len()), "{} of {usual}", by_us.len());
}
