//! Lists the objects of a folder of a bucket, page by page.

use cloakroom_core::resource::BlobKey;
use cloakroom_storage::store::{BlobFacts, StoreError};
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;

use super::api::Meta;
use super::calls::{Backend, Bucket, PATIENCE};
use super::hdfs;

/// All blobs, in no order.
pub(super) fn blobs(bucket: &Bucket) -> BoxStream<'_, Result<(BlobKey, BlobFacts), StoreError>> {
    let objects = stream::once(async {
        if let Backend::Files(hdfs) = &bucket.backend {
            hdfs::leftovers::remove(bucket, hdfs).await;
        }
        objects(bucket, bucket.location.blobs())
    });
    objects.flatten().try_filter_map(async |found| Ok(blob(&found))).boxed()
}

/// All objects of a folder, in no order.
pub(super) fn objects(bucket: &Bucket, folder: Path) -> BoxStream<'_, Result<Meta, StoreError>> {
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
) -> Result<(Vec<Meta>, Option<(Path, Option<String>)>), StoreError> {
    let prefix = format!("{folder}/");
    let ask = || bucket.api.list(&prefix, token.clone());
    let page = bucket.repeated("list", &folder, PATIENCE, ask).await?;
    Ok((page.objects, page.token.map(|token| (folder, Some(token)))))
}

/// The blob that the object is; `None` if another program has written it.
fn blob(found: &Meta) -> Option<(BlobKey, BlobFacts)> {
    let name = found.path.filename()?;
    Some((BlobKey::parse(name).ok()?, found.facts))
}
