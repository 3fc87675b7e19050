//! Rows of the table as resources.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::ledger::LedgerError;
use crate::resource::{
    Bundle, DeletionReason, FileName, Lifetime, Owner, OwnerKind, Resource, ResourceId, SecretHash, Sighting,
    State,
};

/// A whole row.
pub(super) fn resource(row: &SqliteRow) -> Result<Resource, LedgerError> {
    Ok(Resource {
        id: id(row)?,
        secret_hash: SecretHash::from_bytes(row.try_get("secret_hash")?)
            .ok_or_else(|| unreadable(row, "secret_hash"))?,
        state: state(row)?,
        owner: owner(row)?,
        bundle: bundle(row)?,
        file_name: row.try_get::<Option<&str>, _>("file_name")?.and_then(|name| FileName::parse(name).ok()),
        lifetime: Lifetime {
            unused_timeout: duration(row.try_get("unused_timeout_millis")?),
            ttl: row.try_get::<Option<i64>, _>("ttl_millis")?.map(duration),
        },
        created_at: time(row, "created_at")?.ok_or_else(|| unreadable(row, "created_at"))?,
        first_used_at: time(row, "first_used_at")?,
        last_used_at: time(row, "last_used_at")?,
        expires_at: time(row, "expires_at")?,
        sighting: Sighting {
            seen_at: time(row, "owner_seen_at")?,
            absent_since: time(row, "owner_absent_since")?,
            finished_since: time(row, "owner_finished_since")?,
        },
        deleted: deleted(row)?,
        uploaded_by: row.try_get("uploaded_by")?,
    })
}

/// The id of a row.
pub(super) fn id(row: &SqliteRow) -> Result<ResourceId, LedgerError> {
    ResourceId::parse(row.try_get("id")?).map_err(|_| unreadable(row, "id"))
}

/// The state of a row.
pub(super) fn state(row: &SqliteRow) -> Result<State, LedgerError> {
    row.try_get::<&str, _>("state")?.parse().map_err(|_| unreadable(row, "state"))
}

fn owner(row: &SqliteRow) -> Result<Option<Owner>, LedgerError> {
    let kind: Option<&str> = row.try_get("owner_kind")?;
    let namespace: Option<&str> = row.try_get("owner_namespace")?;
    let labels: Option<&str> = row.try_get("owner_labels")?;
    let (Some(kind), Some(namespace), Some(labels)) = (kind, namespace, labels) else { return Ok(None) };
    let kind = OwnerKind::parse(kind).map_err(|_| unreadable(row, "owner_kind"))?;
    let labels: BTreeMap<String, String> =
        serde_json::from_str(labels).map_err(|_| unreadable(row, "owner_labels"))?;
    Owner::new(kind, namespace, labels, row.try_get("owner_name")?)
        .map(Some)
        .map_err(|_| unreadable(row, "owner_namespace"))
}

fn bundle(row: &SqliteRow) -> Result<Option<Bundle>, LedgerError> {
    let size: Option<i64> = row.try_get("size_bytes")?;
    let sha256: Option<&[u8]> = row.try_get("sha256")?;
    let (Some(size), Some(sha256)) = (size, sha256) else { return Ok(None) };
    let size_bytes = u64::try_from(size).map_err(|_| unreadable(row, "size_bytes"))?;
    let sha256 = sha256.try_into().map_err(|_| unreadable(row, "sha256"))?;
    Ok(Some(Bundle { size_bytes, sha256 }))
}

fn deleted(row: &SqliteRow) -> Result<Option<(Timestamp, DeletionReason)>, LedgerError> {
    let Some(reason) = row.try_get::<Option<&str>, _>("deletion_reason")? else { return Ok(None) };
    let reason = reason.parse().map_err(|_| unreadable(row, "deletion_reason"))?;
    let at = time(row, "deleted_at")?.ok_or_else(|| unreadable(row, "deleted_at"))?;
    Ok(Some((at, reason)))
}

fn time(row: &SqliteRow, column: &'static str) -> Result<Option<Timestamp>, LedgerError> {
    let millis: Option<i64> = row.try_get(column)?;
    millis.map(|millis| Timestamp::from_millisecond(millis).map_err(|_| unreadable(row, column))).transpose()
}

fn duration(millis: i64) -> Duration {
    Duration::from_millis(millis.unsigned_abs())
}

fn unreadable(row: &SqliteRow, column: &'static str) -> LedgerError {
    LedgerError::Unreadable { id: row.try_get("id").unwrap_or_default(), column }
}
