//! Transfers in flight. Each is counted once, whatever ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::Metrics;

/// An upload in flight. Clones measure the same upload. If the last clone is dropped before [`stored`](Self::stored) or
/// [`refused`](Self::refused), the upload counts as failed.
#[derive(Debug, Clone)]
pub struct UploadMeasurement(Arc<MeasuredUpload>);

#[derive(Debug)]
struct MeasuredUpload {
    metrics: Metrics,
    began: Instant,
    has_verdict: AtomicBool,
}

impl UploadMeasurement {
    pub(super) fn begin(metrics: Metrics) -> Self {
        Self(Arc::new(MeasuredUpload { metrics, began: Instant::now(), has_verdict: AtomicBool::new(false) }))
    }

    /// The upload is acknowledged.
    pub fn stored(&self) {
        if self.0.end("stored") {
            let took = self.0.began.elapsed();
            self.0.metrics.of().upload_duration.observe(took.as_secs_f64());
        }
    }

    /// The server refuses the upload.
    pub fn refused(&self, reason: &'static str) {
        if self.0.end("refused") {
            self.0.metrics.of().upload_refusals.get_or_create(&reason.into()).inc();
        }
    }
}

impl MeasuredUpload {
    /// Counts `outcome`, unless an earlier one was counted. Returns whether it was the first.
    fn end(&self, outcome: &'static str) -> bool {
        let is_first = !self.has_verdict.swap(true, Ordering::Relaxed);
        if is_first {
            self.metrics.of().uploads.get_or_create(&outcome.into()).inc();
        }
        is_first
    }
}

impl Drop for MeasuredUpload {
    fn drop(&mut self) {
        self.end("failed");
    }
}

/// A download in flight. If it is dropped before everything was sent, it counts as broken.
#[derive(Debug)]
pub struct DownloadMeasurement {
    metrics: Metrics,
    began: Instant,
    missing_bytes: u64,
}

impl DownloadMeasurement {
    pub(super) fn begin(metrics: Metrics, bytes: u64) -> Self {
        Self { metrics, began: Instant::now(), missing_bytes: bytes }
    }

    /// The server handed `bytes` more to the connection.
    pub fn sent(&mut self, bytes: u64) {
        self.metrics.of().download_bytes.inc_by(bytes);
        self.missing_bytes = self.missing_bytes.saturating_sub(bytes);
    }

    /// How many bytes were not handed to the connection yet.
    pub fn missing_bytes(&self) -> u64 {
        self.missing_bytes
    }
}

impl Drop for DownloadMeasurement {
    fn drop(&mut self) {
        let families = self.metrics.of();
        if self.missing_bytes > 0 {
            families.downloads.get_or_create(&"broken".into()).inc();
        } else {
            families.downloads.get_or_create(&"completed".into()).inc();
            families.download_duration.observe(self.began.elapsed().as_secs_f64());
        }
    }
}
