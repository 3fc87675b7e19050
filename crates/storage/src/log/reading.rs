//! Reads the log behind a copy, some groups ahead, because a distant bucket takes a while for each.

use std::collections::VecDeque;
use std::iter;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::{Group, LogError, LogStore, Object, Position};
use crate::stamp::Installation;

/// How many groups are read at once. It begins with two, and doubles: most logs are short.
const MOST_AT_ONCE: usize = 32;

/// A log that is being read.
pub(super) struct Reading<'a> {
    store: &'a dyn LogStore,
    installation: Installation,
    /// The place of the next group.
    next: Position,
    at_once: usize,
    /// What is there from the next place on.
    ahead: VecDeque<Option<Bytes>>,
}

impl<'a> Reading<'a> {
    /// The log behind the copy `at`.
    pub(super) fn behind(at: Position, installation: Installation, store: &'a dyn LogStore) -> Self {
        Self { store, installation, next: at.next(), at_once: 1, ahead: VecDeque::new() }
    }

    /// The next group; `None` if the log ends.
    pub(super) async fn next(&mut self) -> Result<Option<Group>, LogError> {
        let at = self.next;
        if self.ahead.is_empty() {
            self.read_from(at).await?;
        }
        let Some(bytes) = self.ahead.pop_front().flatten() else {
            return self.ends_at(at).await.map(|()| None);
        };
        self.next = at.next();
        let place = || self.store.shown(Object::Group(at));
        let group = Group::decode(&bytes).map_err(|damage| LogError::Damaged { place: place(), damage })?;
        if group.at != at || group.installation != self.installation {
            return Err(LogError::Misplaced { place: place(), says: group.at, of: group.installation });
        }
        Ok(Some(group))
    }

    /// The last server may have sent one group that never arrived, but none behind it.
    async fn ends_at(&mut self, missing: Position) -> Result<(), LogError> {
        if self.ahead.is_empty() {
            self.ahead.push_back(self.store.group(missing.next()).await?);
        }
        if self.ahead.iter().any(Option::is_some) {
            return Err(LogError::Gap(self.store.shown(Object::Group(missing))));
        }
        Ok(())
    }

    async fn read_from(&mut self, first: Position) -> Result<(), LogError> {
        self.at_once = (self.at_once * 2).min(MOST_AT_ONCE);
        let places = iter::successors(Some(first), |at| Some(at.next())).take(self.at_once);
        let groups = stream::iter(places).map(|at| self.store.group(at)).buffered(MOST_AT_ONCE);
        self.ahead = groups.try_collect().await?;
        Ok(())
    }
}
