//! Addresses of API servers.

use std::fmt;

use hyper::http::Uri;

use super::connect_error::ConnectError;
use cloakroom_outbound::proxies::{self, Proxies, Proxy, ProxyError};

/// The base address of an API server, without credentials in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address(Uri);

impl Address {
    /// Reads `https://HOST[:PORT][/PATH]`, or the same with `http`. `setting` names the source of the text in messages.
    pub(super) fn parse(text: &str, setting: &str) -> Result<Self, ConnectError> {
        let refused = |why: &str| ConnectError::Address { setting: setting.to_owned(), why: why.to_owned() };
        let uri: Uri = text.trim().parse().map_err(|_| refused("it is not a URL"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(refused("it begins with neither https:// nor http://"));
        }
        if uri.authority().is_none_or(|authority| authority.as_str().contains('@')) {
            return Err(refused("it has a user name or password in it, which the API server has no use for"));
        }
        if uri.query().is_some() {
            return Err(refused("it has a query"));
        }
        Ok(Self(uri))
    }

    pub(super) fn uri(&self) -> Uri {
        self.0.clone()
    }

    pub(super) fn is_https(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }

    pub(super) fn is_loopback(&self) -> bool {
        self.0.host().is_some_and(proxies::is_loopback)
    }

    /// The proxy of the environment on the way there.
    pub(super) fn proxy(&self, proxies: &Proxies) -> Result<Option<Proxy>, ProxyError> {
        let (scheme, host) = (self.0.scheme_str().unwrap_or_default(), self.0.host().unwrap_or_default());
        let port = self.0.port_u16().unwrap_or(if self.is_https() { 443 } else { 80 });
        proxies.to(scheme, host, port).map(Option::<&Proxy>::cloned).map_err(Clone::clone)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_string().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_this_machine() {
        for (text, expected) in [
            ("https://10.0.0.1:6443", false),
            ("http://127.0.0.1:8001", true),
            ("http://[::1]:8001", true),
            ("http://LocalHost:8001", true),
            ("http://10.0.0.1:8001", false),
            ("http://localhost.example", false),
            ("http://127.0.0.1.example", false),
        ] {
            assert_eq!(Address::parse(text, "here").unwrap().is_loopback(), expected, "{text}");
        }
    }

    #[test]
    fn the_refusal_of_an_invalid_address_names_its_setting_and_no_password() {
        for text in
            ["", "10.0.0.1:6443", "k8s://https://x", "ftp://x", "https://u:hunter2@x", "https://x?a=b"]
        {
            let said = Address::parse(text, "server of the cluster").unwrap_err().to_string();
            assert!(said.starts_with("server of the cluster is not"), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
        assert_eq!(
            Address::parse("https://x:1/k8s/c-1/", "here").unwrap().to_string(),
            "https://x:1/k8s/c-1"
        );
    }
}
