//! Packs a bundle to count and to hash it, with or without sending it.

use std::io::{self, Write};
use std::sync::Arc;

use cloakroom_core::protocol::digest;
use sha2::{Digest, Sha256};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use crate::bundle::{BundleOutput, PackError, PackPlan, Segment, Segments, Sources, pack_in_segments};

/// What was packed, whether all of it was sent or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packed {
    pub size_bytes: u64,
    pub sha256: [u8; 32],
    pub segments: Vec<Segment>,
}

/// What a bundle has if its files stay as they are.
#[derive(Debug, Clone)]
pub struct MeasuredBundle(pub(super) Packed);

impl MeasuredBundle {
    /// Reads all files.
    pub async fn of(plan: Arc<PackPlan>, sources: Arc<dyn Sources>) -> Result<Self, PackError> {
        measure(plan, sources).await.map(Self)
    }

    /// SHA-256 in hexadecimal digits.
    pub fn sha256(&self) -> String {
        digest::to_hex(&self.0.sha256)
    }
}

/// Packs a bundle, and keeps nothing of it. Dropping this stops it soon.
pub(super) async fn measure(plan: Arc<PackPlan>, sources: Arc<dyn Sources>) -> Result<Packed, PackError> {
    let stop = CancellationToken::new();
    let measure = Measure::until(stop.clone());
    let _stop = stop.drop_guard();
    let packed = tokio::task::spawn_blocking(move || {
        Ok(pack_in_segments(&plan, &*sources, measure, &mut |_| ())?.finish())
    });
    joined(packed.await)
}

/// Counts and hashes the bytes of a bundle.
#[derive(Debug, Default)]
pub(super) struct Measure {
    sha256: Sha256,
    size_bytes: u64,
    segments: Segments,
    stopped: CancellationToken,
}

impl Measure {
    /// With `stopped` it ends, also while nothing is sent.
    pub(super) fn until(stopped: CancellationToken) -> Self {
        Self { stopped, ..Self::default() }
    }

    pub(super) fn finish(self) -> Packed {
        let Self { sha256, size_bytes, segments, .. } = self;
        Packed { size_bytes, sha256: sha256.finalize().into(), segments: segments.finish() }
    }
}

impl Write for Measure {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.stopped.is_cancelled() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.sha256.update(bytes);
        self.size_bytes += bytes.len() as u64;
        self.segments.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BundleOutput for Measure {
    fn file_begins(&mut self, at: u64) {
        self.segments.file_begins(at);
    }

    fn file_ends(&mut self, at: u64, crc: u32) {
        self.segments.file_ends(at, crc);
    }

    fn group_ends(&mut self, at: u64) {
        self.segments.group_ends(at);
    }
}

pub(super) fn joined(outcome: Result<Result<Packed, PackError>, JoinError>) -> Result<Packed, PackError> {
    outcome.unwrap_or_else(|error| Err(PackError::Write(io::Error::other(error))))
}
