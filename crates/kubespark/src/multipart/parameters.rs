//! Parses `value; name=value; name="value"`, the form that `Content-Type` and `Content-Disposition` share.

use percent_encoding::percent_decode_str;

/// A header's value before its first `;`, and its parameters with their names in lower case.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parameters<'a> {
    pub(super) value: &'a str,
    parameters: Vec<(String, String)>,
}

impl<'a> Parameters<'a> {
    /// Reads the value of a header. Empty parameters are skipped: a trailing `;` makes one.
    pub(super) fn parse(text: &'a str) -> Result<Self, &'static str> {
        let (value, mut rest) = split_at_semicolon(text);
        let mut parameters: Vec<(String, String)> = Vec::new();
        while !rest.is_empty() {
            rest = rest.trim_start_matches([' ', '\t', ';']);
            if rest.is_empty() {
                break;
            }
            let (name, after) = rest.split_once('=').ok_or("have a name without a value")?;
            let name = name.trim().to_ascii_lowercase();
            if name.is_empty() || name.contains([';', '"', ' ', '\t']) {
                return Err("have a name without a value");
            }
            if parameters.iter().any(|(known, _)| *known == name) {
                return Err("have a name twice");
            }
            let (value, after) = parameter_value(after.trim_start())?;
            parameters.push((name, value));
            rest = after;
        }
        Ok(Self { value: value.trim(), parameters })
    }

    /// The unquoted value of a parameter.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The value of a parameter in its extended form, `name*=UTF-8''caf%C3%A9` (RFC 8187), otherwise in its plain form.
    pub(super) fn get_extended(&self, name: &str) -> Option<String> {
        self.get(&format!("{name}*")).and_then(extended_value).or_else(|| self.get(name).map(str::to_owned))
    }
}

fn split_at_semicolon(text: &str) -> (&str, &str) {
    text.split_at(text.find(';').unwrap_or(text.len()))
}

fn parameter_value(text: &str) -> Result<(String, &str), &'static str> {
    if let Some(quoted) = text.strip_prefix('"') {
        return quoted_value(quoted);
    }
    let (value, rest) = split_at_semicolon(text);
    Ok((value.trim().to_owned(), rest))
}

/// Reads a quoted string behind its opening quote. A backslash escapes a quote or a backslash. Before anything else it
/// stands for itself, because clients send file names of Windows without escaping them.
fn quoted_value(text: &str) -> Result<(String, &str), &'static str> {
    let mut value = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return end_of_parameter(value, &text[index + 1..]),
            '\\' => match characters.next_if(|(_, next)| matches!(next, '"' | '\\')) {
                Some((_, escaped)) => value.push(escaped),
                None => value.push('\\'),
            },
            other => value.push(other),
        }
    }
    Err("have a quote that is never closed")
}

fn end_of_parameter(value: String, rest: &str) -> Result<(String, &str), &'static str> {
    let rest = rest.trim_start_matches([' ', '\t']);
    if rest.is_empty() || rest.starts_with(';') {
        return Ok((value, rest));
    }
    Err("have something behind a closing quote")
}

fn extended_value(text: &str) -> Option<String> {
    let (charset, rest) = text.split_once('\'')?;
    let (_language, encoded) = rest.split_once('\'')?;
    let bytes = percent_decode_str(encoded);
    if charset.eq_ignore_ascii_case("UTF-8") {
        return bytes.decode_utf8().ok().map(String::from);
    }
    charset.eq_ignore_ascii_case("ISO-8859-1").then(|| bytes.map(char::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(text: &str, name: &str) -> Option<String> {
        Parameters::parse(text).unwrap().get(name).map(str::to_owned)
    }

    #[test]
    fn values_are_read_bare_and_quoted_with_names_in_any_case() {
        assert_eq!(get("form-data; name=a", "name").as_deref(), Some("a"));
        assert_eq!(get("x;NAME=\"a;b=c\" ; other=1;", "name").as_deref(), Some("a;b=c"));
        assert_eq!(get("x; name = \"\"", "name").as_deref(), Some(""));
        assert_eq!(get("x", "name"), None);
        assert_eq!(Parameters::parse(" Form-Data ;a=1").unwrap().value, "Form-Data");
    }

    #[test]
    fn a_backslash_escapes_quotes_and_itself_and_nothing_else() {
        assert_eq!(get(r#"x; n="a\"b\\c""#, "n").as_deref(), Some(r#"a"b\c"#));
        assert_eq!(get(r#"x; n="C:\dir\f.jar""#, "n").as_deref(), Some(r"C:\dir\f.jar"));
    }

    #[test]
    fn an_extended_value_wins_where_it_can_be_read() {
        let extended = |text| Parameters::parse(text).unwrap().get_extended("n");
        assert_eq!(extended("x; n=a; n*=UTF-8'en'caf%C3%A9").as_deref(), Some("café"));
        assert_eq!(extended("x; n*=iso-8859-1''caf%E9").as_deref(), Some("café"));
        assert_eq!(extended("x; n=a; n*=UTF-8''%FF").as_deref(), Some("a"));
        assert_eq!(extended("x; n=a; n*=broken").as_deref(), Some("a"));
        assert_eq!(extended("x; n*=koi8-r''a"), None);
    }

    #[test]
    fn ambiguous_parameters_are_refused() {
        for text in ["x; a=1; A=2", "x; a", "x; =1", "x; a=\"1", "x; a=\"1\"2", "x; a b=1"] {
            assert!(Parameters::parse(text).is_err(), "{text}");
        }
    }
}
