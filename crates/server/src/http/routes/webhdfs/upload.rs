//! Answers PUT: the folder of a file, and the file.

use axum::body::{Body, HttpBody as _};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::Instrument as _;

use super::access;
use super::{Call, json};
use crate::http::auth::Uploader;
use crate::http::error::ApiError;
use crate::http::measure::not_stored;
use crate::http::routes::receive::Receiver;
use crate::http::webhdfs::WebHdfs;
use crate::owners::Admission;
use cloakroom_core::metrics::UploadMeasurement;
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::protocol::webhdfs::{Answer, Operation, Put};
use cloakroom_core::resource::{Holder, Lifetime, Owner};
use cloakroom_core::text::chain;
use cloakroom_storage::ledger::LedgerError;
use cloakroom_storage::{NewUpload, Staged, Terms, Upload, UploadError};

pub(super) async fn answer(
    webhdfs: &WebHdfs,
    call: &Call,
    put: Put,
    body: Body,
) -> Result<Response, ApiError> {
    let uploader = access::check(webhdfs, call).await;
    let uploader = uploader.inspect_err(|error| not_stored(&call.state.metrics.upload(), error))?;
    let answered = match put {
        // The folder is there as soon as it has a file.
        Put::MakeFolder => Ok(json(&Answer::Made(true))),
        Put::Create => create(call).await,
        Put::Write => {
            let measured = call.state.metrics.upload();
            let written = write(webhdfs, call, &uploader, body, measured.clone()).await;
            written.inspect_err(|error| not_stored(&measured, error))
        }
    };
    let has_key = matches!(uploader, Uploader::UploadKey(_));
    answered.map_err(|error| if has_key { error.of_known_token() } else { error })
}

/// Refuses what it can before any byte is sent.
async fn create(call: &Call) -> Result<Response, ApiError> {
    call.file_name()?;
    let staging = &call.state.staging;
    staging.check_owner(&owner(call)?)?;
    if staging.is_taken(&call.place.secret()).await? {
        return Err(taken());
    }
    call.second_step()
}

fn taken() -> ApiError {
    ApiError::new(
        Code::InUse,
        "this folder has or had a file already, and takes no other one: Spark makes a folder for each file; submit again",
    )
}

async fn write(
    webhdfs: &WebHdfs,
    call: &Call,
    uploader: &Uploader,
    body: Body,
    measured: UploadMeasurement,
) -> Result<Response, ApiError> {
    let (state, owner, sender) = (&call.state, owner(call)?, call.sender());
    let uploaded_by = uploader.called(sender.address);
    let new = NewUpload {
        announced_bytes: body.size_hint().exact(),
        file_name: Some(call.file_name()?.clone()),
        secret: Some(call.place.secret()),
        uploaded_by: Some(uploaded_by.clone()),
        holder: Some(Holder::namespace(&call.place.namespace)),
        client: uploader.client(sender.address),
    };
    let mut receiver = Receiver::new(body, &call.head.headers, &state.settings)?;
    let mut upload = state.staging.begin_upload(new).await.map_err(|error| match error {
        UploadError::Ledger(LedgerError::Taken) => taken(),
        error => error.into(),
    })?;
    if let Err(error) = receive(&mut receiver, &mut upload).await {
        upload.abandon().await;
        return Err(error);
    }
    let lifetime = Lifetime { unused_timeout: state.settings.lifetimes.unused_timeout, ttl: None };
    let terms = Terms { owner, lifetime, expected_sha256: None };
    let staged = in_time(webhdfs, call, upload, terms, measured).await?;
    tracing::info!(
        resource_id = %staged.id, bytes = staged.bundle.size_bytes, namespace = call.place.namespace,
        file_name = call.place.name.as_ref().map(tracing::field::display), by = uploaded_by,
        claimed_user = Operation::claimed_user(call.query()),
        peer = %sender.address, proxy = sender.proxy.map(tracing::field::display), "staged"
    );
    Ok(StatusCode::CREATED.into_response())
}

async fn receive(receiver: &mut Receiver, upload: &mut Upload) -> Result<(), ApiError> {
    while let Some(bytes) = receiver.next(upload.taken_bytes()).await? {
        upload.write(bytes).await?;
    }
    Ok(())
}

/// Finishes the upload. A file whose client did not wait for that, or could not, is deleted: it has failed there.
async fn in_time(
    webhdfs: &WebHdfs,
    call: &Call,
    upload: Upload,
    terms: Terms,
    measured: UploadMeasurement,
) -> Result<Staged, ApiError> {
    let (told, answered) = oneshot::channel();
    let staging = call.state.staging.clone();
    let finishing = async move {
        let finished = upload.finish(terms, measured, Admission::default()).await;
        if let Err(Ok(staged)) = told.send(finished)
            && let Err(error) = staging.remove(staged.id).await
        {
            tracing::warn!(resource_id = %staged.id, error = %chain(&error), "a late file stays until its time is over");
        }
    };
    tokio::spawn(finishing.in_current_span());
    match timeout(webhdfs.answer_within, answered).await {
        Ok(Ok(finished)) => Ok(finished?),
        Ok(Err(ended)) => Err(ApiError::internal(&ended)),
        Err(_) => Err(ApiError::try_again(
            Code::Overloaded,
            "the storage of this server took too long to keep the file, so it is not kept: submit again",
        )),
    }
}

fn owner(call: &Call) -> Result<Owner, ApiError> {
    Ok(Owner::without_objects(&call.place.namespace)?)
}
