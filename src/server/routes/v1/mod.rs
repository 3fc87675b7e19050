//! cloakroom's own protocol.

mod conditional;
mod download;
mod info;
mod parameters;
mod range;
mod resource;
mod upload;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::server::state::AppState;

pub(super) use download::{Ranges, send};
pub use parameters::Parameters;
pub use range::{Requested, parse as parse_range};
pub(super) use resource::describe_owner;
pub(super) use upload::begin;

/// The routes, with their documentation.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(info::get))
        .routes(routes!(upload::post, upload::put))
        .routes(routes!(upload::post_slash, upload::put_slash))
        .routes(routes!(upload::put_named, download::get, download::head, resource::delete))
        .routes(routes!(resource::metadata))
}
