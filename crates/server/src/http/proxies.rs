//! Proxies in front of the server that are trusted to name the address of a client.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::HeaderMap;
use axum::http::header::FORWARDED;
use axum::middleware::Next;
use axum::response::Response;
use ipnet::IpNet;

const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// The networks of trusted proxies. By default there are none, because any client can send these headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

/// Where a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sender {
    /// The client's address, as far as it is known.
    pub(super) address: IpAddr,
    /// The trusted proxy that opened the connection; `None` if the client opened it itself.
    pub(super) proxy: Option<IpAddr>,
}

/// Notes in each answer where its request came from, for the log.
pub(super) async fn note_sender(
    State(trusted): State<TrustedProxies>,
    request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let sender = peer.map(|ConnectInfo(peer)| trusted.sender(peer.ip(), request.headers()));
    let mut response = next.run(request).await;
    if let Some(sender) = sender {
        response.extensions_mut().insert(sender);
    }
    response
}

/// A part of the text is neither an address nor a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("“{0}” is not an address or a network: write 10.1.2.3 or 10.0.0.0/8, several separated by commas")]
pub struct TrustedProxiesError(String);

impl FromStr for TrustedProxies {
    type Err = TrustedProxiesError;

    fn from_str(text: &str) -> Result<Self, TrustedProxiesError> {
        let network = |text: &str| {
            let parsed = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
            parsed.map_err(|_| TrustedProxiesError(text.to_owned()))
        };
        text.split(',').map(|part| network(part.trim())).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for TrustedProxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let networks: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&networks.join(","))
    }
}

impl TrustedProxies {
    /// The sender of a request: `peer`, or the client that trusted proxies name in `X-Forwarded-For` or `Forwarded`
    /// (RFC 7239).
    ///
    /// Each proxy appends the address that it was reached from. So the last address counts that does not belong to a
    /// trusted proxy. A proxy passes on a header that it does not write itself. So if both headers name different
    /// clients, neither is trusted. A malformed header is not trusted either.
    pub(super) fn sender(&self, peer: IpAddr, headers: &HeaderMap) -> Sender {
        let peer = peer.to_canonical();
        let address = if self.trusts(peer) { self.told_by(peer, headers) } else { peer };
        Sender { address, proxy: (address != peer).then_some(peer) }
    }

    fn told_by(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let by_either = [by_x_forwarded_for(headers), by_forwarded(headers)];
        let [one, other] = by_either.map(|hops| hops.map(|hops| self.last_outside(peer, &hops)));
        match (one, other) {
            (Some(one), Some(other)) if one != other => peer,
            (one, other) => one.or(other).unwrap_or(peer),
        }
    }

    /// Whether this is the address of a trusted proxy.
    pub(super) fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The last address outside of the trusted networks. A hop without an address ends the search, because the hops
    /// before it may be made up.
    fn last_outside(&self, peer: IpAddr, hops: &[Option<IpAddr>]) -> IpAddr {
        let mut last = peer;
        for hop in hops.iter().rev() {
            let Some(address) = hop else { return last };
            last = *address;
            if !self.trusts(last) {
                return last;
            }
        }
        last
    }
}

/// The values of a header in one list. Several lines of one header are one list (RFC 9110, section 5.3). A line that is
/// not text becomes a hop without an address.
fn list(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines: Vec<&str> =
        headers.get_all(name).iter().map(|line| line.to_str().unwrap_or_default()).collect();
    (!lines.is_empty()).then(|| lines.join(","))
}

fn by_x_forwarded_for(headers: &HeaderMap) -> Option<Vec<Option<IpAddr>>> {
    list(headers, X_FORWARDED_FOR).map(|text| text.split(',').map(address).collect())
}

/// A header does not have the form of the RFC.
struct Malformed;

/// The hops in `Forwarded`. A malformed header counts as one hop without an address.
fn by_forwarded(headers: &HeaderMap) -> Option<Vec<Option<IpAddr>>> {
    let text = list(headers, FORWARDED.as_str())?;
    let hops =
        unquoted_parts(&text, ',').and_then(|elements| elements.into_iter().map(forwarded_for).collect());
    Some(hops.unwrap_or_else(|Malformed| vec![None]))
}

/// The address in the `for` of one element (RFC 7239, section 4); `None` if it has none.
fn forwarded_for(element: &str) -> Result<Option<IpAddr>, Malformed> {
    let mut nodes = Vec::new();
    for pair in unquoted_parts(element, ';')?.into_iter().map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or(Malformed)?;
        let value = unquoted(value)?;
        if name.eq_ignore_ascii_case("for") {
            nodes.push(value);
        }
    }
    match nodes.as_slice() {
        [] => Ok(None),
        [node] => Ok(address(node)),
        // A parameter must not occur twice in one element.
        _ => Err(Malformed),
    }
}

/// The parts of `text` between separators that are outside of quoted strings. It is an error if a quoted string does
/// not end.
fn unquoted_parts(text: &str, separator: char) -> Result<Vec<&str>, Malformed> {
    let (mut parts, mut begin) = (Vec::new(), 0);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, c) in text.char_indices() {
        if c == separator && !is_quoted {
            parts.push(&text[begin..at]);
            begin = at + c.len_utf8();
        }
        is_quoted ^= c == '"' && !is_escaped;
        is_escaped = is_quoted && c == '\\' && !is_escaped;
    }
    parts.push(&text[begin..]);
    if is_quoted { Err(Malformed) } else { Ok(parts) }
}

