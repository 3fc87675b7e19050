//! The address of a server, and how messages show an address.

use std::fmt;
use std::sync::Arc;

use reqwest::Url;

use cloakroom_core::text::excerpt;
use cloakroom_outbound::proxies;

/// The base address of a server: `http` or `https`, a host, and optionally a port and a path before `/api`.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerAddress {
    url: Url,
    /// The server as messages name it. `None` is its address.
    name: Option<Arc<str>>,
}

/// A text that is not a server's address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The text is not a URI with a host.
    #[error("“{text}” is not a server's address ({why}): write it like http://HOST:10000")]
    Malformed {
        /// The given text, without credentials.
        text: String,
        why: String,
    },
    /// The address has a user name or a password in it.
    #[error("{text} has a user name or password in it, which this server has no use for: leave it out")]
    Credentials {
        /// The given address, without credentials.
        text: String,
    },
}

impl ServerAddress {
    /// Parses `http://HOST[:PORT][/PATH]`, or the same with `https`.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let text = text.trim();
        let malformed =
            |why: &str| AddressError::Malformed { text: without_credentials(text), why: why.to_owned() };
        let url = Url::parse(text).map_err(|error| malformed(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(malformed("its scheme is neither http nor https"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressError::Credentials { text: shown(&url) });
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(malformed("it has a query or a fragment, which would not be sent"));
        }
        Ok(Self { url, name: None })
    }

    /// The same address, with a name in its place in messages.
    pub fn called(self, name: &str) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// The URL of `path` on this server. `path` begins with a slash.
    pub fn join(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        url.set_path(&format!("{}{path}", self.url.path().trim_end_matches('/')));
        url
    }

    /// The scheme, `http` or `https`.
    pub fn scheme(&self) -> &str {
        self.url.scheme()
    }

    /// Whether the address is this machine, wherever the program runs.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.url)
    }

    /// Whether a token may be sent there, because no other machine on the way can read it.
    pub fn is_confidential(&self) -> bool {
        self.url.scheme() == "https" || is_loopback(&self.url)
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            return f.write_str(name);
        }
        f.write_str(shown(&self.url).trim_end_matches('/'))
    }
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Whether the host is this machine: 127.0.0.0/8, `::1` or `localhost`.
pub fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(proxies::is_loopback)
}

/// Formats an address for errors and logs. Leaves out credentials, query and fragment, which can be secret; a signed
/// URL has a secret query.
pub fn shown(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{host}{port}{}", url.scheme(), url.path())
}

/// The same for a text that cannot be parsed as a URL.
fn without_credentials(text: &str) -> String {
    const LONGEST: usize = 200;
    let text = text.split(['?', '#']).next().unwrap_or_default();
    let shown = match text.rsplit_once('@') {
        Some((_, host)) => format!("…@{host}"),
        None => text.to_owned(),
    };
    excerpt(&shown, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_behind_the_base_path() {
        for (base, expected) in [
            ("http://h:10000", "http://h:10000/api/v1/x"),
            ("http://h:10000/", "http://h:10000/api/v1/x"),
            ("https://h/staging/", "https://h/staging/api/v1/x"),
        ] {
            assert_eq!(ServerAddress::parse(base).unwrap().join("/api/v1/x").as_str(), expected);
        }
    }

    #[test]
    fn only_http_and_https_are_addresses_and_credentials_are_not_repeated() {
        for text in [
            "",
            "host:10000",
            "ftp://h",
            "http://",
            "http://u:hunter2@:x",
            "k8s://http://u:hunter2@h",
            "http://h?x=hunter2",
            "http://h#hunter2",
        ] {
            let refusal = ServerAddress::parse(text).unwrap_err().to_string();
            assert!(refusal.contains("http://HOST:10000") && !refusal.contains("hunter2"), "{refusal}");
        }
        let refusal = ServerAddress::parse("a\u{202e}b\u{2028}c\u{200b}d").unwrap_err().to_string();
        assert!(refusal.starts_with("“a\u{fffd}b\u{fffd}c\u{fffd}d” is not"), "{refusal:?}");
        let refusal = ServerAddress::parse("http://u:hunter2@h:1/").unwrap_err().to_string();
        assert!(refusal.starts_with("http://h:1/ has a user name"), "{refusal}");
    }

    #[test]
    fn only_https_and_this_machine_are_confidential() {
        for (text, expected) in [
            ("http://127.0.0.1:10000", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:10000", true),
            ("http://LOCALHOST:10000", true),
            ("https://staging.example", true),
            ("http://staging.example", false),
            ("http://127.0.0.1.example", false),
            ("http://localhost.example", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(ServerAddress::parse(text).unwrap().is_confidential(), expected, "{text}");
        }
    }

    #[test]
    fn an_address_is_shown_without_what_can_be_secret() {
        let url = Url::parse("https://u:p@h:8443/a/b.jar?X-Amz-Signature=s3cret#t0ken").unwrap();
        assert_eq!(shown(&url), "https://h:8443/a/b.jar");
        assert_eq!(ServerAddress::parse("http://h:10000/").unwrap().to_string(), "http://h:10000");
    }
}
