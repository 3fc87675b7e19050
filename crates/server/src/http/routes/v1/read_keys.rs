//! Read keys: URLs that download one resource without a header, until they end.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{ConnectInfo, Path, Query, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};

use super::resource::ticket;
use crate::http::error::ApiError;
use crate::http::routes::address::base_url;
use crate::http::routes::receive::is_proxied;
use crate::http::routes::{LONGEST_SHOWN, QueryPairs};
use crate::http::state::AppState;
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::protocol::v1::{KeyedUrl, READ_KEY, ReadKeyTerms, resource_path};
use cloakroom_core::resource::ResourceSecret;
use cloakroom_core::text::excerpt;
use cloakroom_core::time::{SparkDuration, format_duration};

/// How long a key is good for that names no time, where that is not too long.
const DEFAULT_TTL: Duration = Duration::from_hours(24);

/// Make a URL with a read key. Until the key ends, everybody who has the URL can download the resource.
#[utoipa::path(
    post, path = "/api/v1/resources/{id}/keys", operation_id = "makeReadKey", tag = "v1", security(("resourceSecret" = [])),
    params(("id" = String, Path, description = "the resource's id")),
    request_body(content = Option<ReadKeyTerms>, content_type = "application/json", description = "how long the key is good for; nothing is a day"),
    responses(
        (status = 201, description = "made; the URL is never shown again", body = KeyedUrl),
        (status = 400, description = "invalid-parameter"),
        (status = 401, description = "unauthorized: no ticket"),
        (status = 404, description = "not-found"),
        (status = 409, description = "too-many-keys: the resource has 16"),
        (status = 410, description = "gone"),
        (status = 503, description = "overloaded, not-writable"),
        (status = 507, description = "insufficient-storage: the disk is full"),
    )
)]
pub(super) async fn post(
    State(state): State<AppState>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<KeyedUrl>), ApiError> {
    let (id, secret) = ticket(path.ok().map(|Path(id)| id), &headers)?;
    if query.is_some() {
        return Err(invalid(
            "a request for a key takes no parameters: say how long it is good for in the body",
        ));
    }
    let settings = &state.settings;
    let ttl = ttl(body, settings.lifetimes.max_key_ttl)?;
    let (key, expires_at) = state.staging.make_read_key(id, &secret, ttl).await?;
    tracing::info!(resource_id = %id, ends_at = %expires_at, "a read key was made");
    let base = base_url(settings, peer.ip(), &headers);
    let url = format!("{base}{}?{READ_KEY}={}", resource_path(id), key.expose());
    Ok((StatusCode::CREATED, Json(KeyedUrl { url, expires_at })))
}

/// End all read keys of a resource. To repeat it is no error.
#[utoipa::path(
    delete, path = "/api/v1/resources/{id}/keys", operation_id = "endReadKeys", tag = "v1", security(("resourceSecret" = [])),
    params(("id" = String, Path, description = "the resource's id")),
    responses(
        (status = 204, description = "no key is left"),
        (status = 401, description = "unauthorized: no ticket"),
        (status = 404, description = "not-found"),
        (status = 410, description = "gone"),
        (status = 503, description = "overloaded, not-writable"),
        (status = 507, description = "insufficient-storage: the disk is full"),
    )
)]
pub(super) async fn delete(
    State(state): State<AppState>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let (id, secret) = ticket(path.ok().map(|Path(id)| id), &headers)?;
    state.staging.end_read_keys(id, &secret).await?;
    tracing::info!(resource_id = %id, "its read keys were ended");
    Ok(StatusCode::NO_CONTENT)
}

/// The read key in the query of a download. A program that sends a token of its own with each request means the key.
pub(super) fn shown_key(query: QueryPairs, headers: &HeaderMap) -> Result<Option<ResourceSecret>, ApiError> {
    let pairs = query.map(|Query(pairs)| pairs).unwrap_or_default();
    let mut keys = pairs.into_iter().filter(|(name, _)| name == READ_KEY).map(|(_, key)| key);
    let Some(key) = keys.next() else { return Ok(None) };
    if keys.next().is_some() {
        return Err(invalid(&format!("parameter {READ_KEY} is given more than once: it takes one value")));
    }
    if is_proxied(headers) {
        return Err(invalid(
            "a read key is not taken through Kubernetes' API server, whose log has the whole URL: this one should be ended; \
             use the server's own address, or the ticket",
        ));
    }
    Ok(Some(ResourceSecret::from_text(key)))
}

/// An error does not repeat the body, which may have a secret.
fn ttl(body: Result<Bytes, BytesRejection>, most: Duration) -> Result<Duration, ApiError> {
    let unusable = || invalid(r#"the body is not as the API describes it: {"ttl":"12h"}, or nothing"#);
    let body = body.map_err(|_| unusable())?;
    let ReadKeyTerms { ttl } = match body.trim_ascii() {
        [] => ReadKeyTerms::default(),
        json if json.starts_with(b"{") => serde_json::from_slice(json).map_err(|_| unusable())?,
        _ => return Err(unusable()),
    };
    if most.is_zero() {
        return Err(invalid("this server takes no read keys (--max-key-ttl 0s)"));
    }
    let Some(text) = ttl else { return Ok(DEFAULT_TTL.min(most)) };
    let text = excerpt(text.trim(), LONGEST_SHOWN);
    let ttl: SparkDuration = text.parse().map_err(|error| invalid(&format!("ttl is not usable: {error}")))?;
    match ttl.get() {
        ttl if ttl < Duration::from_secs(1) => Err(invalid("ttl is shorter than a second: make it longer")),
        ttl if ttl > most => {
            let most = format_duration(most);
            Err(invalid(&format!("ttl may be {most} at most on this server (--max-key-ttl)")))
        }
        ttl => Ok(ttl),
    }
}

fn invalid(detail: &str) -> ApiError {
    ApiError::new(Code::InvalidParameter, detail)
}
