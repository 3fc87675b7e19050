//! The address by which a client has reached this server.

use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::header::HOST;
use axum::http::uri::Authority;

use crate::http::state::Settings;

/// The host that the client has asked, with a port if it named one; `None` without a usable one.
pub(super) fn host(headers: &HeaderMap) -> Option<Authority> {
    let host = headers.get(HOST)?.to_str().ok()?.parse::<Authority>().ok()?;
    let port = host.as_str().strip_prefix(host.host())?;
    let has_good_port = port.is_empty() || port.starts_with(':') && host.port_u16().is_some();
    (has_good_port && !host.host().is_empty()).then_some(host)
}

/// Whether the client's own connection has TLS: to this server, or to a trusted proxy that says so.
pub(super) fn is_encrypted(settings: &Settings, peer: IpAddr, headers: &HeaderMap) -> bool {
    let told = forwarded_scheme(headers).filter(|_| settings.trusted_proxies.trusts(peer));
    told.map_or(settings.tls.is_some(), |scheme| scheme.eq_ignore_ascii_case("https"))
}

/// The scheme that the client has used to reach `host`. Where that is the host of `--public-url`, its scheme counts.
pub(super) fn scheme(
    settings: &Settings,
    peer: IpAddr,
    headers: &HeaderMap,
    host: &Authority,
) -> &'static str {
    let public = settings.public_url.as_ref().and_then(|url| url.scheme_of(host));
    let is_https = public.unwrap_or_else(|| is_encrypted(settings, peer, headers));
    if is_https { "https" } else { "http" }
}

/// The scheme that the client used. With several proxies, the first value is that of the proxy next to the client.
fn forwarded_scheme(headers: &HeaderMap) -> Option<&str> {
    let schemes = headers.get("x-forwarded-proto")?.to_str().ok()?;
    schemes.split(',').next().map(str::trim)
}

/// The beginning of URLs in tickets: `--public-url`, or else the address that the client used. A trusted proxy tells in
/// `X-Forwarded-Proto` whether the client's connection has TLS.
pub(super) fn base_url(settings: &Settings, peer: IpAddr, headers: &HeaderMap) -> String {
    if let Some(url) = &settings.public_url {
        return url.to_string();
    }
    match host(headers) {
        Some(host) => format!("{}://{host}", scheme(settings, peer, headers, &host)),
        // Without a usable host the URL is a path alone, which is a valid reference, too (RFC 3986, section 4.2).
        None => String::new(),
    }
}
