//! One rule of a `.gitignore`, read and matched as by git (`dir.c` and `wildmatch.c`).

/// What a rule leaves out, or takes back.
#[derive(Debug)]
pub(in crate::bundle) struct GitGlob {
    tokens: Vec<Token>,
    pub takes_back: bool,
    is_for_folders: bool,
    /// Whether the rule is for the last name of a path, at any depth.
    is_for_names: bool,
}

#[derive(Debug)]
enum Token {
    Byte(u8),
    /// `?`, which is no slash, like what a class has.
    Any,
    Class(Box<Bytes>),
    /// `*`: any number of bytes, but no slash.
    Star,
    /// `**`: any number of bytes.
    All,
    /// `**/`: any number of folders.
    Folders,
}

/// A set of bytes, with a bit for each.
#[derive(Debug, Default)]
struct Bytes([u128; 2]);

impl GitGlob {
    /// A line of an ignore file. `None` if it leaves nothing out: a comment, nothing, or no rule for git.
    pub fn line(line: &str) -> Option<Self> {
        if line.starts_with('#') {
            return None;
        }
        match line.strip_prefix('!') {
            Some(rule) => Some(Self { takes_back: true, ..Self::rule(rule)? }),
            None => Self::rule(line),
        }
    }

    /// The same for a rule that is no comment and takes nothing back.
    pub fn rule(rule: &str) -> Option<Self> {
        let rule = without_spaces_at_end(rule);
        let (rule, is_for_folders) = rule.strip_suffix('/').map_or((rule, false), |rule| (rule, true));
        let is_for_names = !rule.contains('/');
        let tokens = tokens(rule.strip_prefix('/').unwrap_or(rule).as_bytes())?;
        (!tokens.is_empty()).then_some(Self { tokens, takes_back: false, is_for_folders, is_for_names })
    }

    /// Whether it names an entry of the ignore file's folder or below. `path` begins in that folder.
    pub fn fits(&self, path: &[u8], is_folder: bool) -> bool {
        let text = if self.is_for_names { path.rsplit(|byte| *byte == b'/').next() } else { None };
        (is_folder || !self.is_for_folders) && fits(&self.tokens, text.unwrap_or(path))
    }
}

/// A space after a backslash stays.
fn without_spaces_at_end(rule: &str) -> &str {
    let kept = rule.trim_end_matches(' ');
    let backslashes = kept.len() - kept.trim_end_matches('\\').len();
    let escaped = usize::from(backslashes % 2 == 1 && kept.len() < rule.len());
    &rule[..kept.len() + escaped]
}

