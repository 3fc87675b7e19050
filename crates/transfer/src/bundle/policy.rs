//! The rules for names in a bundle, the same for packing and unpacking.

use thiserror::Error;

use cloakroom_core::text::{escaped, shortened};

/// The longest name of one file or folder that Linux file systems take.
const MAX_COMPONENT_BYTES: usize = 255;
/// The longest path in a bundle, which is also Linux's limit.
const MAX_PATH_BYTES: usize = 4096;
/// How many characters of an untrusted name an error repeats.
const MAX_PRINTED_CHARS: usize = 200;

/// Why a name may not stand in a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NameFault {
    /// The name is empty, or only has `.` and slashes.
    #[error("the name is empty")]
    Empty,
    /// The path starts with a slash.
    #[error("the name is absolute")]
    Absolute,
    /// The path has a `..` in it.
    #[error("the name leads out of its folder with ..")]
    Parent,
    /// The name has a control character, such as NUL, a line end or an escape sequence.
    #[error("the name has a control character in it")]
    Control,
    /// The name has a backslash, which some readers take for a separator.
    #[error("the name has a backslash in it")]
    Backslash,
    /// The name begins like `C:`, which some readers take for a drive.
    #[error("the name starts with a drive letter")]
    Drive,
    /// The name is not UTF-8. Spark and Kubernetes handle names as text.
    #[error("the name is not UTF-8")]
    NotUtf8,
    /// The name begins with [`RESERVED_PREFIX`].
    #[error("names that begin with {RESERVED_PREFIX} are not for bundles")]
    Reserved,
    /// One part of the path is longer than file systems accept.
    #[error("a part of the name is longer than {MAX_COMPONENT_BYTES} bytes")]
    LongComponent,
    /// The path is longer than Linux accepts.
    #[error("the name is longer than {MAX_PATH_BYTES} bytes")]
    LongPath,
}

/// The prefix of the files that `fetch` makes for itself, in the same folders as the files of bundles.
pub const RESERVED_PREFIX: &str = ".cloakroom-";

/// Checks the name of one file, which has no folders in it.
pub fn check_file_name(name: &str) -> Result<(), NameFault> {
    check_path(name)?;
    if name.contains('/') { Err(NameFault::Absolute) } else { Ok(()) }
}

/// Checks the path of a file or folder that goes into a bundle.
pub(super) fn check_path(path: &str) -> Result<(), NameFault> {
    if path.split('/').any(|part| part.starts_with(RESERVED_PREFIX)) {
        return Err(NameFault::Reserved);
    }
    match clean_path(path.as_bytes())? {
        clean if clean.is_empty() => Err(NameFault::Empty),
        clean if clean == path => Ok(()),
        _ => Err(NameFault::Absolute),
    }
}

/// Checks a path from an archive, and removes `.` and doubled slashes. The result for `./` is empty.
pub(super) fn clean_path(raw: &[u8]) -> Result<String, NameFault> {
    let path = std::str::from_utf8(raw).map_err(|_| NameFault::NotUtf8)?;
    check_text(path)?;
    let mut clean = String::with_capacity(path.len());
    for component in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        check_component(component)?;
        if !clean.is_empty() {
            clean.push('/');
        }
        clean.push_str(component);
    }
    Ok(clean)
}

fn check_text(path: &str) -> Result<(), NameFault> {
    let bytes = path.as_bytes();
    let faults = [
        (bytes.is_empty(), NameFault::Empty),
        (bytes.len() > MAX_PATH_BYTES, NameFault::LongPath),
        (bytes.first() == Some(&b'/'), NameFault::Absolute),
        (path.chars().any(char::is_control), NameFault::Control),
        (bytes.contains(&b'\\'), NameFault::Backslash),
    ];
    faults.into_iter().find(|(found, _)| *found).map_or(Ok(()), |(_, fault)| Err(fault))
}

fn check_component(component: &str) -> Result<(), NameFault> {
    let bytes = component.as_bytes();
    match bytes {
        b".." => Err(NameFault::Parent),
        [letter, b':', ..] if letter.is_ascii_alphabetic() => Err(NameFault::Drive),
        _ if bytes.len() > MAX_COMPONENT_BYTES => Err(NameFault::LongComponent),
        _ => Ok(()),
    }
}

/// Makes an untrusted name safe for logs and terminals: escapes unfit characters and limits the length.
pub(super) fn printable(raw: &[u8]) -> String {
    // The rest of a long name is not even escaped.
    escaped(&shortened(String::from_utf8_lossy(raw).into_owned(), MAX_PRINTED_CHARS))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_of_fetchs_own_is_refused_before_it_is_staged() {
        assert_eq!(check_file_name(".cloakroom-x"), Err(NameFault::Reserved));
        assert_eq!(check_file_name("cloakroom-x"), Ok(()));
    }

    #[test]
    fn dots_and_doubled_slashes_are_taken_out() {
        for (raw, clean) in
            [("a", "a"), ("./a", "a"), ("a//b/./c/", "a/b/c"), ("./", ""), ("...", "..."), ("a/..b", "a/..b")]
        {
            assert_eq!(clean_path(raw.as_bytes()), Ok(clean.to_owned()), "{raw}");
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let long = "x".repeat(256);
        let deep = "x/".repeat(2049);
        for (raw, fault) in [
            ("", NameFault::Empty),
            ("/etc/passwd", NameFault::Absolute),
            ("//etc", NameFault::Absolute),
            ("..", NameFault::Parent),
            ("a/../../b", NameFault::Parent),
            ("./..", NameFault::Parent),
            ("a\0b", NameFault::Control),
            ("a\nb", NameFault::Control),
            ("a\u{9b}31m", NameFault::Control),
            ("..\\a", NameFault::Backslash),
            ("C:/a", NameFault::Drive),
            ("./c:a", NameFault::Drive),
            (&long, NameFault::LongComponent),
            (&deep, NameFault::LongPath),
        ] {
            assert_eq!(clean_path(raw.as_bytes()), Err(fault), "{}", printable(raw.as_bytes()));
        }
        assert_eq!(clean_path(b"\xff"), Err(NameFault::NotUtf8));
    }

    #[test]
    fn a_file_name_has_no_folders() {
        assert_eq!(check_file_name("größe 1.jar"), Ok(()));
        for bad in ["", ".", "..", "a/b", "./a", "a/", "/a", "a\\b"] {
            assert!(check_file_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn printed_names_are_short_and_harmless() {
        assert_eq!(printable(b"a\x1b[31m\n"), "a\\u{1b}[31m\\n");
        assert_eq!(printable("a\u{202e}rab.exe".as_bytes()), "a\\u{202e}rab.exe");
        assert_eq!(printable("x".repeat(1_000_000).as_bytes()).chars().count(), MAX_PRINTED_CHARS + 1);
    }

    proptest! {
        #[test]
        fn a_clean_path_stays_inside_and_stays_clean(
            raw in prop::collection::vec(prop_oneof![Just(b'.'), Just(b'/'), Just(b'a'), any::<u8>()], 0..24)
        ) {
            if let Ok(clean) = clean_path(&raw) {
                prop_assert!(!clean.starts_with('/'));
                prop_assert!(clean.is_empty() || clean.split('/').all(|part| !matches!(part, "" | "." | "..")));
                prop_assert!(clean.is_empty() || clean_path(clean.as_bytes()) == Ok(clean.clone()));
            }
        }
    }
}
