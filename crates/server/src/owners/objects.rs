//! The objects of one kind, by name and by the labels that staged resources need.

use std::collections::HashMap;
use std::sync::Arc;

use super::names::OwnerNames;
use super::wanted::{Keys, Wanted};
use cloakroom_core::resource::Owner;

/// Which watch of a kind reported an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The watch of all objects.
    All = 0,
    /// The watch of pods that have not finished.
    Unfinished = 1,
}

/// Which watches have objects of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Found {
    /// At least one object is in both watches.
    pub(super) in_both: bool,
    /// At least one object is only in the watch of all objects.
    pub(super) only_in_all: bool,
    /// At least one object is only in the watch of unfinished pods.
    pub(super) only_in_unfinished: bool,
}

/// The objects of one kind. A label is kept only if an owner in its namespace needs its key. So memory grows with the
/// number of resources and objects, and not with other metadata in the cluster.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) wanted: Wanted,
    namespaces: HashMap<Arc<str>, Namespace>,
}

#[derive(Debug, Default)]
struct Namespace {
    by_name: HashMap<Arc<str>, Object>,
    by_label: HashMap<Arc<str>, Carriers>,
}

/// The names of the objects that carry a label key, by the label's value.
type Carriers = HashMap<Arc<str>, OwnerNames>;

#[derive(Debug)]
struct Object {
    labels: Box<[(Arc<str>, Arc<str>)]>,
    /// For each source, the number of the list that reported the object last; 0 if no list did, or a watch reported its
    /// deletion.
    passes: [u32; 2],
}

impl Objects {
    /// Tells that a sweep has looked at all ready resources. Forgets the keys that no resource needs any more, and
    /// their labels.
    pub(super) fn looked(&mut self) {
        for namespace in self.wanted.looked() {
            if let Some(place) = self.namespaces.get_mut(&namespace) {
                place.keep_labels(self.wanted.of(&namespace));
            }
        }
    }

    /// How many objects are known.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.namespaces.values().map(|namespace| namespace.by_name.len()).sum()
    }

    /// Adds or updates an object that `source` reported in its list number `pass`, or in the watch after that list.
    pub(super) fn apply<'a>(
        &mut self,
        source: Source,
        pass: u32,
        namespace: &str,
        name: &str,
        labels: impl Iterator<Item = (&'a str, &'a str)>,
    ) {
        let keys = self.wanted.of(namespace);
        let labels: Vec<(Arc<str>, &str)> = labels
            .filter_map(|(key, value)| Some((Arc::clone(keys?.get_key_value(key)?.0), value)))
            .collect();
        if !self.namespaces.contains_key(namespace) {
            self.namespaces.insert(namespace.into(), Namespace::default());
        }
        if let Some(place) = self.namespaces.get_mut(namespace) {
            place.apply(source, pass, name, labels);
        }
    }

    /// Handles a report of `source` that it no longer has an object.
    pub(super) fn remove(&mut self, source: Source, namespace: &str, name: &str) {
        if let Some(place) = self.namespaces.get_mut(namespace) {
            place.remove(source, name);
            if place.by_name.is_empty() {
                self.namespaces.remove(namespace);
            }
        }
    }

    /// Ends a list: forgets the objects that were not in it. `within` is the namespace that was listed; `None` is all.
    pub(super) fn finish_list(&mut self, source: Source, pass: u32, within: Option<&str>) {
        for (name, place) in &mut self.namespaces {
            if within.is_none_or(|within| within == &**name) {
                place.forget_older(source, pass);
            }
        }
        self.namespaces.retain(|_, place| !place.by_name.is_empty());
    }

    /// Finds out which watches have objects of `owner`.
    pub(super) fn find(&self, owner: &Owner) -> Found {
        let mut found = Found::default();
        let Some(place) = self.namespaces.get(owner.namespace()) else { return found };
        for name in place.candidates(owner) {
            let object = place.by_name.get(name).filter(|object| object.has_labels_of(owner));
            match object.map(|object| object.passes.map(|pass| pass > 0)) {
                // No further object could change the answer.
                Some([true, true]) => return Found { in_both: true, ..found },
                Some([true, false]) => found.only_in_all = true,
                Some([false, true]) => found.only_in_unfinished = true,
                _ => {}
            }
        }
        found
    }
}

