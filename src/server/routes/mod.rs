//! The handlers.

mod admin;
pub(super) mod health;
pub(super) mod metrics;
mod receive;
mod v0;
mod v1;

pub use v1::{Parameters, Requested, parse_range};

use axum::Json;
use axum::Router;
use axum::routing::get;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use super::state::AppState;
use crate::protocol::OPENAPI;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "cloakroom",
        description = "A resource staging server for Kubernetes: hand a bundle in, get a ticket, show the ticket, \
                       get the bundle. Errors are application/problem+json with a stable code."
    ),
    paths(health::healthz, health::readyz, metrics::metrics, contract),
    components(schemas(crate::protocol::problem::Problem)),
    modifiers(&TicketScheme)
)]
struct Contract;

/// All secrets, the upload token, the admin token and the resource secret, travel as bearer tokens.
struct TicketScheme;

impl utoipa::Modify for TicketScheme {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
        let components = openapi.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    }
}

fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(Contract::openapi()).merge(v1::routes()).merge(v0::routes())
}

/// Both protocols and the document that describes them.
pub(super) fn api() -> Router<AppState> {
    documented().split_for_parts().0.route(OPENAPI, get(contract))
}

/// What an admin can do.
pub(super) fn administration() -> Router<AppState> {
    admin::routes().split_for_parts().0
}

/// This document.
#[utoipa::path(get, path = "/api/openapi.json", tag = "operations", responses((status = 200, description = "the contract")))]
async fn contract() -> Json<utoipa::openapi::OpenApi> {
    Json(openapi())
}

/// The OpenAPI document of what is served.
pub fn openapi() -> utoipa::openapi::OpenApi {
    documented().merge(admin::routes()).into_openapi()
}
