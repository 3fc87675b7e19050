//! As much of Rust's syntax as it takes to see who uses whom.

use std::path::{Path, PathBuf};

const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

/// A word or a mark, and the line that it stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    pub line: usize,
}

/// Words, paths' `::` and single marks; comments and literals are left out.
pub fn tokens(text: &str) -> Vec<Token> {
    let characters: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < characters.len() {
        let length = skipped(&characters[at..]);
        if length > 0 {
            line += characters[at..at + length].iter().filter(|c| **c == '\n').count();
            at += length;
            continue;
        }
        let is_word = |c: &&char| c.is_alphanumeric() || **c == '_';
        let rest = &characters[at..];
        let length = match rest.iter().take_while(is_word).count() {
            0 if rest.starts_with(&[':', ':']) => 2,
            0 => 1,
            word => word,
        };
        found.push(Token { text: rest[..length].iter().collect(), line });
        at += length;
    }
    found
}

/// How many characters from here on are white space, a comment or a literal.
fn skipped(rest: &[char]) -> usize {
    match rest {
        [c, ..] if c.is_whitespace() => 1,
        ['/', '/', ..] => rest.iter().position(|c| *c == '\n').unwrap_or(rest.len()),
        ['/', '*', ..] => block_comment(rest),
        ['b' | 'c', '"', ..] => 1 + quoted(&rest[1..], '"'),
        ['b', '\'', ..] => 1 + quoted(&rest[1..], '\''),
        ['"', ..] => quoted(rest, '"'),
        ['\'', '\\', ..] | ['\'', _, '\'', ..] => quoted(rest, '\''),
        // A lifetime or a label.
        ['\'', ..] => 1,
        ['b', 'r', '"' | '#', ..] => 1 + raw(&rest[1..]),
        ['r', '"' | '#', ..] => raw(rest),
        _ => 0,
    }
}

fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn quoted(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// `r"…"` and `r#"…"#`; `r#name` is a word.
fn raw(rest: &[char]) -> usize {
    let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
    if rest.get(1 + hashes) != Some(&'"') {
        return 2;
    }
    let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let start = 2 + hashes;
    let length = rest[start..].windows(end.len()).position(|window| window == end);
    length.map_or(rest.len(), |length| start + length + end.len())
}

/// Names right below the crate's root that a file refers to: behind `crate::` and as many `super::` as lead there, in
/// groups as well.
pub fn roots(tokens: &[Token], file: &Path) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    // Where modules inside of the file begin: how many braces are open then.
    let (mut braces, mut inner) = (0, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" => {
                braces += 1;
                if at >= 2 && tokens[at - 2].text == "mod" {
                    inner.push(braces);
                }
            }
            "}" => {
                if inner.last() == Some(&braces) {
                    inner.pop();
                }
                braces -= 1;
            }
            _ => {}
        }
        let depth = depth_of(file) + inner.len();
        let starts = at == 0 || tokens[at - 1].text != "::";
        let after = match token.text.as_str() {
            "crate" if starts => at + 1,
            "super" if starts => {
                let supers = tokens[at..].chunks(2).take_while(|pair| pair[0].text == "super").count();
                if supers < depth {
                    continue;
                }
                at + 2 * supers - 1
            }
            _ => continue,
        };
        if tokens.get(after).is_some_and(|next| next.text == "::") {
            let mut below = Vec::new();
            names(&tokens[after + 1..], &mut below);
            // The root has modules only.
            found.extend(below.into_iter().filter(|(name, _)| name.starts_with(char::is_lowercase)));
        }
    }
    found
}

/// Names right below the module `room` that a file refers to: by `crate::`, or in it by as many `super::` as lead there.
pub fn names_below(tokens: &[Token], file: &Path, room: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let path: Vec<String> = room.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    for (at, token) in tokens.iter().enumerate().filter(|(at, _)| *at == 0 || tokens[*at - 1].text != "::") {
        let after = match token.text.as_str() {
            "crate" => {
                let names =
                    tokens[at + 1..].chunks(2).take(path.len()).map(|pair| &pair[pair.len() - 1].text);
                if !names.eq(&path) {
                    continue;
                }
                at + 1 + 2 * path.len()
            }
            "super" => {
                let supers = tokens[at..].chunks(2).take_while(|pair| pair[0].text == "super").count();
                if !file.starts_with(room) || depth_of(file) != path.len() + supers {
                    continue;
                }
                at + 2 * supers - 1
            }
            _ => continue,
        };
        if tokens.get(after).is_some_and(|next| next.text == "::") {
            names(&tokens[after + 1..], &mut found);
        }
    }
    found.into_iter().map(|(name, _)| name).collect()
}

/// How many modules down from the root the file's own module is.
fn depth_of(file: &Path) -> usize {
    let parts = file.iter().count();
    if file.file_stem().is_some_and(|stem| stem == "mod") { parts - 1 } else { parts }
}

/// The name that comes next, or the first names of everything in a group.
fn names(tokens: &[Token], found: &mut Vec<(String, usize)>) {
    let is_name = |token: &Token| token.text.starts_with(char::is_alphabetic);
    match tokens.first() {
        Some(group) if group.text == "{" => {
            let mut depth = 0;
            let mut starts = true;
            for token in tokens {
                match token.text.as_str() {
                    "{" => depth += 1,
                    "}" => depth -= 1,
                    "," => starts = depth == 1,
                    _ => {
                        if std::mem::take(&mut starts) && is_name(token) && token.text != "self" {
                            found.push((token.text.clone(), token.line));
                        }
                    }
                }
                if depth == 0 {
                    return;
                }
            }
        }
        Some(name) if is_name(name) => found.push((name.text.clone(), name.line)),
        _ => {}
    }
}

/// The modules that a file declares, as paths below `src` without an extension.
pub fn modules(tokens: &[Token], file: &Path) -> Vec<PathBuf> {
    let folder = folder_of(file);
    let declared = tokens.windows(3).filter(|three| three[0].text == "mod" && three[2].text == ";");
    declared.map(|three| folder.join(&three[1].text)).collect()
}

/// Where the files of a file's modules are.
fn folder_of(file: &Path) -> PathBuf {
    let is_own_folder = file.file_stem().is_some_and(|stem| stem == "mod" || stem == "lib" || stem == "main");
    if is_own_folder { file.parent().unwrap().to_owned() } else { file.with_extension("") }
}

/// The same for those that are for tests only.
pub fn modules_of_tests(tokens: &[Token], file: &Path) -> Vec<PathBuf> {
    let folder = folder_of(file);
    let declarations = tokens.windows(MARK.len() + 3).filter(|window| {
        let mut texts = window.iter().map(|token| token.text.as_str());
        texts.next_back() == Some(";") && texts.take(MARK.len() + 1).eq(MARK.into_iter().chain(["mod"]))
    });
    declarations.map(|window| folder.join(&window[MARK.len() + 1].text)).collect()
}

/// The tokens, without items that are there for tests only.
pub fn code_without_tests(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let is_mark = tokens[at..].iter().map(|token| token.text.as_str()).take(MARK.len()).eq(MARK);
        if is_mark {
            at += MARK.len() + item(&tokens[at + MARK.len()..]);
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// How many tokens the next item has: up to its `;` or the end of its braces.
fn item(tokens: &[Token]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 && matches!(token.text.as_str(), ";" | "}") {
            return at + 1;
        }
    }
    tokens.len()
}
