//! Reads rows of the table as resources. Damage or another version may have left any value in any column, so a bad
//! value only affects its own row. SQL that covers many rows therefore checks ids and sizes itself.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::sqlite::{Sqlite, SqliteConnection, SqliteRow};
use sqlx::{Decode, Row as _, Type, ValueRef as _};

use crate::ledger::{Stored, UnreadableRow};
use cloakroom_core::resource::{
    Arrival, Bundle, DeletionReason, Ending, FileName, History, Lifetime, Owner, OwnerError, OwnerHistory,
    OwnerKind, Ready, Resource, ResourceId, RowName, SecretHash, State, StateData, Tombstone, is_dns_label,
};

/// SQL: whether the id is one that [`ResourceId::parse`] accepts.
macro_rules! has_id {
    () => {
        "(typeof(id) = 'text' AND length(CAST(id AS BLOB)) = 36 AND length(replace(id, '-', '')) = 32 \
         AND id GLOB '????????-????-????-????-????????????' AND id NOT GLOB '*[^-0-9a-f]*')"
    };
}

/// SQL: the size, or 0 if it cannot be read. The bound is [`LARGEST_SIZE`].
macro_rules! known_size {
    () => {
        "(CASE WHEN typeof(size_bytes) = 'integer' AND size_bytes BETWEEN 0 AND 9007199254740992 \
         THEN size_bytes ELSE 0 END)"
    };
}

pub(super) use {has_id, known_size};

/// No disk has a larger file. Sums of sizes up to this one are exact in SQL.
const LARGEST_SIZE: u64 = 1 << 53;

/// What is acknowledged and not yet removed, by namespace.
pub(super) async fn stored(
    least_bytes: u64,
    connection: &mut SqliteConnection,
) -> Result<BTreeMap<String, Stored>, sqlx::Error> {
    // A sum of integers fails on overflow. TOTAL does not fail, and CAST stops at the largest integer.
    let rows = sqlx::query(concat!(
        "SELECT owner_namespace, COUNT(*) AS resources, CAST(TOTAL(MAX(",
        known_size!(),
        ", ?)) AS INTEGER) AS bytes FROM resources WHERE state IS NOT 'pending' AND state IS NOT 'deleted' \
         GROUP BY owner_namespace"
    ))
    .bind(i64::try_from(least_bytes).unwrap_or(i64::MAX))
    .fetch_all(connection)
    .await?;
    let mut stored: BTreeMap<String, Stored> = BTreeMap::new();
    for row in &rows {
        let here = Stored {
            resources: row.try_get::<i64, _>("resources")?.unsigned_abs(),
            bytes: row.try_get::<i64, _>("bytes")?.unsigned_abs(),
        };
        let all = stored.entry(namespace(row)).or_default();
        *all = [*all, here].into_iter().sum();
    }
    Ok(stored)
}

/// Reads a whole row.
pub(super) fn resource(row: &SqliteRow) -> Result<Resource, UnreadableRow> {
    Ok(Resource {
        id: id(row)?,
        secret_hash: secret_hash(row).ok_or_else(|| unreadable(row, "secret_hash"))?,
        created_at: time(row, "created_at")?.ok_or_else(|| unreadable(row, "created_at"))?,
        data: match state(row)? {
            State::Pending => StateData::Pending(arrival(row)?),
            State::Ready => StateData::Ready(Box::new(ready(row)?)),
            State::Deleting => StateData::Deleting(Box::new(ready(row)?), ending(row)?),
            State::Deleted => StateData::Deleted(Box::new(tombstone(row)?)),
        },
    })
}

fn arrival(row: &SqliteRow) -> Result<Arrival, UnreadableRow> {
    let file_name = get::<Option<&str>>(row, "file_name")?.and_then(|name| FileName::parse(name).ok());
    Ok(Arrival { file_name, uploaded_by: get(row, "uploaded_by")? })
}

/// An acknowledged row has an owner and a bundle. If one of them is missing, the row is damaged.
fn ready(row: &SqliteRow) -> Result<Ready, UnreadableRow> {
    let missing = |columns: &[&'static str]| {
        let column = columns.iter().find(|column| is_null(row, column));
        unreadable(row, column.copied().unwrap_or(columns[0]))
    };
    Ok(Ready {
        arrival: arrival(row)?,
        owner: owner(row)?.ok_or_else(|| missing(&["owner_kind", "owner_namespace", "owner_labels"]))?,
        bundle: bundle(row)?.ok_or_else(|| missing(&["size_bytes", "sha256"]))?,
        history: history(row)?,
    })
}

