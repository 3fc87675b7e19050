//! Uploads in v1.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, HttpBody as _};
use axum::extract::rejection::PathRejection;
use axum::extract::{ConnectInfo, Path, Query, State};
use axum::http::header::{CONTENT_RANGE, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};

use super::parameters::Parameters;
use super::splice::Splicing;
use crate::http::auth::Uploader;
use crate::http::error::ApiError;
use crate::http::measure::not_stored;
use crate::http::proxies::Sender;
use crate::http::routes::QueryPairs;
use crate::http::routes::address::base_url;
use crate::http::routes::described::{BundleBody, UploadParameters, UploadRefusals};
use crate::http::routes::receive::Receiver;
use crate::http::state::AppState;
use cloakroom_core::metrics::UploadMeasurement;
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::protocol::{CLAIMED_USER, CONTENT_DIGEST, LONGEST_CLAIMED_USER, REPR_DIGEST, digest, v1};
use cloakroom_core::resource::{FileName, Holder};
use cloakroom_storage::{NewUpload, Staged, Terms, Upload};

type Peer = ConnectInfo<SocketAddr>;

/// All that the handler of an upload gets.
struct Request {
    state: AppState,
    peer: SocketAddr,
    headers: HeaderMap,
    query: QueryPairs,
    contents: Contents,
    body: Body,
}

/// What the body is.
enum Contents {
    Bundle(Option<FileName>),
    /// A recipe, and the bytes that it sends. The source is in the path.
    Spliced(Result<Path<String>, PathRejection>),
}

macro_rules! upload_handler {
    ($(#[$doc:meta])* $name:ident, $method:ident, $path:literal, $id:literal) => {
        $(#[$doc])*
        #[utoipa::path(
            $method, path = $path, operation_id = $id, tag = "v1", security((), ("uploadToken" = [])),
            params(UploadParameters),
            request_body(content = inline(BundleBody), content_type = "application/octet-stream", description = "the bundle; any type but multipart/form-data is taken"),
            responses(
                (status = 201, description = "staged", body = v1::Ticket, headers(("location" = String, description = "where to download it"))),
                (status = 400, description = "invalid-owner, invalid-parameter, invalid-header, digest-mismatch, incomplete-body"),
                (status = 415, description = "unsupported-media-type: multipart/form-data is v0's"),
                UploadRefusals,
            )
        )]
        pub(super) async fn $name(
            State(state): State<AppState>,
            ConnectInfo(peer): Peer,
            headers: HeaderMap,
            query: QueryPairs,
            body: Body,
        ) -> Result<Response, ApiError> {
            stage(Request { state, peer, headers, query, contents: Contents::Bundle(None), body }).await
        }
    };
}

upload_handler!(
    /// Stage a bundle.
    post, post, "/api/v1/resources", "stageBundle"
);
upload_handler!(
    /// Stage a bundle, as curl -T sends it.
    put, put, "/api/v1/resources", "putBundle"
);
upload_handler!(
    /// Stage a bundle.
    post_slash, post, "/api/v1/resources/", "stageBundleAtSlash"
);
upload_handler!(
    /// Stage a bundle, as curl -T sends it from a pipe.
    put_slash, put, "/api/v1/resources/", "putBundleAtSlash"
);

/// Stage a bundle under a file name, as curl -T FILE sends it.
#[utoipa::path(
    put, path = "/api/v1/resources/{id}", operation_id = "putNamedBundle", tag = "v1", security((), ("uploadToken" = [])),
    params(("id" = String, Path, description = "the file's name, kept for Content-Disposition"), UploadParameters),
    request_body(content = inline(BundleBody), content_type = "application/octet-stream", description = "the bundle; any type but multipart/form-data is taken"),
    responses(
        (status = 201, description = "staged", body = v1::Ticket, headers(("location" = String, description = "where to download it"))),
        (status = 400, description = "invalid-owner, invalid-parameter, invalid-header, digest-mismatch, incomplete-body"),
        (status = 415, description = "unsupported-media-type: multipart/form-data is v0's"),
        UploadRefusals,
    )
)]
pub(super) async fn put_named(
    State(state): State<AppState>,
    ConnectInfo(peer): Peer,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    query: QueryPairs,
    body: Body,
) -> Result<Response, ApiError> {
    let unusable = |detail: String| ApiError::new(Code::InvalidParameter, detail);
    let Path(name) = path.map_err(|error| {
        unusable(format!(
            "the file name in the URL is not usable: {}",
            error.body_text().replace("`id`", "it")
        ))
    })?;
    let file_name = FileName::parse(&name).map_err(|error| unusable(error.to_string()))?;
    stage(Request { state, peer, headers, query, contents: Contents::Bundle(Some(file_name)), body }).await
}

