//! Tries with a small object what a bucket and its credentials must allow.

use std::time::Duration;

use bytes::BytesMut;
use cloakroom_storage::store::StoreError;
use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{MultipartId, PutMode, UpdateVersion};
use tokio::time::{Instant, timeout_at};

use super::BucketStore;
use super::answer::CallFailure;
use super::api::{Answer, Objects};
use super::calls::{Backend, Bucket, PATIENCE};
use super::conditions::Found;
use super::location::Kind;

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

/// What the credentials must allow.
#[derive(Clone, Copy)]
enum Right {
    Write,
    Read,
    List,
    /// To begin and abort uploads in parts. In Azure that is a part of writing.
    Abort,
    Delete,
}

impl Right {
    /// What it allows, and its name in policies of a kind of buckets.
    fn describe(self, kind: Kind) -> (&'static str, &'static str) {
        let (what, s3, azure, google) = match self {
            Self::Write => ("write objects", "s3:PutObject", "blobs/write", "storage.objects.create"),
            Self::Read => ("read objects", "s3:GetObject", "blobs/read", "storage.objects.get"),
            Self::List => ("list objects", "s3:ListBucket", "blobs/read", "storage.objects.list"),
            Self::Abort => (
                "begin and abort uploads",
                "s3:PutObject and s3:AbortMultipartUpload",
                "blobs/write",
                "storage.multipartUploads.create and .abort",
            ),
            Self::Delete => ("delete objects", "s3:DeleteObject", "blobs/delete", "storage.objects.delete"),
        };
        match kind {
            Kind::S3 => (what, s3),
            Kind::Azure => (what, azure),
            Kind::Google => (what, google),
            Kind::Hdfs { .. } => (what, "the user needs all rights to that folder"),
        }
    }
}

const IF_NONE_MATCH: &str = "an object must not exist yet (If-None-Match: *)";

const IF_MATCH: &str = "an object must be a certain version (If-Match)";

const NO_CONDITIONS: &str = "takes no writes under a condition (If-None-Match, If-Match), and without them two servers could \
                             use the same bundles: use a store, or a version of it, that has them";

const NO_ETAGS: &str = "answers without a strong ETag, and without it no version of an object can be named: look for a gateway \
                        that drops ETags, or makes them weak (W/)";

const CHANGING_ETAGS: &str = "answers another ETag each time for an object that has not changed, and so no version of it can be \
                              named: use another store, or look for a gateway that makes ETags of its own";

const CHANGED_PARTS: &str = "cannot complete an upload in parts, and all large bundles are such uploads: look for a gateway \
                             that drops or changes the ETags of parts";

const INCONSISTENT: &str =
    "does not have what was written to it a moment ago: use a store with strong consistency";

const UNDELETED: &str = "still has an object of which it answered that it is deleted: look for a rule of the bucket, or a \
                         gateway, that keeps objects";

const TEXT: &str = "cloakroom tries whether this bucket can be used\n";

const LISTS: &str = "lists by pages (ListObjectsV2)";

const ENDING_LISTS: &str = "lists by pages that end (ListObjectsV2)";

const RANGES: &str = "ranges of objects (Range)";

const UPLOADS_IN_PARTS: &str = "uploads in parts (CreateMultipartUpload)";

/// How many pages may have the two objects. Stores may return pages without any.
const MOST_PAGES: usize = 20;

/// How long a try may take. With the removal after it, that is less than a minute.
const LONGEST: Duration = Duration::from_secs(50);

/// How long the removal may take of what a try has left that failed.
const REMOVAL: Duration = Duration::from_secs(5);

impl BucketStore {
    /// Tries all that a server does in its bucket, and removes what it made for that.
    pub async fn probe(&self) -> Result<(), ProbeError> {
        let bucket = &*self.0;
        let path = bucket.location.probe(rand::random());
        // Another object, because Google lets one change once a second.
        let in_parts = Path::from(format!("{path}-parts"));
        let ends_at = Instant::now() + LONGEST;
        let tried = Probe { bucket, path: &path, in_parts: &in_parts, ends_at }.run().await;
        if tried.is_err() {
            let remove = |path| bucket.once("delete", path, REMOVAL, bucket.delete(path));
            // The error says what is wrong; these would say the same.
            let _ = tokio::join!(remove(&path), remove(&in_parts));
        }
        tried
    }
}

struct Probe<'a> {
    bucket: &'a Bucket,
    path: &'a Path,
    in_parts: &'a Path,
    ends_at: Instant,
}

