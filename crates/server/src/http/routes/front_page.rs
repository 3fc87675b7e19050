//! The page that a browser shows at the bare address of the server.

/// It says no more than the server tells any client at `/api/v1`.
const TEXT: &str = concat!(
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
pub(super) async fn get() -> &'static str {
    TEXT
}
