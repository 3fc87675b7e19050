//! Java's rules for texts.

/// `String.trim`: removes blanks and all characters below the blank at both ends. A no-break space stays.
pub fn trim(text: &str) -> &str {
    text.trim_matches(|character: char| character <= ' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_and_control_characters_go_and_other_spaces_stay() {
        assert_eq!(trim(" \t\r\n\u{1}a b\u{c} "), "a b");
        for text in ["a\u{a0}", "\u{2003}a", "\u{85}a", "\u{feff}a"] {
            assert_eq!(trim(text), text);
        }
    }
}