/// A value without its quotes. Quotes must enclose the whole value. Escapes are not resolved, because addresses need
/// none.
fn unquoted(value: &str) -> Result<&str, Malformed> {
    match value.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"').ok_or(Malformed),
        None if value.contains(['"', ' ', '\t']) => Err(Malformed),
        None => Ok(value),
    }
}

/// Reads an address with or without a port: `10.0.0.1`, `10.0.0.1:80`, `::1`, `[::1]`, `[::1]:80`.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().or_else(|_| text.parse().map(|socket: SocketAddr| socket.ip()));
    address.ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn client(peer: &str, headers: &[(&str, &str)]) -> String {
        let trusted: TrustedProxies = "10.0.0.0/8, 192.0.2.7,fd00::/8".parse().unwrap();
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| {
                (name.parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
            })
            .collect();
        let peer: IpAddr = peer.parse().unwrap();
        let Sender { address, proxy } = trusted.sender(peer, &headers);
        assert_eq!(proxy, Some(peer.to_canonical()).filter(|peer| *peer != address), "{headers:?}");
        address.to_string()
    }

    #[test]
    fn a_client_that_is_no_trusted_proxy_is_not_believed() {
        let claims = [("x-forwarded-for", "203.0.113.9"), ("forwarded", "for=203.0.113.9")];
        assert_eq!(client("198.51.100.1", &claims), "198.51.100.1");
        let none = TrustedProxies::default();
        let headers = HeaderMap::from_iter([(FORWARDED, HeaderValue::from_static("for=203.0.113.9"))]);
        let peer: IpAddr = "10.0.0.1".parse().unwrap();
        assert_eq!(none.sender(peer, &headers), Sender { address: peer, proxy: None });
    }

    #[test]
    fn the_last_address_that_is_no_trusted_proxy_counts() {
        for (headers, expected) in [
            (vec![], "10.0.0.1"),
            (vec![("x-forwarded-for", "203.0.113.9")], "203.0.113.9"),
            (vec![("x-forwarded-for", "1.1.1.1, 203.0.113.9:4711, 192.0.2.7")], "203.0.113.9"),
            (vec![("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "203.0.113.9")], "203.0.113.9"),
            (vec![("x-forwarded-for", "1.1.1.1, unknown, 192.0.2.7")], "192.0.2.7"),
            (vec![("x-forwarded-for", "10.9.9.9, 192.0.2.7")], "10.9.9.9"),
            (vec![("forwarded", "for=1.1.1.1, For=\"[2001:db8::9]:4711\";proto=https")], "2001:db8::9"),
            (vec![("forwarded", "proto=https;for=203.0.113.9, for=_hidden")], "10.0.0.1"),
            (vec![("forwarded", "by=203.0.113.9")], "10.0.0.1"),
        ] {
            assert_eq!(client("10.0.0.1", &headers), expected, "{headers:?}");
            assert_eq!(client("::ffff:10.0.0.1", &headers), expected, "{headers:?}");
        }
        assert_eq!(client("fd00::1", &[("x-forwarded-for", "2001:db8::9")]), "2001:db8::9");
    }

    #[test]
    fn a_malformed_header_is_not_believed_at_all() {
        for malformed in [
            r#"for="203.0.113.9"#,
            r#"for=203.0.113.9""#,
            r#"for="203.0.113.9", for="198.51.100.1"#,
            r#"for=198.51.100.1;by=", for=203.0.113.9"#,
            r#"for="203.0.113.9\"#,
            "for=203.0.113.9 for=198.51.100.1",
            "for=203.0.113.9;for=198.51.100.1",
            r#"for="203.0.113.9"x"#,
            "for=203.0.113.9;secret",
        ] {
            assert_eq!(client("10.0.0.1", &[("forwarded", malformed)]), "10.0.0.1", "{malformed}");
            let both = [("forwarded", malformed), ("x-forwarded-for", "203.0.113.9")];
            assert_eq!(client("10.0.0.1", &both), "10.0.0.1", "{malformed}");
        }
        for (well_formed, expected) in [
            (r#"for=203.0.113.9;by="a, for=198.51.100.1\"""#, "203.0.113.9"),
            (r#"for="203.0.113.9:80" ;proto=https;"#, "203.0.113.9"),
            (r#"by="x\\", For=203.0.113.9"#, "203.0.113.9"),
        ] {
            assert_eq!(client("10.0.0.1", &[("forwarded", well_formed)]), expected, "{well_formed}");
        }
    }

    #[test]
    fn two_headers_that_contradict_each_other_are_not_believed() {
        let both = |forwarded: &str| {
            client("10.0.0.1", &[("x-forwarded-for", "203.0.113.9"), ("forwarded", forwarded)])
        };
        assert_eq!(both("for=203.0.113.9"), "203.0.113.9");
        assert_eq!(both("for=203.0.113.1"), "10.0.0.1");
        assert_eq!(both("for=unknown"), "10.0.0.1");
    }

    #[test]
    fn a_text_that_is_no_network_is_refused_by_name() {
        for (text, part) in [("10.0.0.0/33", "10.0.0.0/33"), ("10.0.0.1,proxy", "proxy"), ("", "")] {
            assert_eq!(text.parse::<TrustedProxies>().unwrap_err(), TrustedProxiesError(part.to_owned()));
        }
        let networks: TrustedProxies = "10.0.0.1, fd00::/8".parse().unwrap();
        assert_eq!(networks.to_string(), "10.0.0.1/32,fd00::/8");
    }
}
