//! Converts resources and sweeps to their wire types.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::cleaner::{Decision, Judge, Swept};
use cloakroom_core::protocol::admin::{ResourceDetails, StagedResource, SweepReport};
use cloakroom_core::protocol::digest;
use cloakroom_core::protocol::v1::OwnerMetadata;
use cloakroom_core::resource::{Resource, StateData, Tombstone};
use cloakroom_core::time::format_duration;
use cloakroom_storage::ready::Listed;

/// One row of the list, with the decision of a sweep.
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

/// The fields of a row that do not depend on a decision; `None` if the upload was never complete.
pub(super) fn staged(resource: &Resource) -> Option<StagedResource> {
    let (owner, size_bytes) = remains(resource)?;
    let ending = resource.ending();
    Some(StagedResource {
        resource_id: resource.id.to_string(),
        owner,
        size_bytes,
        created_at: resource.created_at,
        last_used_at: resource.history().and_then(|history| history.last_used_at),
        kept_because: None,
        expires_at: None,
        due_because: None,
        uploaded_by: resource.acknowledged().and_then(|ready| ready.arrival.uploaded_by.clone()),
        deleted_at: ending.map(|ending| ending.at),
        deletion_reason: ending.map(|ending| ending.reason.into()),
    })
}

/// All details of a resource; `None` if its upload was never complete. For a deleted resource there is no decision, and
/// a tombstone has only a few fields.
pub(super) fn details(resource: Resource, judge: &Judge, now: Timestamp) -> Option<ResourceDetails> {
    let (staged, state, history) = (staged(&resource)?, resource.state(), *resource.history()?);
    let arrived = resource.acknowledged().map(|ready| (ready.bundle.sha256, ready.arrival.file_name.clone()));
    let decision = resource.into_ready().map(|ready| judge.judge(ready.id, &ready.data.owner, &ready.life()));
    Some(ResourceDetails {
        now,
        resource: match decision {
            Some(decision) => decided(staged, decision),
            None => staged,
        },
        state: state.into(),
        sha256: arrived.as_ref().map(|(sha256, _)| digest::to_hex(sha256)),
        file_name: arrived.and_then(|(_, name)| name).map(|name| name.to_string()),
        unused_timeout: format_duration(history.lifetime.unused_timeout),
        ttl: history.lifetime.ttl.map(format_duration),
        first_used_at: history.first_used_at,
        owner_seen_at: history.owner_history.seen_at,
        owner_absent_since: history.owner_history.absent_since,
        owner_finished_since: history.owner_history.finished_since,
    })
}

/// The size of a resource, present or deleted; `None` if its upload was never complete.
pub(super) fn size_bytes(resource: &Resource) -> Option<u64> {
    remains(resource).map(|(_, size_bytes)| size_bytes)
}

/// The owner and the size. A tombstone has only the owner's kind and namespace.
fn remains(resource: &Resource) -> Option<(OwnerMetadata, u64)> {
    match &resource.data {
        StateData::Pending(_) => None,
        StateData::Ready(ready) | StateData::Deleting(ready, _) => {
            Some(((&ready.owner).into(), ready.bundle.size_bytes))
        }
        StateData::Deleted(tombstone) => {
            let Tombstone { owner_kind: kind, namespace, size_bytes, .. } = (**tombstone).clone();
            Some((OwnerMetadata { kind, namespace, labels: BTreeMap::new(), name: None }, size_bytes))
        }
    }
}

/// The report of a sweep.
pub(super) fn report(swept: &Swept) -> SweepReport {
    SweepReport {
        ledger_behind: swept.is_behind,
        deleted: swept.deleted.iter().map(|(reason, count)| ((*reason).into(), *count)).collect(),
        kept: swept.kept.iter().map(|(why, count)| ((*why).into(), *count)).collect(),
        held: swept.held.values().sum(),
        held_in: swept.held.clone(),
        interrupted_uploads: swept.recovered.uploads,
        interrupted_deletions: swept.recovered.deletions,
        stray_files: swept.recovered.strays,
        forgotten_tombstones: swept.forgotten.expired,
        dropped_tombstones: swept.forgotten.dropped,
    }
}