/// Stage a bundle that has parts of another one, the source: only what is new is sent. The body is a recipe, and behind it the bytes
/// that the recipe sends, in order. This does not count as a use of the source.
#[utoipa::path(
    post, path = "/api/v1/resources/{id}/spliced", operation_id = "spliceBundle", tag = "v1", security((), ("uploadToken" = [])),
    params(
        ("id" = String, Path, description = "the id of the source"),
        ("x-cloakroom-recipe-length" = u64, Header, description = "the length of the recipe in bytes, at most 262144"),
        UploadParameters,
    ),
    request_body(content = inline(BundleBody), content_type = "application/octet-stream", description = "the recipe (schema Recipe) as JSON, and the bytes that it sends; Content-Length is required"),
    responses(
        (status = 201, description = "staged", body = v1::Ticket, headers(("location" = String, description = "where to download it"))),
        (status = 400, description = "invalid-recipe, invalid-owner, invalid-parameter, invalid-header, digest-mismatch, incomplete-body"),
        (status = 404, description = "not-found: no source with this id, and the secret in the recipe"),
        (status = 410, description = "gone: the source was deleted"),
        (status = 415, description = "unsupported-media-type: multipart/form-data is v0's"),
        UploadRefusals,
    )
)]
pub(super) async fn post_spliced(
    State(state): State<AppState>,
    ConnectInfo(peer): Peer,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    query: QueryPairs,
    body: Body,
) -> Result<Response, ApiError> {
    stage(Request { state, peer, headers, query, contents: Contents::Spliced(path), body }).await
}

async fn stage(request: Request) -> Result<Response, ApiError> {
    let measured = request.state.metrics.upload();
    take(request, measured.clone()).await.inspect_err(|error| not_stored(&measured, error))
}

/// Stages a bundle. Whatever can be refused is refused before a byte of the body is read.
async fn take(request: Request, measured: UploadMeasurement) -> Result<Response, ApiError> {
    let settings = Arc::clone(&request.state.settings);
    let sender = settings.trusted_proxies.sender(request.peer.ip(), &request.headers);
    let identifying = settings.upload_auth.identify(&request.headers, sender.address, &settings.token_hint);
    let uploader = identifying.await?;
    take_from(&uploader, sender, request, measured)
        .await
        .map_err(|error| settings.upload_auth.refuse_identified(error))
}

async fn take_from(
    uploader: &Uploader,
    Sender { address, proxy }: Sender,
    request: Request,
    measured: UploadMeasurement,
) -> Result<Response, ApiError> {
    let Request { state, peer, headers, query, contents, body } = request;
    let settings = &state.settings;
    let uploaded_by = uploader.called(address);
    refuse_wrong_kind(&headers)?;
    let claimed_user = claimed_user(&headers)?;
    let Query(pairs) = query.map_err(|error| {
        ApiError::new(Code::InvalidParameter, format!("the query cannot be read: {error}"))
    })?;
    let Parameters { owner, lifetime } = Parameters::parse(&pairs, settings)?;
    settings.upload_auth.permit(uploader, &owner).await?;
    state.staging.check_owner(&owner)?;
    let admission = state.owners.admit(&owner).await?;
    let mut terms = Terms { owner, lifetime, expected_sha256: announced_digest(&headers)? };
    let client = uploader.client(address);
    let (incoming, file_name) = match contents {
        Contents::Bundle(file_name) => {
            let announced_bytes = body.size_hint().exact();
            let receiver = Receiver::new(body, &headers, settings)?;
            (Incoming::Whole { announced_bytes, receiver }, file_name)
        }
        Contents::Spliced(_) if terms.expected_sha256.is_some() => return Err(digest_of_splice()),
        Contents::Spliced(source) => {
            let splicing = Splicing::begin(&state, source, &headers, body, client.clone()).await?;
            terms.expected_sha256 = Some(splicing.splice().sha256);
            (Incoming::Spliced(Box::new(splicing)), None)
        }
    };
    let copied_bytes = incoming.copied_bytes();
    let new = NewUpload {
        announced_bytes: incoming.announced_bytes(),
        file_name,
        secret: None,
        uploaded_by: Some(uploaded_by.clone()),
        holder: Some(Holder::namespace(terms.owner.namespace())),
        client,
    };
    let mut upload = state.staging.begin_upload(new).await?;
    if let Err(error) = incoming.write_to(&mut upload).await {
        upload.abandon().await;
        return Err(error);
    }
    let owner = terms.owner.clone();
    let staged = upload.finish(terms, measured, admission).await?;
    tracing::info!(
        resource_id = %staged.id, bytes = staged.bundle.size_bytes, copied_bytes, namespace = owner.namespace(),
        kind = %owner.kind(), by = uploaded_by, claimed_user, peer = %address,
        proxy = proxy.map(tracing::field::display), "staged"
    );
    ticket(&staged, &base_url(settings, peer.ip(), &headers))
}

