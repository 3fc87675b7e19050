//! Decides which requests may upload or administer. A download needs only its ticket.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};

use super::error::ApiError;
use super::tokens::TokenFile;
use cloakroom_cluster::{ReviewError, Reviews, User};
use cloakroom_core::client::{Client, Host};
use cloakroom_core::metrics::LimitUse;
use cloakroom_core::protocol::PROXIED_AUTHORIZATION;
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::protocol::v1::UploadAuthKind;
use cloakroom_core::resource::{Holder, Owner, ResourceSecret};
use cloakroom_core::text::chain;

/// How uploads are authorised.
#[derive(Debug)]
pub enum UploadAuth {
    /// Every client that reaches the port may upload.
    None,
    /// A client needs one of the tokens in a file.
    Token(TokenFile),
    /// A client needs a token of the cluster, and its user must be allowed to stage in the owner's namespace.
    Kubernetes(Box<Reviews>),
}

/// The uploader, as far as this server knows it.
#[derive(Debug)]
pub(super) enum Uploader {
    /// The request needed no token, or its token has no name.
    Unnamed,
    /// The holder of the upload token with this name.
    Token(Arc<str>),
    /// The holder of an upload key for this namespace.
    UploadKey(Arc<str>),
    /// A user of the cluster.
    User(User),
}

impl Uploader {
    /// The user's name in the cluster; `None` for other uploaders.
    pub(super) fn user(&self) -> Option<&str> {
        match self {
            Self::User(user) => Some(user.name()),
            Self::Unnamed | Self::Token(_) | Self::UploadKey(_) => None,
        }
    }

    /// Whose turn it is when uploads wait for memory.
    pub(super) fn client(&self, address: IpAddr) -> Client {
        match self {
            Self::Unnamed => Client::Host(address.into()),
            Self::Token(name) => Client::Holder(Holder::User(Arc::clone(name))),
            Self::UploadKey(namespace) => Client::Holder(Holder::namespace(namespace)),
            Self::User(user) => Client::Holder(Holder::user(user.name())),
        }
    }

    /// The uploader's name, or else the address that the request came from.
    pub(super) fn called(&self, address: IpAddr) -> String {
        match self {
            Self::Unnamed => address.to_string(),
            Self::Token(name) => name.to_string(),
            Self::UploadKey(namespace) => format!("upload-key:{namespace}"),
            Self::User(user) => user.name().to_owned(),
        }
    }
}

impl UploadAuth {
    /// Checks the token of a request. The caller must also check with [`Self::permit`] whether the uploader may stage
    /// for its owner.
    pub(super) async fn identify(
        &self,
        headers: &HeaderMap,
        from: IpAddr,
        token_hint: &str,
    ) -> Result<Uploader, ApiError> {
        let shown = |which: &str| {
            credentials(headers)?.ok_or_else(|| {
                ApiError::unauthorized(&format!(
                    "uploads to this server need {which}: send it as “Authorization: Bearer TOKEN” \
                     ({token_hint})"
                ))
            })
        };
        match self {
            Self::None => Ok(Uploader::Unnamed),
            Self::Token(file) => match file.find(shown("its upload token")?.expose()).await {
                Some(known) => Ok(known.name.map_or(Uploader::Unnamed, Uploader::Token)),
                None => Err(ApiError::wrong_secret(
                    "this is not an upload token of this server: ask its admin for the current one",
                )),
            },
            Self::Kubernetes(reviews) => {
                let accepted = reviews.accepted();
                let token = shown(&format!(
                    "a token of the cluster for {accepted}, which cloakroom submit and stage --for request where the server's \
                     namespace is named, and others by kubectl create token cloakroom-uploader -n NAMESPACE --audience {}",
                    accepted.audience
                ))?;
                Ok(Uploader::User(reviews.authenticate(token.expose(), Host::from(from)).await?))
            }
        }
    }

    /// The holder of the request's token, if a review of it still holds. This makes no call.
    pub(super) fn holder(&self, headers: &HeaderMap) -> Option<Holder> {
        let Self::Kubernetes(reviews) = self else { return None };
        let token = credentials(headers).ok().flatten()?;
        reviews.known(token.expose()).map(|user| Holder::user(user.name()))
    }

    /// What uploads need, for clients that ask.
    pub(super) fn kind(&self) -> UploadAuthKind {
        match self {
            Self::None => UploadAuthKind::None,
            Self::Token(_) => UploadAuthKind::Token,
            Self::Kubernetes(_) => UploadAuthKind::Kubernetes,
        }
    }

    /// An error answer to a request that [`Self::identify`] has let through.
    pub(super) fn refuse_identified(&self, error: ApiError) -> ApiError {
        match self {
            Self::None => error,
            Self::Token(_) | Self::Kubernetes(_) => error.of_known_token(),
        }
    }

