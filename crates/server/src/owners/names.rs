//! Names of the objects that carry a label: nearly always one, and sometimes all of a namespace.

use std::collections::HashSet;
use std::sync::Arc;

/// At least one name. A set for a single one would be most of the memory that 100,000 pods take.
#[derive(Debug)]
#[expect(
    clippy::box_collection,
    reason = "a set is twice as large as its one name, and there are 100,000 of them"
)]
pub(super) enum Names {
    One(Arc<str>),
    Many(Box<HashSet<Arc<str>>>),
}

impl Names {
    pub(super) fn insert(&mut self, name: &Arc<str>) {
        match self {
            Self::One(one) if one == name => {}
            Self::One(one) => {
                *self = Self::Many(Box::new(HashSet::from([Arc::clone(one), Arc::clone(name)])));
            }
            Self::Many(names) => drop(names.insert(Arc::clone(name))),
        }
    }

    /// `true` if none is left, so that this must go too.
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
    fn names_come_and_go() {
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let mut names = Names::One(Arc::clone(&a));
        names.insert(&a);
        assert_eq!((names.len(), names.iter().collect::<Vec<_>>()), (1, vec!["a"]));
        names.insert(&b);
        names.insert(&b);
        assert_eq!(names.len(), 2);
        assert!(!names.remove("a"));
        assert_eq!(names.iter().collect::<Vec<_>>(), ["b"]);
        assert!(names.remove("b"));
        assert!(Names::One(a).remove("a"));
    }
}
