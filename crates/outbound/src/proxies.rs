//! The proxies that the environment names: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in capital or in
//! small letters. They are read as curl and Go read them.

use std::fmt;
use std::net::IpAddr;

use hyper::http::Uri;
use hyper::http::uri::Scheme;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use cloakroom_core::text::SecretText;

/// A proxy, with the setting that names it.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// With its scheme, and perhaps with a user name and a password.
    url: SecretText,
    setting: String,
}

/// A text that is not the address of a proxy. The text is not shown, because it can have a password in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} is not the address of a proxy ({why}): write it like http://HOST:3128, or leave it empty")]
pub struct ProxyError {
    /// The variable or field with the text.
    pub setting: String,
    /// The fault of the text, in words for the user.
    pub why: &'static str,
}

impl Proxy {
    /// Reads `[SCHEME://][USER:PASSWORD@]HOST[:PORT]`, with `http`, `https`, `socks5` or `socks5h` as scheme. `setting`
    /// names the variable or field in messages.
    pub fn parse(text: &str, setting: &str) -> Result<Self, ProxyError> {
        let refused = |why| ProxyError { setting: setting.to_owned(), why };
        let text = text.trim();
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let default_port = match scheme.to_ascii_lowercase().as_str() {
            "http" => 80,
            "https" => 443,
            "socks5" | "socks5h" => SOCKS_PORT,
            _ => return Err(refused("its scheme is none of http, https, socks5, socks5h")),
        };
        let (authority, behind) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if behind.contains('@') {
            return Err(refused(
                "it has an @ behind its host: write / as %2F, ? as %3F and # as %23 in a password",
            ));
        }
        let uri: Uri =
            format!("http://{authority}/").parse().map_err(|_| refused("it is not the address of a host"))?;
        let host = uri.host().unwrap_or_default();
        if host.is_empty() {
            return Err(refused("it names no host"));
        }
        let (login, address) = authority.rsplit_once('@').unwrap_or(("", authority));
        let port = match address.strip_prefix(host) {
            Some("") => default_port,
            Some(port) => port
                .strip_prefix(':')
                .and_then(|port| port.parse().ok())
                .filter(|port| *port > 0)
                .ok_or_else(|| refused("its port is not a number between 1 and 65535"))?,
            None => return Err(refused("it is not the address of a host")),
        };
        let login = if login.is_empty() { String::new() } else { format!("{login}@") };
        let url = format!("{}://{login}{host}:{port}", scheme.to_ascii_lowercase());
        Ok(Self { url: SecretText::new(url), setting: setting.to_owned() })
    }

    /// The address with everything that is in it, as HTTP clients take it. It can have a password in it.
    pub fn url(&self) -> &SecretText {
        &self.url
    }

    /// Whether the address has a user in it.
    pub fn has_login(&self) -> bool {
        self.url.expose().contains('@')
    }

    /// Whether it reads and answers requests that are not encrypted. A SOCKS proxy only passes bytes on.
    pub fn speaks_http(&self) -> bool {
        self.url.expose().starts_with("http")
    }

    /// The address without credentials, and the credentials apart from it.
    pub fn intercept(&self) -> Option<Intercept> {
        Matcher::builder().all(self.url.expose()).build().intercept(&Uri::from_static("http://destination"))
    }
}

/// The port of a SOCKS proxy that names none (RFC 1928).
const SOCKS_PORT: u16 = 1080;

/// Shows no credentials: `http://proxy:3128 (HTTPS_PROXY)`.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url.expose();
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let address = rest.rsplit_once('@').map_or(rest, |(_, address)| address);
        write!(f, "{scheme}://{address} ({})", self.setting)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which destinations are reached through which proxy. A variable that names none is an error for the destinations that
/// it is for, and for no others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<Result<Proxy, ProxyError>>,
    https: Option<Result<Proxy, ProxyError>>,
    /// The destinations that are reached directly.
    exempt: Vec<Exempt>,
}

/// An entry of `NO_PROXY`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Exempt {
    /// A domain, an address or a network, as the rules know it.
    hosts: String,
    /// `None` if all ports are meant.
    port: Option<u16>,
}

