//! Tries with a small object what a bucket and its credentials must allow.

use std::time::Duration;

use bytes::BytesMut;
use cloakroom_storage::store::StoreError;
use futures_util::TryStreamExt as _;
use object_store::UpdateVersion;
use object_store::path::Path;
use tokio::time::{Instant, timeout_at};

use super::api::Answer;
use super::calls::{Bucket, PATIENCE};
use super::failure::CallFailure;

/// A bucket that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The credentials lack a right.
    #[error("the credentials do not allow to {what} ({right}) in {store}")]
    Right {
        what: &'static str,
        right: &'static str,
        store: String,
        #[source]
        source: StoreError,
    },
    /// The store does not do what a server needs.
    #[error("{store} {why}")]
    Unfit {
        store: String,
        why: String,
        /// The answer, if it is an error.
        #[source]
        source: Option<StoreError>,
    },
    /// The store failed in another way.
    #[error("trying {store} failed")]
    Store {
        store: String,
        #[source]
        source: StoreError,
    },
}

/// The names of the rights in a store's policies, in the order of [`Right`].
pub(super) type Rights = [&'static str; 5];

/// What the credentials must allow.
#[derive(Clone, Copy)]
pub(super) enum Right {
    Write,
    Read,
    List,
    /// To begin and abort uploads in parts.
    Abort,
    Delete,
}

/// What each right allows.
const ALLOWED: Rights =
    ["write objects", "read objects", "list objects", "begin and abort uploads", "delete objects"];

const IF_NONE_MATCH: &str = "an object must not exist yet (If-None-Match: *)";

pub(super) const NO_CONDITIONS: &str = "takes no writes under a condition (If-None-Match, If-Match), and without them two servers could \
                             use the same bundles: use a store, or a version of it, that has them";

const NO_ETAGS: &str = "answers without a strong ETag, and without it no version of an object can be named: look for a gateway \
                        that drops ETags, or makes them weak (W/)";

const CHANGING_ETAGS: &str = "answers another ETag each time for an object that has not changed, and so no version of it can be \
                              named: use another store, or look for a gateway that makes ETags of its own";

const INCONSISTENT: &str =
    "does not have what was written to it a moment ago: use a store with strong consistency";

const UNDELETED: &str = "still has an object of which it answered that it is deleted: look for a rule of the bucket, or a \
                         gateway, that keeps objects";

pub(super) const TEXT: &str = "cloakroom tries whether this bucket can be used\n";

const LISTS: &str = "lists by pages (ListObjectsV2)";

const ENDING_LISTS: &str = "lists by pages that end (ListObjectsV2)";

const RANGES: &str = "ranges of objects (Range)";

/// How many pages may have the two objects. Stores may return pages without any.
const MOST_PAGES: usize = 20;

/// How long a try may take. With the removal after it, that is less than a minute.
const LONGEST: Duration = Duration::from_secs(50);

/// How long the removal may take of what a try has left that failed.
pub(super) const REMOVAL: Duration = Duration::from_secs(5);

/// A try of one bucket.
pub(super) struct Probe<'a> {
    pub bucket: &'a Bucket,
    rights: Rights,
    /// The object that is tried, and another one, because Google lets one change once a second.
    pub path: Path,
    pub other: Path,
    ends_at: Instant,
}

impl<'a> Probe<'a> {
    pub fn new(bucket: &'a Bucket, rights: Rights) -> Self {
        let path = bucket.location.probe(rand::random());
        let other = Path::from(format!("{path}-parts"));
        Self { bucket, rights, path, other, ends_at: Instant::now() + LONGEST }
    }

    /// Does a try, and removes what it has left if it failed.
    pub async fn run(&'a self, work: impl Future<Output = Result<(), ProbeError>>) -> Result<(), ProbeError> {
        let tried = work.await;
        if tried.is_err() {
            let remove = |path| self.bucket.once("delete", path, REMOVAL, self.bucket.api.delete(path));
            // The error says what is wrong; these would say the same.
            let _ = tokio::join!(remove(&self.path), remove(&self.other));
        }
        tried
    }

    /// Does a part of a try, as far as there is time.
    pub async fn step<T>(
        &self,
        what: &'static str,
        work: impl Future<Output = Result<T, ProbeError>>,
    ) -> Result<T, ProbeError> {
        let Ok(done) = timeout_at(self.ends_at, work).await else {
            let seconds = LONGEST.as_secs();
            let why = format!("is too slow: after {seconds} s the try still waited for it to {what}");
            return Err(self.unfit(why, None));
        };
        done
    }

    pub async fn create(&self) -> Result<(), ProbeError> {
        let create = || self.bucket.api.create(&self.path, TEXT.into());
        match self.bucket.repeated("write", &self.path, PATIENCE, create).await {
            // An earlier attempt was done, and its answer got lost.
            Err(failed) if failed.is_conflict() => {}
            Err(failed) => return Err(self.refused_condition(failed).await),
            Ok(()) => {}
        }
        match self.bucket.repeated("write", &self.path, PATIENCE, create).await {
            Ok(()) => Err(self.ignores(IF_NONE_MATCH)),
            Err(failed) if failed.is_conflict() => Ok(()),
            Err(failed) => Err(self.refused_condition(failed).await),
        }
    }

    /// The error if a write under a condition is answered by `failed`: if the store takes the same write without it, it has no
    /// conditions.
    pub async fn refused_condition(&self, failed: CallFailure) -> ProbeError {
        if failed.may_be_unsupported() {
            let put = self.bucket.api.rewrite(&self.path, TEXT.into());
            if self.bucket.once("write", &self.path, PATIENCE, put).await.is_ok() {
                return self.unfit(NO_CONDITIONS, Some(failed));
            }
        }
        self.error(Right::Write, failed)
    }