fn refuse_wrong_kind(headers: &HeaderMap) -> Result<(), ApiError> {
    let content_type = headers.get(CONTENT_TYPE).map(|value| value.as_bytes().to_ascii_lowercase());
    if content_type.is_some_and(|kind| kind.starts_with(b"multipart/form-data")) {
        return Err(ApiError::new(
            Code::UnsupportedMediaType,
            "v1 takes the bundle itself as the body, not a form: use curl -T FILE (or --data-binary @FILE) in place \
             of curl -F; forms are v0's, at /api/v0/resources",
        ));
    }
    // RFC 9110, section 14.5: a server that does not support partial PUT must refuse it.
    if headers.contains_key(CONTENT_RANGE) {
        return Err(ApiError::new(
            Code::InvalidHeader,
            "Content-Range is not possible on an upload: send the whole bundle",
        ));
    }
    Ok(())
}

/// The user for whom an account of several users uploads, as the client says.
fn claimed_user(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut values = headers.get_all(CLAIMED_USER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let is_good = |user: &&str| {
        !user.is_empty() && user.len() <= LONGEST_CLAIMED_USER && !user.contains(char::is_control)
    };
    let user = std::str::from_utf8(value.as_bytes()).ok().filter(is_good).filter(|_| values.next().is_none());
    user.map(Some).ok_or_else(|| {
        let detail = format!(
            "{CLAIMED_USER}: it must be there once, with one line of UTF-8 of {LONGEST_CLAIMED_USER} bytes at most"
        );
        ApiError::new(Code::InvalidHeader, detail)
    })
}

fn announced_digest(headers: &HeaderMap) -> Result<Option<[u8; 32]>, ApiError> {
    let invalid = |detail: String| ApiError::new(Code::InvalidHeader, detail);
    let mut announced = None;
    for name in [CONTENT_DIGEST, REPR_DIGEST] {
        let Some(value) = whole_field(headers, name) else { continue };
        let parsed = value.and_then(|value| digest::parse(&value));
        let digest = parsed.map_err(|error| invalid(format!("{name}: {error}")))?;
        if announced.replace(digest).is_some_and(|other| other != digest) {
            return Err(invalid(format!(
                "{CONTENT_DIGEST} and {REPR_DIGEST} contradict each other: of a whole bundle both are the same"
            )));
        }
    }
    Ok(announced)
}

/// The value of a header. Several lines of one header are one list (RFC 9110, section 5.3).
fn whole_field(headers: &HeaderMap, name: &str) -> Option<Result<String, digest::DigestError>> {
    let lines: Result<Vec<&str>, _> = headers.get_all(name).iter().map(HeaderValue::to_str).collect();
    match lines {
        Ok(lines) if lines.is_empty() => None,
        Ok(lines) => Some(Ok(lines.join(","))),
        Err(_) => Some(Err(digest::DigestError::Malformed)),
    }
}

/// The bytes of a bundle, of which none was written yet.
enum Incoming {
    Whole { announced_bytes: Option<u64>, receiver: Receiver },
    Spliced(Box<Splicing>),
}

impl Incoming {
    fn announced_bytes(&self) -> Option<u64> {
        match self {
            Self::Whole { announced_bytes, .. } => *announced_bytes,
            Self::Spliced(splicing) => Some(splicing.splice().size_bytes),
        }
    }

    fn copied_bytes(&self) -> Option<u64> {
        match self {
            Self::Whole { .. } => None,
            Self::Spliced(splicing) => Some(splicing.splice().size_bytes - splicing.splice().sent_bytes),
        }
    }

    async fn write_to(self, upload: &mut Upload) -> Result<(), ApiError> {
        match self {
            Self::Spliced(splicing) => splicing.write_to(upload).await,
            Self::Whole { mut receiver, .. } => {
                while let Some(bytes) = receiver.next(upload.taken_bytes()).await? {
                    upload.write(bytes).await?;
                }
                Ok(())
            }
        }
    }
}

fn digest_of_splice() -> ApiError {
    ApiError::new(
        Code::InvalidHeader,
        "a digest header is not possible on a splice: sha256 in its recipe is the digest of the whole bundle",
    )
}

fn ticket(staged: &Staged, base_url: &str) -> Result<Response, ApiError> {
    let url = format!("{base_url}{}", v1::resource_path(staged.id));
    let location = HeaderValue::from_str(&url).map_err(|error| ApiError::internal(&error))?;
    let ticket = v1::Ticket {
        resource_id: staged.id.to_string(),
        resource_secret: staged.secret.expose().to_owned(),
        size_bytes: staged.bundle.size_bytes,
        sha256: digest::to_hex(&staged.bundle.sha256),
        created_at: staged.created_at,
        expires_at: staged.expires_at,
        url,
    };
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(ticket)).into_response())
}
