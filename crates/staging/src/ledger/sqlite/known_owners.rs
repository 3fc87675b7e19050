//! The owners that stay in memory. Equal owners are kept once, and only as many as the memory allows.

use std::collections::HashMap;
use std::sync::Arc;

use cloakroom_core::resource::Owner;

/// Bytes that an entry of the map takes, with its part of the map's free places.
const ENTRY_BYTES: usize = 48;

/// Owners, each with the number of ready resources that have it.
#[derive(Debug, Default)]
pub(super) struct KnownOwners {
    counts: HashMap<Arc<Owner>, usize>,
    bytes: usize,
    room_bytes: usize,
}

impl KnownOwners {
    pub(super) fn new(room_bytes: usize) -> Self {
        Self { counts: HashMap::new(), bytes: 0, room_bytes }
    }

    /// How many bytes of memory are taken.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps `owner` for one more resource; `None` if there is no memory for it.
    pub(super) fn keep(&mut self, owner: Arc<Owner>) -> Option<Arc<Owner>> {
        if let Some((known, _)) = self.counts.get_key_value(&owner) {
            let known = Arc::clone(known);
            self.counts.entry(owner).and_modify(|count| *count += 1);
            return Some(known);
        }
        let bytes = owner.memory_bytes() + ENTRY_BYTES;
        if self.bytes + bytes > self.room_bytes {
            return None;
        }
        self.bytes += bytes;
        self.counts.insert(Arc::clone(&owner), 1);
        Some(owner)
    }

    /// Records that one resource of `owner` is gone.
    pub(super) fn let_go(&mut self, owner: &Arc<Owner>) {
        let Some(count) = self.counts.get_mut(owner) else { return };
        *count -= 1;
        if *count == 0 {
            self.counts.remove(owner);
            self.bytes -= owner.memory_bytes() + ENTRY_BYTES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloakroom_core::resource::OwnerKind;

    fn owner(name: &str) -> Arc<Owner> {
        Arc::new(Owner::new(OwnerKind::default(), "demo", [], Some(name)).unwrap())
    }

    #[test]
    fn equal_owners_are_kept_once_and_an_owner_without_room_is_not_kept() {
        let one = owner("a");
        let mut known = KnownOwners::new(2 * (one.memory_bytes() + ENTRY_BYTES));
        let first = known.keep(one).unwrap();
        assert!(Arc::ptr_eq(&first, &known.keep(owner("a")).unwrap()));
        known.keep(owner("b")).unwrap();
        assert!(known.keep(owner("c")).is_none());
        known.let_go(&first);
        assert!(known.keep(owner("c")).is_none(), "one of two is still there");
        known.let_go(&first);
        known.keep(owner("c")).unwrap();
        known.let_go(&owner("b"));
        known.let_go(&owner("c"));
        assert_eq!((known.bytes, known.counts.len()), (0, 0));
    }
}
