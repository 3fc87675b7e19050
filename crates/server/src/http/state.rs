//! The state and the settings of the handlers.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};

use super::auth::UploadAuth;
use super::proxies::TrustedProxies;
use super::splices::Splices;
use super::tls::ServerTls;
use super::tokens::TokenFile;
use super::webhdfs::WebHdfs;
use crate::cleaner::{Cleaner, Downloads, Identity, Judge};
use crate::owners::Owners;
use cloakroom_core::client::Client;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::resource::{Namespaces, Owner, OwnerError, OwnerKinds};
use cloakroom_storage::Staging;

/// How long resources may stay without being downloaded.
#[derive(Debug, Clone, Copy)]
pub struct Lifetimes {
    /// The time for uploads that ask for none.
    pub unused_timeout: Duration,
    /// The longest time that an upload may ask for.
    pub max_unused: Duration,
    /// The longest time that a read key may ask for; zero if there are none.
    pub max_key_ttl: Duration,
}

/// The settings of the HTTP server.
#[derive(Debug)]
pub struct Settings {
    /// Which requests may upload.
    pub upload_auth: UploadAuth,
    /// The settings of clients that show a token, for the refusal of an upload without one.
    pub token_hint: String,
    pub owner_kinds: OwnerKinds,
    /// The namespaces that owners may be in; `None` is all.
    pub namespaces: Option<Namespaces>,
    /// How long resources may stay unused.
    pub lifetimes: Lifetimes,
    /// How URLs in tickets begin; if it is `None`, they begin with the address that the client used.
    pub public_url: Option<PublicUrl>,
    /// How URLs begin that pods reach the server by; `None` if the admin has named none.
    pub internal_url: Option<PublicUrl>,
    /// The largest bundle that may come through Kubernetes' API server, in bytes.
    pub max_proxied_size: u64,
    /// The image that init-containers should fetch with; `None` if the admin has set none.
    pub fetch_image: Option<String>,
    /// The proxies that are trusted to name the address of a client.
    pub trusted_proxies: TrustedProxies,
    /// The certificate of this server; `None` if it does not provide TLS itself.
    pub tls: Option<ServerTls>,
    /// How WebHDFS is served; `None` if it is not.
    pub webhdfs: Option<Arc<WebHdfs>>,
}

impl Settings {
    /// Checks that this server accepts resources for an owner of this kind in this namespace.
    pub(super) fn check_owner(&self, owner: &Owner) -> Result<(), OwnerError> {
        self.owner_kinds.check(owner.kind())?;
        self.namespaces.as_ref().map_or(Ok(()), |namespaces| namespaces.check(owner.namespace()))
    }

    /// The client that a request counts for. It makes no call: a request whose token was not reviewed yet counts for its host.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> Client {
        let host = || Client::Host(self.trusted_proxies.sender(peer, headers).address.into());
        self.upload_auth.holder(headers).map_or_else(host, Client::Holder)
    }
}

/// The state that all handlers share.
#[derive(Clone)]
pub struct AppState {
    pub staging: Staging,
    /// The source of truth about owners.
    pub owners: Arc<dyn Owners>,
    /// The check of the cluster that is asked about owners.
    pub identity: Identity,
    /// Tells what a sweep would decide about a resource.
    pub judge: Judge,
    /// Records downloads for the cleaner.
    pub downloads: Downloads,
    /// What the handlers of admin requests need; `None` if the server takes no such requests.
    pub admin: Option<Arc<Admin>>,
    /// The settings of the HTTP server.
    pub settings: Arc<Settings>,
    /// What bounds the copying of bundles.
    pub splices: Splices,
    /// Where requests and transfers are counted.
    pub metrics: Metrics,
}

/// What the handlers of admin requests need.
#[derive(Debug)]
pub struct Admin {
    pub tokens: TokenFile,
    /// Asks the cleaner for sweeps.
    pub cleaner: Cleaner,
}

/// The server's address as clients see it: scheme, authority, and perhaps the beginning of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl(String);

/// The text is not a usable public URL. The error does not repeat the text, which may contain a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a public URL: write http://HOST[:PORT] or https://HOST[:PORT], with a path if a proxy adds one, and without a \
     user name and a *"
)]
pub struct PublicUrlError;

impl FromStr for PublicUrl {
    type Err = PublicUrlError;

    fn from_str(text: &str) -> Result<Self, PublicUrlError> {
        let uri: Uri = text.parse().map_err(|_| PublicUrlError)?;
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        let is_no_place = uri.authority().is_none_or(|authority| authority.as_str().contains(['@', '*']));
        // The `Uri` type drops the fragment, so the text itself is checked.
        if !is_http || is_no_place || uri.query().is_some() || text.contains('#') {
            return Err(PublicUrlError);
        }
        Ok(Self(text.trim_end_matches('/').to_owned()))
    }
}

impl PublicUrl {
    /// Whether its scheme is https, if `host` is its host.
    pub(super) fn scheme_of(&self, host: &Authority) -> Option<bool> {
        let uri: Uri = self.0.parse().ok()?;
        let (own, is_https) = (uri.authority()?, uri.scheme_str() == Some("https"));
        let port = |of: &Authority| of.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let is_same = own.host().eq_ignore_ascii_case(host.host()) && port(own) == port(host);
        is_same.then_some(is_https)
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_url_is_one_that_paths_can_be_added_to() {
        for (text, shown) in [("https://h/", "https://h"), ("http://h:80/a@b//", "http://h:80/a@b")] {
            assert_eq!(text.parse::<PublicUrl>().unwrap().to_string(), shown);
        }
        for text in [
            "",
            "h",
            "ftp://h",
            "https://",
            "https://u:p@h",
            "https://h?x",
            "https://h#x",
            "https://h#u@v",
            "https://*.h",
        ] {
            assert!(text.parse::<PublicUrl>().is_err(), "{text}");
        }
    }
}
