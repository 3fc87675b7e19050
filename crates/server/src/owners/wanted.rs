//! The label keys that the owners of resources need, by namespace.
//!
//! Clients choose the keys. So their number is limited, and they are forgotten when no resource needs them any more.

use std::collections::HashMap;
use std::sync::Arc;

use cloakroom_core::resource::Owner;

/// The largest number of keys in one namespace, so that one namespace cannot take the room of all others.
pub(super) const MOST_OF_NAMESPACE: usize = 1000;

/// The largest number of keys of one kind in all namespaces. A key that two namespaces need counts twice.
pub(super) const MOST_OF_KIND: usize = 100_000;

/// The label keys of one kind, by namespace.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    namespaces: HashMap<Arc<str>, Keys>,
    count: usize,
    version: u64,
    /// The number of completed looks at all ready resources.
    looks: u64,
    /// The use of the kind itself, because an owner may have a name and no labels.
    kind: Usage,
}

/// The keys of one namespace.
pub(super) type Keys = HashMap<Arc<str>, Key>;

#[derive(Debug)]
pub(super) struct Key {
    /// The version in which the key was added.
    since: u64,
    usage: Usage,
}

/// By what a key or a kind is needed.
#[derive(Debug, Default)]
struct Usage {
    /// The number of uploads in flight that need it.
    uploads: usize,
    /// The value of `looks` when a resource last needed it; `None` if no resource has needed it.
    asked: Option<u64>,
}

impl Usage {
    fn is_over(&self, looks: u64) -> bool {
        self.uploads == 0 && self.asked.is_none_or(|asked| asked < looks)
    }
}

/// There is no room for the owner's label keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TooManyKeys {
    InNamespace,
    InAll,
}

impl Wanted {
    /// Registers all label keys of a resource's owner, or none. Returns `true` if one of them is new, so that
    /// everything must be listed again.
    pub(super) fn want(&mut self, owner: &Owner) -> Result<bool, TooManyKeys> {
        let is_new = self.add(owner)?;
        let looks = self.looks;
        self.for_each_usage(owner, |usage| usage.asked = Some(looks));
        Ok(is_new)
    }

    /// Does the same for an upload in flight. The keys stay until [`Wanted::let_go`].
    pub(super) fn hold(&mut self, owner: &Owner) -> Result<bool, TooManyKeys> {
        let is_new = self.add(owner)?;
        self.for_each_usage(owner, |usage| usage.uploads += 1);
        Ok(is_new)
    }

    /// Ends what [`Wanted::hold`] began. If the upload became a resource, the next look registers its owner.
    pub(super) fn let_go(&mut self, owner: &Owner) {
        self.for_each_usage(owner, |usage| usage.uploads = usage.uploads.saturating_sub(1));
    }

    /// Tells that a sweep has looked at all ready resources. Forgets the keys that were not registered since the look
    /// before this one, and returns the namespaces that lost keys.
    pub(super) fn looked(&mut self) -> Vec<Arc<str>> {
        let looks = self.looks;
        let mut lost = Vec::new();
        for (namespace, keys) in &mut self.namespaces {
            let before = keys.len();
            keys.retain(|_, key| !key.usage.is_over(looks));
            if keys.len() < before {
                self.count -= before - keys.len();
                keys.shrink_to_fit();
                lost.push(Arc::clone(namespace));
            }
        }
        self.namespaces.retain(|_, keys| !keys.is_empty());
        if self.kind.is_over(looks) {
            self.kind.asked = None;
        }
        self.looks += 1;
        lost
    }

    /// The number of keys: in all namespaces, and in the namespace with the most of them.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.count, self.namespaces.values().map(HashMap::len).max().unwrap_or(0))
    }

    /// Whether no resource and no upload needs this kind.
    pub(super) fn is_unused(&self) -> bool {
        self.kind.uploads == 0 && self.kind.asked.is_none()
    }

    /// The version of the keys, which grows with each new key. A list that begins now has all keys up to this version.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// The keys of a namespace.
    pub(super) fn of(&self, namespace: &str) -> Option<&Keys> {
        self.namespaces.get(namespace)
    }

    /// Whether a list that began with `version` has all labels that the owner needs.
    pub(super) fn has_since(&self, owner: &Owner, version: u64) -> bool {
        let keys = self.of(owner.namespace());
        let has = |key: &str| keys.and_then(|keys| keys.get(key)).is_some_and(|key| key.since <= version);
        owner.labels().all(|(key, _)| has(key))
    }

    /// Whether there is no room for the owner's keys.
    pub(super) fn is_full_for(&self, owner: &Owner) -> bool {
        self.new_keys(owner).is_err()
    }

    /// The owner's keys that are not in use yet, if there is room for them.
    fn new_keys(&self, owner: &Owner) -> Result<Vec<Arc<str>>, TooManyKeys> {
        let known = self.of(owner.namespace());
        let is_new = |key: &&str| known.is_none_or(|known| !known.contains_key(*key));
        let new: Vec<Arc<str>> = owner.labels().map(|(key, _)| key).filter(is_new).map(Arc::from).collect();
        if new.is_empty() {
            Ok(new)
        } else if known.map_or(0, HashMap::len) + new.len() > MOST_OF_NAMESPACE {
            Err(TooManyKeys::InNamespace)
        } else if self.count + new.len() > MOST_OF_KIND {
            Err(TooManyKeys::InAll)
        } else {
            Ok(new)
        }
    }

    fn add(&mut self, owner: &Owner) -> Result<bool, TooManyKeys> {
        let new = self.new_keys(owner)?;
        if new.is_empty() {
            return Ok(false);
        }
        self.count += new.len();
        self.version += 1;
        let since = self.version;
        let keys = self.namespaces.entry(Arc::from(owner.namespace())).or_default();
        keys.extend(new.into_iter().map(|key| (key, Key { since, usage: Usage::default() })));
        Ok(true)
    }

    fn for_each_usage(&mut self, owner: &Owner, mut change: impl FnMut(&mut Usage)) {
        change(&mut self.kind);
        let Some(keys) = self.namespaces.get_mut(owner.namespace()) else { return };
        for (key, _) in owner.labels() {
            if let Some(key) = keys.get_mut(key) {
                change(&mut key.usage);
            }
        }
    }
}

#[cfg(test)]
mod tests;
