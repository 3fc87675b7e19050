//! Why a document in YAML cannot be read, in words for people.

use serde_saphyr::Error;

use cloakroom_core::text::{one_line, repeated_key};

/// The YAML library shows lines of the document, in characters.
const LONGEST_REASON: usize = 2000;

/// The reason in one line, without the library's advice for programmers.
pub(super) fn reason(error: &Error) -> String {
    if let Error::DuplicateMappingKey { key, location } = error.without_snippet() {
        return repeated_key(key.as_deref(), location.line());
    }
    let reason = one_line(&error.to_string(), LONGEST_REASON);
    if reason.contains("budget breached") || reason.contains("alias") && reason.contains("limit") {
        return "it has too many aliases (*name)".to_owned();
    }
    let ends = [", set DuplicateKeyPolicy", "; use Option<"].into_iter().filter_map(|end| reason.find(end));
    reason[..ends.min().unwrap_or(reason.len())].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn reason_of(text: &str) -> String {
        reason(&serde_saphyr::from_str::<Value>(text).unwrap_err())
    }

    #[test]
    fn a_key_that_is_there_twice_is_named_with_its_line() {
        let json = "{\"spec\":\n{\"image\": 1,\n\n\"image\": 2}}";
        for text in ["a: 1\nspec:\n  image: x\n  image: y\n", json] {
            let expected =
                "the key `image` is there twice in one map, the second time in line 4: remove one of them";
            assert_eq!(reason_of(text), expected);
        }
    }

    #[test]
    fn other_reasons_are_those_of_the_library_in_one_line() {
        let said = reason_of("spec: [");
        assert!(!said.is_empty() && !said.contains('\n') && !said.contains("twice"), "{said}");
    }
}
