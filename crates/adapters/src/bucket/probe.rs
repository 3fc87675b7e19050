//! Tries with a small object what a bucket and its credentials must allow.

use bytes::BytesMut;
use cloakroom_storage::store::StoreError;
use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{MultipartId, PutMode};

use super::BucketStore;
use super::answer::Failure;
use super::api::Objects;
use super::calls::{Backend, Bucket, PATIENCE};
use super::conditions::Found;
use super::location::Kind;

/// A bucket that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The credentials lack a right.
    #[error("the credentials do not allow to {what} ({right}) in {store}")]
    Right {
        /// What they do not allow.
        what: &'static str,
        /// The right, as policies name it.
        right: &'static str,
        /// The store.
        store: String,
        /// The answer.
        #[source]
        source: StoreError,
    },
    /// The store writes an object although the condition for that does not hold.
    #[error(
        "{store} ignores the condition that {condition}, and without it two servers could use the same bundles: use a store \
         that checks it"
    )]
    Ignored {
        /// The store.
        store: String,
        /// The condition, in words and as a header.
        condition: &'static str,
    },
    /// The store takes no conditions.
    #[error(
        "{store} takes no writes under a condition (If-None-Match, If-Match), and without them two servers could use the same \
         bundles: use a store, or a version of it, that has them"
    )]
    NoConditions {
        /// The store.
        store: String,
        /// The answer; `None` if the condition held, and the store denied that.
        #[source]
        source: Option<StoreError>,
    },
    /// The store lacks a kind of request.
    #[error("{store} has no {what}, and cloakroom needs them: use another store, or a later version of it")]
    Lacks {
        /// The store.
        store: String,
        /// The kind of request, as S3 names it.
        what: &'static str,
        /// The answer; `None` if the store answers as if it had been asked something else.
        #[source]
        source: Option<StoreError>,
    },
    /// The store does not make an object of the parts that it took.
    #[error(
        "{store} cannot complete an upload in parts, and all large bundles are such uploads; if the rest of this line does not \
         say why, look for a gateway that drops or changes the ETags of parts"
    )]
    Parts {
        /// The store.
        store: String,
        /// The failure.
        #[source]
        source: StoreError,
    },
    /// The store returns other bytes than were written, or does not list them.
    #[error("{0} does not have what was written to it a moment ago: use a store with strong consistency")]
    Consistency(String),
    /// The store failed in another way.
    #[error("trying {store} failed")]
    Store {
        /// The store.
        store: String,
        /// The failure.
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

const TEXT: &str = "cloakroom tries whether this bucket can be used\n";

const LISTS: &str = "lists by pages (ListObjectsV2)";

const RANGES: &str = "ranges of objects (Range)";

const UPLOADS_IN_PARTS: &str = "uploads in parts (CreateMultipartUpload)";

/// How many pages may have the two objects. Stores may return pages without any.
const MOST_PAGES: usize = 20;

impl BucketStore {
    /// Tries all that a server does in its bucket, and removes what it made for that.
    pub async fn probe(&self) -> Result<(), ProbeError> {
        let bucket = &*self.0;
        let path = bucket.location.probe(rand::random());
        // Another object, because Google lets one change once a second.
        let in_parts = Path::from(format!("{path}-parts"));
        let tried = Probe { bucket, path: &path, in_parts: &in_parts }.run().await;
        if tried.is_err() {
            for path in [&path, &in_parts] {
                // The error says what is wrong; this one would say the same.
                let _ = bucket.once("delete", path, PATIENCE, bucket.delete(path)).await;
            }
        }
        tried
    }
}

struct Probe<'a> {
    bucket: &'a Bucket,
    path: &'a Path,
    in_parts: &'a Path,
}

