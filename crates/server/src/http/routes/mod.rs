//! The handlers, and the routers made of them.

mod admin;
mod conditional;
mod contract;
mod described;
mod front_page;
pub(super) mod health;
pub(super) mod metrics;
mod range;
mod receive;
mod send;
mod v0;
mod v1;

pub use range::{Requested, parse as parse_range};
pub use v1::Parameters;

use axum::Router;
use axum::routing::get;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::AppState;
use cloakroom_core::protocol::OPENAPI;
use contract::{Contract, contract};

/// How many characters of a parameter or a part a refusal repeats.
const LONGEST_SHOWN: usize = 40;

fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(Contract::openapi())
        .routes(routes!(front_page::get))
        .merge(v1::routes())
        .merge(v0::routes())
}

/// The routes of v0 and v1, of their OpenAPI document, and of the page for browsers.
pub(super) fn api() -> Router<AppState> {
    documented().split_for_parts().0.route(OPENAPI, get(contract))
}

/// The routes for admins.
pub(super) fn administration() -> Router<AppState> {
    admin::routes().split_for_parts().0
}

/// The OpenAPI document of all routes but metrics.
pub fn openapi() -> utoipa::openapi::OpenApi {
    let mut document = documented().merge(admin::routes()).into_openapi();
    contract::complete(&mut document);
    document
}
