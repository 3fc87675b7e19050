//! Lists the objects of a folder of a bucket, page by page.

use cloakroom_core::resource::BlobKey;
use cloakroom_storage::store::{BlobFacts, StoreError};
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::ObjectMeta;
use object_store::list::PaginatedListOptions;
use object_store::path::Path;

use super::calls::{Bucket, PATIENCE, facts};

/// All blobs, in no order.
pub(super) fn blobs(bucket: &Bucket) -> BoxStream<'_, Result<(BlobKey, BlobFacts), StoreError>> {
    let objects = objects(bucket, bucket.location.blobs());
    objects.try_filter_map(async |found| Ok(blob(&found))).boxed()
}

/// All objects of a folder, in no order.
pub(super) fn objects(bucket: &Bucket, folder: Path) -> BoxStream<'_, Result<ObjectMeta, StoreError>> {
    let pages = stream::try_unfold(Some((folder, None)), move |next| async move {
        match next {
            None => Ok(None),
            Some((folder, token)) => page(bucket, folder, token).await.map(Some),
        }
    });
    pages.map_ok(|page| stream::iter(page.into_iter().map(Ok))).try_flatten().boxed()
}

/// A page, and how to get the next one: `None` if there is none.
async fn page(
    bucket: &Bucket,
    folder: Path,
    token: Option<String>,
) -> Result<(Vec<ObjectMeta>, Option<(Path, Option<String>)>), StoreError> {
    let prefix = format!("{folder}/");
    let ask = || {
        let options = PaginatedListOptions { page_token: token.clone(), ..PaginatedListOptions::default() };
        bucket.api.list_paginated(Some(&prefix), options)
    };
    let page = bucket.repeated("list", &folder, PATIENCE, ask).await?;
    Ok((page.result.objects, page.page_token.map(|token| (folder, Some(token)))))
}

/// The blob that the object is; `None` if another program has written it.
fn blob(found: &ObjectMeta) -> Option<(BlobKey, BlobFacts)> {
    let name = found.location.filename()?;
    Some((BlobKey::parse(name).ok()?, facts(found)))
}
