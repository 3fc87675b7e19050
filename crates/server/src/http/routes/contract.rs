//! The OpenAPI document: the descriptions of the handlers, and what all operations have in common.

use axum::Json;
use utoipa::OpenApi;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, ObjectBuilder, Ref, RefOr, Response, Type};

use super::health;
use cloakroom_core::protocol::problem::{self, Code, Problem};
use cloakroom_core::protocol::recipe::Recipe;
use cloakroom_core::protocol::{HEALTHZ, READYZ, REQUEST_ID};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "cloakroom",
        description = "A resource staging server for Kubernetes: hand a bundle in, get a ticket, show the ticket, \
                       get the bundle. Errors are application/problem+json with a stable code. Where a proxy keeps \
                       Authorization for itself, X-Cloakroom-Authorization takes its place."
    ),
    paths(health::healthz, health::readyz, contract),
    tags(
        (name = "v1", description = "Bundles: staged, fetched, released. On --listen"),
        (name = "v0", description = "The same by kubespark's protocol of 2017. On --listen"),
        (
            name = "operations",
            description = "Probes, this document and the page for browsers. With --ops-listen, the probes are there and \
                           not on --listen. The same holds for /metrics, which is for Prometheus and not part of this \
                           document"
        ),
        (
            name = "admin",
            description = "Administration. Only with --admin-token-file, and on --ops-listen if that is given"
        )
    ),
    components(schemas(Problem, Recipe)),
    modifiers(&Secrets)
)]
pub(super) struct Contract;

/// Get the OpenAPI document.
#[utoipa::path(
    get, path = "/api/openapi.json", operation_id = "getContract", tag = "operations",
    responses((status = 200, description = "the contract", body = Object, content_type = "application/json"))
)]
pub(super) async fn contract() -> Json<utoipa::openapi::OpenApi> {
    Json(super::openapi())
}

/// The secrets of requests, which are all sent in `Authorization`, or in the header that takes its place.
struct Secrets;

impl utoipa::Modify for Secrets {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let components = openapi.components.get_or_insert_default();
        for (name, description) in [
            (
                "uploadToken",
                "for uploads: with --upload-auth token one of its tokens, with kubernetes the token of a user",
            ),
            ("resourceSecret", "the resourceSecret of a ticket: it opens that resource alone"),
            ("adminToken", "a token of the server's --admin-token-file"),
        ] {
            let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(description));
            components.add_security_scheme(name, SecurityScheme::Http(bearer.build()));
        }
        let bare =
            ApiKeyValue::with_description("Authorization", "the secret alone, as v0's clients send it");
        components.add_security_scheme("bareResourceSecret", SecurityScheme::ApiKey(ApiKey::Header(bare)));
    }
}

/// Adds what all operations have in common: request ids, answers that any request may get, and the body of errors.
pub(super) fn complete(document: &mut utoipa::openapi::OpenApi) {
    for (path, item) in &mut document.paths.paths {
        for (has_bodies, operation) in operations(item) {
            add_common_problems(path, operation);
            for (status, response) in &mut operation.responses.responses {
                if let RefOr::T(response) = response {
                    complete_response(status, response, has_bodies);
                }
            }
        }
    }
}

/// Every operation, with `true` if its answers have bodies. Answers to `HEAD` have none.
fn operations(item: &mut PathItem) -> impl Iterator<Item = (bool, &mut Operation)> {
    let PathItem { get, put, post, delete, head, .. } = item;
    let with_bodies = [get, put, post, delete].into_iter().flatten().map(|operation| (true, operation));
    with_bodies.chain(head.iter_mut().map(|operation| (false, operation)))
}

/// Adds the errors of the layers around all handlers; see `router.rs`.
fn add_common_problems(path: &str, operation: &mut Operation) {
    let away: &[Code] = match path {
        HEALTHZ => &[],
        READYZ => &[Code::Starting],
        _ => &[Code::Starting, Code::ShuttingDown],
    };
    let anywhere = [Code::InvalidHeader, Code::Internal, Code::UnsupportedTransferCoding];
    for code in anywhere.iter().chain(away) {
        let response = operation.responses.responses.entry(code.status().to_string());
        let RefOr::T(response) = response.or_insert_with(|| ResponseBuilder::new().into()) else { continue };
        let name = code.as_str();
        if !response.description.contains(name) {
            let separator = if response.description.is_empty() { "" } else { "; " };
            response.description = format!("{}{separator}{name}", response.description);
        }
    }
}

fn complete_response(status: &str, response: &mut Response, has_bodies: bool) {
    add_header(response, REQUEST_ID, "names the request, in the server's log too");
    match status {
        "401" => add_header(response, "www-authenticate", "the kind of secret to send"),
        "503" => add_header(response, "retry-after", "seconds to wait before another try"),
        _ => {}
    }
    if has_bodies && status >= "400" {
        let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        response.content.insert(problem::CONTENT_TYPE.to_owned(), problem.into());
    }
}

fn add_header(response: &mut Response, name: &str, description: &str) {
    let header = HeaderBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::String)));
    response.headers.insert(name.to_owned(), header.description(Some(description)).build().into());
}
