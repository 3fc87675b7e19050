//! Read keys: the right to download one resource for a time, for programs that can send no header.

use std::time::Duration;

use jiff::Timestamp;

use super::{AccessError, Staging};
use crate::ledger::{KeyChange, KeyChanged};
use cloakroom_core::resource::{ReadKey, Ready, Resource, ResourceId, ResourceSecret};

/// How many keys a resource has at most. None makes room for another one, because the oldest may serve a running cluster.
pub const MOST_READ_KEYS: usize = 16;

impl Staging {
    /// The resource that a read key gives access to. Of one that is deleted no key is left.
    pub async fn find_by_key(
        &self,
        id: ResourceId,
        key: &ResourceSecret,
    ) -> Result<Resource<Ready>, AccessError> {
        let found = self.parts.look_up(id).await?.and_then(Resource::into_ready);
        let resource = found.ok_or(AccessError::WrongKey)?;
        let now = self.parts.clock.now();
        let mut keys = resource.data.read_keys.iter();
        if !keys.any(|known| known.opens(key, now)) || self.parts.ended_by_age(&resource).is_some() {
            return Err(AccessError::WrongKey);
        }
        Ok(resource)
    }

    /// Makes a read key for the holder of a ticket, which ends after `ttl`.
    pub async fn make_read_key(
        &self,
        id: ResourceId,
        secret: &ResourceSecret,
        ttl: Duration,
    ) -> Result<(ResourceSecret, Timestamp), AccessError> {
        let resource = self.find(id, secret).await?;
        let key = ResourceSecret::generate(&mut rand::rng());
        let now = self.parts.clock.now();
        let ends_at = now.checked_add(ttl).unwrap_or(Timestamp::MAX);
        let added = ReadKey { hash: key.hash(), ends_at };
        let change = KeyChange::Add { key: added, now, most: MOST_READ_KEYS };
        self.change_read_keys(&resource, change).await?;
        Ok((key, ends_at))
    }

    /// Ends all read keys, for the holder of a ticket.
    pub async fn end_read_keys(&self, id: ResourceId, secret: &ResourceSecret) -> Result<(), AccessError> {
        let resource = self.find(id, secret).await?;
        self.change_read_keys(&resource, KeyChange::EndAll).await
    }

    async fn change_read_keys(
        &self,
        resource: &Resource<Ready>,
        change: KeyChange,
    ) -> Result<(), AccessError> {
        match self.parts.ledger.change_read_keys(resource.id, change).await? {
            KeyChanged::Done => Ok(()),
            KeyChanged::TooMany => Err(AccessError::TooManyKeys),
            KeyChanged::NotReady => {
                Err(self.parts.gone_since(resource).await?.unwrap_or(AccessError::NotFound))
            }
        }
    }
}
