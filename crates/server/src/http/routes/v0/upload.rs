//! Uploads in v0: `multipart/form-data` with the bundle and its owner.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, HttpBody as _};
use axum::extract::{ConnectInfo, State};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;

use super::form::{Form, no_owner, no_resources};
use crate::http::auth::Uploader;
use crate::http::error::ApiError;
use crate::http::measure::not_stored;
use crate::http::proxies::Sender;
use crate::http::routes::described::UploadRefusals;
use crate::http::routes::receive::Receiver;
use crate::http::state::{AppState, Settings};
use crate::owners::Admission;
use cloakroom_core::metrics::UploadMeasurement;
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::resource::{Holder, Lifetime, Owner, OwnerKind};
use cloakroom_kubespark::multipart::{BodyLimits, Parser, boundary_of};
use cloakroom_kubespark::v0::{StagedResourcesOwner, SubmittedResourceIdAndSecret, UploadForm};
use cloakroom_storage::Terms;

/// The most bytes of a form besides the bundle: boundaries, headers, the owner.
const FORM_BYTES: u64 = 1 << 20;

macro_rules! upload_handler {
    ($(#[$doc:meta])* $name:ident, $path:literal, $id:literal) => {
        $(#[$doc])*
        #[utoipa::path(
            post, path = $path, operation_id = $id, tag = "v0", security((), ("uploadToken" = [])),
            request_body(content = UploadForm, content_type = "multipart/form-data", description = "both parts, in either order"),
            responses(
                (status = 200, description = "staged", body = SubmittedResourceIdAndSecret),
                (status = 400, description = "invalid-multipart, invalid-owner, incomplete-body"),
                (status = 415, description = "unsupported-media-type: not multipart/form-data"),
                UploadRefusals,
            )
        )]
        pub(super) async fn $name(
            State(state): State<AppState>,
            ConnectInfo(peer): ConnectInfo<SocketAddr>,
            headers: HeaderMap,
            body: Body,
        ) -> Result<Json<SubmittedResourceIdAndSecret>, ApiError> {
            let measured = state.metrics.upload();
            let staged = stage(state, peer, headers, body, measured.clone()).await;
            staged.map(Json).inspect_err(|error| not_stored(&measured, error))
        }
    };
}

upload_handler!(
    /// Stage a bundle.
    post, "/api/v0/resources", "stageBundleV0"
);
upload_handler!(
    /// Stage a bundle, at the path that kubespark's own client uses.
    post_slash, "/api/v0/resources/", "stageBundleV0AtSlash"
);

async fn stage(
    state: AppState,
    peer: SocketAddr,
    headers: HeaderMap,
    body: Body,
    measured: UploadMeasurement,
) -> Result<SubmittedResourceIdAndSecret, ApiError> {
    let settings = Arc::clone(&state.settings);
    let sender = settings.trusted_proxies.sender(peer.ip(), &headers);
    let uploader = settings.upload_auth.identify(&headers, sender.address, &settings.token_hint).await?;
    let staged = stage_for(&uploader, (state, sender), &headers, body, measured).await;
    staged.map_err(|error| settings.upload_auth.refuse_identified(error))
}

/// Stages for an uploader whose token is known, if one is needed.
async fn stage_for(
    uploader: &Uploader,
    (state, Sender { address, proxy }): (AppState, Sender),
    headers: &HeaderMap,
    body: Body,
    measured: UploadMeasurement,
) -> Result<SubmittedResourceIdAndSecret, ApiError> {
    let mut parser = Parser::new(&boundary_of(content_type(headers)?)?, BodyLimits::default());
    state.staging.check_size(body.size_hint().exact().unwrap_or(0).saturating_sub(FORM_BYTES))?;
    let receiver = Receiver::new(body, headers, &state.settings)?;
    let uploaded_by = uploader.called(address);
    // Before its owner is known, the bundle counts for the user.
    let holder = uploader.user().map(Holder::user);
    let mut form = Form::new(state.staging.clone(), uploaded_by.clone(), holder, uploader.client(address));
    let (terms, admission) = match receive(&mut form, &mut parser, receiver, (&state, uploader)).await {
        Ok(agreed) => agreed,
        Err(error) => {
            if let Some(upload) = form.take_upload() {
                upload.abandon().await;
            }
            return Err(error);
        }
    };
    let owner = terms.owner.clone();
    let staged = form.take_upload().ok_or_else(no_resources)?.finish(terms, measured, admission).await?;
    tracing::info!(
        resource_id = %staged.id, bytes = staged.bundle.size_bytes, namespace = owner.namespace(),
        kind = %owner.kind(), by = uploaded_by, peer = %address, proxy = proxy.map(tracing::field::display),
        "staged"
    );
    Ok(SubmittedResourceIdAndSecret {
        resource_id: staged.id.to_string(),
        resource_secret: staged.secret.expose().to_owned(),
    })
}

fn content_type(headers: &HeaderMap) -> Result<&str, ApiError> {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if value.to_ascii_lowercase().starts_with("multipart/form-data") {
        return Ok(value);
    }
    Err(ApiError::new(
        Code::UnsupportedMediaType,
        "v0 takes multipart/form-data with the parts resources and resourcesOwner; to send the bundle itself as the \
         body, use v1, at /api/v1/resources",
    ))
}

/// Reads the body to its end, and returns the terms of the resource. The owner is checked as soon as it is known. If
/// the client sends it first, that is before the bundle.
async fn receive(
    form: &mut Form,
    parser: &mut Parser,
    mut receiver: Receiver,
    (state, uploader): (&AppState, &Uploader),
) -> Result<(Terms, Admission), ApiError> {
    let mut agreed = None;
    while let Some(bytes) = receiver.next(form.received_bytes()).await? {
        parser.push(bytes);
        while let Some(event) = parser.next()? {
            form.take(event).await?;
            if agreed.is_none()
                && let Some(owner) = form.owner()?
            {
                let terms = terms(owner, &state.settings)?;
                state.settings.upload_auth.permit(uploader, &terms.owner).await?;
                form.pass_to(Holder::namespace(terms.owner.namespace())).await?;
                state.staging.check_owner(&terms.owner)?;
                // An owner is refused if its presence could never be known.
                let admission = state.owners.admit(&terms.owner).await?;
                agreed = Some((terms, admission));
            }
        }
    }
    parser.finish()?;
    if !form.is_done() || !form.has_resources() {
        return Err(no_resources());
    }
    agreed.ok_or_else(no_owner)
}

fn terms(owner: StagedResourcesOwner, settings: &Settings) -> Result<Terms, ApiError> {
    let kind = OwnerKind::parse(&owner.owner_type)?;
    let owner = Owner::new(kind, &owner.owner_namespace, owner.owner_labels, None)?;
    settings.check_owner(&owner)?;
    let lifetime = Lifetime { unused_timeout: settings.lifetimes.unused_timeout, ttl: None };
    Ok(Terms { owner, lifetime, expected_sha256: None })
}