    /// Reads an object, a range of it, and what the store says of it, as downloads do. Returns its version.
    pub async fn read(&self, path: &Path) -> Result<UpdateVersion, ProbeError> {
        let mut etags = Vec::new();
        for range in [None, Some(1..TEXT.len() as u64)] {
            let (start, is_range) = (range.as_ref().map_or(0, |_| 1), range.is_some());
            let read = self.bucket.repeated("read", path, PATIENCE, || async {
                let Answer { meta, pieces } = self.bucket.api.get(path, range.clone(), None).await?;
                Ok((meta.version.e_tag, pieces.try_collect::<BytesMut>().await?))
            });
            match read.await {
                Ok((etag, text)) if text == TEXT[start..] => etags.push(etag),
                Ok(_) if !is_range => return Err(self.unfit(INCONSISTENT, None)),
                Ok(_) => return Err(self.lacks(RANGES, None)),
                Err(failed) if is_range && failed.is_unclear() => {
                    return Err(self.lacks(RANGES, Some(failed)));
                }
                Err(failed) => return Err(self.error(Right::Read, failed)),
            }
        }
        let found = self.bucket.repeated("look at", path, PATIENCE, || self.bucket.api.head(path)).await;
        let version = found.map_err(|failed| self.error(Right::Read, failed))?.version;
        etags.push(version.e_tag.clone());
        if etags.iter().any(|etag| etag.as_ref().is_none_or(|etag| etag.starts_with("W/"))) {
            return Err(self.unfit(NO_ETAGS, None));
        }
        etags.dedup();
        if etags.len() > 1 { Err(self.unfit(CHANGING_ETAGS, None)) } else { Ok(version) }
    }

    /// Lists what was `written`, by pages of one object where the store has pages.
    async fn list(&self, written: &[&Path]) -> Result<(), ProbeError> {
        // Without its last digit: the library leaves out what is named as the prefix.
        let name: &str = self.path.as_ref();
        let prefix = &name[..name.len() - 1];
        let (mut listed, mut token) = (Vec::new(), None);
        for _ in 0..MOST_PAGES {
            let page = || self.bucket.api.list(prefix, token.clone(), Some(1));
            let page = self.bucket.repeated("list", &self.path, PATIENCE, page).await;
            let page = page.map_err(|failed| self.lack_or_error(LISTS, Right::List, failed))?;
            listed.extend(page.objects.into_iter().map(|found| found.path));
            token = page.token;
            if token.is_none() {
                break;
            }
        }
        match written.iter().filter(|path| listed.contains(path)).count() {
            found if found == written.len() && token.is_none() => Ok(()),
            found if found == written.len() => Err(self.lacks(ENDING_LISTS, None)),
            0 => Err(self.unfit(INCONSISTENT, None)),
            _ => Err(self.lacks(LISTS, None)),
        }
    }

    /// Without the right to list, S3 answers 403 in place of 404, and nothing can be known to be absent.
    async fn delete(&self, path: &Path) -> Result<(), ProbeError> {
        match self.bucket.repeated("delete", path, PATIENCE, || self.bucket.api.delete(path)).await {
            // An earlier attempt was done, or the store says so of each deletion: the next answer tells.
            Err(failed) if failed.is_absence() => {}
            deleted => deleted.map_err(|failed| self.error(Right::Delete, failed))?,
        }
        match self.bucket.repeated("look at", path, PATIENCE, || self.bucket.api.head(path)).await {
            Err(failed) if failed.is_absence() => Ok(()),
            Err(failed) => Err(self.error(Right::List, failed)),
            Ok(_) => Err(self.unfit(UNDELETED, None)),
        }
    }

    fn store(&self) -> String {
        self.bucket.location.to_string()
    }

    pub fn unfit(&self, why: impl Into<String>, answer: Option<CallFailure>) -> ProbeError {
        ProbeError::Unfit { store: self.store(), why: why.into(), source: answer.map(Into::into) }
    }

    pub fn ignores(&self, condition: &'static str) -> ProbeError {
        let why = format!(
            "ignores the condition that {condition}, and without it two servers could use the same bundles: use a store that \
             checks it"
        );
        self.unfit(why, None)
    }

    fn lacks(&self, what: &'static str, answer: Option<CallFailure>) -> ProbeError {
        let why =
            format!("has no {what}, and cloakroom needs them: use another store, or a later version of it");
        self.unfit(why, answer)
    }

    pub fn lack_or_error(&self, what: &'static str, right: Right, failed: CallFailure) -> ProbeError {
        if failed.may_be_unsupported() && !failed.is_explained() {
            return self.lacks(what, Some(failed));
        }
        self.error(right, failed)
    }

    pub fn error(&self, right: Right, failed: CallFailure) -> ProbeError {
        let (what, right) = (ALLOWED[right as usize], self.rights[right as usize]);
        let is_explained = failed.is_explained();
        match (self.store(), StoreError::from(failed)) {
            (store, source @ StoreError::Denied(_)) if !is_explained => {
                ProbeError::Right { what, right, store, source }
            }
            (store, source) => ProbeError::Store { store, source },
        }
    }

    /// The end of each try, with what was `written`.
    pub async fn list_and_delete(&self, written: &[&Path]) -> Result<(), ProbeError> {
        self.step("list objects", self.list(written)).await?;
        for path in written {
            self.step("delete an object", self.delete(path)).await?;
        }
        Ok(())
    }
}
