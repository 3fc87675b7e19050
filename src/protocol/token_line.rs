//! The lines of a token file: `TOKEN`, or `name=NAME TOKEN`.

/// Begins a line that says whose the token is.
const NAME: &str = "name=";

/// The longest name, as of a DNS label.
const LONGEST_NAME: usize = 63;

/// What a line holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenLine<'a> {
    /// Whose token it is.
    pub name: Option<&'a str>,
    /// What is shown to the server.
    pub token: &'a str,
}

/// A line that could be a token without a name, and looks like one with a name. It holds no part of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a line that begins with “name=” is read as name=NAME TOKEN, with one blank, a token without blanks, and a name of \
     at most {LONGEST_NAME} letters, digits, and . _ - @ +; a token without a name must not begin so"
)]
pub struct TokenLineError;

impl<'a> TokenLine<'a> {
    /// Reads a line; `None` if it is blank.
    pub fn parse(line: &'a str) -> Result<Option<Self>, TokenLineError> {
        let line = line.trim();
        if line.is_empty() {
            return Ok(None);
        }
        let Some(named) = line.strip_prefix(NAME) else { return Ok(Some(Self { name: None, token: line })) };
        let (name, token) = named.split_once(' ').ok_or(TokenLineError)?;
        let token = token.trim_start();
        if is_name(name) && !token.contains(char::is_whitespace) {
            Ok(Some(Self { name: Some(name), token }))
        } else {
            Err(TokenLineError)
        }
    }
}

fn is_name(text: &str) -> bool {
    (1..=LONGEST_NAME).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-@+".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(Option<&str>, &str)> {
        TokenLine::parse(line).unwrap().map(|line| (line.name, line.token))
    }

    #[test]
    fn a_line_is_a_token_or_a_name_and_a_token() {
        assert_eq!(read("  "), None);
        assert_eq!(read("c2VjcmV0IHRva2Vu\r"), Some((None, "c2VjcmV0IHRva2Vu")));
        assert_eq!(read("a token with blanks"), Some((None, "a token with blanks")));
        assert_eq!(read("Name=alice token"), Some((None, "Name=alice token")));
        assert_eq!(read(" name=alice@example.org  c2VjcmV0 "), Some((Some("alice@example.org"), "c2VjcmV0")));
    }

    #[test]
    fn a_line_that_could_be_read_both_ways_is_refused_without_being_repeated() {
        let long = format!("name={} token", "a".repeat(LONGEST_NAME + 1));
        for line in
            ["name=", "name=c2VjcmV0IHRva2Vu", "name= token", "name=al/ice token", "name=a token rest", &long]
        {
            let Err(error) = TokenLine::parse(line) else { panic!("{line} was taken") };
            assert!(error.to_string().contains("name=NAME TOKEN"));
        }
    }
}