fn tokens(rule: &[u8]) -> Option<Vec<Token>> {
    let (mut tokens, mut rest) = (Vec::new(), rule);
    while let [byte, after @ ..] = rest {
        let before = &rule[..rule.len() - rest.len()];
        // git takes off the plain beginning of a rule first, so that the `**` of `a**/b` begins one.
        let begins_name = before.ends_with(b"/") || !before.iter().any(|byte| br"*?[\".contains(byte));
        let (token, after) = match byte {
            b'\\' => after.split_first().map(|(byte, after)| (Token::Byte(*byte), after))?,
            b'?' => (Token::Any, after),
            b'[' => class(after)?,
            b'*' => stars(rest, begins_name),
            byte => (Token::Byte(*byte), after),
        };
        tokens.push(token);
        rest = after;
    }
    Some(tokens)
}

/// Two or more count as two if nothing else is in their part of the path, and otherwise as one.
fn stars(rest: &[u8], begins_name: bool) -> (Token, &[u8]) {
    let count = rest.iter().take_while(|byte| **byte == b'*').count();
    match &rest[count..] {
        after if count == 1 || !begins_name => (Token::Star, after),
        [b'/', after @ ..] => (Token::Folders, after),
        after @ ([] | [b'\\', b'/', ..]) => (Token::All, after),
        after => (Token::Star, after),
    }
}

/// The class whose text begins here, and what comes after it. `None` if it has no end, or nothing in it.
fn class(text: &[u8]) -> Option<(Token, &[u8])> {
    let is_negated = matches!(text, [b'!' | b'^', ..]);
    let text = &text[usize::from(is_negated)..];
    // The byte before, unless it is in a range or a name.
    let (mut bytes, mut rest, mut before) = (Bytes::default(), text, None);
    loop {
        let (byte, after) = rest.split_first()?;
        if *byte == b']' && rest.len() < text.len() {
            rest = after;
            break;
        }
        (before, rest) = match (byte, after, before) {
            (b'-', [end, ..], Some(start)) if *end != b']' => {
                let (end, after) = plain(after)?;
                (start..=end).for_each(|byte| bytes.add(byte));
                (None, after)
            }
            (b'[', [b':', name @ ..], _) if name_end(name)? > 0 => {
                let (name, after) = name.split_at(name_end(name)?);
                let has = named(&name[..name.len() - 1])?;
                (0..=127).filter(has).for_each(|byte| bytes.add(byte));
                (None, &after[1..])
            }
            _ => {
                let (byte, after) = plain(rest)?;
                bytes.add(byte);
                (Some(byte), after)
            }
        };
    }
    if is_negated {
        bytes = Bytes(bytes.0.map(|bits| !bits));
    }
    bytes.0[0] &= !(1 << b'/');
    (bytes.0 != [0, 0]).then(|| (Token::Class(Box::new(bytes)), rest))
}

/// The first byte, or the one after a backslash.
fn plain(text: &[u8]) -> Option<(u8, &[u8])> {
    let text = text.strip_prefix(b"\\").unwrap_or(text);
    text.split_first().map(|(byte, after)| (*byte, after))
}

/// Where `alpha:]` has its bracket; 0 if there is no colon before that.
fn name_end(text: &[u8]) -> Option<usize> {
    let end = text.iter().position(|byte| *byte == b']')?;
    Some(if text[..end].ends_with(b":") { end } else { 0 })
}

fn named(name: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| b" \t".contains(byte),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| (b' '..=b'~').contains(byte),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| b" \t\n\r".contains(byte),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}

impl Bytes {
    fn add(&mut self, byte: u8) {
        self.0[usize::from(byte >> 7)] |= 1 << (byte & 127);
    }

    fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 7)] >> (byte & 127) & 1 == 1
    }
}

impl Token {
    fn is_byte(&self, byte: u8) -> bool {
        match self {
            Self::Byte(own) => *own == byte,
            Self::Any => byte != b'/',
            Self::Class(bytes) => bytes.has(byte),
            Self::Star | Self::All | Self::Folders => false,
        }
    }
}

