//! What a pure function does not use: files, the network, the clock, chance.

use super::source::{Token, tokens};

/// Names that stand for one of them wherever they begin a path or are a part of it.
const NAMES: [&str; 12] = [
    "fs",
    "net",
    "tokio",
    "rand",
    "reqwest",
    "env",
    "process",
    "HttpClient",
    "ApiServer",
    "SystemClock",
    "Instant",
    "async",
];
/// Methods of paths that look at the disk.
const METHODS: [&str; 9] = [
    "exists",
    "try_exists",
    "is_file",
    "is_dir",
    "is_symlink",
    "canonicalize",
    "metadata",
    "read_dir",
    "read_link",
];
/// Functions that read a file or the clock, by the type that has them.
const FUNCTIONS: [(&str, &str); 7] = [
    ("Timestamp", "now"),
    ("SystemTime", "now"),
    ("Zoned", "now"),
    ("PackPlan", "new"),
    ("UploadToken", "read"),
    ("jar", "main_class"),
    ("Uuid", "new_v4"),
];

/// Each use, with its line.
pub fn impure(tokens: &[Token]) -> impl Iterator<Item = (usize, String)> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    (0..tokens.len()).filter_map(move |at| {
        let (word, after) = (text(at), (text(at + 1), text(at + 2)));
        let is_function = FUNCTIONS.iter().any(|(of, name)| word == *of && after == ("::", name));
        let is_method = at > 0 && text(at - 1) == "." && METHODS.contains(&word) && after.0 == "(";
        let is_name = NAMES.contains(&word);
        // A field or an argument of that name is no use of it.
        let is_name = is_name
            && (word == "async" || after.0 == "::" || at > 0 && matches!(text(at - 1), "::" | "{" | ","));
        let is_name = is_name && after.0 != ":";
        (is_function || is_method || is_name).then(|| (tokens[at].line, format!("{word} in a pure room")))
    })
}

#[test]
fn planted_impurities_are_found() {
    let found = |text: &str| impure(&tokens(text)).map(|(_, what)| what).collect::<Vec<_>>();
    for text in [
        "fn f() { std::fs::read(x); }",
        "use std::fs::{self, File};",
        "use std::{io, fs};",
        "use rand::Rng;",
        "fn f() { tokio::spawn(x); }",
        "fn f() { let now = Timestamp::now(); }",
        "fn f(path: &Path) -> bool { path.is_file() }",
        "async fn f() {}",
        "fn f() { PackPlan::new(&files); }",
        "use crate::client::HttpClient;",
    ] {
        assert!(!found(text).is_empty(), "{text}");
    }
    for text in [
        "use std::io;",
        "fn f() { Ok(Kind::File { size_bytes, .. }) }",
        "struct X { process: u32, env: u32 }",
        "fn f() { spec.metadata.insert(x); facts.has_file(path); append(&mut c, \"env\", x) }",
    ] {
        assert_eq!(found(text), [""; 0], "{text}");
    }
}
