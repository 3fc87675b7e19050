//! Checks admin tokens. A handler that takes an [`Administrator`] runs only for a request with an admin token.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;

use crate::http::auth::credentials;
use crate::http::error::ApiError;
use crate::http::proxies::Sender;
use crate::http::state::{Admin, AppState};
use cloakroom_core::protocol::problem::Code;

/// Proves that the request has an admin token.
pub(super) struct Administrator {
    /// What the handlers of admin requests need.
    pub(super) admin: Arc<Admin>,
    /// The name of the token; `None` if its line in the file has none.
    pub(super) name: Option<Arc<str>>,
    /// Where the request came from.
    pub(super) sender: Sender,
}

impl FromRequestParts<AppState> for Administrator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let Some(admin) = &state.admin else {
            return Err(ApiError::new(
                Code::AdminOff,
                "this server takes no admin's requests: start it with --admin-token-file FILE to turn them on",
            ));
        };
        let shown = credentials(&parts.headers)?.ok_or_else(|| {
            ApiError::unauthorized(&format!(
                "only an admin may ask for this: send an admin token as “Authorization: Bearer TOKEN” (cloakroom ls, \
                 show, rm and clean: --admin-token-file); {}",
                where_tokens_are(admin)
            ))
        })?;
        let Some(known) = admin.tokens.find(shown.expose()).await else {
            return Err(ApiError::wrong_secret(&format!(
                "this is not an admin token of this server: {}",
                where_tokens_are(admin)
            )));
        };
        let ConnectInfo(peer) = ConnectInfo::<SocketAddr>::from_request_parts(parts, state)
            .await
            .map_err(|error| ApiError::internal(&error))?;
        let sender = state.settings.trusted_proxies.sender(peer.ip(), &parts.headers);
        Ok(Self { admin: Arc::clone(admin), name: known.name, sender })
    }
}

fn where_tokens_are(admin: &Admin) -> &'static str {
    if admin.tokens.path().is_none() {
        "it has made one for this run, which cloakroom ls, show, rm and clean find by themselves in its data directory (--data-dir), \
         and in its pod: kubectl exec -n cloakroom deploy/cloakroom -- cloakroom ls. For others, start it with --admin-token-file"
    } else {
        "its --admin-token-file has the current ones"
    }
}
