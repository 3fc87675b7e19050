//! What is known, as it goes over the wire.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::cleaner::{Decision, Judge, Swept};
use crate::protocol::admin::{ResourceDetails, StagedResource, SweepReport};
use crate::protocol::digest;
use crate::protocol::v1::OwnerMetadata;
use crate::resource::{Resource, State, Tombstone};
use crate::spark::format_duration;
use crate::staging::Listed;

/// One row of a list, given what a sweep would do.
pub(super) fn listed(listed: &Listed, decision: Decision) -> StagedResource {
    decided(
        StagedResource {
            resource_id: listed.id.to_string(),
            owner: (&*listed.owner).into(),
            size_bytes: listed.size_bytes,
            created_at: listed.life.created_at,
            last_used_at: listed.life.last_used_at,
            kept_because: None,
            expires_at: None,
            due_because: None,
            uploaded_by: None,
            deleted_at: None,
            deletion_reason: None,
        },
        decision,
    )
}

fn decided(resource: StagedResource, decision: Decision) -> StagedResource {
    match decision {
        Decision::Keep(kept) => {
            StagedResource { kept_because: Some(kept.why.into()), expires_at: kept.until, ..resource }
        }
        Decision::Delete(reason) => StagedResource { due_because: Some(reason.into()), ..resource },
    }
}

/// What a row has, whatever becomes of it; `None` for what was never complete.
pub(super) fn staged(resource: &Resource) -> Option<StagedResource> {
    let (owner, size_bytes) = remains(resource)?;
    Some(StagedResource {
        resource_id: resource.id.to_string(),
        owner,
        size_bytes,
        created_at: resource.created_at,
        last_used_at: resource.last_used_at,
        kept_because: None,
        expires_at: None,
        due_because: None,
        uploaded_by: resource.uploaded_by.clone(),
        deleted_at: resource.deleted.as_ref().map(|tombstone| tombstone.at),
        deletion_reason: resource.deleted.as_ref().map(|tombstone| tombstone.reason.into()),
    })
}

/// Everything; `None` for what was never complete. Of what is gone, nothing is decided any more, and little is known.
pub(super) fn details(resource: Resource, judge: &Judge, now: Timestamp) -> Option<ResourceDetails> {
    let life = resource.life();
    let decision = resource.owner.as_ref().filter(|_| resource.state == State::Ready);
    let decision = decision.map(|owner| judge.judge(resource.id, owner, &life).decision);
    let staged = staged(&resource)?;
    Some(ResourceDetails {
        now,
        resource: match decision {
            Some(decision) => decided(staged, decision),
            None => staged,
        },
        state: resource.state.into(),
        sha256: resource.bundle.map(|bundle| digest::to_hex(&bundle.sha256)),
        file_name: resource.file_name.map(|name| name.to_string()),
        unused_timeout: format_duration(life.lifetime.unused_timeout),
        ttl: life.lifetime.ttl.map(format_duration),
        first_used_at: resource.first_used_at,
        owner_seen_at: life.sighting.seen_at,
        owner_absent_since: life.sighting.absent_since,
        owner_finished_since: life.sighting.finished_since,
    })
}

/// Owner and size, as far as a tombstone has them.
fn remains(resource: &Resource) -> Option<(OwnerMetadata, u64)> {
    if let (Some(owner), Some(bundle)) = (&resource.owner, resource.bundle) {
        return Some((owner.into(), bundle.size_bytes));
    }
    let Tombstone { owner_kind, namespace, size_bytes, .. } = resource.deleted.clone()?;
    let owner = OwnerMetadata { kind: owner_kind, namespace, labels: BTreeMap::new(), name: None };
    Some((owner, size_bytes))
}

/// What a sweep did.
pub(super) fn report(swept: &Swept) -> SweepReport {
    let counts = |counts: &BTreeMap<&'static str, u64>| {
        counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    };
    SweepReport {
        deleted: counts(&swept.deleted),
        kept: counts(&swept.kept),
        held: swept.held,
        interrupted_uploads: swept.recovered.uploads,
        interrupted_deletions: swept.recovered.deletions,
        stray_files: swept.recovered.orphans,
        forgotten_tombstones: swept.forgotten.expired,
        dropped_tombstones: swept.forgotten.dropped,
    }
}
