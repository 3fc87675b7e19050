//! Names of files: which of them Spark accepts, and how they are written in a URI.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters to encode. The others stand for themselves in a path (RFC 3986, section 3.3); a few rare ones are
/// encoded all the same.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'+')
    .remove(b'=')
    .remove(b'@');

/// Spark's driver takes the decoded path of a `file:` URI for a pattern (`DependencyUtils.resolveGlobPaths`, Spark 3.5
/// and 4.3), and Hadoop's paths have no colon in a name. A `*` matches itself.
const UNFIT: [char; 7] = ['?', '[', ']', '{', '}', '\\', ':'];
/// The separator of Spark's lists.
const SEPARATOR: char = ',';
/// The longest name on Linux file systems (`NAME_MAX`).
const LONGEST_NAME_BYTES: usize = 255;

/// The characters in a name that Spark does not accept, for a message.
pub(super) fn unfit(name: &str) -> Option<String> {
    let mut found: Vec<char> = name.chars().filter(|character| UNFIT.contains(character)).collect();
    found.dedup();
    let text = found.iter().map(char::to_string).collect::<Vec<_>>().join(" ");
    (!found.is_empty()).then_some(text)
}

/// The name with `_` for every character that Spark does not accept in a name or in a list.
pub(super) fn fitting(name: &str) -> String {
    name.replace(UNFIT, "_").replace(SEPARATOR, "_")
}

/// Whether a name in a list would count as two entries.
pub(super) fn is_split(name: &str) -> bool {
    name.contains(SEPARATOR)
}

/// What is wrong with the folder name of an archive. Spark first deletes what has this name in the driver's working
/// directory. So it must be one name in that directory, and no path.
pub(super) fn folder_fault(name: &str) -> Option<&'static str> {
    // The characters of a fragment besides letters and digits (RFC 3986, section 3.5), without those of UNFIT and `/`.
    let is_good = |character: char| {
        character.is_ascii_alphanumeric()
            || "-._~!$&'()*+;=@".contains(character)
            || !(character.is_ascii() || character.is_whitespace() || character.is_control())
    };
    match name {
        "" => Some("it is empty"),
        "." | ".." => Some("it is the working directory itself, or the one above"),
        name if name.contains('/') => Some("it has a slash in it"),
        name if name.len() > LONGEST_NAME_BYTES => Some("it is longer than 255 bytes"),
        name if !name.chars().all(is_good) => {
            Some("it has a blank or another character in it that no URI has behind #")
        }
        _ => None,
    }
}

/// The `file:` URI of an absolute path.
pub(super) fn file_uri(path: &str) -> String {
    format!("file://{}", utf8_percent_encode(path, ENCODED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_spark_takes_for_a_pattern_or_a_scheme_is_unfit_and_nothing_else() {
        for (name, characters) in
            [("a[1].jar", "[ ]"), ("{x}", "{ }"), ("w?", "?"), ("co:lon.jar", ":"), ("back\\slash", "\\")]
        {
            assert_eq!(unfit(name).as_deref(), Some(characters), "{name}");
            assert_eq!(unfit(&fitting(name)), None, "{name}");
        }
        for name in ["a b%#;&'\"$ü✓.jar", "*!()+=@<>^`|~", "x_1.jar"] {
            assert_eq!((unfit(name), fitting(name).as_str()), (None, name));
        }
        assert_eq!(fitting("a,b[1]"), "a_b_1_");
    }

    #[test]
    fn an_archive_is_unpacked_as_one_folder_of_the_working_directory() {
        for name in [
            "", ".", "..", "../f", "e/f", "/", "my env", "a\u{a0}b", "a#b", "100%", "a[1]", "a:b", "a?",
            "{a}",
        ] {
            assert!(folder_fault(name).is_some(), "{name}");
        }
        assert!(folder_fault(&"x".repeat(256)).is_some());
        for name in ["env", "..env", "env-1.2_x", "ünï✓", "a+b=c@d~!$&'()*;"] {
            assert_eq!(folder_fault(name), None, "{name}");
        }
    }
}
