//! A setting that cannot be what it is.

use std::borrow::Cow;

use cloakroom_core::text::harmless;
use thiserror::Error;

use super::Origin;

/// A value that its key cannot have, or the lack of one.
///
/// The text names the option or key, the value (unless the key is a secret's), where it stands, and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct SettingError {
    key: String,
    text: String,
}

impl SettingError {
    /// About a key with the value that it has, if any.
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

    /// The key.
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// The value in quotation marks, on one line, unless its key or it itself says that it is a secret.
fn shown(key: &str, value: &str) -> String {
    if !names_token_file(key) && (is_secret(key) || is_secret(value)) {
        return "`***` (not shown, for it may be a secret)".to_owned();
    }
    let value = without_userinfo(value);
    format!("`{}`", harmless(&value.replace(char::is_whitespace, " ")))
}

/// The path of a token is no token.
fn names_token_file(key: &str) -> bool {
    key.ends_with("TokenFile")
}

/// A user name in a URL, and a password more so, is nothing to show. What has an `@` further back loses more than that.
pub fn without_userinfo(value: &str) -> Cow<'_, str> {
    let Some((before, after)) = value.rsplit_once('@') else { return value.into() };
    if let Some((scheme, _)) = before.split_once("://") {
        return format!("{scheme}://…@{after}").into();
    }
    let is_userinfo = before.contains(':') && !before.contains('/');
    if is_userinfo { format!("…@{after}").into() } else { value.into() }
}

/// Spark's default `spark.redaction.regex`, which is held against keys and values: `(?i)secret|password|token|access[.]?key`.
pub(super) fn is_secret(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["secret", "password", "token", "accesskey", "access.key"].iter().any(|word| text.contains(word))
}
