//! What handlers work with.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Uri;

use super::auth::UploadAuth;
use super::proxies::TrustedProxies;
use super::tokens::TokenFile;
use crate::cleaner::{Cleaner, Downloads, Identity, Judge};
use crate::owners::Owners;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::resource::{Namespaces, Owner, OwnerError, OwnerKinds};
use cloakroom_staging::Staging;

/// How long resources may stay without being downloaded.
#[derive(Debug, Clone, Copy)]
pub struct Lifetimes {
    /// Unless the upload says otherwise.
    pub unused_timeout: Duration,
    /// The most that an upload may ask for.
    pub max_unused: Duration,
}

/// How the HTTP edge behaves.
#[derive(Debug)]
pub struct Settings {
    /// Who may upload.
    pub upload_auth: UploadAuth,
    /// Which settings of clients show a token, for the refusal of an upload without one.
    pub token_hint: String,
    /// Owner kinds that are accepted.
    pub owner_kinds: OwnerKinds,
    /// Namespaces that owners may be in; all without.
    pub namespaces: Option<Namespaces>,
    /// How long resources stay unused.
    pub lifetimes: Lifetimes,
    /// What tickets' URLs begin with, instead of what the request was sent to.
    pub public_url: Option<PublicUrl>,
    /// The image that init-containers are to fetch with.
    pub fetch_image: Option<String>,
    /// Proxies that are believed where a request comes from.
    pub trusted_proxies: TrustedProxies,
    /// Whether this server speaks TLS itself.
    pub serves_tls: bool,
}

impl Settings {
    /// Accepts an owner that this server is there for.
    pub(super) fn check_owner(&self, owner: &Owner) -> Result<(), OwnerError> {
        self.owner_kinds.check(owner.kind())?;
        self.namespaces.as_ref().map_or(Ok(()), |namespaces| namespaces.check(owner.namespace()))
    }
}

/// The state that all handlers share.
#[derive(Clone)]
pub struct AppState {
    /// The resources.
    pub staging: Staging,
    /// Who knows about their owners.
    pub owners: Arc<dyn Owners>,
    /// Which cluster is asked about owners.
    pub identity: Identity,
    /// What becomes of the resources.
    pub judge: Judge,
    /// Where downloads are noted.
    pub downloads: Downloads,
    /// What an admin may do; without it the server takes no admin's requests.
    pub admin: Option<Arc<Admin>>,
    /// How the edge behaves.
    pub settings: Arc<Settings>,
    /// Where requests and transfers are counted.
    pub metrics: Metrics,
}

/// What an admin's requests need.
#[derive(Debug)]
pub struct Admin {
    /// Who is an admin: whoever shows one of these.
    pub tokens: TokenFile,
    /// Sweeps when asked.
    pub cleaner: Cleaner,
}

/// An address of the server as its clients see it: scheme, authority, perhaps a path prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl(String);

/// Not a usable public URL. What was given is not repeated: there may be a password in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a public URL: write http://HOST[:PORT] or https://HOST[:PORT], with a path if a proxy adds one, and without a \
     user name"
)]
pub struct PublicUrlError;

impl FromStr for PublicUrl {
    type Err = PublicUrlError;

    fn from_str(text: &str) -> Result<Self, PublicUrlError> {
        let uri: Uri = text.parse().map_err(|_| PublicUrlError)?;
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        let has_user = uri.authority().is_none_or(|authority| authority.as_str().contains('@'));
        // What the library reads has no fragment any more.
        if !is_http || has_user || uri.query().is_some() || text.contains('#') {
            return Err(PublicUrlError);
        }
        Ok(Self(text.trim_end_matches('/').to_owned()))
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
        for text in
            ["", "h", "ftp://h", "https://", "https://u:p@h", "https://h?x", "https://h#x", "https://h#u@v"]
        {
            assert!(text.parse::<PublicUrl>().is_err(), "{text}");
        }
    }
}