impl Probe<'_> {
    async fn run(&self) -> Result<(), ProbeError> {
        self.step("write an object once only", self.create()).await?;
        // Before the next step, which blames the right to write.
        let version = self.step("read an object", self.read(self.path)).await?;
        self.tell_of_versions(&version);
        let mut written = vec![self.path];
        if let Backend::Objects(objects) = &self.bucket.backend {
            self.step("replace an object under a condition", self.replace(&**objects)).await?;
            self.step("abort an upload in parts", self.abort_upload(&**objects)).await?;
            self.step("complete an upload in parts", self.complete_upload(&**objects)).await?;
            written.push(self.in_parts);
        }
        self.step("list objects", self.list(&written)).await?;
        for path in &written {
            self.step("delete an object", self.delete(path)).await?;
        }
        Ok(())
    }

    /// Does a part of the try, as far as there is time.
    async fn step<T>(
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

    /// Warns of a bucket that keeps versions. That is allowed, because a rule of the bucket can remove them.
    fn tell_of_versions(&self, UpdateVersion { version, .. }: &UpdateVersion) {
        // Google has a version for each object. Elsewhere `null` names the one object of a bucket that keeps none any more.
        let keeps =
            self.bucket.location.kind() != Kind::Google && version.as_ref().is_some_and(|id| id != "null");
        if keeps {
            tracing::warn!(
                "{} keeps versions, or has object lock: deleted bundles stay there, and are paid for, until a lifecycle rule of \
                 the bucket removes noncurrent versions (docs/buckets.md)",
                self.store()
            );
        }
    }

    async fn create(&self) -> Result<(), ProbeError> {
        let create = || self.bucket.api.create(self.path, TEXT.into());
        match self.bucket.repeated("write", self.path, PATIENCE, create).await {
            // An earlier attempt was done, and its answer got lost.
            Err(failed) if failed.is_conflict() => {}
            Err(failed) => return Err(self.refused_condition(failed).await),
            Ok(()) => {}
        }
        match self.bucket.repeated("write", self.path, PATIENCE, create).await {
            Ok(()) => Err(self.ignores(IF_NONE_MATCH)),
            Err(failed) if failed.is_conflict() => Ok(()),
            Err(failed) => Err(self.refused_condition(failed).await),
        }
    }

    async fn replace(&self, objects: &dyn Objects) -> Result<(), ProbeError> {
        match self.bucket.find_form(objects, self.path, TEXT).await {
            Ok(Found::Form(_)) => Ok(()),
            Ok(Found::Ignored) => Err(self.ignores(IF_MATCH)),
            Ok(Found::NeverHolds) => Err(self.unfit(NO_CONDITIONS, None)),
            Err(failed) => Err(self.refused_condition(failed).await),
        }
    }

    /// The error if a write under a condition is answered by `failed`: if the store takes the same write without it, it has no
    /// conditions.
    async fn refused_condition(&self, failed: CallFailure) -> ProbeError {
        if let Backend::Objects(objects) = &self.bucket.backend
            && failed.may_be_unsupported()
        {
            let put = async { objects.put_opts(self.path, TEXT.into(), PutMode::Overwrite.into()).await };
            if self.bucket.once("write", self.path, PATIENCE, put).await.is_ok() {
                return self.unfit(NO_CONDITIONS, Some(failed));
            }
        }
        self.error(Right::Write, failed)
    }

    async fn begin_upload(&self, objects: &dyn Objects) -> Result<MultipartId, ProbeError> {
        let create = || objects.create_multipart(self.in_parts);
        let begun = self.bucket.repeated("begin the upload of", self.in_parts, PATIENCE, create).await;
        begun.map_err(|failed| self.lack_or_error(UPLOADS_IN_PARTS, Right::Abort, failed))
    }

    async fn abort_upload(&self, objects: &dyn Objects) -> Result<(), ProbeError> {
        let id = self.begin_upload(objects).await?;
        let abort = || objects.abort_multipart(self.in_parts, &id);
        let aborted = self.bucket.repeated("abort the upload of", self.in_parts, PATIENCE, abort).await;
        aborted.map_err(|failed| self.error(Right::Abort, failed))
    }

    async fn complete_upload(&self, objects: &dyn Objects) -> Result<(), ProbeError> {
        let id = self.begin_upload(objects).await?;
        let completed = async {
            let put = || objects.put_part(self.in_parts, &id, 0, TEXT.into());
            let part = self.bucket.repeated("write a part of", self.in_parts, PATIENCE, put).await?;
            let complete = || objects.complete_multipart(self.in_parts, &id, vec![part.clone()]);
            self.bucket.repeated("complete the upload of", self.in_parts, PATIENCE, complete).await
        };
        let failed = match completed.await {
            Ok(_) => return self.read(self.in_parts).await.map(drop),
            // An earlier attempt was done, and its answer got lost.
            Err(failed) if failed.is_absence() && self.read(self.in_parts).await.is_ok() => return Ok(()),
            Err(failed) => failed,
        };
        // The error says what is wrong.
        let abort = objects.abort_multipart(self.in_parts, &id);
        let _ = self.bucket.once("abort the upload of", self.in_parts, REMOVAL, abort).await;
        if failed.is_unclear() || failed.is_of_a_part() {
            return Err(self.unfit(CHANGED_PARTS, Some(failed)));
        }
        Err(self.error(Right::Write, failed))
    }

    /// Reads an object, a range of it, and what the store says of it, as downloads do. Returns its version.
    async fn read(&self, path: &Path) -> Result<UpdateVersion, ProbeError> {
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
            let page = self.bucket.repeated("list", self.path, PATIENCE, page).await;
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
        match self.bucket.repeated("delete", path, PATIENCE, || self.bucket.delete(path)).await {
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

    fn unfit(&self, why: impl Into<String>, answer: Option<CallFailure>) -> ProbeError {
        ProbeError::Unfit { store: self.store(), why: why.into(), source: answer.map(Into::into) }
    }

    fn ignores(&self, condition: &'static str) -> ProbeError {
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

    fn lack_or_error(&self, what: &'static str, right: Right, failed: CallFailure) -> ProbeError {
        if failed.may_be_unsupported() && !failed.is_explained() {
            return self.lacks(what, Some(failed));
        }
        self.error(right, failed)
    }

    fn error(&self, right: Right, failed: CallFailure) -> ProbeError {
        let (what, right) = right.describe(self.bucket.location.kind());
        let is_explained = failed.is_explained();
        match (self.store(), StoreError::from(failed)) {
            (store, source @ StoreError::Denied(_)) if !is_explained => {
                ProbeError::Right { what, right, store, source }
            }
            (store, source) => ProbeError::Store { store, source },
        }
    }
}
