//! Names of objects that other programs have made. The library reads no page of a list if one name in it is none of its own paths,
//! such as `blobs//x`. So those names are taken out first.

use std::borrow::Cow;

use object_store::path::Path;
use quick_xml::escape::unescape;

/// What stands in a page in place of a name that the library does not read. No object of this program has it.
const FOREIGN: &str = "foreign";

/// The elements with the name of an object: those of S3 and Google, and those of Azure.
const ELEMENTS: [&str; 2] = ["Key", "Name"];

/// A page of a list, as the library can read it.
pub(super) fn readable(page: &str) -> String {
    let mut readable = String::with_capacity(page.len());
    let mut rest = page;
    while let Some((before, name, after)) = next_name(rest) {
        readable.push_str(before);
        readable.push_str(if is_path(name) { name } else { FOREIGN });
        rest = after;
    }
    readable.push_str(rest);
    readable
}

/// The page before its next name, that name, and the page behind it. A name has no `<`, because XML escapes it.
fn next_name(page: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let tag = from + page[from..].find('<')?;
        let end = tag + page[tag..].find('>')? + 1;
        let element = page[tag + 1..end - 1].split_whitespace().next().unwrap_or_default();
        if ELEMENTS.contains(&element) {
            let length = page[end..].find('<')?;
            return Some((&page[..end], &page[end..end + length], &page[end + length..]));
        }
        from = end;
    }
}

fn is_path(name: &str) -> bool {
    let name = unescape(name).unwrap_or(Cow::Borrowed("//"));
    Path::parse(name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_paths_are_taken_out_and_nothing_else() {
        for (page, expected) in [
            ("<Key>blobs/00</Key><Size>1</Size>", "<Key>blobs/00</Key><Size>1</Size>"),
            ("<Key>blobs//x</Key><Key>a</Key>", "<Key>foreign</Key><Key>a</Key>"),
            ("<Key>blobs/.</Key>", "<Key>foreign</Key>"),
            ("<Key>a &amp; b</Key>", "<Key>a &amp; b</Key>"),
            ("<Key>a &#x1; b</Key><Key>&nothing;</Key>", "<Key>foreign</Key><Key>foreign</Key>"),
            (r#"<Name Encoded="true">a//b</Name>"#, r#"<Name Encoded="true">foreign</Name>"#),
            ("<KeyCount>//</KeyCount><Key/><Key>", "<KeyCount>//</KeyCount><Key/><Key>"),
            ("no XML: <", "no XML: <"),
        ] {
            assert_eq!(readable(page), expected);
        }
    }
}
