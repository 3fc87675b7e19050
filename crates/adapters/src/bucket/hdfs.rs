//! Folders of HDFS, by the HTTP interface that its namenodes and datanodes have (`WebHDFS`). The datanodes write with Hadoop's own
//! client, which replaces datanodes that fail while a file is written.

mod refusal;
mod requests;
mod stamp;
mod upload;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use async_trait::async_trait;
use bytes::Bytes;
use cloakroom_core::client::Client;
use cloakroom_core::metrics::{Metrics, StoreCall};
use cloakroom_core::resource::UploadHandle;
use cloakroom_storage::store::{Begun, BlobFacts, StoreError};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use object_store::path::Path;
use object_store::{Result, UpdateVersion};
use reqwest::Method;
use serde::Deserialize;

use super::api::{Answer, Api, Meta, Page};
use super::backend::{Backend, Stamp};
use super::calls::Bucket;
use super::failure::{BROKEN, CallTrouble};
use super::location::Kind;
use super::probe::{Probe, ProbeError, Rights};
use super::settings::{BucketSettingError, BucketSettings};

/// Where namenodes listen, without and with TLS.
const PORTS: [&str; 2] = ["9870", "9871"];

/// Files and folders are for the user alone.
const FILE_PERMISSION: (&str, &str) = ("permission", "600");
const FOLDER_PERMISSION: (&str, &str) = ("permission", "700");

/// The namenodes of a cluster, and the user.
pub(super) struct Hdfs {
    client: reqwest::Client,
    /// `http` or `https`.
    scheme: &'static str,
    /// Each with its port.
    namenodes: Vec<String>,
    /// The number of the namenode that has answered last.
    active: AtomicUsize,
    user: String,
    metrics: Metrics,
}

