//! The downloads that this process is sending. The cleaner leaves their resources alone, and limits apply to them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{AccessError, Limits};
use cloakroom_core::metrics::{LimitUse, Limited};
use cloakroom_core::resource::{Holder, ResourceId};

/// The register of downloads in flight.
#[derive(Debug)]
pub(super) struct Transfers {
    limits: Limits,
    in_flight: Mutex<InFlight>,
}

#[derive(Debug, Default)]
struct InFlight {
    downloads: usize,
    by_resource: HashMap<ResourceId, usize>,
    /// Empty if there are no shares.
    by_holder: HashMap<Holder, usize>,
}

impl Transfers {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, in_flight: Mutex::default() }
    }

    /// Registers a download that counts for `holder`. Returns an error if there are too many.
    pub(super) fn begin_download(
        self: &Arc<Self>,
        id: ResourceId,
        holder: Holder,
    ) -> Result<Transfer, AccessError> {
        let most = self.limits.max_concurrent_downloads;
        let holder = self.limits.share.map(|_| holder);
        let mut in_flight = self.lock();
        if let (Some(share), Some(holder)) = (self.limits.share, &holder) {
            let limit = share.of(most as u64);
            if in_flight.by_holder.get(holder).copied().unwrap_or(0) as u64 >= limit {
                return Err(AccessError::TooManyDownloadsOf { holder: holder.clone(), limit });
            }
        }
        if in_flight.downloads >= most {
            return Err(AccessError::TooManyDownloads);
        }
        in_flight.downloads += 1;
        *in_flight.by_resource.entry(id).or_default() += 1;
        if let Some(holder) = &holder {
            *in_flight.by_holder.entry(holder.clone()).or_default() += 1;
        }
        Ok(Transfer { transfers: Arc::clone(self), id, holder })
    }

    pub(super) fn is_downloading(&self, id: ResourceId) -> bool {
        self.lock().by_resource.contains_key(&id)
    }

    pub(super) fn downloads(&self) -> usize {
        self.lock().downloads
    }

    /// How much of the limit of downloads is used, and of its share by the holder with the most downloads.
    pub(super) fn uses(&self) -> Vec<LimitUse> {
        let (in_flight, most) = (self.lock(), self.limits.max_concurrent_downloads);
        let of_share = self.limits.share.map(|share| LimitUse {
            of: Limited::ShareOfDownloads,
            used: in_flight.by_holder.values().copied().max().unwrap_or(0) as u64,
            limit: share.of(most as u64),
        });
        let all = LimitUse::of_counts(Limited::Downloads, in_flight.downloads, most);
        std::iter::once(all).chain(of_share).collect()
    }

    fn lock(&self) -> MutexGuard<'_, InFlight> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One download in flight. It is registered until it is dropped.
#[derive(Debug)]
pub(super) struct Transfer {
    transfers: Arc<Transfers>,
    id: ResourceId,
    holder: Option<Holder>,
}

impl Drop for Transfer {
    fn drop(&mut self) {
        let mut in_flight = self.transfers.lock();
        in_flight.downloads -= 1;
        one_less(&mut in_flight.by_resource, &self.id);
        if let Some(holder) = &self.holder {
            one_less(&mut in_flight.by_holder, holder);
        }
    }
}

fn one_less<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}
