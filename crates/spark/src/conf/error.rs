//! The error about a setting's value.

use std::borrow::Cow;

use cloakroom_core::text::{harmless, is_unfit};
use thiserror::Error;

use super::Origin;

/// A value that its key cannot have, or a missing value.
///
/// The text names the option or key, its origin, its value and what is allowed. A secret's value is left out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct SettingError {
    key: String,
    text: String,
}

impl SettingError {
    /// Makes an error about a key. `value` is the key's value, if it has one.
    pub(super) fn new(key: &str, value: Option<&str>, origin: Option<&Origin>, problem: &str) -> Self {
        let shown = value.map(|value| shown(key, value));
        let text = match (shown, origin) {
            (Some(value), Some(Origin::Option(option))) => {
                format!("{option} (`{key}`) is {value}: {problem}")
            }
            (Some(value), Some(Origin::Variable(name))) => {
                format!("the environment variable {name} is {value}: {problem}")
            }
            (Some(value), Some(Origin::Conf | Origin::Derived) | None) => {
                format!("`{key}` is {value}: {problem}")
            }
            (Some(value), Some(origin)) => format!("{origin}: `{key}` is {value}: {problem}"),
            (None, _) => format!("`{key}` is not set: {problem}"),
        };
        Self { key: key.to_owned(), text }
    }

    /// The key that the error is about.
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// The value in quotation marks, on one line: a carriage return is shown as `\r`. It is left out if the key or the value looks
/// secret.
fn shown(key: &str, value: &str) -> String {
    if value.is_empty() {
        return "empty".to_owned();
    }
    if !names_token_file(key) && (is_secret(key) || is_secret(value)) {
        return "`***` (not shown, because it may be a secret)".to_owned();
    }
    let value = without_userinfo(value);
    let value = value.replace('\r', r"\r").replace('\n', r"\n").replace('\t', r"\t");
    format!("`{}`", harmless(&value.replace(|c: char| c.is_whitespace() && is_unfit(c), " ")))
}

/// The key of a token's path is not secret, although its name contains “token”.
fn names_token_file(key: &str) -> bool {
    key.ends_with("TokenFile")
}

/// Removes user name, password and query from a URL: a query may be a signature. If the value has an `@` further back, more
/// than these is removed.
pub fn without_userinfo(value: &str) -> Cow<'_, str> {
    match value.split_once('?') {
        Some((url, _)) if url.contains("://") && !value.contains(',') => {
            format!("{}?…", without_user(url)).into()
        }
        _ => without_user(value),
    }
}

fn without_user(value: &str) -> Cow<'_, str> {
    let Some((before, after)) = value.rsplit_once('@') else { return value.into() };
    if let Some((scheme, _)) = before.split_once("://") {
        return format!("{scheme}://…@{after}").into();
    }
    let is_userinfo = before.contains(':') && !before.contains('/');
    if is_userinfo { format!("…@{after}").into() } else { value.into() }
}

/// Spark's default of `spark.redaction.regex`, which is applied to keys and values:
/// `(?i)secret|password|token|access[.]?key`.
pub(super) fn is_secret(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["secret", "password", "token", "accesskey", "access.key"].iter().any(|word| text.contains(word))
}
