//! Which tokens a server takes: those that are for it alone, and those of the API server if an admin says so.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use cloakroom_core::protocol::{BUNDLES, BUNDLES_GROUP};
use serde::Deserialize;

/// The tokens that a server takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedTokens {
    /// The audience of tokens that are for this server only.
    pub audience: String,
    /// Whether the server takes tokens for the API server itself too. They are good for more than uploads.
    pub cluster_tokens: bool,
}

/// The purpose of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenPurpose {
    /// Uploads to this server.
    Uploads,
    /// Calls to the API server.
    Cluster,
}

/// Whether the token claims to be good for something else than uploads to `audience`.
pub(super) fn is_for_more_than(audience: &str, token: &str) -> bool {
    claimed_audiences(token).iter().any(|claimed| claimed != audience)
}

impl AcceptedTokens {
    /// The purpose that a token must have to be good. It comes from the token's claim, which is not verified yet, so it
    /// only decides what the API server is asked. There is one question for each token.
    pub(super) fn purpose(&self, token: &str) -> TokenPurpose {
        let is_for_uploads = || claimed_audiences(token).contains(&self.audience);
        if self.cluster_tokens && !is_for_uploads() { TokenPurpose::Cluster } else { TokenPurpose::Uploads }
    }
}

/// In words: the audiences, as “the cluster knows no such token for …” continues.
impl fmt::Display for AcceptedTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the audience {}", self.audience)?;
        if self.cluster_tokens { f.write_str(" or for the API server") } else { Ok(()) }
    }
}

impl TokenPurpose {
    /// The group and the resource that a user with such a token must be allowed to create in the owner's namespace.
    pub(super) fn needed_right(self) -> (Option<&'static str>, &'static str) {
        match self {
            Self::Uploads => (Some(BUNDLES_GROUP), BUNDLES),
            Self::Cluster => (None, "pods"),
        }
    }
}

/// The claim `aud` of a JSON Web Token: one text or a list (RFC 7519, 4.1.3). Empty for other tokens.
fn claimed_audiences(token: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Claims {
        aud: Audiences,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Audiences {
        One(String),
        Several(Vec<String>),
    }
    let payload = token.split('.').nth(1).and_then(|part| BASE64_URL_SAFE_NO_PAD.decode(part).ok());
    let claims = payload.and_then(|payload| serde_json::from_slice::<Claims>(&payload).ok());
    match claims.map(|claims| claims.aud) {
        Some(Audiences::One(audience)) => vec![audience],
        Some(Audiences::Several(audiences)) => audiences,
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "cloakroom.cloakroom";

    fn token(payload: &str) -> String {
        format!("e30.{}.c2ln", BASE64_URL_SAFE_NO_PAD.encode(payload))
    }

    #[test]
    fn the_claimed_audience_chooses_the_question() {
        use TokenPurpose::{Cluster, Uploads};
        let api_server = token(r#"{"aud":["https://kubernetes.default.svc"]}"#);
        let cases = [
            (token(r#"{"aud":["cloakroom.cloakroom"],"sub":"a"}"#), Uploads, Uploads),
            (token(r#"{"aud":"cloakroom.cloakroom"}"#), Uploads, Uploads),
            (token(r#"{"aud":["https://kubernetes.default.svc","cloakroom.cloakroom"]}"#), Uploads, Uploads),
            (token(r#"{"aud":["cloakroom.other"]}"#), Uploads, Cluster),
            (token(r#"{"aud":"cloakroom.cloakroom-2"}"#), Uploads, Cluster),
            (token(r#"{"aud":7}"#), Uploads, Cluster),
            (token("{}"), Uploads, Cluster),
            (api_server, Uploads, Cluster),
            ("opaque".to_owned(), Uploads, Cluster),
            ("a.!!.c".to_owned(), Uploads, Cluster),
            (String::new(), Uploads, Cluster),
        ];
        for (token, without_cluster_tokens, with_them) in cases {
            let of =
                |cluster_tokens| AcceptedTokens { audience: OURS.to_owned(), cluster_tokens }.purpose(&token);
            assert_eq!((of(false), of(true)), (without_cluster_tokens, with_them), "{token}");
        }
    }
}
