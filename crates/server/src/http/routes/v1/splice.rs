//! Bundles that have parts of another one, the source. Its ticket is the right to read it.

use std::io;
use std::mem;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::HeaderMap;
use futures_util::{Stream, TryStreamExt as _};
use tokio::time::timeout;

use crate::http::error::ApiError;
use crate::http::routes::receive::Receiver;
use crate::http::splices::Splices;
use crate::http::state::AppState;
use cloakroom_core::client::Client;
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::protocol::recipe::{LONGEST_RECIPE, RECIPE_LENGTH, Recipe, Splice};
use cloakroom_core::resource::ResourceId;
use cloakroom_storage::store::StoreError;
use cloakroom_storage::{AccessError, Upload};

/// How long a recipe may take to arrive. It is held in memory meanwhile.
const RECIPE_TIME: Duration = Duration::from_secs(10);

/// How long a request may wait before its recipe is read. A client that gets no place then can send all of the bundle.
const PLACE_TIME: Duration = Duration::from_secs(5);

/// A bundle whose recipe is checked, and whose source is open.
pub(super) struct Splicing {
    splice: Splice,
    source: Pin<Box<dyn Stream<Item = Result<Bytes, StoreError>> + Send>>,
    sent: Sent,
    splices: Splices,
    client: Client,
}

impl Splicing {
    /// Reads the recipe at the beginning of `body`, checks it, and opens the source. No other byte is read.
    pub(super) async fn begin(
        state: &AppState,
        source: Result<Path<String>, PathRejection>,
        headers: &HeaderMap,
        body: Body,
        client: Client,
    ) -> Result<Self, ApiError> {
        let recipe_bytes = recipe_length(headers)?;
        let invalid = |detail: String| ApiError::new(Code::InvalidRecipe, detail);
        let body_bytes = body.size_hint().exact().ok_or_else(|| {
            let detail =
                "a splice needs a Content-Length: that of the recipe, and of the bytes that are sent";
            ApiError::new(Code::InvalidHeader, detail)
        })?;
        let receiver = Receiver::new(body, headers, &state.settings)?;
        let mut sent = Sent { receiver, rest: Bytes::new(), taken_bytes: 0 };
        let splice = {
            let _place =
                timeout(PLACE_TIME, state.splices.reading.place(&client)).await.map_err(|_| full())?;
            let reading = timeout(RECIPE_TIME, read_recipe(&mut sent, recipe_bytes));
            let recipe = reading.await.map_err(|_| too_slow())??;
            recipe.checked().map_err(|error| invalid(error.to_string()))?
        };
        let behind = body_bytes.saturating_sub(recipe_bytes);
        if behind != splice.sent_bytes {
            return Err(invalid(format!(
                "the body has {behind} bytes behind the recipe, whose parts send {}",
                splice.sent_bytes
            )));
        }
        let id = source.ok().and_then(|Path(id)| ResourceId::parse(&id).ok()).ok_or(AccessError::NotFound)?;
        let resource = state.staging.find(id, &splice.source_secret).await?;
        splice.check_source(resource.data.bundle.size_bytes).map_err(|error| invalid(error.to_string()))?;
        let ranges = splice.parts.iter().filter_map(|part| part.copied()).collect();
        let download = state.staging.open_download(resource, ranges, client.clone()).await?;
        let source = Box::pin(download.read());
        Ok(Self { splice, source, sent, splices: state.splices.clone(), client })
    }

    pub(super) fn splice(&self) -> &Splice {
        &self.splice
    }

    /// Puts the bundle together.
    pub(super) async fn write_to(mut self, upload: &mut Upload) -> Result<(), ApiError> {
        for part in mem::take(&mut self.splice.parts) {
            let mut left = part.length();
            let is_copied = part.copied().is_some();
            // Only while the server itself reads: a slow client keeps no other one out.
            let _place = if is_copied { Some(self.splices.copying.place(&self.client).await) } else { None };
            while left > 0 {
                let bytes =
                    if is_copied { self.next_of_source().await? } else { self.sent.next(left).await? };
                // No piece of the source is of two ranges.
                left = left.saturating_sub(bytes.len() as u64);
                if is_copied { upload.write_copied(bytes).await? } else { upload.write(bytes).await? }
            }
        }
        Ok(())
    }

    async fn next_of_source(&mut self) -> Result<Bytes, ApiError> {
        match self.source.try_next().await {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => {
                Err(ApiError::internal(&io::Error::other("the source has fewer bytes than its row says")))
            }
            Err(StoreError::Deleted) => Err(ApiError::new(
                Code::Gone,
                "the source was deleted while it was read: nothing was kept; upload the whole bundle",
            )),
            Err(error) => Err(AccessError::from(error).into()),
        }
    }
}

fn full() -> ApiError {
    let detail =
        "this server reads as many recipes as it may: upload the whole bundle, or try again in a moment";
    ApiError::try_again(Code::Overloaded, detail)
}

fn too_slow() -> ApiError {
    ApiError::too_slow(format!("the recipe took longer than {} s: send it again", RECIPE_TIME.as_secs()))
}

/// The length of the recipe, from its header.
fn recipe_length(headers: &HeaderMap) -> Result<u64, ApiError> {
    let mut values = headers.get_all(RECIPE_LENGTH).iter();
    let length = values.next().and_then(|value| value.to_str().ok()?.parse().ok());
    let length = length.filter(|length| (1..=LONGEST_RECIPE).contains(length) && values.next().is_none());
    length.ok_or_else(|| {
        let detail =
            format!("{RECIPE_LENGTH}: it must be there once, with the length of the recipe, 1 to {LONGEST_RECIPE} bytes");
        ApiError::new(Code::InvalidHeader, detail)
    })
}

/// An error names only the place of the mistake, and not the text there, which may be the secret.
async fn read_recipe(sent: &mut Sent, length: u64) -> Result<Recipe, ApiError> {
    let mut json = Vec::new();
    while (json.len() as u64) < length {
        json.extend_from_slice(&sent.next(length - json.len() as u64).await?);
    }
    serde_json::from_slice(&json).map_err(|error| {
        let detail = format!(
            "the recipe is not written as the API describes it, at line {}, column {}",
            error.line(),
            error.column()
        );
        ApiError::new(Code::InvalidRecipe, detail)
    })
}

/// The bytes that the client sends.
struct Sent {
    receiver: Receiver,
    /// What is left of the last piece.
    rest: Bytes,
    taken_bytes: u64,
}

impl Sent {
    /// The next bytes: one at least, and `most` at most.
    async fn next(&mut self, most: u64) -> Result<Bytes, ApiError> {
        while self.rest.is_empty() {
            self.rest = self.receiver.next(self.taken_bytes).await?.ok_or_else(|| {
                ApiError::new(
                    Code::IncompleteBody,
                    "the body is shorter than its Content-Length: nothing was kept",
                )
            })?;
        }
        let length = usize::try_from(most).unwrap_or(usize::MAX).min(self.rest.len());
        self.taken_bytes += length as u64;
        Ok(self.rest.split_to(length))
    }
}