/// After a mismatch, the last `*` takes one byte more. Where it cannot, the last `**` does: what comes before that need not change,
/// so the time does not grow with the number of stars.
fn fits(tokens: &[Token], text: &[u8]) -> bool {
    let (mut token, mut at) = (0, 0);
    // The token of each, and what it has not taken yet.
    let (mut star, mut deep) = (None, None);
    loop {
        match (tokens.get(token), text.get(at)) {
            (None, None) => return true,
            (Some(Token::Star), _) => star = Some((token, at)),
            (Some(Token::All | Token::Folders), _) => (star, deep) = (None, Some((token, at))),
            (Some(wanted), Some(byte)) if wanted.is_byte(*byte) => at += 1,
            _ => {
                let more = |(token, from): (usize, usize)| {
                    let next = match tokens[token] {
                        Token::Folders => 1 + text[from..].iter().position(|byte| *byte == b'/')?,
                        Token::Star if text.get(from) == Some(&b'/') => return None,
                        _ => 1,
                    };
                    (from + next <= text.len()).then_some((token, from + next))
                };
                star = star.and_then(more);
                if star.is_none() {
                    deep = deep.and_then(more);
                }
                let Some(last) = star.or(deep) else { return false };
                (token, at) = last;
            }
        }
        token += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_what_it_names_for_git() {
        for (line, fitting, others) in [
            ("a", "a d/a", "b a/b ab"),
            ("/a", "a", "d/a"),
            ("d/a", "d/a", "a x/d/a"),
            ("a/", "a/ d/a/", "a"),
            ("*.log", ".log a.log d/a.log", "log"),
            ("d/*", "d/a", "d d/x/a"),
            ("d/?", "d/a", "d/ab d/"),
            ("a*b*c", "abc aXbXbXc", "ab abcd"),
            ("**/a", "a d/a d/x/a", "b"),
            ("d/**", "d/a d/x/a", "d"),
            ("/**", "a d/a", ""),
            ("**/", "a/ d/a/", "a"),
            ("d/**/a", "d/a d/x/a d/x/y/a", "da d/xa"),
            ("d/***/a", "d/a d/x/y/a", "da"),
            ("**/x/**/a", "x/a d/x/y/x/b/a", "a x"),
            ("d/a**", "d/a d/ab d/a/x", "d/ba"),
            ("?/a**", "d/a d/ab", "d/a/x"),
            ("d/**a", "d/a d/xa", "d/x/a"),
            ("d/x**y/a", "d/xy/a d/x-y/a", "d/x/y/a"),
            ("d/x**/a", "d/xa d/x/a d/xy/z/a", "d/ya"),
            ("?/x**/a", "d/x/a d/xy/a", "d/xa d/xy/z/a"),
            ("d/**\\/a", "d/x/a", "d/a"),
            ("*/b*c/**/z", "a/bc/z a/bXc/x/y/z", "bc/z a/x/bc/z"),
            ("\\#a", "#a", "a"),
            ("\\!a", "!a", "a"),
            ("a\\\\", "a\\", "a"),
            ("\\a\\*", "a*", "ab"),
            ("{a,b}", "{a,b}", "a b"),
            ("d[/]a", "", "d/a da"),
            ("d[/x]a", "dxa", "d/a d/dxa"),
            ("[a-c-e]", "a b c - e", "d"),
            ("[a\\-c]", "a - c", "b"),
            ("[\\]a]", "] a", "\\ \\a]"),
            ("[]a]", "] a", "a]"),
            ("[!]a]", "b", "] a"),
            ("[^a]", "b ^", "a"),
            ("[a^]", "a ^", "b"),
            ("[--0]", "- . 0", "/ 1"),
            ("[a-]", "a -", "b"),
            ("[\\a-\\c]", "a b c", "d \\"),
            ("[[:alpha:]-z]", "a Z - z", "1"),
            ("[[:digit:][:upper:]_]", "1 A _", "a"),
            ("[[:x]a", "[a :a xa", "a"),
            ("[[:]x", "[x :x", "x"),
            ("[![:space:]]", "a", "/"),
            ("[ä]", "", "ä a"),
            ("??", "ä ab", "a"),
            ("[z-ab]", "z b", "- a y"),
        ] {
            let rule = GitGlob::line(line);
            let fits = |path: &str| {
                let name = path.trim_end_matches('/');
                rule.as_ref().is_some_and(|rule| rule.fits(name.as_bytes(), name != path))
            };
            for path in fitting.split_terminator(' ') {
                assert!(fits(path), "{line} has {path}");
            }
            for path in others.split_terminator(' ') {
                assert!(!fits(path), "{line} has not {path}");
            }
        }
        assert!(GitGlob::line("[![:alpha:]x]a").unwrap().fits(b"1a", false));
    }

    #[test]
    fn spaces_at_the_end_do_not_count_unless_they_are_escaped() {
        for (line, name) in [
            ("a  ", "a"),
            ("a\\ ", "a "),
            ("a\\  ", "a "),
            ("a \\ ", "a  "),
            ("a\\\\ ", "a\\"),
            ("a\\\\\\ ", "a\\ "),
            (" a", " a"),
            ("a\t", "a\t"),
        ] {
            assert!(GitGlob::line(line).unwrap().fits(name.as_bytes(), false), "{line}");
        }
    }

    #[test]
    fn what_is_no_rule_for_git_leaves_nothing_out() {
        let lines = [
            "",
            " ",
            "/",
            "//",
            "!",
            "!/",
            "#a",
            "[a",
            "a[",
            "[]",
            "[!]",
            "[a-",
            "a\\",
            "a\\/",
            "[\\]",
            "[[:alpha:]",
            "[[:x:]]",
            "[/]",
        ];
        for line in lines {
            let rule = GitGlob::line(line);
            let fits = |name: &&str| rule.as_ref().is_some_and(|rule| rule.fits(name.as_bytes(), true));
            assert_eq!(lines.iter().chain(&["a", "x", "z"]).find(|name| fits(name)), None, "{line}");
        }
        assert!(GitGlob::line("!a").unwrap().takes_back);
    }

    #[test]
    fn many_stars_take_no_time() {
        let rule = GitGlob::line(&format!("**/{}b", "*a*/**/".repeat(500))).unwrap();
        assert!(!rule.fits("aaaa/".repeat(800).as_bytes(), false));
    }
}
