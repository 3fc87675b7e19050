//! Reads rows of the table as resources. Damage or another version may have left any value in any column, so a bad
//! value only affects its own row. SQL that covers many rows therefore checks sizes itself.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::sqlite::{Sqlite, SqliteRow};
use sqlx::{Decode, Row as _, Type, ValueRef as _};

use super::read_keys;
use cloakroom_core::resource::{
    Arrival, Bundle, DeletionReason, Ending, FileName, History, Lifetime, Owner, OwnerError, OwnerHistory,
    OwnerKind, Ready, Resource, ResourceId, SecretHash, State, StateData, Tombstone, is_dns_label,
};
use cloakroom_storage::ledger::UnreadableRow;

/// SQL: the size, or 0 if it cannot be read. The bound is [`LARGEST_SIZE`].
macro_rules! known_size {
    () => {
        "(CASE WHEN typeof(size_bytes) = 'integer' AND size_bytes BETWEEN 0 AND 9007199254740992 \
         THEN size_bytes ELSE 0 END)"
    };
}

pub(super) use known_size;

/// A column whose value this version does not write.
#[derive(Debug)]
pub(super) struct Damaged(&'static str);

/// No disk has a larger file. Sums of sizes up to this one are exact in SQL.
const LARGEST_SIZE: u64 = 1 << 53;

/// Reads the whole row of `id`.
pub(super) fn resource(id: ResourceId, row: &SqliteRow) -> Result<Resource, UnreadableRow> {
    read(id, row).map_err(|Damaged(column)| unreadable(id, column, row))
}

fn read(id: ResourceId, row: &SqliteRow) -> Result<Resource, Damaged> {
    Ok(Resource {
        id,
        secret_hash: secret_hash(row).ok_or(Damaged("secret_hash"))?,
        created_at: time(row, "created_at")?.ok_or(Damaged("created_at"))?,
        data: match state(row)? {
            State::Pending => StateData::Pending(arrival(row)?),
            State::Ready => StateData::Ready(Box::new(ready(row)?)),
            State::Deleting => StateData::Deleting(Box::new(ready(row)?), ending(row)?),
            State::Deleted => StateData::Deleted(Box::new(tombstone(row)?)),
        },
    })
}

fn arrival(row: &SqliteRow) -> Result<Arrival, Damaged> {
    let file_name = get::<Option<&str>>(row, "file_name")?.and_then(|name| FileName::parse(name).ok());
    Ok(Arrival { file_name, uploaded_by: get(row, "uploaded_by")? })
}

/// An acknowledged row has an owner and a bundle. If one of them is missing, the row is damaged.
fn ready(row: &SqliteRow) -> Result<Ready, Damaged> {
    let missing = |columns: &[&'static str]| {
        let column = columns.iter().find(|column| is_null(row, column));
        Damaged(column.copied().unwrap_or(columns[0]))
    };
    Ok(Ready {
        arrival: arrival(row)?,
        owner: owner(row)?.ok_or_else(|| missing(&["owner_kind", "owner_namespace", "owner_labels"]))?,
        bundle: bundle(row)?.ok_or_else(|| missing(&["size_bytes", "sha256"]))?,
        history: history(row)?,
        read_keys: read_keys::read(get(row, "read_keys")?),
    })
}

fn history(row: &SqliteRow) -> Result<History, Damaged> {
    Ok(History {
        lifetime: Lifetime {
            unused_timeout: duration(row, "unused_timeout_millis")?
                .ok_or(Damaged("unused_timeout_millis"))?,
            ttl: duration(row, "ttl_millis")?,
        },
        first_used_at: time(row, "first_used_at")?,
        last_used_at: time(row, "last_used_at")?,
        owner_history: OwnerHistory {
            seen_at: time(row, "owner_seen_at")?,
            absent_since: time(row, "owner_absent_since")?,
            finished_since: time(row, "owner_finished_since")?,
        },
    })
}

/// The id of a row.
pub(super) fn id(row: &SqliteRow) -> Result<ResourceId, Damaged> {
    ResourceId::parse(get(row, "id")?).map_err(|_| Damaged("id"))
}

/// The state of a row.
pub(super) fn state(row: &SqliteRow) -> Result<State, Damaged> {
    get::<&str>(row, "state")?.parse().map_err(|_| Damaged("state"))
}

/// The namespace of a row's owner; empty if there is none, or if it cannot be read.
pub(super) fn namespace(row: &SqliteRow) -> String {
    known_namespace(row).unwrap_or_default()
}

fn known_namespace(row: &SqliteRow) -> Option<String> {
    let namespace: Option<&str> = row.try_get("owner_namespace").ok()?;
    namespace.filter(|namespace| is_dns_label(namespace)).map(ToOwned::to_owned)
}

/// The owner of a row; `None` before the row is ready, and for a tombstone.
fn owner(row: &SqliteRow) -> Result<Option<Owner>, Damaged> {
    let kind: Option<&str> = get(row, "owner_kind")?;
    let namespace: Option<&str> = get(row, "owner_namespace")?;
    let labels: Option<&str> = get(row, "owner_labels")?;
    let (Some(kind), Some(namespace), Some(labels)) = (kind, namespace, labels) else { return Ok(None) };
    let kind = OwnerKind::read_back(kind).map_err(|_| Damaged("owner_kind"))?;
    let labels: BTreeMap<String, String> =
        serde_json::from_str(labels).map_err(|_| Damaged("owner_labels"))?;
    let owner = Owner::read_back(kind, namespace, &labels, get(row, "owner_name")?);
    let column = |error| match error {
        OwnerError::NoNamespace | OwnerError::Namespace { .. } => "owner_namespace",
        OwnerError::Name { .. } => "owner_name",
        _ => "owner_labels",
    };
    owner.map(Some).map_err(|error| Damaged(column(error)))
}

fn bundle(row: &SqliteRow) -> Result<Option<Bundle>, Damaged> {
    let size = size(row)?;
    let sha256: Option<&[u8]> = get(row, "sha256")?;
    let (Some(size_bytes), Some(sha256)) = (size, sha256) else { return Ok(None) };
    let sha256 = sha256.try_into().map_err(|_| Damaged("sha256"))?;
    Ok(Some(Bundle { size_bytes, sha256 }))
}

fn ending(row: &SqliteRow) -> Result<Ending, Damaged> {
    let reason = get::<Option<&str>>(row, "deletion_reason")?;
    let reason = reason.and_then(|reason| reason.parse::<DeletionReason>().ok());
    Ok(Ending {
        at: time(row, "deleted_at")?.ok_or(Damaged("deleted_at"))?,
        reason: reason.ok_or(Damaged("deletion_reason"))?,
    })
}

fn tombstone(row: &SqliteRow) -> Result<Tombstone, Damaged> {
    Ok(Tombstone {
        ending: ending(row)?,
        owner_kind: get::<Option<String>>(row, "owner_kind")?.unwrap_or_default(),
        namespace: get::<Option<String>>(row, "owner_namespace")?.unwrap_or_default(),
        size_bytes: size(row)?.unwrap_or_default(),
        history: history(row)?,
    })
}

fn time(row: &SqliteRow, column: &'static str) -> Result<Option<Timestamp>, Damaged> {
    let millis: Option<i64> = get(row, column)?;
    millis.map(|millis| Timestamp::from_millisecond(millis).map_err(|_| Damaged(column))).transpose()
}

fn duration(row: &SqliteRow, column: &'static str) -> Result<Option<Duration>, Damaged> {
    let millis: Option<i64> = get(row, column)?;
    let millis = millis.map(|millis| u64::try_from(millis).map_err(|_| Damaged(column)));
    Ok(millis.transpose()?.map(Duration::from_millis))
}

fn size(row: &SqliteRow) -> Result<Option<u64>, Damaged> {
    let size: Option<i64> = get(row, "size_bytes")?;
    let readable = |size: i64| u64::try_from(size).ok().filter(|size| *size <= LARGEST_SIZE);
    size.map(|size| readable(size).ok_or(Damaged("size_bytes"))).transpose()
}

fn get<'r, T: Decode<'r, Sqlite> + Type<Sqlite>>(
    row: &'r SqliteRow,
    column: &'static str,
) -> Result<T, Damaged> {
    row.try_get(column).map_err(|_| Damaged(column))
}

fn secret_hash(row: &SqliteRow) -> Option<SecretHash> {
    SecretHash::from_bytes(row.try_get("secret_hash").ok()?)
}

fn is_null(row: &SqliteRow, column: &str) -> bool {
    row.try_get_raw(column).is_ok_and(|value| value.is_null())
}

/// The parts of a row that can be read, where `column` cannot.
fn unreadable(id: ResourceId, column: &'static str, row: &SqliteRow) -> UnreadableRow {
    UnreadableRow {
        id,
        column,
        state: state(row).ok(),
        namespace: known_namespace(row),
        size_bytes: size(row).ok().flatten(),
        secret_hash: secret_hash(row),
    }
}