impl Namespace {
    fn apply(&mut self, source: Source, pass: u32, name: &str, labels: Vec<(Arc<str>, &str)>) {
        let old = self.by_name.get_key_value(name).map(|(name, object)| (Arc::clone(name), object.passes));
        let (name, mut passes) = old.unwrap_or_else(|| (name.into(), [0, 0]));
        passes[source as usize] = pass;
        let same = self.by_name.get(&name).is_some_and(|object| object.has_exactly(&labels));
        if same {
            if let Some(object) = self.by_name.get_mut(&name) {
                object.passes = passes;
            }
            return;
        }
        self.unlink(&name);
        let labels = labels.into_iter().map(|(key, value)| self.link(key, value, &name)).collect();
        self.by_name.insert(name, Object { labels, passes });
    }

    /// Adds the label to the index. Equal texts share their memory.
    fn link(&mut self, key: Arc<str>, value: &str, name: &Arc<str>) -> (Arc<str>, Arc<str>) {
        let values = self.by_label.entry(Arc::clone(&key)).or_default();
        let value = values.get_key_value(value).map_or_else(|| value.into(), |(value, _)| Arc::clone(value));
        match values.get_mut(&value) {
            Some(names) => names.insert(name),
            None => drop(values.insert(Arc::clone(&value), OwnerNames::One(Arc::clone(name)))),
        }
        (key, value)
    }

    fn unlink(&mut self, name: &str) {
        let Some(object) = self.by_name.get(name) else { return };
        for (key, value) in &object.labels {
            let Some(values) = self.by_label.get_mut(key) else { continue };
            if values.get_mut(value).is_some_and(|names| names.remove(name)) {
                values.remove(value);
            }
        }
    }

    fn keep_labels(&mut self, keys: Option<&Keys>) {
        let is_kept = |key: &str| keys.is_some_and(|keys| keys.contains_key(key));
        self.by_label.retain(|key, _| is_kept(key));
        for object in self.by_name.values_mut() {
            if object.labels.iter().any(|(key, _)| !is_kept(key)) {
                let labels = object.labels.iter().filter(|(key, _)| is_kept(key));
                object.labels = labels.cloned().collect();
            }
        }
    }

    fn remove(&mut self, source: Source, name: &str) {
        let Some(object) = self.by_name.get_mut(name) else { return };
        object.passes[source as usize] = 0;
        if object.passes == [0, 0] {
            self.unlink(name);
            self.by_name.remove(name);
        }
    }

    fn forget_older(&mut self, source: Source, pass: u32) {
        let older = |object: &Object| (1..pass).contains(&object.passes[source as usize]);
        let gone: Vec<Arc<str>> = self
            .by_name
            .iter()
            .filter(|(_, object)| older(object))
            .map(|(name, _)| Arc::clone(name))
            .collect();
        for name in gone {
            self.remove(source, &name);
        }
    }

    /// The objects that can be the owner: the one of its name, or those that carry its rarest label.
    fn candidates<'a>(&'a self, owner: &'a Owner) -> Box<dyn Iterator<Item = &'a str> + 'a> {
        if let Some(name) = owner.name() {
            return Box::new(std::iter::once(name));
        }
        let carriers = owner.labels().map(|(key, value)| self.by_label.get(key)?.get(value));
        // A label that no object carries counts as the rarest, so there are no candidates.
        let rarest = carriers.min_by_key(|names| names.map_or(0, OwnerNames::len)).flatten();
        Box::new(rarest.into_iter().flat_map(OwnerNames::iter))
    }
}

impl Object {
    fn has_labels_of(&self, owner: &Owner) -> bool {
        let has = |key: &str, value: &str| self.labels.iter().any(|(k, v)| &**k == key && &**v == value);
        owner.labels().all(|(key, value)| has(key, value))
    }

    fn has_exactly(&self, labels: &[(Arc<str>, &str)]) -> bool {
        self.labels.len() == labels.len()
            && labels.iter().all(|(key, value)| self.labels.iter().any(|(k, v)| k == key && &**v == *value))
    }
}

#[cfg(test)]
mod tests;