impl Exempt {
    /// Reads an entry. A full name may have a dot at its end, `*.example` is `.example`, an address of IPv6 may have
    /// brackets, and a port may follow.
    fn parse(entry: &str) -> Self {
        let entry = entry.trim();
        let port = entry.rsplit_once(':').and_then(|(hosts, port)| {
            // An address of IPv6 without brackets has more colons.
            let has_port = !hosts.contains(':') || hosts.ends_with(']');
            Some((hosts, port.parse().ok().filter(|_| has_port)?))
        });
        let (hosts, port) = port.map_or((entry, None), |(hosts, port)| (hosts, Some(port)));
        let hosts = hosts.trim_start_matches('[').trim_end_matches([']', '.']);
        let hosts = if hosts.starts_with("*.") { &hosts[1..] } else { hosts };
        Self { hosts: hosts.to_owned(), port }
    }
}

impl Proxies {
    /// Reads the environment of this process.
    pub fn from_environment() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// Reads the variables of an environment.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        // A web server passes on a header `Proxy` as HTTP_PROXY to the programs that it starts.
        let may_be_of_a_request = variable("REQUEST_METHOD").is_some();
        let first = |names: [&'static str; 2]| {
            let mut set = names.into_iter().filter_map(|name| Some((name, set(name)?)));
            set.find(|(name, _)| !(*name == "HTTP_PROXY" && may_be_of_a_request))
        };
        let proxy = |names: [&'static str; 2]| first(names).map(|(name, value)| Proxy::parse(&value, name));
        let all = proxy(["ALL_PROXY", "all_proxy"]);
        let exempt = first(["NO_PROXY", "no_proxy"]).map_or_else(String::new, |(_, list)| list);
        Self {
            http: proxy(["HTTP_PROXY", "http_proxy"]).or_else(|| all.clone()),
            https: proxy(["HTTPS_PROXY", "https_proxy"]).or(all),
            exempt: exempt.split(',').map(Exempt::parse).filter(|exempt| !exempt.hosts.is_empty()).collect(),
        }
    }

    /// The proxy to the host and port of a URL with this scheme; `None` if it is reached directly. This machine is
    /// always reached directly, as in curl's and Go's defaults, because no proxy can reach it.
    pub fn to(&self, scheme: &str, host: &str, port: u16) -> Result<Option<&Proxy>, &ProxyError> {
        let proxy = if scheme == Scheme::HTTPS.as_str() { &self.https } else { &self.http };
        let proxy = proxy.as_ref().filter(|_| !is_loopback(host) && !self.is_exempt(host, port));
        proxy.map(Result::as_ref).transpose()
    }

    fn is_exempt(&self, host: &str, port: u16) -> bool {
        let at_port = self.exempt.iter().filter(|exempt| exempt.port.is_none_or(|only| only == port));
        let list = at_port.map(|exempt| exempt.hosts.as_str()).collect::<Vec<_>>().join(",");
        let destination: Option<Uri> = format!("http://{}/", host.trim_end_matches('.')).parse().ok();
        let rules = Matcher::builder().all("http://proxy").no(list).build();
        destination.is_some_and(|destination| rules.intercept(&destination).is_none())
    }
}

