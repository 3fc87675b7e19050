use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use cloakroom_core::resource::OwnerKind;

fn owner(namespace: &str, labels: &[(&str, &str)], name: Option<&str>) -> Owner {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Owner::new(OwnerKind::default(), namespace, labels, name).unwrap()
}

/// Has no object yet; these keys are in use in each namespace of the tests.
fn objects(keys: &[&str]) -> Objects {
    let mut objects = Objects::default();
    let labels: Vec<(&str, &str)> = keys.iter().map(|key| (*key, "x")).collect();
    for namespace in ["a", "b", "ns"] {
        objects.wanted.want(&owner(namespace, &labels, None)).unwrap();
    }
    objects
}

#[test]
fn an_owner_is_found_by_all_labels_or_its_name_in_its_namespace_only() {
    let mut objects = objects(&["app", "role"]);
    objects.apply(
        Source::All,
        1,
        "a",
        "driver",
        [("app", "x"), ("role", "driver"), ("other", "y")].into_iter(),
    );
    for (sought, found) in [
        (owner("a", &[("app", "x")], None), true),
        (owner("a", &[("app", "x"), ("role", "driver")], None), true),
        (owner("a", &[("app", "x"), ("role", "executor")], None), false),
        (owner("b", &[("app", "x")], None), false),
        (owner("a", &[], Some("driver")), true),
        (owner("a", &[("role", "driver")], Some("driver")), true),
        (owner("a", &[("role", "executor")], Some("driver")), false),
        (owner("a", &[], Some("other")), false),
    ] {
        assert_eq!(objects.find(&sought).only_in_all, found, "{sought:?}");
    }
}

#[test]
fn a_pod_is_found_with_the_watches_that_have_it() {
    let mut objects = objects(&["app"]);
    let sought = owner("a", &[("app", "x")], None);
    let labels = || [("app", "x")].into_iter();
    objects.apply(Source::All, 1, "a", "driver", labels());
    assert!(objects.find(&sought).only_in_all);
    objects.apply(Source::Unfinished, 1, "a", "driver", labels());
    assert!(objects.find(&sought).in_both);
    objects.remove(Source::Unfinished, "a", "driver");
    assert_eq!(objects.find(&sought), Found { only_in_all: true, ..Found::default() });
    objects.apply(Source::Unfinished, 1, "a", "driver", labels());
    objects.remove(Source::All, "a", "driver");
    assert_eq!(objects.find(&sought), Found { only_in_unfinished: true, ..Found::default() });
    objects.remove(Source::Unfinished, "a", "driver");
    assert_eq!(objects.find(&sought), Found::default());
    assert_eq!(objects.len(), 0);
}

#[test]
fn a_complete_list_removes_the_other_objects_of_its_namespace_alone() {
    let mut objects = objects(&["app"]);
    for namespace in ["a", "b"] {
        objects.apply(Source::All, 1, namespace, "old", [("app", "x")].into_iter());
    }
    objects.apply(Source::All, 2, "a", "new", [("app", "y")].into_iter());
    objects.finish_list(Source::All, 2, Some("a"));
    assert_eq!(objects.find(&owner("a", &[("app", "x")], None)), Found::default());
    assert!(objects.find(&owner("a", &[("app", "y")], None)).only_in_all);
    assert!(objects.find(&owner("b", &[("app", "x")], None)).only_in_all);
    assert_eq!(objects.len(), 2);
    objects.finish_list(Source::All, 2, Some("b"));
    assert_eq!(
        objects.namespaces.keys().map(|name| &**name).collect::<Vec<_>>(),
        ["a"],
        "nothing is left in b"
    );
}

#[test]
fn labels_that_no_object_carries_any_more_take_no_memory() {
    let mut objects = objects(&["app"]);
    let names = ["one", "two"];
    for value in ["x", "y"] {
        for name in names {
            objects.apply(Source::All, 1, "a", name, [("app", value)].into_iter());
        }
    }
    let carriers = |objects: &Objects, value: &str| {
        objects.namespaces["a"].by_label["app"].get(value).map(OwnerNames::len)
    };
    assert_eq!((carriers(&objects, "x"), carriers(&objects, "y")), (None, Some(2)));
    objects.remove(Source::All, "a", "one");
    assert_eq!(carriers(&objects, "y"), Some(1));
}

