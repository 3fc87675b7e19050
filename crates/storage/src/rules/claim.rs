//! Whether this server may delete: the ledger must not be an earlier copy, and no other server may have its bundles.

mod bucket;
mod disk;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;

use super::{AccessError, Authority, Parts, Staging, UploadError};
use crate::ledger::Ledger;
use crate::log::Heartbeat;
use crate::stamp::Installation;
use crate::store::Storage;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::text::chain;

use bucket::BucketClaim;
use disk::DiskClaim;

pub(super) use disk::keep_stamping;
pub use disk::{ClaimError, check_new_ledger};

/// What shows that this server may delete.
pub(super) enum Claim {
    /// Ledger and bundles are on a disk, and have the same stamp.
    OnDisk(DiskClaim),
    /// Both are in a bucket, and the stamp there is this server's.
    InBucket(BucketClaim),
    /// Both go with the process.
    Unshared,
    /// The bucket takes no writes, so nothing is deleted.
    ReadOnly,
}

/// How a start shows that ledger and store are its own.
#[derive(Clone, Default)]
pub struct Ownership {
    /// The id that an earlier start on a disk has named: ledger and bundles are used together although they do not belong together.
    pub adopt: Option<Installation>,
    /// The beats of a server whose ledger is in a bucket, and for how long after its start no sweep deletes.
    pub heartbeat: Option<(Arc<Heartbeat>, Duration)>,
    /// Whether the bucket takes no writes, so that what is staged is served and nothing else is done.
    pub is_read_only: bool,
}

/// Whether the ledger is an earlier copy, for the cleaner and for the metrics.
struct Behind {
    is_behind: AtomicBool,
    metrics: Metrics,
}

impl Behind {
    fn new(is_behind: bool, metrics: Metrics) -> Self {
        let behind = Self { is_behind: AtomicBool::default(), metrics };
        behind.tell(is_behind);
        behind
    }

    fn tell(&self, is_behind: bool) {
        self.is_behind.store(is_behind, Ordering::Relaxed);
        self.metrics.ledger_behind(is_behind);
    }

    fn is(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed)
    }
}

impl Claim {
    pub(super) async fn check(
        ledger: &Arc<dyn Ledger>,
        knows: u64,
        storage: &Storage,
        ownership: Ownership,
        metrics: Metrics,
    ) -> Result<Self, ClaimError> {
        match (ownership.heartbeat, &storage.disk) {
            _ if ownership.is_read_only => Ok(Self::ReadOnly),
            (Some((heartbeat, rest)), _) => {
                Ok(Self::InBucket(BucketClaim::check(&**ledger, heartbeat, rest, metrics).await?))
            }
            (None, Some(disk)) => {
                let claim = DiskClaim::check(&**ledger, knows, storage, disk, ownership.adopt, metrics);
                Ok(Self::OnDisk(claim.await?))
            }
            (None, None) => Ok(Self::Unshared),
        }
    }

    /// Whether the ledger is an earlier copy.
    pub(super) fn is_behind(&self) -> bool {
        match self {
            Self::OnDisk(claim) => claim.behind.is(),
            Self::InBucket(claim) => claim.behind.is(),
            Self::Unshared | Self::ReadOnly => false,
        }
    }
}

impl Parts {
    /// Refuses an upload while the bucket has no room but for deletions.
    pub(super) fn check_bucket(&self) -> Result<(), UploadError> {
        match &self.claim {
            Claim::InBucket(claim) if claim.is_short_of_room() => {
                let source = "the room that is left is for deletions".into();
                Err(UploadError::Full { what: "the store has no room", source })
            }
            _ => Ok(()),
        }
    }
}

impl Staging {
    /// Whether the ledger is an earlier copy than the one that the bundles have seen. Then the cleaner deletes nothing.
    pub fn is_behind(&self) -> bool {
        self.parts.claim.is_behind()
    }

    /// Lets the cleaner delete again although the ledger is an earlier copy. Returns `false` if it was none.
    pub async fn resume_deletions(&self) -> Result<bool, AccessError> {
        match &self.parts.claim {
            Claim::OnDisk(claim) => claim.resume_deletions(&self.parts).await,
            Claim::InBucket(claim) => claim.resume_deletions(&*self.parts.ledger).await,
            Claim::Unshared | Claim::ReadOnly => Ok(false),
        }
    }

    /// Whether the bucket does not take the log of the ledger, or the stamp of this server.
    pub fn is_stalled(&self) -> bool {
        let fails = matches!(&self.parts.claim, Claim::InBucket(claim) if claim.fails());
        fails || self.parts.ledger.stalled().now_or_never().is_some()
    }

    /// Whether the bucket took no writes at the start.
    pub fn is_read_only(&self) -> bool {
        matches!(self.parts.claim, Claim::ReadOnly)
    }
}

impl Parts {
    /// Writes down that ledger and bundles belong together, where that is needed. If nothing can be written now, the first
    /// sweep that deletes something tries again.
    pub(super) async fn begin_claim(&self) {
        let Claim::OnDisk(claim) = &self.claim else { return };
        if let Err(error) = claim.begin_stamps(self).await {
            tracing::warn!(error = %chain(&error), "could not write down that ledger and store belong together");
        }
    }

    /// Called before each sweep: the next deletion shows anew that no other server has the bundles.
    pub(super) async fn begin_batch(&self) {
        match &self.claim {
            Claim::OnDisk(claim) => claim.begin_batch().await,
            Claim::InBucket(claim) => claim.begin_batch(),
            Claim::Unshared | Claim::ReadOnly => {}
        }
    }

    /// Whether `by` may remove what it has decided about. The cleaner must show that no other server has the bundles.
    pub(super) async fn may_remove(&self, by: Authority) -> Result<bool, AccessError> {
        match &self.claim {
            Claim::ReadOnly => Ok(false),
            _ if !matches!(by, Authority::Sweep) => Ok(true),
            Claim::OnDisk(claim) => claim.may_sweep(self).await,
            Claim::InBucket(claim) => claim.may_sweep().await,
            Claim::Unshared => Ok(true),
        }
    }

    /// Whether this server may abandon what another process began.
    pub(super) async fn may_abandon(&self) -> Result<bool, AccessError> {
        match &self.claim {
            // The lock of the data directory keeps other processes off, so this needs no stamp.
            Claim::OnDisk(claim) => Ok(!claim.behind.is()),
            Claim::InBucket(claim) => claim.may_sweep().await,
            Claim::Unshared => Ok(true),
            Claim::ReadOnly => Ok(false),
        }
    }

    /// Writes a stamp if the ledger has changed since the last one.
    pub(super) async fn stamp_changes(&self) -> Result<(), AccessError> {
        match &self.claim {
            Claim::OnDisk(claim) => claim.stamp_changes(self).await,
            Claim::InBucket(_) | Claim::Unshared | Claim::ReadOnly => Ok(()),
        }
    }
}
