//! The stamp of a store in a bucket: an object beside the blobs, replaced under a condition.

use bytes::BytesMut;
use cloakroom_storage::stamp::Stamp;
use cloakroom_storage::store::StoreError;
use futures_util::TryStreamExt as _;
use object_store::{PutMode, UpdateVersion};

use super::answer::Failure;
use super::api::Answer;
use super::calls::{Attempts, Backend, Bucket, PATIENCE};
use super::conditions::Form;
use super::hdfs;

/// No stamp is longer than this, in bytes.
const LONGEST: u64 = 200;

/// The stamp; `None` if the store belongs to no ledger.
pub(super) async fn read(bucket: &Bucket) -> Result<Option<Stamp>, StoreError> {
    Ok(versioned(bucket).await?.map(|(stamp, _)| stamp))
}

/// The stamp, and the version of its object. In HDFS the version is the stamp itself.
async fn versioned(bucket: &Bucket) -> Result<Option<(Stamp, UpdateVersion)>, StoreError> {
    let path = bucket.location.stamp();
    if let Backend::Files(hdfs) = &bucket.backend {
        let stamp = hdfs::stamp::read(bucket, hdfs, &path).await?;
        return Ok(stamp.map(|stamp| (stamp, UpdateVersion { e_tag: None, version: None })));
    }
    let unreadable =
        |why| StoreError::Fault(format!("cannot read {}: {why}", bucket.location.shown(&path)).into());
    let found = || {
        bucket.repeated("read", &path, PATIENCE, || async {
            let Answer { meta, pieces } = bucket.api.get(&path, None, None).await?;
            let is_short = meta.facts.size_bytes <= LONGEST;
            let text = if is_short { Some(pieces.try_collect::<BytesMut>().await?) } else { None };
            Ok((text, meta.version))
        })
    };
    let mut answered = found().await;
    // A store without a stamp belongs to no ledger. Before that is concluded, the store is asked once more.
    if answered.as_ref().is_err_and(Failure::is_absent_object) && Attempts::begin().another().await {
        answered = found().await;
    }
    match answered {
        Ok((None, _)) => Err(unreadable("it is too long")),
        Ok((Some(text), version)) => {
            let stamp = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
            Ok(Some((stamp.ok_or_else(|| unreadable("it is not written as cloakroom writes it"))?, version)))
        }
        Err(failure) if failure.is_absent_object() => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}

/// Replaces the stamp `seen`. Returns `false` if there is another one.
pub(super) async fn replace(bucket: &Bucket, seen: Option<Stamp>, by: Stamp) -> Result<bool, StoreError> {
    let (path, text) = (bucket.location.stamp(), format!("{by}\n"));
    let (mut attempts, mut was_tried) = (Attempts::begin(), false);
    let mut form = bucket.form.get().copied().unwrap_or(Form::AsGiven);
    loop {
        let (stamp, version) = versioned(bucket).await?.unzip();
        if was_tried && stamp == Some(by) {
            return Ok(true);
        }
        if stamp != seen {
            return Ok(false);
        }
        let put = async {
            match &bucket.backend {
                Backend::Files(hdfs) => hdfs::stamp::swap(hdfs, &path, stamp, by).await,
                Backend::Objects(objects) => {
                    let mode = version.map_or(PutMode::Create, |version| form.condition(version));
                    objects.put_opts(&path, text.clone().into(), mode.into()).await.map(drop)
                }
            }
        };
        was_tried = true;
        match bucket.once("write", &path, PATIENCE, put).await {
            Ok(()) => return Ok(true),
            // Another server was first, or the answer got lost: the next reading says it.
            Err(failure) if (failure.is_conflict() || failure.is_temporary()) && attempts.another().await => {
                // Or the bucket was full at the start, so that no try has found the form.
                if failure.is_conflict() && bucket.form.get().is_none() {
                    form = form.other();
                }
            }
            Err(failure) => return Err(failure.into()),
        }
    }
}
