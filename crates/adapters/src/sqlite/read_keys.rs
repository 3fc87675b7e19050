//! The read keys of a resource: 32 bytes of the hash and 8 of the time for each, in one column of its row. So they go with it.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::sqlite::SqliteConnection;

use super::operation::LedgerOperation;
use cloakroom_core::resource::{ReadKey, ResourceId, SecretHash};
use cloakroom_storage::ledger::{Change, KeyChange, KeyChanged};

const HASH_BYTES: usize = 32;
const KEY_BYTES: usize = HASH_BYTES + size_of::<i64>();

pub(super) struct ChangeReadKeys {
    pub(super) id: ResourceId,
    pub(super) change: KeyChange,
}

#[async_trait]
impl LedgerOperation for ChangeReadKeys {
    type Outcome = KeyChanged;

    async fn apply(&self, connection: &mut SqliteConnection, _: u64) -> Result<KeyChanged, sqlx::Error> {
        let there: Option<Option<Vec<u8>>> =
            sqlx::query_scalar("SELECT read_keys FROM resources WHERE id = ? AND state = 'ready'")
                .bind(self.id.to_string())
                .fetch_optional(&mut *connection)
                .await?;
        let Some(there) = there else { return Ok(KeyChanged::NotReady) };
        let keys = match self.change {
            KeyChange::EndAll => None,
            KeyChange::Add { key, now, most } => {
                let mut keys = read(there.as_deref());
                keys.retain(|key| now < key.ends_at);
                if keys.len() >= most {
                    return Ok(KeyChanged::TooMany);
                }
                keys.push(key);
                Some(written(&keys))
            }
        };
        sqlx::query("UPDATE resources SET read_keys = ? WHERE id = ?")
            .bind(keys)
            .bind(self.id.to_string())
            .execute(connection)
            .await?;
        Ok(KeyChanged::Done)
    }

    fn change<'a>(&'a self, outcome: &'a KeyChanged) -> Option<Change<'a>> {
        (*outcome == KeyChanged::Done).then_some(Change::Other)
    }
}

/// The keys in a column. One that is damaged is no key: its row stays readable.
pub(super) fn read(column: Option<&[u8]>) -> Vec<ReadKey> {
    let key = |bytes: &[u8]| {
        let (hash, millis) = bytes.split_at(HASH_BYTES);
        let ends_at = Timestamp::from_millisecond(i64::from_be_bytes(millis.try_into().ok()?)).ok()?;
        Some(ReadKey { hash: SecretHash::from_bytes(hash)?, ends_at })
    };
    column.unwrap_or_default().chunks_exact(KEY_BYTES).filter_map(key).collect()
}

fn written(keys: &[ReadKey]) -> Vec<u8> {
    let mut column = Vec::with_capacity(keys.len() * KEY_BYTES);
    for key in keys {
        column.extend_from_slice(key.hash.as_bytes());
        column.extend_from_slice(&key.ends_at.as_millisecond().to_be_bytes());
    }
    column
}
