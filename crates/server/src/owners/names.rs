//! Names of the objects that carry one label. There is mostly one name, and sometimes there are all names of a
//! namespace.

use std::collections::HashSet;
use std::sync::Arc;

/// At least one name. With a set for each single name, the sets would take most of the memory of 100,000 pods.
#[derive(Debug)]
#[expect(
    clippy::box_collection,
    reason = "a set is twice as large as its one name, and there are 100,000 of them"
)]
pub(super) enum OwnerNames {
    One(Arc<str>),
    Many(Box<HashSet<Arc<str>>>),
}

impl OwnerNames {
    pub(super) fn insert(&mut self, name: &Arc<str>) {
        match self {
            Self::One(one) if one == name => {}
            Self::One(one) => {
                *self = Self::Many(Box::new(HashSet::from([Arc::clone(one), Arc::clone(name)])));
            }
            Self::Many(names) => drop(names.insert(Arc::clone(name))),
        }
    }

    /// Removes a name. Returns `true` if none is left, so that the entry must be removed as well.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        match self {
            Self::One(one) => &**one == name,
            Self::Many(names) => {
                names.remove(name);
                names.is_empty()
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(names) => names.len(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let (one, many) = match self {
            Self::One(one) => (Some(one), None),
            Self::Many(names) => (None, Some(names)),
        };
        one.into_iter().chain(many.into_iter().flat_map(|names| names.iter())).map(|name| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_added_and_removed() {
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let mut names = OwnerNames::One(Arc::clone(&a));
        names.insert(&a);
        assert_eq!((names.len(), names.iter().collect::<Vec<_>>()), (1, vec!["a"]));
        names.insert(&b);
        names.insert(&b);
        assert_eq!(names.len(), 2);
        assert!(!names.remove("a"));
        assert_eq!(names.iter().collect::<Vec<_>>(), ["b"]);
        assert!(names.remove("b"));
        assert!(OwnerNames::One(a).remove("a"));
    }
}
