//! The way of requests through the proxies of the environment, for clients of reqwest.

use std::net::Ipv4Addr;

use reqwest::{Proxy, Url};

use crate::proxies::{self, Proxies, ProxyError};

/// The name of Google's service that gives out credentials. A proxy would give those of its own machine.
const METADATA_HOST: &str = "metadata.google.internal";

/// The proxy on the way to a URL. An address of the machine's own link is not reached through a proxy: the services that give
/// out credentials in clouds have such addresses.
pub fn proxy_to<'a>(proxies: &'a Proxies, url: &Url) -> Result<Option<&'a proxies::Proxy>, &'a ProxyError> {
    let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default());
    if host == METADATA_HOST || host.parse().is_ok_and(|address: Ipv4Addr| address.is_link_local()) {
        return Ok(None);
    }
    proxies.to(url.scheme(), host, port)
}

/// The rule of all requests, also after a redirection. A request for which the environment names no usable proxy must not
/// go directly: it fails, because nothing listens at port 0.
pub fn through(proxies: Proxies) -> Proxy {
    const NOWHERE: &str = "http://127.0.0.1:0";
    Proxy::custom(move |url: &Url| {
        let address = match proxy_to(&proxies, url) {
            Ok(proxy) => proxy?.url().expose(),
            Err(_) => NOWHERE,
        };
        // As for Go and for the API server's client: the proxy looks up the name.
        Url::parse(&address.replacen("socks5:", "socks5h:", 1)).ok()
    })
}
