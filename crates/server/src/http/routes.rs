//! The handlers, and the routers made of them.

mod address;
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
        .routes(routes!(front_page::get))
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
