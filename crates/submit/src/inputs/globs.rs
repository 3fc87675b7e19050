//! Patterns in paths of the submitting machine, as Hadoop's `globStatus` reads them.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::plan::is_pattern;

/// The regular files that match, sorted.
pub(super) fn expand(pattern: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let name = component.as_os_str();
        let pattern = name.to_str().filter(|name| is_pattern(name));
        if let (Component::Normal(_), Some(pattern)) = (component, pattern) {
            found = matching(&found, pattern)?;
        } else {
            for path in &mut found {
                path.push(name);
            }
            found.retain(|path| path.exists());
        }
    }
    found.retain(|path| path.is_file());
    found.sort();
    Ok(found)
}

fn matching(folders: &[PathBuf], pattern: &str) -> io::Result<Vec<PathBuf>> {
    let pattern: Vec<char> = pattern.chars().collect();
    let mut found = Vec::new();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let name: Vec<char> = entry.file_name().to_string_lossy().chars().collect();
            // A pattern does not match hidden files, as in a shell and in Hadoop.
            let is_hidden = name.first() == Some(&'.') && pattern.first() != Some(&'.');
            if !is_hidden && matches(&pattern, &name) {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}

/// Matches `*`, `?`, `[abc]`, `[a-c]` and `[^a]`. A backslash makes the next character literal.
fn matches(pattern: &[char], name: &[char]) -> bool {
    match pattern {
        [] => name.is_empty(),
        ['*', rest @ ..] => (0..=name.len()).any(|skipped| matches(rest, &name[skipped..])),
        ['?', rest @ ..] => !name.is_empty() && matches(rest, &name[1..]),
        ['[', rest @ ..] => in_class(rest, name).unwrap_or_default(),
        ['\\', c, rest @ ..] | [c, rest @ ..] => name.first() == Some(c) && matches(rest, &name[1..]),
    }
}

/// Matches a class and the rest of the pattern. It is `None` if the class has no end, or if no character is left.
fn in_class(class: &[char], name: &[char]) -> Option<bool> {
    let end = class.iter().skip(1).position(|c| *c == ']')? + 1;
    let (class, rest) = (&class[..end], &class[end + 1..]);
    let (is_negated, mut members) = match class {
        ['^' | '!', members @ ..] => (true, members),
        members => (false, members),
    };
    let first = name.first()?;
    let mut is_member = false;
    while let [from, tail @ ..] = members {
        let (to, tail) = match tail {
            ['-', to, tail @ ..] => (to, tail),
            tail => (from, tail),
        };
        is_member |= (from..=to).contains(&first);
        members = tail;
    }
    Some(is_member != is_negated && matches(rest, &name[1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_hadoops_do() {
        let is_match = |pattern: &str, name: &str| {
            matches(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
        };
        for (pattern, name) in [
            ("*", "anything"),
            ("*.jar", "a.jar"),
            ("a*b*c", "axbxbc"),
            ("?.jar", "ü.jar"),
            ("[ab].jar", "b.jar"),
            ("[a-c]x", "bx"),
            ("[^a]x", "bx"),
            ("\\*", "*"),
        ] {
            assert!(is_match(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("*.jar", "a.zip"), ("?", ""), ("?", "ab"), ("[ab]", "c"), ("[^a]", "a"), ("[a", "a"), ("", "a")]
        {
            assert!(!is_match(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn only_files_are_found_and_hidden_ones_only_by_their_dot() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["x1/a.jar", "x1/b.jar", "x2/a.jar", "y/a.jar", "x1/.h.jar"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::fs::create_dir(folder.path().join("x1/d.jar")).unwrap();
        let found = |pattern: &str| {
            let found = expand(&folder.path().join(pattern)).unwrap();
            let names =
                found.iter().map(|path| path.strip_prefix(folder.path()).unwrap().display().to_string());
            names.collect::<Vec<_>>()
        };
        assert_eq!(found("x*/*.jar"), ["x1/a.jar", "x1/b.jar", "x2/a.jar"]);
        assert_eq!(found("x1/.*"), ["x1/.h.jar"]);
        assert_eq!(found("z*/a.jar"), [""; 0]);
        assert_eq!(found("*/nothing"), [""; 0]);
    }
}