/// Whether a URL's host is this machine: 127.0.0.0/8, `::1` or `localhost`.
pub fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let name = host.strip_suffix('.').unwrap_or(host);
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        Proxies::from_variables(|wanted| {
            variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn each_scheme_has_its_variable_and_then_there_is_one_for_all() {
        let shown = |variables: &[(&str, &str)], scheme| {
            proxies(variables).to(scheme, "a.example", 443).unwrap().map(ToString::to_string)
        };
        let all = ("all_proxy", "socks5://s");
        for (variables, scheme, expected) in [
            (&[("HTTPS_PROXY", "p:1")][..], "https", Some("http://p:1 (HTTPS_PROXY)")),
            (&[("HTTPS_PROXY", "p:1")], "http", None),
            (
                &[("HTTPS_PROXY", ""), ("https_proxy", "https://q")],
                "https",
                Some("https://q:443 (https_proxy)"),
            ),
            (&[all, ("HTTP_PROXY", "HTTP://p/")], "http", Some("http://p:80 (HTTP_PROXY)")),
            (&[all, ("HTTP_PROXY", "http://p")], "https", Some("socks5://s:1080 (all_proxy)")),
            (&[("HTTP_PROXY", "http://p"), ("REQUEST_METHOD", "GET")], "http", None),
            (
                &[("https_proxy", "http://u:s3cret@[::2]:3128")],
                "https",
                Some("http://[::2]:3128 (https_proxy)"),
            ),
        ] {
            assert_eq!(shown(variables, scheme).as_deref(), expected, "{variables:?}, {scheme}");
        }
    }

    #[test]
    fn what_is_exempt_and_this_machine_are_reached_directly() {
        let is_direct = |list: &str, host: &str| {
            proxies(&[("ALL_PROXY", "http://p:1"), ("no_proxy", list)]).to("https", host, 6443) == Ok(None)
        };
        for (list, host) in [
            (".cluster.local", "a.b.svc.cluster.local."),
            ("cluster.local.", "a.b.svc.cluster.local"),
            ("other, *.example", "A.Example"),
            ("a.example", "a.example."),
            ("10.0.0.0/8", "10.1.2.3"),
            ("*", "a.example"),
            ("", "localhost"),
            ("", "127.3.2.1"),
            ("", "[::1]"),
            ("", "localhost."),
            ("", "[::ffff:127.0.0.1]"),
            ("a.example:6443", "a.example"),
            ("a.example.:6443", "b.a.example"),
            ("10.1.2.3:6443", "10.1.2.3"),
            ("[fd00::1]", "[fd00::1]"),
            ("[fd00::1]:6443", "[fd00::1]"),
            ("fd00::1", "[fd00::1]"),
            ("fd00::/8", "[fd00::1]"),
        ] {
            assert!(is_direct(list, host), "{list}, {host}");
        }
        for (list, host) in [
            ("example", "notexample"),
            ("10.0.0.0/8", "11.1.2.3"),
            (".a.example", "b.example"),
            ("", "localhost.example"),
            ("a.example:443", "a.example"),
            ("[fd00::1]:443", "[fd00::1]"),
            ("fd00::6443", "[fd00::]"),
        ] {
            assert!(!is_direct(list, host), "{list}, {host}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_its_setting_and_without_the_password() {
        for text in [
            "http://u:s3cret@",
            "ftp://u:s3cret@h",
            "http://s3cret h",
            "http://h:s3cret",
            "h:0",
            "h:99999",
            "://h",
            "http://a@b@s3cret:",
            "http://me:s3cret/1@p:1",
            "http://me:3128/s3cret@p:1",
            "http://me:3128?s3cret@p:1",
        ] {
            let proxies = proxies(&[("HTTPS_PROXY", text)]);
            // Where the variable is not used, it does no harm.
            assert_eq!(
                (proxies.to("http", "a.example", 80), proxies.to("https", "localhost", 443)),
                (Ok(None), Ok(None))
            );
            let refused = proxies.to("https", "a.example", 443).unwrap_err().to_string();
            assert!(
                refused.starts_with("HTTPS_PROXY is not the address of a proxy (it"),
                "{text}: {refused}"
            );
            assert!(!refused.contains("s3cret"), "{refused}");
            let of_http = self::proxies(&[("HTTP_PROXY", text)]);
            assert_eq!(of_http.to("http", "a.example", 80).unwrap_err().setting, "HTTP_PROXY");
        }
    }

    #[test]
    fn credentials_reach_the_proxy_and_no_message() {
        let proxy = Proxy::parse("http://me:s3cr%40t@p:1", "proxy-url").unwrap();
        let intercept = proxy.intercept().unwrap();
        assert_eq!(intercept.uri(), "http://p:1/");
        assert_eq!(intercept.basic_auth().unwrap(), "Basic bWU6czNjckB0");
        assert_eq!(format!("{proxy} {proxy:?}"), "http://p:1 (proxy-url) http://p:1 (proxy-url)");
        let socks = Proxy::parse("socks5h://me:s3cr%40t@p", "ALL_PROXY").unwrap().intercept().unwrap();
        assert_eq!(
            (socks.uri().to_string(), socks.raw_auth()),
            ("socks5h://p:1080/".to_owned(), Some(("me", "s3cr@t")))
        );
    }
}