fn history(row: &SqliteRow) -> Result<History, UnreadableRow> {
    Ok(History {
        lifetime: Lifetime {
            unused_timeout: duration(row, "unused_timeout_millis")?
                .ok_or_else(|| unreadable(row, "unused_timeout_millis"))?,
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
pub(super) fn id(row: &SqliteRow) -> Result<ResourceId, UnreadableRow> {
    ResourceId::parse(get(row, "id")?).map_err(|_| unreadable(row, "id"))
}

/// The state of a row.
pub(super) fn state(row: &SqliteRow) -> Result<State, UnreadableRow> {
    get::<&str>(row, "state")?.parse().map_err(|_| unreadable(row, "state"))
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
pub(super) fn owner(row: &SqliteRow) -> Result<Option<Owner>, UnreadableRow> {
    let kind: Option<&str> = get(row, "owner_kind")?;
    let namespace: Option<&str> = get(row, "owner_namespace")?;
    let labels: Option<&str> = get(row, "owner_labels")?;
    let (Some(kind), Some(namespace), Some(labels)) = (kind, namespace, labels) else { return Ok(None) };
    let kind = OwnerKind::parse(kind).map_err(|_| unreadable(row, "owner_kind"))?;
    let labels: BTreeMap<String, String> =
        serde_json::from_str(labels).map_err(|_| unreadable(row, "owner_labels"))?;
    let owner = Owner::read_back(kind, namespace, &labels, get(row, "owner_name")?);
    let column = |error| match error {
        OwnerError::NoNamespace | OwnerError::Namespace { .. } => "owner_namespace",
        OwnerError::Name { .. } => "owner_name",
        _ => "owner_labels",
    };
    owner.map(Some).map_err(|error| unreadable(row, column(error)))
}

fn bundle(row: &SqliteRow) -> Result<Option<Bundle>, UnreadableRow> {
    let size = size(row)?;
    let sha256: Option<&[u8]> = get(row, "sha256")?;
    let (Some(size_bytes), Some(sha256)) = (size, sha256) else { return Ok(None) };
    let sha256 = sha256.try_into().map_err(|_| unreadable(row, "sha256"))?;
    Ok(Some(Bundle { size_bytes, sha256 }))
}

fn ending(row: &SqliteRow) -> Result<Ending, UnreadableRow> {
    let reason = get::<Option<&str>>(row, "deletion_reason")?;
    let reason = reason.and_then(|reason| reason.parse::<DeletionReason>().ok());
    Ok(Ending {
        at: time(row, "deleted_at")?.ok_or_else(|| unreadable(row, "deleted_at"))?,
        reason: reason.ok_or_else(|| unreadable(row, "deletion_reason"))?,
    })
}

fn tombstone(row: &SqliteRow) -> Result<Tombstone, UnreadableRow> {
    Ok(Tombstone {
        ending: ending(row)?,
        owner_kind: get::<Option<String>>(row, "owner_kind")?.unwrap_or_default(),
        namespace: get::<Option<String>>(row, "owner_namespace")?.unwrap_or_default(),
        size_bytes: size(row)?.unwrap_or_default(),
        history: history(row)?,
    })
}

fn time(row: &SqliteRow, column: &'static str) -> Result<Option<Timestamp>, UnreadableRow> {
    let millis: Option<i64> = get(row, column)?;
    millis.map(|millis| Timestamp::from_millisecond(millis).map_err(|_| unreadable(row, column))).transpose()
}

fn duration(row: &SqliteRow, column: &'static str) -> Result<Option<Duration>, UnreadableRow> {
    let millis: Option<i64> = get(row, column)?;
    let millis = millis.map(|millis| u64::try_from(millis).map_err(|_| unreadable(row, column)));
    Ok(millis.transpose()?.map(Duration::from_millis))
}

fn size(row: &SqliteRow) -> Result<Option<u64>, UnreadableRow> {
    let size: Option<i64> = get(row, "size_bytes")?;
    let readable = |size: i64| u64::try_from(size).ok().filter(|size| *size <= LARGEST_SIZE);
    size.map(|size| readable(size).ok_or_else(|| unreadable(row, "size_bytes"))).transpose()
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

fn is_null(row: &SqliteRow, column: &str) -> bool {
    row.try_get_raw(column).is_ok_and(|value| value.is_null())
}

fn unreadable(row: &SqliteRow, column: &'static str) -> UnreadableRow {
    let text = |column| row.try_get::<&str, _>(column).ok();
    let size = row.try_get::<Option<i64>, _>("size_bytes").ok().flatten();
    let size = size.and_then(|size| u64::try_from(size).ok());
    let id = text("id").and_then(|id| ResourceId::parse(id).ok());
    let bytes = || row.try_get::<&[u8], _>("id").unwrap_or_default();
    UnreadableRow {
        name: id.map_or_else(|| RowName::damaged(bytes()), RowName::from),
        column,
        state: text("state").and_then(|state| state.parse().ok()),
        namespace: known_namespace(row),
        size_bytes: size.filter(|size| *size <= LARGEST_SIZE),
        secret_hash: secret_hash(row),
    }
}
