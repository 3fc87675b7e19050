//! What the ledger remembers beside its rows.

use std::str::FromStr;

use async_trait::async_trait;
use sqlx::Row as _;
use sqlx::SqliteExecutor;
use sqlx::sqlite::{SqliteConnection, SqlitePool, SqliteRow};

use super::operation::LedgerOperation;
use super::strays;
use cloakroom_core::resource::OwnerKind;
use cloakroom_storage::ledger::{Change, Fact, LedgerFacts, Stored, WatchScope};

/// What a fact has changed.
pub(super) struct Written {
    rows: u64,
    /// All strays, if these were changed.
    strays: Option<Stored>,
}

#[async_trait]
impl LedgerOperation for Fact {
    type Outcome = Written;

    async fn apply(
        &self,
        connection: &mut SqliteConnection,
        least_bytes: u64,
    ) -> Result<Written, sqlx::Error> {
        let rows = match self {
            Self::Cluster(uid) => remember_cluster(uid.as_deref(), connection).await,
            Self::Claim(claim) => remember("claim", &claim.to_string(), connection).await,
            Self::Restored(restored) => remember("restored", &restored.to_string(), connection).await,
            Self::Watched(scopes) => remember_watched(scopes, connection).await,
            Self::Strays { found, gone } => {
                let rows = strays::note(found, gone, connection).await?;
                let strays = Some(strays::stored(least_bytes, connection).await?);
                return Ok(Written { rows, strays });
            }
        }?;
        Ok(Written { rows, strays: None })
    }

    /// A listing finds the same again.
    fn waits_for_log(&self, _: &Self::Outcome) -> bool {
        !matches!(self, Self::Watched(_) | Self::Strays { .. })
    }

    /// A claim is no change: each stamp writes one, and each change asks for a stamp.
    fn change<'a>(&'a self, written: &'a Written) -> Option<Change<'a>> {
        if written.rows == 0 || matches!(self, Self::Claim(_)) {
            return None;
        }
        Some(written.strays.map_or(Change::Other, Change::Strays))
    }
}

/// All facts.
pub(super) async fn facts(readers: &SqlitePool) -> Result<LedgerFacts, sqlx::Error> {
    Ok(LedgerFacts {
        cluster: cluster(readers).await?,
        watched: watched(readers).await?,
        strays: strays::all(readers).await?,
        claim: remembered("claim", readers).await?,
        restored: remembered("restored", readers).await?,
    })
}

async fn cluster(readers: &SqlitePool) -> Result<Option<String>, sqlx::Error> {
    let row = sqlx::query("SELECT value FROM facts WHERE name = 'cluster'").fetch_optional(readers).await?;
    // A damaged uid differs from the uid of the cluster that answers. So nothing is deleted for lack of an owner until
    // an admin accepts the cluster.
    let uid = row.map(|row| row.try_get::<Vec<u8>, _>("value")).transpose()?;
    Ok(uid.map(|uid| String::from_utf8_lossy(&uid).into_owned()))
}

async fn remember_cluster(uid: Option<&str>, connection: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
    let Some(uid) = uid else {
        let forgotten = sqlx::query("DELETE FROM facts WHERE name = 'cluster'").execute(connection).await;
        return forgotten.map(|done| done.rows_affected());
    };
    remember("cluster", uid, connection).await
}

/// `None` if this version cannot read it, too.
pub(super) async fn remembered<T: FromStr>(
    name: &str,
    from: impl SqliteExecutor<'_>,
) -> Result<Option<T>, sqlx::Error> {
    let row = sqlx::query("SELECT value FROM facts WHERE name = ?").bind(name).fetch_optional(from).await?;
    Ok(row.and_then(|row| row.try_get::<&str, _>("value").ok()?.parse().ok()))
}

pub(super) async fn remember(
    name: &str,
    value: &str,
    connection: &mut SqliteConnection,
) -> Result<u64, sqlx::Error> {
    sqlx::query("INSERT INTO facts (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2")
        .bind(name)
        .bind(value)
        .execute(connection)
        .await
        .map(|done| done.rows_affected())
}

async fn watched(readers: &SqlitePool) -> Result<Vec<WatchScope>, sqlx::Error> {
    let rows = sqlx::query("SELECT kind, namespace FROM watched_kinds").fetch_all(readers).await?;
    Ok(rows.iter().filter_map(scope).collect())
}

fn scope(row: &SqliteRow) -> Option<WatchScope> {
    let kind = OwnerKind::parse(row.try_get("kind").ok()?).ok()?;
    let namespace: String = row.try_get("namespace").ok()?;
    Some(WatchScope { kind, namespace: (!namespace.is_empty()).then_some(namespace) })
}

async fn remember_watched(
    scopes: &[WatchScope],
    connection: &mut SqliteConnection,
) -> Result<u64, sqlx::Error> {
    let mut rows = 0;
    for WatchScope { kind, namespace } in scopes {
        let done = sqlx::query("INSERT OR IGNORE INTO watched_kinds (kind, namespace) VALUES (?, ?)")
            .bind(kind.as_str())
            .bind(namespace.as_deref().unwrap_or_default())
            .execute(&mut *connection)
            .await?;
        rows += done.rows_affected();
    }
    Ok(rows)
}
