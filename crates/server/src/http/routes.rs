//! The handlers, and the routers made of them.

mod address;
mod admin;
mod conditional;
mod contract;
mod described;
pub(super) mod health;
pub(super) mod metrics;
mod range;
mod receive;
mod send;
mod v0;
mod v1;
mod webhdfs;

pub use range::{Requested, parse as parse_range};
pub use v1::Parameters;

use std::sync::Arc;

use axum::Router;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::routing::get;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::AppState;
use super::webhdfs::WebHdfs;
use cloakroom_core::protocol::OPENAPI;
use contract::{Contract, contract};

/// A query as pairs of name and value.
type QueryPairs = Result<Query<Vec<(String, String)>>, QueryRejection>;

/// How many characters of a parameter or a part a refusal repeats.
const LONGEST_SHOWN: usize = 40;

fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(Contract::openapi())
        .routes(routes!(front_page))
        .merge(v1::routes())
        .merge(v0::routes())
}

/// The routes of v0 and v1, of their OpenAPI document, of the page for browsers, and of WebHDFS if that is served.
pub(super) fn api(webhdfs: Option<&Arc<WebHdfs>>) -> Router<AppState> {
    let api = documented().split_for_parts().0.route(OPENAPI, get(contract));
    webhdfs.into_iter().fold(api, |api, webhdfs| api.merge(self::webhdfs::routes(webhdfs)))
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

/// The page that a browser shows at the bare address of the server. It says no more than the server tells any client at
/// `/api/v1`.
const FRONT_PAGE: &str = concat!(
    "cloakroom ",
    env!("CARGO_PKG_VERSION"),
    ": files for pods on Kubernetes are staged here, and fetched with a ticket.\n",
    "The API is at /api/v1, and its OpenAPI document at /api/openapi.json.\n",
    "To fetch a file: cloakroom fetch --ticket ticket.json --to FOLDER\n",
);

/// Get three lines for people who open the server's address in a browser.
#[utoipa::path(
    get, path = "/", operation_id = "getFrontPage", tag = "operations",
    responses((status = 200, description = "what this is, and where the API is", body = String, content_type = "text/plain"))
)]
async fn front_page() -> &'static str {
    FRONT_PAGE
}
