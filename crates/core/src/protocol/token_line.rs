//! The lines of a token file, `TOKEN` or `name=NAME TOKEN`, as server and clients read them.

/// Begins a line that names the owner of its token.
const NAME: &str = "name=";

/// One or more of these stand between a name and its token.
const SEPARATORS: [char; 2] = [' ', '\t'];

/// The largest length of a name in bytes, as of a DNS label.
const LONGEST_NAME: usize = 63;

/// The content of one line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenLine<'a> {
    /// The name of the token; `None` if the line has none.
    pub name: Option<&'a str>,
    /// The token that is presented to the server.
    pub token: &'a str,
}

/// A line that looks like one with a name, but could also be a token without a name. The error holds no part of the
/// line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a line that begins with “name=” is read as name=NAME TOKEN: the name has at most {LONGEST_NAME} letters, digits, and \
     . _ - @ +, then come blanks or tabs, and the token has none; a token without a name must not begin with “name=”"
)]
pub struct TokenLineError;

impl<'a> TokenLine<'a> {
    /// Reads the lines of a file that are not blank, each with its number, counted from 1.
    pub fn of_file(text: &'a str) -> impl Iterator<Item = (usize, Result<Self, TokenLineError>)> {
        let lines = (1..).zip(text.lines());
        lines.filter_map(|(number, line)| Some((number, Self::parse(line).transpose()?)))
    }

    /// Reads a line; `None` if it is blank.
    fn parse(line: &'a str) -> Result<Option<Self>, TokenLineError> {
        let line = line.trim();
        if line.is_empty() {
            return Ok(None);
        }
        let Some(named) = line.strip_prefix(NAME) else { return Ok(Some(Self { name: None, token: line })) };
        let (name, token) = named.split_once(SEPARATORS).ok_or(TokenLineError)?;
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
        for between in [" ", "  ", "\t", " \t "] {
            let line = format!(" name=alice@example.org{between}c2VjcmV0 ");
            assert_eq!(read(&line), Some((Some("alice@example.org"), "c2VjcmV0")), "{line:?}");
        }
    }

    #[test]
    fn lines_keep_their_numbers() {
        let lines: Vec<_> = TokenLine::of_file("first\r\n\nname=alice second\nname=\n")
            .map(|(number, line)| (number, line.map(|line| (line.name, line.token))))
            .collect();
        let expected =
            [(1, Ok((None, "first"))), (3, Ok((Some("alice"), "second"))), (4, Err(TokenLineError))];
        assert_eq!(lines, expected);
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
