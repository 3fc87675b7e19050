//! Lists the blobs of a bucket, page by page.

use cloakroom_core::resource::BlobKey;
use cloakroom_storage::store::{BlobFacts, StoreError};
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::ObjectMeta;
use object_store::list::PaginatedListOptions;

use super::calls::{Bucket, PATIENCE, facts};

/// All blobs, in no order.
pub(super) fn blobs(bucket: &Bucket) -> BoxStream<'_, Result<(BlobKey, BlobFacts), StoreError>> {
    let pages = stream::try_unfold(Some(None), move |next: Option<Option<String>>| async move {
        match next {
            None => Ok(None),
            Some(token) => page(bucket, token).await.map(Some),
        }
    });
    pages
        .map_ok(|page| stream::iter(page.into_iter().filter_map(|found| blob(&found)).map(Ok)))
        .try_flatten()
        .boxed()
}

/// A page, and how to get the next one: `None` if there is none.
async fn page(
    bucket: &Bucket,
    token: Option<String>,
) -> Result<(Vec<ObjectMeta>, Option<Option<String>>), StoreError> {
    let folder = bucket.location.blobs();
    let prefix = format!("{folder}/");
    let ask = || {
        let options = PaginatedListOptions { page_token: token.clone(), ..PaginatedListOptions::default() };
        bucket.api.list_paginated(Some(&prefix), options)
    };
    let page = bucket.repeated("list", &folder, PATIENCE, ask).await?;
    Ok((page.result.objects, page.page_token.map(Some)))
}

/// The blob that the object is; `None` if another program has written it.
fn blob(found: &ObjectMeta) -> Option<(BlobKey, BlobFacts)> {
    let name = found.location.as_ref().rsplit('/').next()?;
    Some((BlobKey::parse(name).ok()?, facts(found)))
}