impl Probe<'_> {
    async fn run(&self) -> Result<(), ProbeError> {
        let (api, path) = (&self.bucket.api, self.path);
        let create = || api.create(path, TEXT.into());
        match self.bucket.repeated("write", path, PATIENCE, create).await {
            // An earlier attempt was done, and its answer got lost.
            Err(failed) if failed.is_conflict() => {}
            Err(failed) => return Err(self.refused_condition(failed).await),
            Ok(()) => {}
        }
        match self.bucket.repeated("write", path, PATIENCE, create).await {
            Ok(()) => return Err(self.ignores(IF_NONE_MATCH)),
            Err(failed) if failed.is_conflict() => {}
            Err(failed) => return Err(self.refused_condition(failed).await),
        }
        // Before the next step, which blames the right to write.
        self.read(path).await?;
        let mut written = vec![path];
        if let Backend::Objects(objects) = &self.bucket.backend {
            self.replace(&**objects).await?;
            self.abort_upload(&**objects).await?;
            self.complete_upload(&**objects).await?;
            self.read(self.in_parts).await?;
            written.push(self.in_parts);
        }
        self.list(&written).await?;
        for path in written {
            self.delete(path).await?;
        }
        Ok(())
    }

    async fn replace(&self, objects: &dyn Objects) -> Result<(), ProbeError> {
        match self.bucket.find_form(objects, self.path, TEXT).await {
            Ok(Found::Form(_)) => Ok(()),
            Ok(Found::Ignored) => Err(self.ignores(IF_MATCH)),
            Ok(Found::NeverHolds) => Err(ProbeError::NoConditions { store: self.store(), source: None }),
            Err(failed) => Err(self.refused_condition(failed).await),
        }
    }

    /// The error if a write under a condition is answered by `failed`: if the store takes the same write without it, it has no
    /// conditions.
    async fn refused_condition(&self, failed: Failure) -> ProbeError {
        if let Backend::Objects(objects) = &self.bucket.backend
            && failed.may_be_unsupported()
        {
            let put = async { objects.put_opts(self.path, TEXT.into(), PutMode::Overwrite.into()).await };
            if self.bucket.once("write", self.path, PATIENCE, put).await.is_ok() {
                return ProbeError::NoConditions { store: self.store(), source: Some(failed.into()) };
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
            let length = TEXT.len() as u64;
            self.bucket.committed("complete the upload of", self.in_parts, length, PATIENCE, complete).await
        };
        let completed: Result<(), StoreError> = completed.await;
        if completed.is_err() {
            // The error says what is wrong.
            let abort = objects.abort_multipart(self.in_parts, &id);
            let _ = self.bucket.once("abort the upload of", self.in_parts, PATIENCE, abort).await;
        }
        completed.map_err(|source| match source {
            StoreError::Fault(_) | StoreError::Unavailable(_) => {
                ProbeError::Parts { store: self.store(), source }
            }
            source => ProbeError::Store { store: self.store(), source },
        })
    }

    /// Reads an object, and then a range of it, as downloads do.
    async fn read(&self, path: &Path) -> Result<(), ProbeError> {
        for range in [None, Some(1..TEXT.len() as u64)] {
            let (start, is_range) = (range.as_ref().map_or(0, |_| 1), range.is_some());
            let read = self.bucket.repeated("read", path, PATIENCE, || async {
                self.bucket.api.get(path, range.clone(), None).await?.pieces.try_collect::<BytesMut>().await
            });
            match read.await {
                Ok(text) if text == TEXT[start..] => {}
                Ok(_) if !is_range => return Err(ProbeError::Consistency(self.store())),
                Ok(_) => return Err(ProbeError::Lacks { store: self.store(), what: RANGES, source: None }),
                Err(failed) if is_range && failed.is_unclear() => {
                    let (store, source) = (self.store(), Some(failed.into()));
                    return Err(ProbeError::Lacks { store, what: RANGES, source });
                }
                Err(failed) => return Err(self.error(Right::Read, failed)),
            }
        }
        Ok(())
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
            found if found == written.len() => Ok(()),
            0 => Err(ProbeError::Consistency(self.store())),
            _ => Err(ProbeError::Lacks { store: self.store(), what: LISTS, source: None }),
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
            Ok(_) => Err(ProbeError::Consistency(self.store())),
        }
    }

    fn store(&self) -> String {
        self.bucket.location.to_string()
    }

    fn ignores(&self, condition: &'static str) -> ProbeError {
        ProbeError::Ignored { store: self.store(), condition }
    }

    fn lack_or_error(&self, what: &'static str, right: Right, failed: Failure) -> ProbeError {
        if failed.may_be_unsupported() && !failed.is_explained() {
            return ProbeError::Lacks { store: self.store(), what, source: Some(failed.into()) };
        }
        self.error(right, failed)
    }

    fn error(&self, right: Right, failed: Failure) -> ProbeError {
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
