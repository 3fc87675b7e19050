//! Makes URIs of paths on the submitting machine, by the rules of Spark's `Utils.resolveURI` and Java's `File.toURI`.

use std::path::{Component, Path, PathBuf};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::uri::{has_scheme, split_list};

/// The ASCII characters that `java.net.URI` quotes in a path. It keeps all other characters.
const QUOTED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Makes every entry of a comma-separated list absolute.
pub(super) fn resolve_all(list: &str, folder: &Path) -> String {
    split_list(list).map(|entry| resolve(entry, folder)).collect::<Vec<_>>().join(",")
}

/// Keeps a text that has a scheme. A path becomes a `file:` URI, absolute and without symbolic links. If it has a
/// fragment, the fragment stays, and symbolic links stay, too.
pub(super) fn resolve(text: &str, folder: &Path) -> String {
    if has_scheme(text) && !text.contains(' ') {
        return text.to_owned();
    }
    match text.split_once('#') {
        Some((path, fragment)) if !fragment.contains('#') && !text.contains(' ') => {
            let path = percent_decode_str(path).decode_utf8_lossy();
            format!("{}#{fragment}", file_uri(&folder.join(path.as_ref())))
        }
        _ => file_uri(&canonical(&folder.join(text))),
    }
}

/// Makes `file:/…`, with one slash, as Java writes it.
fn file_uri(path: &Path) -> String {
    let text = path.to_string_lossy();
    let mut uri = String::from("file:");
    for character in text.chars() {
        let mut buffer = [0; 4];
        let piece: &str = character.encode_utf8(&mut buffer);
        if character.is_ascii() {
            uri.extend(utf8_percent_encode(piece, QUOTED));
        } else {
            uri.push(character);
        }
    }
    uri
}

/// Resolves symbolic links, `.` and `..`, as far as the path exists.
fn canonical(path: &Path) -> PathBuf {
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    let mut known = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                known.pop();
            }
            other => {
                known.push(other);
                known = known.canonicalize().unwrap_or(known);
            }
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str) -> String {
        resolve(text, Path::new("/no/such"))
    }

    #[test]
    fn a_path_becomes_an_absolute_uri_and_a_uri_stays() {
        for (text, expected) in [
            ("app.jar", "file:/no/such/app.jar"),
            ("../x/./a.jar", "file:/no/x/a.jar"),
            ("/a b/ü#1.jar", "file:/a%20b/ü%231.jar"),
            ("/a/b.zip#env", "file:/a/b.zip#env"),
            ("s3a://bucket/x.jar", "s3a://bucket/x.jar"),
            ("local:///opt/x.jar", "local:///opt/x.jar"),
            ("file:///opt/x.jar", "file:///opt/x.jar"),
            ("/100%.jar", "file:/100%25.jar"),
        ] {
            assert_eq!(resolved(text), expected, "{text}");
        }
    }

    #[test]
    fn a_list_is_resolved_entry_by_entry_without_empty_ones() {
        let list = resolve_all("a.jar, ,local:///b.jar,", Path::new("/no"));
        assert_eq!(list, "file:/no/a.jar,local:///b.jar");
        assert_eq!(resolve_all("", Path::new("/no")), "");
    }
}
