//! Tries what only stores of objects do: conditions, and uploads in parts.

use object_store::{MultipartId, UpdateVersion};

use super::super::calls::PATIENCE;
use super::super::probe::{NO_CONDITIONS, Probe, ProbeError, REMOVAL, Right, TEXT};
use super::Objects;
use super::stamp::Found;

const IF_MATCH: &str = "an object must be a certain version (If-Match)";

const CHANGED_PARTS: &str = "cannot complete an upload in parts, and all large bundles are such uploads: look for a gateway \
                             that drops or changes the ETags of parts";

const UPLOADS_IN_PARTS: &str = "uploads in parts (CreateMultipartUpload)";

impl Objects {
    /// Tries all that a server does in its bucket.
    pub(super) async fn try_all(&self, probe: &Probe<'_>) -> Result<(), ProbeError> {
        probe.step("write an object once only", probe.create()).await?;
        // Before the next step, which blames the right to write.
        let version = probe.step("read an object", probe.read(&probe.path)).await?;
        self.tell_of_versions(probe, &version);
        probe.step("replace an object under a condition", self.replace(probe)).await?;
        probe.step("abort an upload in parts", self.abort_upload(probe)).await?;
        probe.step("complete an upload in parts", self.complete_upload(probe)).await?;
        probe.list_and_delete(&[&probe.path, &probe.other]).await
    }

    /// Warns of a bucket that keeps versions. That is allowed, because a rule of the bucket can remove them.
    fn tell_of_versions(&self, probe: &Probe<'_>, UpdateVersion { version, .. }: &UpdateVersion) {
        // Google has a version for each object. Elsewhere `null` names the one object of a bucket that keeps none any more.
        let keeps = !self.cloud.always_has_versions && version.as_ref().is_some_and(|id| id != "null");
        if keeps {
            tracing::warn!(
                "{} keeps versions, or has object lock: deleted bundles stay there, and are paid for, until a lifecycle rule of \
                 the bucket removes noncurrent versions (docs/buckets.md)",
                probe.bucket.location
            );
        }
    }

    async fn replace(&self, probe: &Probe<'_>) -> Result<(), ProbeError> {
        match self.find_form(probe.bucket, &probe.path, TEXT).await {
            Ok(Found::Holds) => Ok(()),
            Ok(Found::Ignored) => Err(probe.ignores(IF_MATCH)),
            Ok(Found::NeverHolds) => Err(probe.unfit(NO_CONDITIONS, None)),
            Err(failed) => Err(probe.refused_condition(failed).await),
        }
    }

    async fn begin_upload(&self, probe: &Probe<'_>) -> Result<MultipartId, ProbeError> {
        let create = || self.library.create_multipart(&probe.other);
        let begun = probe.bucket.repeated("begin the upload of", &probe.other, PATIENCE, create).await;
        begun.map_err(|failed| probe.lack_or_error(UPLOADS_IN_PARTS, Right::Abort, failed))
    }

    async fn abort_upload(&self, probe: &Probe<'_>) -> Result<(), ProbeError> {
        let id = self.begin_upload(probe).await?;
        let abort = || self.library.abort_multipart(&probe.other, &id);
        let aborted = probe.bucket.repeated("abort the upload of", &probe.other, PATIENCE, abort).await;
        aborted.map_err(|failed| probe.error(Right::Abort, failed))
    }

    async fn complete_upload(&self, probe: &Probe<'_>) -> Result<(), ProbeError> {
        let id = self.begin_upload(probe).await?;
        let completed = async {
            let put = || self.library.put_part(&probe.other, &id, 0, TEXT.into());
            let part = probe.bucket.repeated("write a part of", &probe.other, PATIENCE, put).await?;
            let complete = || self.library.complete_multipart(&probe.other, &id, vec![part.clone()]);
            probe.bucket.repeated("complete the upload of", &probe.other, PATIENCE, complete).await
        };
        let failed = match completed.await {
            Ok(_) => return probe.read(&probe.other).await.map(drop),
            // An earlier attempt was done, and its answer got lost.
            Err(failed) if failed.is_absence() && probe.read(&probe.other).await.is_ok() => return Ok(()),
            Err(failed) => failed,
        };
        // The error says what is wrong.
        let abort = self.library.abort_multipart(&probe.other, &id);
        let _ = probe.bucket.once("abort the upload of", &probe.other, REMOVAL, abort).await;
        if failed.is_unclear() || failed.is_of_a_part() {
            return Err(probe.unfit(CHANGED_PARTS, Some(failed)));
        }
        Err(probe.error(Right::Write, failed))
    }
}
