//! Who is an admin. A handler that takes an [`Administrator`] is not reached by anybody else.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::protocol::problem::Code;
use crate::server::auth::credentials;
use crate::server::error::ApiError;
use crate::server::state::{Admin, AppState};

/// The request showed an admin token.
pub(super) struct Administrator(pub(super) Arc<Admin>);

impl FromRequestParts<AppState> for Administrator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let Some(admin) = &state.admin else {
            return Err(ApiError::new(
                Code::AdminOff,
                "this server takes no admin's requests: start it with --admin-token-file FILE to turn them on",
            ));
        };
        let shown = credentials(&parts.headers).ok_or_else(|| {
            ApiError::unauthorized(
                "only an admin may ask for this: send an admin token as “Authorization: Bearer TOKEN” (cloakroom ls, \
                 show, rm and clean: --admin-token-file)",
            )
        })?;
        if admin.tokens.accepts(shown.expose()).await {
            Ok(Self(Arc::clone(admin)))
        } else {
            Err(ApiError::unauthorized(
                "this is not an admin token of this server: its --admin-token-file has the current ones",
            ))
        }
    }
}
