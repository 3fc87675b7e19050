//! Rows of the table as resources.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::sqlite::{Sqlite, SqliteRow};
use sqlx::{Decode, Row as _, Type};

use crate::ledger::UnreadableRow;
use crate::resource::{
    Bundle, DeletionReason, FileName, Lifetime, Owner, OwnerKind, Resource, ResourceId, SecretHash, Sighting,
    State, Tombstone,
};

/// A whole row.
pub(super) fn resource(row: &SqliteRow) -> Result<Resource, UnreadableRow> {
    Ok(Resource {
        id: id(row)?,
        secret_hash: secret_hash(row).ok_or_else(|| unreadable(row, "secret_hash"))?,
        state: state(row)?,
        owner: owner(row)?,
        bundle: bundle(row)?,
        file_name: get::<Option<&str>>(row, "file_name")?.and_then(|name| FileName::parse(name).ok()),
        lifetime: Lifetime {
            unused_timeout: duration(get(row, "unused_timeout_millis")?),
            ttl: get::<Option<i64>>(row, "ttl_millis")?.map(duration),
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
        uploaded_by: get(row, "uploaded_by")?,
    })
}

/// The id of a row.
pub(super) fn id(row: &SqliteRow) -> Result<ResourceId, UnreadableRow> {
    ResourceId::parse(get(row, "id")?).map_err(|_| unreadable(row, "id"))
}

/// The state of a row.
pub(super) fn state(row: &SqliteRow) -> Result<State, UnreadableRow> {
    get::<&str>(row, "state")?.parse().map_err(|_| unreadable(row, "state"))
}

/// The owner of a row; none before it is ready, and none of a tombstone.
pub(super) fn owner(row: &SqliteRow) -> Result<Option<Owner>, UnreadableRow> {
    let kind: Option<&str> = get(row, "owner_kind")?;
    let namespace: Option<&str> = get(row, "owner_namespace")?;
    let labels: Option<&str> = get(row, "owner_labels")?;
    let (Some(kind), Some(namespace), Some(labels)) = (kind, namespace, labels) else { return Ok(None) };
    let kind = OwnerKind::parse(kind).map_err(|_| unreadable(row, "owner_kind"))?;
    let labels: BTreeMap<String, String> =
        serde_json::from_str(labels).map_err(|_| unreadable(row, "owner_labels"))?;
    let owner = Owner::read_back(kind, namespace, &labels, get(row, "owner_name")?);
    owner.map(Some).ok_or_else(|| unreadable(row, "owner_labels"))
}

fn bundle(row: &SqliteRow) -> Result<Option<Bundle>, UnreadableRow> {
    let size: Option<i64> = get(row, "size_bytes")?;
    let sha256: Option<&[u8]> = get(row, "sha256")?;
    let (Some(size), Some(sha256)) = (size, sha256) else { return Ok(None) };
    let size_bytes = u64::try_from(size).map_err(|_| unreadable(row, "size_bytes"))?;
    let sha256 = sha256.try_into().map_err(|_| unreadable(row, "sha256"))?;
    Ok(Some(Bundle { size_bytes, sha256 }))
}

fn deleted(row: &SqliteRow) -> Result<Option<Tombstone>, UnreadableRow> {
    let Some(reason) = get::<Option<&str>>(row, "deletion_reason")? else { return Ok(None) };
    Ok(Some(Tombstone {
        at: time(row, "deleted_at")?.ok_or_else(|| unreadable(row, "deleted_at"))?,
        reason: reason.parse::<DeletionReason>().map_err(|_| unreadable(row, "deletion_reason"))?,
        owner_kind: get::<Option<String>>(row, "owner_kind")?.unwrap_or_default(),
        namespace: get::<Option<String>>(row, "owner_namespace")?.unwrap_or_default(),
        size_bytes: get::<Option<i64>>(row, "size_bytes")?.unwrap_or_default().unsigned_abs(),
    }))
}

fn time(row: &SqliteRow, column: &'static str) -> Result<Option<Timestamp>, UnreadableRow> {
    let millis: Option<i64> = get(row, column)?;
    millis.map(|millis| Timestamp::from_millisecond(millis).map_err(|_| unreadable(row, column))).transpose()
}

fn duration(millis: i64) -> Duration {
    Duration::from_millis(millis.unsigned_abs())
}

fn get<'r, T: Decode<'r, Sqlite> + Type<Sqlite>>(
    row: &'r SqliteRow,
    column: &'static str,
) -> Result<T, UnreadableRow> {
    row.try_get(column).map_err(|_| unreadable(row, column))
}

fn secret_hash(row: &SqliteRow) -> Option<SecretHash> {
    SecretHash::from_bytes(row.try_get("secret_hash").ok()?)
}

fn unreadable(row: &SqliteRow, column: &'static str) -> UnreadableRow {
    UnreadableRow { id: row.try_get("id").unwrap_or_default(), column, secret_hash: secret_hash(row) }
}