#[test]
fn labels_whose_key_is_forgotten_go_and_others_stay() {
    let mut objects = objects(&["app", "role"]);
    let labels = || [("app", "x"), ("role", "driver")].into_iter();
    objects.apply(Source::All, 1, "a", "driver", labels());
    objects.looked();
    let app = owner("a", &[("app", "x")], None);
    objects.wanted.want(&app).unwrap();
    objects.looked();
    let place = &objects.namespaces["a"];
    assert_eq!(place.by_label.keys().map(|key| &**key).collect::<Vec<_>>(), ["app"]);
    assert_eq!(place.by_name["driver"].labels.len(), 1);
    assert!(objects.find(&app).only_in_all);
    assert_eq!(objects.find(&owner("a", &[("role", "driver")], None)), Found::default());
    // A second report and the removal find each entry once, and leave none behind.
    objects.apply(Source::All, 1, "a", "driver", labels());
    objects.remove(Source::All, "a", "driver");
    assert!(objects.namespaces.is_empty());
}

#[test]
fn keys_that_are_asked_for_in_one_namespace_cost_nothing_in_another() {
    let mut objects = Objects::default();
    objects.wanted.want(&owner("a", &[("app", "x")], None)).unwrap();
    for namespace in ["a", "b"] {
        objects.apply(Source::All, 1, namespace, "driver", [("app", "x")].into_iter());
    }
    assert_eq!(objects.namespaces["a"].by_name["driver"].labels.len(), 1);
    assert!(objects.namespaces["b"].by_name["driver"].labels.is_empty());
}

#[derive(Debug, Clone)]
enum Change {
    Apply(usize, BTreeMap<usize, usize>),
    Remove(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let labels = proptest::collection::btree_map(0_usize..3, 0_usize..3, 0..3);
    prop_oneof![
        3 => (0_usize..6, labels).prop_map(|(name, labels)| Change::Apply(name, labels)),
        1 => (0_usize..6).prop_map(Change::Remove),
    ]
}

proptest! {
    // Invariant: the watches know what a plain search would find.
    #[test]
    fn what_is_found_is_what_a_plain_search_finds(changes in proptest::collection::vec(change(), 0..40)) {
        let text = |prefix: &str, number: usize| format!("{prefix}{number}");
        let mut indexed = objects(&["k0", "k1", "k2"]);
        let mut plain: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for change in changes {
            match change {
                Change::Apply(name, labels) => {
                    let labels: BTreeMap<_, _> =
                        labels.into_iter().map(|(key, value)| (text("k", key), text("v", value))).collect();
                    let pairs = labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
                    indexed.apply(Source::All, 1, "ns", &text("n", name), pairs);
                    plain.insert(text("n", name), labels);
                }
                Change::Remove(name) => {
                    indexed.remove(Source::All, "ns", &text("n", name));
                    plain.remove(&text("n", name));
                }
            }
            for (first, second) in [(0, 1), (1, 2), (0, 0), (2, 2)] {
                for value in 0..3 {
                    let labels: BTreeSet<_> =
                        [(text("k", first), text("v", value)), (text("k", second), text("v", value))].into();
                    let sought = Owner::new(OwnerKind::default(), "ns", labels.clone(), None).unwrap();
                    let expected = plain.values().any(|carried| {
                        labels.iter().all(|(key, value)| carried.get(key) == Some(value))
                    });
                    prop_assert_eq!(indexed.find(&sought).only_in_all, expected);
                }
            }
        }
        prop_assert_eq!(indexed.len(), plain.len());
        if plain.is_empty() {
            prop_assert!(indexed.namespaces.is_empty());
        }
    }
}
