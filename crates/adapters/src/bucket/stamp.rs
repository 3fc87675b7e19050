//! The stamp of a bucket: the one object that is ever replaced, and only under the condition that it is what was read.

use bytes::BytesMut;
use cloakroom_storage::store::StoreError;
use futures_util::TryStreamExt as _;
use object_store::{Attribute, Attributes, PutMode, PutOptions, UpdateVersion};

use super::answer::CallFailure;
use super::api::Answer;
use super::calls::{Attempts, Backend, Bucket, PATIENCE};
use super::conditions::Form;
use super::hdfs;

/// No stamp is longer than this, in bytes.
const LONGEST: u64 = 200;

/// The text of the stamp; `None` if there is none.
pub(super) async fn read(bucket: &Bucket) -> Result<Option<String>, StoreError> {
    Ok(versioned(bucket).await?.map(|(stamp, _)| stamp))
}

/// The stamp, and the version of its object. In HDFS the version is the stamp itself.
async fn versioned(bucket: &Bucket) -> Result<Option<(String, UpdateVersion)>, StoreError> {
    let path = bucket.location.stamp();
    if let Backend::Files(hdfs) = &bucket.backend {
        let stamp = hdfs::stamp::read(bucket, hdfs, &path).await?;
        return Ok(stamp.map(|stamp| (stamp, UpdateVersion { e_tag: None, version: None })));
    }
    let found = || {
        bucket.repeated("read", &path, PATIENCE, || async {
            let Answer { meta, pieces } = bucket.api.get(&path, None, None).await?;
            let is_short = meta.facts.size_bytes <= LONGEST;
            let text = if is_short { Some(pieces.try_collect::<BytesMut>().await?) } else { None };
            Ok((text, meta.version))
        })
    };
    let mut answered = found().await;
    // A bucket without a stamp has no ledger. Before that is concluded, it is asked once more.
    if answered.as_ref().is_err_and(CallFailure::is_absent_object) && Attempts::begin().another().await {
        answered = found().await;
    }
    match answered {
        Ok((None, _)) => {
            let why = format!("cannot read {}: it is too long", bucket.location.shown(&path));
            Err(StoreError::Fault(why.into()))
        }
        Ok((Some(text), version)) => {
            Ok(Some((String::from_utf8_lossy(text.trim_ascii_end()).into_owned(), version)))
        }
        Err(failure) if failure.is_absent_object() => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}

/// Replaces the stamp `seen`. Returns `false` if there is another one. No two calls may have the same text `by`.
pub(super) async fn replace(bucket: &Bucket, seen: Option<&str>, by: &str) -> Result<bool, StoreError> {
    let (path, text) = (bucket.location.stamp(), format!("{by}\n"));
    let (mut attempts, mut was_tried) = (Attempts::begin(), false);
    let mut form = bucket.form.get().copied().unwrap_or(Form::AsGiven);
    loop {
        let (stamp, version) = versioned(bucket).await?.unzip();
        if was_tried && stamp.as_deref() == Some(by) {
            return Ok(true);
        }
        if stamp.as_deref() != seen {
            return Ok(false);
        }
        let put = async {
            match &bucket.backend {
                Backend::Files(hdfs) => hdfs::stamp::swap(hdfs, &path, seen, by).await,
                Backend::Objects(objects) => {
                    let mode = version.map_or(PutMode::Create, |version| form.condition(version));
                    let options = PutOptions { mode, attributes: uncached(), ..PutOptions::default() };
                    objects.put_opts(&path, text.clone().into(), options).await.map(drop)
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

/// No cache on the way may keep it.
fn uncached() -> Attributes {
    Attributes::from_iter([(Attribute::CacheControl, "no-store")])
}
