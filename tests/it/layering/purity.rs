//! What a pure function does not use: files, the network, the clock, chance. Neither does what it uses of other rooms: those
//! that are pure are held to the same words, and of the others it may name a few values and functions of values.

use std::path::{Path, PathBuf};

use super::source::{Token, code_without_tests, names_below, roots, tokens};

/// Crates that are pure, but for the parts that [`OF_OTHERS`] names.
const PURE: [&str; 3] = ["core", "kubespark", "spark"];
/// What the plan may name of other rooms, and of those parts of pure crates that read or draw.
const OF_OTHERS: [(&str, &[&str]); 14] = [
    ("core/client", &[]),
    ("core/clock", &[]),
    ("core/metrics", &[]),
    ("core/reload", &[]),
    ("core/resource/id", &[]),
    ("core/resource/secret", &[]),
    (
        "reach",
        &["NamedBy", "ServerChoice", "ServerPlace", "ServerService", "UploadAccount", "advice", "and_advice"],
    ),
    ("spark/arguments", &["check_amounts"]),
    ("spark/jar", &[]),
    (
        "submit",
        &["ExitCodeRule", "FollowSettings", "StagePlan", "Submission", "randomness", "plan", "file_copy"],
    ),
    ("transfer", &["bundle", "client"]),
    ("transfer/bundle", &["PackPlan", "PlannedFile", "check_file_name", "unique_names"]),
    (
        "transfer/client",
        &[
            "Failure",
            "GivenUp",
            "RetryPolicy",
            "SecretFileError",
            "ServerAddress",
            "TrustedCertificates",
            "UploadToken",
        ],
    ),
    ("transfer/fetch", &[]),
];

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
const FUNCTIONS: [(&str, &str); 8] = [
    ("Timestamp", "now"),
    ("SystemTime", "now"),
    ("Zoned", "now"),
    ("PackPlan", "new"),
    ("SubmitArguments", "new"),
    ("TrustedCertificates", "read"),
    ("UploadToken", "read"),
    ("Uuid", "new_v4"),
];

/// Whether a file is held to these rules: of the plan, or of a room that is pure.
pub fn is_pure(file: &Path) -> bool {
    let is_excepted = OF_OTHERS.iter().any(|(part, _)| file.with_extension("").starts_with(part));
    file.starts_with("submit/plan") || PURE.iter().any(|room| file.starts_with(room)) && !is_excepted
}

/// What a file of the plan uses of other rooms, and may not.
pub fn foreign(tokens: &[Token], file: &Path) -> Vec<String> {
    let rooms = roots(tokens, file).into_iter().map(|(room, _)| room);
    let is_known = |room: &String| {
        PURE.contains(&&**room) || OF_OTHERS.iter().any(|(part, _)| part.split('/').next() == Some(room))
    };
    let mut found: Vec<String> = rooms.filter(|room| !is_known(room)).collect();
    for (part, allowed) in OF_OTHERS {
        let names = names_below(tokens, file, Path::new(part)).into_iter();
        found.extend(names.filter(|name| !allowed.contains(&&**name)).map(|name| format!("{part}/{name}")));
    }
    found
}

/// Everything that is not pure in the plan, and in the rooms that it uses.
pub fn violations(sources: &[(PathBuf, String)]) -> Vec<String> {
    let mut found = Vec::new();
    for (file, text) in sources.iter().filter(|(file, _)| is_pure(file)) {
        let tokens = code_without_tests(&tokens(text));
        let shown = file.display();
        found.extend(impure(&tokens).map(|(line, what)| format!("{shown}:{line}: {what}")));
        if file.starts_with("submit/plan") {
            found.extend(foreign(&tokens, file).into_iter().map(|what| format!("{shown}: uses {what}")));
        }
    }
    found
}

/// Each use, with its line.
fn impure(tokens: &[Token]) -> impl Iterator<Item = (usize, String)> {
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
        "fn f() { UploadToken::read(path); }",
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

#[test]
fn only_values_are_taken_from_rooms_that_read() {
    let found = |text: &str| foreign(&tokens(text), Path::new("submit/plan/features/x.rs"));
    for (text, what) in [
        ("use crate::transfer::bundle::{Disk, PackPlan};", "transfer/bundle/Disk"),
        ("use crate::transfer::client::HttpClient;", "transfer/client/HttpClient"),
        ("fn f() { crate::spark::jar::main_class(x); }", "spark/jar/main_class"),
        ("use super::super::super::inputs::Local;", "submit/inputs"),
        ("use crate::staging::store::Store;", "staging"),
    ] {
        assert_eq!(found(text), [what], "{text}");
    }
    let good = "use crate::transfer::bundle::PackPlan; use crate::spark::{SparkConf, keys}; use super::super::spec::DriverSpec;";
    assert_eq!(found(good), [""; 0]);
}
