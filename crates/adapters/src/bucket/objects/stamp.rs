//! The stamp: the one object that is ever replaced, and only if it is the version that was seen. Stores differ in how they take its
//! `ETag`.

use bytes::BytesMut;
use cloakroom_storage::store::StoreError;
use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{Attribute, Attributes, Error, PutMode, PutOptions, Result, UpdateVersion};

use super::super::api::Answer;
use super::super::backend::Stamp;
use super::super::calls::{Attempts, Bucket, PATIENCE};
use super::super::failure::CallFailure;
use super::Objects;

/// No stamp is longer than this, in bytes.
const LONGEST: u64 = 200;

/// How a store takes an `ETag` in `If-Match`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As it gave it: with quotation marks, as HTTP has it.
    AsGiven,
    /// Without them. Ceph's radosgw 16 compares the header byte by byte with the hash
    /// (<https://github.com/slatedb/slatedb/issues/1818>).
    Bare,
}

/// What a try has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The store checks the version.
    Holds,
    /// The store replaces an object that is another version.
    Ignored,
    /// The store replaces no object, although it is the version that was seen.
    NeverHolds,
}

impl Form {
    const ALL: [Self; 2] = [Self::AsGiven, Self::Bare];

    /// The condition that the object is `version`.
    fn condition(self, version: UpdateVersion) -> PutMode {
        PutMode::Update(match self {
            Self::AsGiven => version,
            Self::Bare => UpdateVersion { e_tag: version.e_tag.map(bare), ..version },
        })
    }
}

/// The stamp at `path`; `None` if there is none.
pub(super) async fn read(bucket: &Bucket, path: &Path) -> Result<Option<Stamp>, StoreError> {
    let found = || {
        bucket.repeated("read", path, PATIENCE, || async {
            let Answer { meta, pieces } = bucket.api.get(path, None, None).await?;
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
            let why = format!("cannot read {}: it is too long", bucket.location.shown(path));
            Err(StoreError::Fault(why.into()))
        }
        Ok((Some(text), version)) => {
            Ok(Some(Stamp { text: String::from_utf8_lossy(text.trim_ascii_end()).into_owned(), version }))
        }
        Err(failure) if failure.is_absent_object() => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}

impl Objects {
    /// Makes `by` the stamp at `path` if `seen` is the one there.
    pub(super) async fn swap(&self, path: &Path, seen: Option<Stamp>, by: &str) -> Result<()> {
        let put = async |mode: PutMode| {
            // No cache on the way may keep it.
            let attributes = Attributes::from_iter([(Attribute::CacheControl, "no-store")]);
            let options = PutOptions { mode, attributes, ..PutOptions::default() };
            self.library.put_opts(path, format!("{by}\n").into(), options).await.map(drop)
        };
        let Some(Stamp { version, .. }) = seen else { return put(PutMode::Create).await };
        if let Some(form) = self.form.get() {
            return put(form.condition(version)).await;
        }
        // The bucket was full at the start, so that no try has found the form.
        match put(Form::AsGiven.condition(version.clone())).await {
            Err(error) if is_conflict(&error) => put(Form::Bare.condition(version)).await,
            done => done,
        }
    }

    /// Finds the form that the store takes, and remembers it. For that it replaces the object at `path` by `text`. The object must
    /// exist, and no other program may write it.
    pub(super) async fn find_form(
        &self,
        bucket: &Bucket,
        path: &Path,
        text: &'static str,
    ) -> Result<Found, CallFailure> {
        let version = async || {
            let found = bucket.repeated("look at", path, PATIENCE, || bucket.api.head(path)).await;
            found.map(|found| found.version)
        };
        let seen = version().await?;
        let put = |mode: PutMode| {
            bucket.repeated("replace", path, PATIENCE, move || {
                let mode = mode.clone();
                async move { self.library.put_opts(path, text.into(), mode.into()).await.map(drop) }
            })
        };
        for form in Form::ALL {
            match put(form.condition(other_than(&seen))).await {
                Ok(()) => return Ok(Found::Ignored),
                Err(failed) if failed.is_conflict() => {}
                Err(failed) => return Err(failed),
            }
            match put(form.condition(seen.clone())).await {
                Ok(()) => return Ok(self.takes(form)),
                // An earlier attempt was done, and its answer got lost.
                Err(failed) if failed.is_conflict() && version().await?.e_tag != seen.e_tag => {
                    return Ok(self.takes(form));
                }
                Err(failed) if failed.is_conflict() => {}
                Err(failed) => return Err(failed),
            }
        }
        Ok(Found::NeverHolds)
    }

    fn takes(&self, form: Form) -> Found {
        if form == Form::Bare {
            tracing::info!("the store takes ETags in conditions without quotation marks only");
        }
        // A later try of the same store finds the same.
        self.form.get_or_init(|| form);
        Found::Holds
    }
}

fn is_conflict(error: &Error) -> bool {
    CallFailure::new("write", "the stamp", error).is_conflict()
}

fn bare(etag: String) -> String {
    let hash = etag.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    hash.map(str::to_owned).unwrap_or(etag)
}

/// A version that no object has, and that looks like `version`. Google's are numbers.
fn other_than(version: &UpdateVersion) -> UpdateVersion {
    let zeros = |etag: &String| {
        etag.chars().map(|char| if char.is_ascii_alphanumeric() { '0' } else { char }).collect()
    };
    let e_tag = version.e_tag.as_ref().map(zeros);
    UpdateVersion { e_tag, version: version.version.as_ref().map(|_| "1".to_owned()) }
}
