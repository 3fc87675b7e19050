//! The reasons why a proxy opens no connection. The HTTP library does not export the types of these errors, so their
//! texts are read.

use std::error::Error;

use super::proxies::Proxy;
use cloakroom_core::text::one_line;

/// The longest reason in a message, in characters.
const LONGEST: usize = 300;

/// A proxy was not reached, or opened no connection: `http://proxy:3128 (HTTPS_PROXY): it wants a user and a password`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{proxy}: {why}")]
pub struct Refusal {
    proxy: String,
    why: String,
    is_about_login: bool,
}

impl Refusal {
    /// Looks for a proxy's fault among the causes of an error; `None` if the proxy did its work.
    pub fn from_error(error: &(dyn Error + 'static), proxy: &Proxy) -> Option<Self> {
        let mut causes = vec![error.to_string()];
        let mut next = error.source();
        while let Some(cause) = next {
            causes.push(cause.to_string());
            next = cause.source();
        }
        let said = causes.iter().find_map(|cause| {
            cause.strip_prefix("tunnel error: ").or_else(|| cause.strip_prefix("SOCKS error: "))
        })?;
        let innermost = causes.last().map_or(said, String::as_str);
        Some(Self { is_about_login: is_about_login(said), ..Self::new(proxy, words(said, innermost, proxy)) })
    }

    /// A proxy that is not reached for this reason.
    pub fn new(proxy: &Proxy, why: &str) -> Self {
        Self { proxy: proxy.to_string(), why: one_line(why, LONGEST), is_about_login: false }
    }

    /// Whether another attempt may succeed. A proxy that wants another login goes on to want it.
    pub fn is_transient(&self) -> bool {
        !self.is_about_login
    }

    /// What to do, as the end of a sentence.
    pub fn advice(&self) -> &'static str {
        if self.is_about_login {
            "write a user and a password that it accepts into its address: SCHEME://USER:PASSWORD@HOST:PORT"
        } else {
            "check this setting and the proxy, or name the host in NO_PROXY if it is reached without one"
        }
    }
}

const LOGIN_WANTED: &str = "proxy authorization required";
const LOGIN_UNKNOWN: &str = "server does not support user/pass authentication";
const LOGIN_REJECTED: &str = "credentials not accepted";

fn is_about_login(said: &str) -> bool {
    matches!(said, LOGIN_WANTED | LOGIN_UNKNOWN | LOGIN_REJECTED)
}

/// The library's words in words for the user. `innermost` is the cause below them, if there is one.
fn words<'a>(said: &'a str, innermost: &'a str, proxy: &Proxy) -> &'a str {
    match said {
        // The library says this of every proxy that accepts none of the offered kinds of login.
        LOGIN_WANTED | LOGIN_UNKNOWN if !proxy.has_login() => "it wants a user and a password",
        LOGIN_WANTED | LOGIN_REJECTED => "it does not accept this user and password",
        LOGIN_UNKNOWN => "it takes no user and password",
        "unsuccessful" => "it does not connect to this host and port, and its log may say why",
        "unexpected end of file" => "it closes the connection",
        "failed parsing server response" | "server implements authentication incorrectly" => {
            "it does not speak SOCKS 5"
        }
        "io error during SOCKS handshake" => {
            "the connection to it broke, perhaps because it does not speak SOCKS 5"
        }
        // The library keeps the cause of this one to itself.
        "failed to create underlying connection" if innermost.ends_with(said) => "it cannot be reached",
        "failed to create underlying connection" | "io error establishing tunnel" => innermost,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(said: &str, url: &str) -> Option<Refusal> {
        let error = std::io::Error::other(std::io::Error::other(said.to_owned()));
        Refusal::from_error(&error, &Proxy::parse(url, "ALL_PROXY").unwrap())
    }

    #[test]
    fn the_librarys_words_are_turned_into_advice() {
        let (with_login, without) = ("http://me:s3cret@p:1", "http://p:1");
        for (said, url, shown, is_transient) in [
            ("tunnel error: proxy authorization required", without, "it wants a user and a password", false),
            ("tunnel error: proxy authorization required", with_login, "it does not accept this user", false),
            ("SOCKS error: credentials not accepted", with_login, "it does not accept this user", false),
            (
                "SOCKS error: server does not support user/pass authentication",
                without,
                "it wants a user and a password",
                false,
            ),
            (
                "SOCKS error: server does not support user/pass authentication",
                with_login,
                "it takes no user and password",
                false,
            ),
            ("tunnel error: unsuccessful", without, "it does not connect", true),
            ("SOCKS error: host unreachable", without, "host unreachable", true),
            ("SOCKS error: failed to create underlying connection", without, "it cannot be reached", true),
        ] {
            let refusal = refusal(said, url).unwrap();
            let beginning = format!("http://p:1 (ALL_PROXY): {shown}");
            assert!(refusal.to_string().starts_with(&beginning), "{refusal}");
            assert_eq!(refusal.is_transient(), is_transient, "{refusal}");
        }
        assert_eq!(refusal("invalid peer certificate: Expired", without), None);
    }
}