/// A namenode's description of a file or folder.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileStatus {
    /// Its name, in a list.
    path_suffix: String,
    length: u64,
    /// In milliseconds since 1970.
    modification_time: i64,
    /// No other file ever has it.
    file_id: u64,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct OneStatus {
    file_status: FileStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Statuses {
    file_status: Vec<FileStatus>,
}

/// A part of the list of a folder.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listing {
    directory_listing: Directory,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Directory {
    partial_listing: Partial,
    /// How many names follow.
    remaining_entries: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Partial {
    file_statuses: Statuses,
}

/// Sets up a folder. No request is made yet.
pub(super) fn connect(
    settings: &BucketSettings<'_>,
) -> Result<(Arc<dyn Backend>, String), BucketSettingError> {
    let BucketSettings { location, options, metrics, .. } = settings;
    let is_tls = location.kind() == Kind::Hdfs { is_tls: true };
    if !is_tls && !options.allows_http {
        return Err(BucketSettingError::HdfsInClear);
    }
    let given = settings.given(("--store-user", &options.user), &["HADOOP_USER_NAME"]);
    let (setting, user) = given.ok_or(BucketSettingError::NoUser)?;
    let is_of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if user.is_empty() || !user.bytes().all(is_of_a_name) {
        return Err(BucketSettingError::User { setting });
    }
    let scheme = if is_tls { "https" } else { "http" };
    let with_port = |host: &str| match host.split_once(':') {
        Some(_) => host.to_owned(),
        None => format!("{host}:{}", PORTS[usize::from(is_tls)]),
    };
    let url = format!("{scheme}://{}", location.bucket());
    let hdfs = Arc::new(Hdfs {
        client: settings
            .connector(&url, &refusal::CODES)?
            .client(!is_tls)
            .map_err(|_| BucketSettingError::Client)?,
        scheme,
        namenodes: location.bucket().split(',').map(with_port).collect(),
        active: AtomicUsize::new(0),
        user,
        metrics: (*metrics).clone(),
    });
    Ok((hdfs, url))
}

impl FileStatus {
    fn meta(&self, path: Path) -> Meta {
        let changed_at = Timestamp::from_millisecond(self.modification_time).unwrap_or(Timestamp::MAX);
        let version = format!("{}-{}", self.file_id, self.modification_time);
        Meta {
            path,
            facts: BlobFacts { size_bytes: self.length, changed_at },
            version: UpdateVersion { e_tag: Some(version), version: None },
        }
    }
}

impl Hdfs {
    /// Renames a file or folder, unless there is one of the new name. Makes the folder of the new name if it is missing.
    async fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.rename_with("NONE", from, to).await
    }

    /// `options` is `NONE`, or `OVERWRITE` to replace what is there. A folder is replaced only if it is empty.
    async fn rename_with(&self, options: &str, from: &Path, to: &Path) -> Result<()> {
        let destination = format!("/{to}");
        let parameters = [("destination", destination.as_str()), ("renameoptions", options)];
        let rename = || self.tell(StoreCall::Post, Method::PUT, from, "RENAME", &parameters);
        let renamed = match rename().await {
            Err(trouble) if trouble.is_absence() => {
                self.make_folder(&parent(to)).await?;
                rename().await
            }
            done => done,
        };
        renamed?;
        // Some programs with this interface answer 200 and have renamed nothing.
        self.status(to).await?;
        Ok(())
    }

    /// Makes a folder, and those above it, unless it is there.
    async fn make_folder(&self, path: &Path) -> Result<(), CallTrouble> {
        self.tell(StoreCall::Post, Method::PUT, path, "MKDIRS", &[FOLDER_PERMISSION]).await.map(drop)
    }

    /// Deletes a file, or a folder with all in it.
    async fn remove(&self, path: &Path) -> Result<()> {
        // If there was none, the answer is a success as well.
        let deleted = self.tell(StoreCall::Delete, Method::DELETE, path, "DELETE", &[("recursive", "true")]);
        Ok(deleted.await.map(drop)?)
    }

    /// The files and folders in a folder, from the name after `after`, and the name after which there are more.
    async fn entries(
        &self,
        folder: &Path,
        after: &str,
    ) -> Result<(Vec<FileStatus>, Option<String>), CallTrouble> {
        let Listing { directory_listing: Directory { partial_listing, remaining_entries } } =
            self.ask(StoreCall::List, folder, "LISTSTATUS_BATCH", &[("startAfter", after)]).await?;
        let found = partial_listing.file_statuses.file_status;
        let last = found.last().filter(|_| remaining_entries > 0).map(|last| last.path_suffix.clone());
        Ok((found, last))
    }

    async fn status(&self, path: &Path) -> Result<FileStatus, CallTrouble> {
        let found: OneStatus = self.ask(StoreCall::Head, path, "GETFILESTATUS", &[]).await?;
        Ok(found.file_status)
    }
}

#[async_trait]
impl Api for Hdfs {
    async fn authenticate(&self) -> Result<()> {
        Ok(())
    }

    async fn head(&self, path: &Path) -> Result<Meta> {
        Ok(self.status(path).await?.meta(path.clone()))
    }

    async fn get(&self, path: &Path, range: Option<Range<u64>>, etag: Option<&str>) -> Result<Answer> {
        let meta = self.head(path).await?;
        let size_bytes = meta.facts.size_bytes;
        let range = range.unwrap_or(0..size_bytes);
        if etag.is_some_and(|etag| meta.version.e_tag.as_deref() != Some(etag)) {
            return Err(CallTrouble::refused(refusal::of_another_version()).into());
        }
        // A range that is not in the file is an error there, and so is each one of an empty file.
        if range.is_empty() || range.end > size_bytes {
            return Ok(Answer { meta, pieces: stream::empty().boxed() });
        }
        let opened = self.open(path, &range).await?;
        if opened.content_length().is_some_and(|length| length != range.end - range.start) {
            return Err(CallTrouble::unclear().into());
        }
        let broken = |_| CallTrouble::no_answer(BROKEN).into();
        Ok(Answer { meta, pieces: opened.bytes_stream().map_err(broken).boxed() })
    }

    /// The stamp is a folder.
    async fn confirm(&self, path: &Path) -> Result<()> {
        self.head(path).await.map(drop)
    }

    async fn create(&self, path: &Path, bytes: Bytes) -> Result<()> {
        upload::create(self, path, bytes).await
    }

    /// A file is renamed when it is whole, so it does not replace the one of an earlier attempt.
    async fn rewrite(&self, path: &Path, bytes: Bytes) -> Result<()> {
        self.create(path, bytes).await
    }

    async fn delete(&self, path: &Path) -> Result<()> {
        self.remove(path).await
    }

    async fn list(&self, prefix: &str, token: Option<String>, _most: Option<usize>) -> Result<Page> {
        let (folder, beginning) = prefix.rsplit_once('/').unwrap_or(("", prefix));
        let folder = Path::from(folder);
        let (found, token) = match self.entries(&folder, token.as_deref().unwrap_or(beginning)).await {
            // Nothing was written yet.
            Err(trouble) if trouble.is_absence() => Default::default(),
            found => found?,
        };
        let is_of_prefix =
            |found: &&FileStatus| found.kind == "FILE" && found.path_suffix.starts_with(beginning);
        let objects = found.iter().filter(is_of_prefix);
        let objects =
            objects.map(|found| found.meta(folder.clone().join(found.path_suffix.as_str()))).collect();
        Ok(Page { objects, token })
    }
}

#[async_trait]
impl Backend for Hdfs {
    async fn begin(
        self: Arc<Self>,
        bucket: &Arc<Bucket>,
        path: Path,
        _length: Option<u64>,
        _client: &Client,
    ) -> Result<Begun, StoreError> {
        upload::begin(self, bucket, path).await
    }

    async fn abort(
        &self,
        bucket: &Bucket,
        path: &Path,
        _handle: Option<&UploadHandle>,
    ) -> Result<(), StoreError> {
        bucket.remove(&upload::folder(bucket, path)).await
    }

    async fn clean(&self, bucket: &Bucket) {
        upload::remove_old(bucket, self).await;
    }

    async fn stamp(&self, bucket: &Bucket, path: &Path) -> Result<Option<Stamp>, StoreError> {
        stamp::read(bucket, self, path).await
    }

    async fn swap_stamp(&self, path: &Path, seen: Option<Stamp>, by: &str) -> Result<()> {
        stamp::swap(self, path, seen, by).await
    }

    fn rights(&self) -> Rights {
        ["the user needs all rights to that folder"; 5]
    }

    async fn probe(&self, probe: &Probe<'_>) -> Result<(), ProbeError> {
        probe.step("write an object once only", probe.create()).await?;
        probe.step("read an object", probe.read(&probe.path)).await?;
        probe.list_and_delete(&[&probe.path]).await
    }
}

/// The folder that a file is in.
fn parent(path: &Path) -> Path {
    let parts: Vec<_> = path.parts().collect();
    parts.iter().take(parts.len().saturating_sub(1)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::super::settings::BucketOptions;
    use super::super::settings::checks::check;

    #[test]
    fn settings_of_hdfs_are_checked() {
        let user = |name: &str| BucketOptions { user: Some(name.to_owned()), ..BucketOptions::default() };
        let none = BucketOptions::default();
        let endpoint = BucketOptions { endpoint: Some("https://localhost".to_owned()), ..user("ann") };
        check("webhdfs://one/a", &[(&user("ann"), &[][..], "webhdfs:// is without TLS")]);
        check(
            "swebhdfs://one,two:9871/a",
            &[
                (&user("ann"), &[][..], ""),
                (&none, &[("HADOOP_USER_NAME", "ann")], ""),
                (&none, &[], "the user of HDFS is not known"),
                (&user("ann&op=DELETE"), &[], "--store-user is not the name of a user"),
                (&none, &[("HADOOP_USER_NAME", "a b")], "HADOOP_USER_NAME is not the name of a user"),
                (&endpoint, &[], "--store-endpoint is for s3://, az:// and gs:// only"),
            ],
        );
    }
}
