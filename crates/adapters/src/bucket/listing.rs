//! Lists the objects of a folder of a bucket, page by page.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cloakroom_core::resource::BlobKey;
use cloakroom_storage::store::{BlobFacts, StoreError};
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;

use super::api::Meta;
use super::backend::Backend;
use super::calls::{Bucket, PATIENCE};

/// How many pages in a row may bring nothing new. Some stores send pages without objects while they pass over deleted ones.
const MOST_IDLE_PAGES: u32 = 1000;

/// All blobs, in no order.
pub(super) fn blobs<'a>(
    bucket: &'a Bucket,
    backend: &'a dyn Backend,
) -> BoxStream<'a, Result<(BlobKey, BlobFacts), StoreError>> {
    let objects = stream::once(async {
        backend.clean(bucket).await;
        objects(bucket, bucket.location.blobs())
    });
    let foreign = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&foreign);
    let blobs = objects.flatten().try_filter_map(move |found| {
        let blob = blob(&found);
        counted.fetch_add(u64::from(blob.is_none()), Ordering::Relaxed);
        ready(Ok(blob))
    });
    let end = stream::once(async move { tell_of_foreign(bucket, foreign.load(Ordering::Relaxed)) });
    blobs.chain(end.filter_map(async |()| None)).boxed()
}

/// Says how many objects of other programs are among the blobs, if their number has changed.
fn tell_of_foreign(bucket: &Bucket, count: u64) {
    if bucket.foreign.swap(count, Ordering::Relaxed) != count {
        tracing::warn!(
            objects = count,
            "objects that other programs made are among the bundles in {}: they are left alone",
            bucket.location.shown(&bucket.location.blobs())
        );
    }
}

/// All objects of a folder, in no order.
pub(super) fn objects(bucket: &Bucket, folder: Path) -> BoxStream<'_, Result<Meta, StoreError>> {
    let pages = stream::try_unfold(Some(Listing::new(folder)), move |next| async move {
        match next {
            None => Ok(None),
            Some(listing) => listing.page(bucket).await.map(Some),
        }
    });
    pages.map_ok(|page| stream::iter(page.into_iter().map(Ok))).try_flatten().boxed()
}

/// A listing that goes on.
struct Listing {
    folder: Path,
    token: Option<String>,
    /// The first object of the last page.
    first: Option<Path>,
    /// How many pages in a row have brought nothing new.
    idle: u32,
}

impl Listing {
    fn new(folder: Path) -> Self {
        Self { folder, token: None, first: None, idle: 0 }
    }

    /// The next page, and the rest: `None` if there is none.
    async fn page(mut self, bucket: &Bucket) -> Result<(Vec<Meta>, Option<Self>), StoreError> {
        let prefix = format!("{}/", self.folder);
        let ask = || bucket.api.list(&prefix, self.token.clone(), None);
        let page = bucket.repeated("list", &self.folder, PATIENCE, ask).await?;
        let first = page.objects.first().map(|found| found.path.clone());
        let is_new = first.is_some() && first != self.first && page.token != self.token;
        self.idle = if is_new { 0 } else { self.idle + 1 };
        if self.idle > MOST_IDLE_PAGES {
            let told = format!(
                "cannot list {}: {MOST_IDLE_PAGES} pages in a row had nothing new, and the store says that there are more",
                bucket.location.shown(&self.folder)
            );
            return Err(StoreError::Fault(told.into()));
        }
        (self.first, self.token) = (first, page.token);
        let is_over = self.token.is_none();
        Ok((page.objects, (!is_over).then_some(self)))
    }
}

/// The blob that the object is; `None` if another program has written it.
fn blob(found: &Meta) -> Option<(BlobKey, BlobFacts)> {
    let name = found.path.filename()?;
    Some((BlobKey::parse(name).ok()?, found.facts))
}