    /// How much of the limits for reviews is in use.
    pub(super) fn limits(&self) -> Vec<LimitUse> {
        match self {
            Self::None | Self::Token(_) => Vec::new(),
            Self::Kubernetes(reviews) => reviews.limits().into(),
        }
    }

    /// Checks whether the uploader may stage for this owner.
    pub(super) async fn permit(&self, uploader: &Uploader, owner: &Owner) -> Result<(), ApiError> {
        match (self, uploader) {
            (Self::None | Self::Token(_), _) => Ok(()),
            (Self::Kubernetes(reviews), Uploader::User(user)) => {
                Ok(reviews.may_stage_in(user, owner.namespace()).await?)
            }
            (Self::Kubernetes(reviews), _) => Err(reviews.not_authenticated().into()),
        }
    }
}

impl From<ReviewError> for ApiError {
    fn from(error: ReviewError) -> Self {
        match error {
            ReviewError::NotAuthenticated { .. } => {
                Self::wrong_secret(&format!("{error}: show a current one"))
            }
            ReviewError::Forbidden { .. } => Self::new(
                Code::Forbidden,
                format!("{error}: stage in another namespace, or ask its admin for the right"),
            ),
            ReviewError::TooManyUnknown => Self::try_again(
                Code::Overloaded,
                "too many tokens that this server does not know yet are sent to it at once: try again in a moment",
            ),
            ReviewError::Unanswered(_) => {
                tracing::warn!(error = %chain(&error), "upload refused");
                Self::try_again(
                    Code::AuthorizationUnavailable,
                    "the cluster's API server cannot be asked who may upload: try again; this server's log says why",
                )
            }
        }
    }
}

/// The secret of a request: in `Authorization`, or in the header that takes its place where a proxy keeps that one for itself.
pub(super) fn credentials(headers: &HeaderMap) -> Result<Option<ResourceSecret>, ApiError> {
    let names = [AUTHORIZATION.as_str(), PROXIED_AUTHORIZATION];
    let mut secrets = names.into_iter().flat_map(|name| headers.get_all(name)).filter_map(secret);
    let first = secrets.next();
    if let Some(first) = &first
        && secrets.any(|other| other.expose() != first.expose())
    {
        return Err(ApiError::new(
            Code::InvalidHeader,
            "Authorization and X-Cloakroom-Authorization have different values: send one of them, once",
        ));
    }
    Ok(first)
}

/// The secret after `Bearer`, or alone as kubespark's clients send it.
fn secret(value: &HeaderValue) -> Option<ResourceSecret> {
    let value = value.to_str().ok()?.trim();
    let secret = match value.split_once(' ') {
        Some((scheme, secret)) if scheme.eq_ignore_ascii_case("bearer") => secret.trim(),
        // A client sends this for `Bearer $SECRET` if the variable is not set.
        None if value.eq_ignore_ascii_case("bearer") => "",
        _ => value,
    };
    (!secret.is_empty()).then(|| ResourceSecret::from_text(secret))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use axum::{Json, Router};
    use cloakroom_cluster::{AcceptedTokens, ApiServer};
    use cloakroom_testing::clock::ManualClock;
    use serde_json::{Value, json};

    use super::*;

    /// Upload auth by an API server that takes each token for the name of its user.
    fn by_name(clock: &Arc<ManualClock>) -> UploadAuth {
        let review = async |Json(mut review): Json<Value>| {
            let user = json!({"username": review["spec"]["token"]});
            review["status"] = json!({"authenticated": true, "user": user});
            Json(review)
        };
        let client = kube::Client::new(Router::new().fallback(review), "default");
        let server = ApiServer::with_client(client, "https://in.process", Duration::from_secs(30));
        let accepted = AcceptedTokens { audience: "cloakroom.cloakroom".to_owned(), cluster_tokens: true };
        UploadAuth::Kubernetes(Box::new(Reviews::new(server, accepted, Arc::clone(clock) as _)))
    }

    fn shows(token: &str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, format!("Bearer {token}").parse().unwrap())])
    }

    #[tokio::test]
    async fn a_request_counts_for_its_tokens_namespace_while_the_review_is_valid() {
        let clock = Arc::new(ManualClock::new());
        let auth = by_name(&clock);
        for (token, holder) in [
            ("system:serviceaccount:spark:cloakroom-uploader", Holder::namespace("spark")),
            ("system:serviceaccount:spark:another", Holder::namespace("spark")),
            ("jo@example.com", Holder::user("jo@example.com")),
        ] {
            let headers = shows(token);
            assert_eq!(auth.holder(&headers), None, "there was no review yet");
            auth.identify(&headers, Ipv4Addr::LOCALHOST.into(), "").await.unwrap();
            assert_eq!(auth.holder(&headers), Some(holder));
            clock.advance(Duration::from_secs(61));
            assert_eq!(auth.holder(&headers), None);
        }
        assert_eq!(auth.holder(&HeaderMap::new()), None);
    }
}
