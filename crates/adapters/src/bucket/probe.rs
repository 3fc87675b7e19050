//! Tries with a small object what a bucket and its credentials must allow.

use bytes::BytesMut;
use cloakroom_storage::store::StoreError;
use futures_util::TryStreamExt as _;
use object_store::PutMode;
use object_store::path::Path;

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

impl BucketStore {
    /// Tries all that a server does in its bucket, and removes what it made for that.
    pub async fn probe(&self) -> Result<(), ProbeError> {
        let bucket = &*self.0;
        let path = bucket.location.probe(rand::random());
        let tried = Probe { bucket, path: &path }.run().await;
        if tried.is_err() {
            // The error says what is wrong; this one would say the same.
            let _ = bucket.once("delete", &path, PATIENCE, bucket.delete(&path)).await;
        }
        tried
    }
}

struct Probe<'a> {
    bucket: &'a Bucket,
    path: &'a Path,
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
        if let Backend::Objects(objects) = &self.bucket.backend {
            self.replace(&**objects).await?;
        }
        self.read_and_list().await?;
        if let Backend::Objects(objects) = &self.bucket.backend {
            self.begin_and_abort(&**objects).await?;
        }
        let deleted = self.bucket.repeated("delete", path, PATIENCE, || self.bucket.delete(path)).await;
        deleted.map_err(|failed| self.error(Right::Delete, failed))?;
        self.ask_for_what_is_absent().await
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

    async fn begin_and_abort(&self, objects: &dyn Objects) -> Result<(), ProbeError> {
        // Another name, because Google lets one object change once a second.
        let path = &self.bucket.location.probe(rand::random());
        let create = || objects.create_multipart(path);
        let begun = self.bucket.repeated("begin the upload of", path, PATIENCE, create).await;
        let id = begun.map_err(|failed| self.error(Right::Abort, failed))?;
        let abort = || objects.abort_multipart(path, &id);
        let aborted = self.bucket.repeated("abort the upload of", path, PATIENCE, abort).await;
        aborted.map(drop).map_err(|failed| self.error(Right::Abort, failed))
    }

    async fn read_and_list(&self) -> Result<(), ProbeError> {
        let (api, path) = (&self.bucket.api, self.path);
        let read = self.bucket.repeated("read", path, PATIENCE, || async {
            api.get(path, None, None).await?.pieces.try_collect::<BytesMut>().await
        });
        let text = read.await.map_err(|failed| self.error(Right::Read, failed))?;
        // Without its last digit: the library leaves out what is named as the prefix.
        let name: &str = path.as_ref();
        let prefix = &name[..name.len() - 1];
        let list = || api.list(prefix, None);
        let listed = self.bucket.repeated("list", path, PATIENCE, list).await;
        let listed = listed.map_err(|failed| self.error(Right::List, failed))?;
        let is_listed = listed.objects.iter().any(|found| found.path == *path);
        if text != TEXT || !is_listed {
            return Err(ProbeError::Consistency(self.store()));
        }
        Ok(())
    }

    /// Without the right to list, S3 answers 403 in place of 404, and nothing can be known to be absent.
    async fn ask_for_what_is_absent(&self) -> Result<(), ProbeError> {
        let asked =
            self.bucket.repeated("look at", self.path, PATIENCE, || self.bucket.api.head(self.path)).await;
        match asked {
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

    fn error(&self, right: Right, failed: Failure) -> ProbeError {
        let (what, right) = right.describe(self.bucket.location.kind());
        match (self.store(), StoreError::from(failed)) {
            (store, source @ StoreError::Denied(_)) => ProbeError::Right { what, right, store, source },
            (store, source) => ProbeError::Store { store, source },
        }
    }
}
