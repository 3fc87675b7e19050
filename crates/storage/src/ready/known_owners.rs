//! The owners of ready resources, in memory. Equal ones are kept once.

use std::collections::HashMap;
use std::sync::Arc;

use super::OwnerMemory;
use cloakroom_core::resource::Owner;

/// Bytes that an entry of the map takes, with its part of the map's free places.
const ENTRY_BYTES: usize = 48;

/// Owners, each with the number of ready resources that have it, and the memory that they take.
#[derive(Debug, Default)]
pub(super) struct KnownOwners {
    counts: HashMap<Arc<Owner>, usize>,
    bytes: usize,
    /// The bytes of each namespace.
    bytes_in: HashMap<Box<str>, usize>,
}

impl KnownOwners {
    /// The memory that `owner` needs, and that all owners have.
    pub(super) fn memory(&self, owner: &Owner) -> OwnerMemory {
        let needed = if self.counts.contains_key(owner) { 0 } else { bytes_of(owner) };
        let in_namespace = self.bytes_in.get(owner.namespace()).copied().unwrap_or(0);
        OwnerMemory {
            needed: needed as u64,
            taken: self.bytes as u64,
            taken_in_namespace: in_namespace as u64,
        }
    }

    /// How many bytes all owners take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many bytes the owners of one namespace take at most.
    pub(super) fn most_bytes(&self) -> usize {
        self.bytes_in.values().copied().max().unwrap_or(0)
    }

    /// Keeps `owner` for one more resource.
    pub(super) fn keep(&mut self, owner: Owner) -> Arc<Owner> {
        if let Some((known, _)) = self.counts.get_key_value(&owner) {
            let known = Arc::clone(known);
            self.counts.entry(Arc::clone(&known)).and_modify(|count| *count += 1);
            return known;
        }
        let bytes = bytes_of(&owner);
        self.bytes += bytes;
        *self.bytes_in.entry(owner.namespace().into()).or_default() += bytes;
        let owner = Arc::new(owner);
        self.counts.insert(Arc::clone(&owner), 1);
        owner
    }

    /// Records that one resource of `owner` is gone.
    pub(super) fn let_go(&mut self, owner: &Arc<Owner>) {
        let Some(count) = self.counts.get_mut(owner) else { return };
        *count -= 1;
        if *count > 0 {
            return;
        }
        self.counts.remove(owner);
        let bytes = bytes_of(owner);
        self.bytes -= bytes;
        if let Some(in_namespace) = self.bytes_in.get_mut(owner.namespace()) {
            *in_namespace -= bytes;
            if *in_namespace == 0 {
                self.bytes_in.remove(owner.namespace());
            }
        }
    }
}

fn bytes_of(owner: &Owner) -> usize {
    owner.memory_bytes() + ENTRY_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloakroom_core::resource::OwnerKind;

    fn owner(namespace: &str, name: &str) -> Owner {
        Owner::new(OwnerKind::default(), namespace, [], Some(name)).unwrap()
    }

    #[test]
    fn equal_owners_are_kept_once_and_counted_for_their_namespace() {
        let mut known = KnownOwners::default();
        let bytes = bytes_of(&owner("demo", "a"));
        let one = bytes as u64;
        let first = known.keep(owner("demo", "a"));
        assert!(Arc::ptr_eq(&first, &known.keep(owner("demo", "a"))));
        let memory = |needed, taken, taken_in_namespace| OwnerMemory { needed, taken, taken_in_namespace };
        assert_eq!(known.memory(&first), memory(0, one, one));
        assert_eq!(known.memory(&owner("demo", "b")), memory(one, one, one));
        let other = known.keep(owner("test", "a"));
        assert_eq!(known.memory(&owner("test", "b")), memory(one, 2 * one, one));
        known.let_go(&first);
        assert_eq!(known.memory(&first), memory(0, 2 * one, one), "one of two is still there");
        known.let_go(&first);
        assert_eq!((known.memory(&first), known.most_bytes()), (memory(one, one, 0), bytes));
        known.let_go(&other);
        assert_eq!((known.bytes, known.counts.len(), known.bytes_in.len()), (0, 0, 0));
    }
}
