use super::*;
use cloakroom_core::resource::OwnerKind;

fn owner(namespace: &str, keys: impl IntoIterator<Item = String>) -> Owner {
    let labels = keys.into_iter().map(|key| (key, "x".to_owned()));
    Owner::new(OwnerKind::default(), namespace, labels, Some("driver")).unwrap()
}

fn keys(from: usize, to: usize) -> impl Iterator<Item = String> {
    (from..to).map(|number| format!("k{number}"))
}

#[test]
fn keys_that_each_look_asks_for_stay_and_others_go_with_the_look_after() {
    let (both, one) = (owner("a", keys(0, 2)), owner("a", keys(0, 1)));
    let mut wanted = Wanted::default();
    assert_eq!(wanted.want(&both), Ok(true));
    assert_eq!(wanted.want(&one), Ok(false));
    assert!(wanted.looked().is_empty(), "it may have been asked for after its place in the look");
    for lost in [vec!["a".into()], Vec::<Arc<str>>::new()] {
        assert_eq!(wanted.want(&one), Ok(false));
        assert_eq!(wanted.looked(), lost);
    }
    assert!(wanted.has_since(&one, u64::MAX) && !wanted.has_since(&both, u64::MAX));
    assert!(!wanted.is_unused());
    assert_eq!(wanted.looked(), ["a".into()]);
    assert!(wanted.is_unused() && wanted.namespaces.is_empty());
    assert_eq!(wanted.count, 0);
}

#[test]
fn a_key_that_comes_back_needs_a_new_list() {
    let one = owner("a", keys(0, 1));
    let mut wanted = Wanted::default();
    wanted.want(&one).unwrap();
    let listed = wanted.version();
    assert!(wanted.has_since(&one, listed));
    wanted.looked();
    wanted.looked();
    assert_eq!(wanted.want(&one), Ok(true));
    assert!(!wanted.has_since(&one, listed));
}

#[test]
fn keys_that_an_upload_needs_stay_until_it_is_over() {
    let one = owner("a", keys(0, 1));
    let mut wanted = Wanted::default();
    wanted.hold(&one).unwrap();
    wanted.hold(&one).unwrap();
    for _ in 0..3 {
        assert!(wanted.looked().is_empty());
    }
    wanted.let_go(&one);
    assert!(wanted.looked().is_empty() && !wanted.is_unused());
    wanted.let_go(&one);
    assert!(wanted.is_unused());
    assert_eq!(wanted.looked(), ["a".into()]);
}

#[test]
fn the_bounds_are_those_in_the_documentation() {
    assert_eq!((MOST_OF_NAMESPACE, MOST_OF_KIND), (1000, 100_000));
}

#[test]
fn a_namespace_has_its_own_room_for_keys_and_an_owner_gets_all_or_none() {
    let mut wanted = Wanted::default();
    for from in (0..MOST_OF_NAMESPACE - 40).step_by(60) {
        wanted.want(&owner("a", keys(from, from + 60))).unwrap();
    }
    let left = MOST_OF_NAMESPACE - wanted.count;
    assert!(left < 60);
    let too_many = owner("a", keys(5000, 5001 + left));
    assert_eq!(wanted.want(&too_many), Err(TooManyKeys::InNamespace));
    assert_eq!(wanted.hold(&too_many), Err(TooManyKeys::InNamespace));
    assert!(wanted.is_full_for(&too_many) && !wanted.has_since(&too_many, u64::MAX));
    assert_eq!(wanted.count, MOST_OF_NAMESPACE - left);
    assert_eq!(wanted.want(&owner("b", keys(5000, 5060))), Ok(true));
    assert_eq!(wanted.want(&owner("a", keys(5000, 5000 + left))), Ok(true));
}

#[test]
fn all_namespaces_together_have_a_bound() {
    let mut wanted = Wanted::default();
    for namespace in 0..MOST_OF_KIND / 50 {
        wanted.want(&owner(&format!("ns{namespace}"), keys(0, 50))).unwrap();
    }
    assert_eq!(wanted.count, MOST_OF_KIND);
    assert_eq!(wanted.want(&owner("more", keys(0, 1))), Err(TooManyKeys::InAll));
    assert_eq!(wanted.want(&owner("ns0", keys(0, 50))), Ok(false));
    assert_eq!(wanted.want(&owner("more", [])), Ok(false), "a name alone needs no key");
}
