//! The Kubernetes objects that a resource lives for.

use std::collections::BTreeMap;

use super::kind::OwnerKind;
use super::owner_error::{MAX_LABEL_BYTES, MAX_LABELS, OwnerError, shown};
use super::syntax::{is_dns_label, is_dns_subdomain, is_label_key, is_label_value};

/// Which objects own a resource: all objects of `kind` in `namespace` that carry every one of `labels`. If a name is
/// given, they must have that name, too.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    kind: OwnerKind,
    namespace: Box<str>,
    /// `KEY\0VALUE\0` for each label, in the order of the keys. A map would take many times the memory, and there may
    /// be an owner for each resource.
    labels: Box<str>,
    name: Option<Box<str>>,
}

/// Ends each key and each value in memory.
const END: char = '\0';

impl Owner {
    /// Checks every part as Kubernetes' API validation does (`apimachinery/pkg/util/validation`). An owner that can
    /// never exist would keep its resource for ever, or not at all.
    pub fn new(
        kind: OwnerKind,
        namespace: &str,
        labels: impl IntoIterator<Item = (String, String)>,
        name: Option<&str>,
    ) -> Result<Self, OwnerError> {
        check_namespace(namespace)?;
        let labels = checked_labels(labels)?;
        check_name(name)?;
        if labels.is_empty() && name.is_none() {
            return Err(OwnerError::NoSelector);
        }
        Ok(Self { kind, namespace: namespace.into(), labels: packed(&labels), name: name.map(Into::into) })
    }

    /// An owner without objects: the resource counts for the namespace, and time alone ends it.
    pub fn without_objects(namespace: &str) -> Result<Self, OwnerError> {
        check_namespace(namespace)?;
        Ok(Self { kind: OwnerKind::none(), namespace: namespace.into(), labels: "".into(), name: None })
    }

    /// Whether there are objects to look for.
    pub fn has_objects(&self) -> bool {
        !self.kind.is_none()
    }

    /// Takes an owner that this version or another one accepted before. Today's limits on labels do not apply to it.
    /// Returns an error if the owner names nothing that Kubernetes can have, or has a zero byte, which ends texts in
    /// memory.
    pub fn read_back(
        kind: OwnerKind,
        namespace: &str,
        labels: &BTreeMap<String, String>,
        name: Option<&str>,
    ) -> Result<Self, OwnerError> {
        check_namespace(namespace)?;
        check_name(name)?;
        if labels.is_empty() && name.is_none() && !kind.is_none() {
            return Err(OwnerError::NoSelector);
        }
        if let Some((key, _)) = labels.iter().find(|(key, value)| key.contains(END) || value.contains(END)) {
            return Err(OwnerError::LabelKey { key: shown(key) });
        }
        Ok(Self { kind, namespace: namespace.into(), labels: packed(labels), name: name.map(Into::into) })
    }

    /// Checks the name of a namespace (RFC 1123).
    pub fn parse_namespace(text: &str) -> Result<String, OwnerError> {
        check_namespace(text).map(|()| text.to_owned())
    }

    /// Splits `KEY=VALUE` at the first equals sign.
    pub fn split_label(text: &str) -> Result<(String, String), OwnerError> {
        text.split_once('=')
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .ok_or_else(|| OwnerError::LabelWithoutValue { label: shown(text) })
    }

    /// The kind of the owning objects.
    pub fn kind(&self) -> &OwnerKind {
        &self.kind
    }

    /// The namespace they live in.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The labels that all owning objects carry, in the order of their keys.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        let mut parts = self.labels.split_terminator(END);
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    /// Roughly how much memory it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let texts =
            [self.kind.as_str(), &self.namespace, &self.labels, self.name.as_deref().unwrap_or_default()];
        size_of::<Self>() + texts.map(|text| text.len() + ALLOCATION).iter().sum::<usize>()
    }

    /// The name that the owning object must have; `None` if labels alone name the owner.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// Bytes that an allocation takes beside its content.
const ALLOCATION: usize = 16;

fn packed(labels: &BTreeMap<String, String>) -> Box<str> {
    labels.iter().flat_map(|(key, value)| [key, "\0", value, "\0"]).collect::<String>().into()
}

pub(super) fn check_namespace(namespace: &str) -> Result<(), OwnerError> {
    if namespace.is_empty() {
        Err(OwnerError::NoNamespace)
    } else if is_dns_label(namespace) {
        Ok(())
    } else {
        Err(OwnerError::Namespace { namespace: shown(namespace) })
    }
}

fn check_name(name: Option<&str>) -> Result<(), OwnerError> {
    match name.filter(|name| !is_dns_subdomain(name)) {
        Some(name) => Err(OwnerError::Name { name: shown(name) }),
        None => Ok(()),
    }
}

fn checked_labels(
    labels: impl IntoIterator<Item = (String, String)>,
) -> Result<BTreeMap<String, String>, OwnerError> {
    let mut checked = BTreeMap::new();
    for (key, value) in labels {
        if !is_label_key(&key) {
            return Err(OwnerError::LabelKey { key: shown(&key) });
        }
        if !is_label_value(&value) {
            return Err(OwnerError::LabelValue { key, value: shown(&value) });
        }
        if checked.get(&key).is_some_and(|present| *present != value) {
            return Err(OwnerError::LabelTwice { key });
        }
        checked.insert(key, value);
    }
    if checked.len() > MAX_LABELS {
        return Err(OwnerError::TooManyLabels { count: checked.len() });
    }
    let bytes = checked.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > MAX_LABEL_BYTES { Err(OwnerError::LabelsTooLong { bytes }) } else { Ok(checked) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn refusal(namespace: &str, pairs: &[(&str, &str)], name: Option<&str>) -> String {
        Owner::new(OwnerKind::default(), namespace, labels(pairs), name).unwrap_err().to_string()
    }

    #[test]
    fn an_owner_is_named_by_labels_or_by_a_name() {
        for (pairs, name) in [
            (&[("app", "demo")][..], None),
            (&[("spark-app-selector", "spark-0a1b"), ("example.com/role", "")], None),
            (&[], Some("driver.pod-1")),
        ] {
            Owner::new(OwnerKind::default(), "team-a", labels(pairs), name).unwrap();
        }
        assert!(refusal("team-a", &[], None).starts_with("label is missing"));
    }

    #[test]
    fn an_owner_that_kubernetes_would_refuse_is_refused_with_the_field_named() {
        assert!(refusal("", &[("a", "b")], None).starts_with("namespace is missing"));
        for namespace in ["Team", "a_b", "-a", "a-", "a.b", &"a".repeat(64), "a\n"] {
            assert!(refusal(namespace, &[("a", "b")], None).starts_with("namespace “"), "{namespace}");
        }
        for key in ["", "/a", "a/", "A_/b", "a/b/c", "-a", "a b", &"a".repeat(64)] {
            assert!(refusal("ns", &[(key, "b")], None).starts_with("label key “"), "{key}");
        }
        for value in ["-a", "a-", "a b", "a=b", &"a".repeat(64)] {
            assert!(refusal("ns", &[("a", value)], None).starts_with("value “"), "{value}");
        }
        assert!(refusal("ns", &[("a", "b"), ("a", "c")], None).starts_with("label a is given twice"));
        for name in ["", "A", "a_b", "a..b", &"a".repeat(254)] {
            assert!(refusal("ns", &[], Some(name)).starts_with("name “"), "{name}");
        }
    }

    #[test]
    fn labels_are_limited_to_4_kib_and_owners_accepted_before_are_read_back() {
        // A key of 317 bytes and a value of 63 are the longest that Kubernetes takes: 380.
        let key = |number: usize| format!("{}.{}/{number:0>63}", "a".repeat(63), vec!["b"; 95].join("."));
        let long: BTreeMap<String, String> = (0..11).map(|number| (key(number), "v".repeat(63))).collect();
        let bytes = long.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        assert!(bytes > 4096 && bytes < 4500, "{bytes}");
        let refused = Owner::new(OwnerKind::default(), "ns", long.clone(), None).unwrap_err();
        assert_eq!(refused, OwnerError::LabelsTooLong { bytes });
        assert!(refused.to_string().contains("at most 4096"), "{refused}");
        let read = Owner::read_back(OwnerKind::default(), "ns", &long, None).unwrap();
        assert!(read.labels().eq(long.iter().map(|(key, value)| (&**key, &**value))));
        let fits = long.into_iter().take(10);
        Owner::new(OwnerKind::default(), "ns", fits, None).unwrap();
    }

    #[test]
    fn labels_with_empty_values_come_out_as_they_went_in() {
        let pairs = [("a", ""), ("b", "x"), ("c/d", "")];
        let owner = Owner::new(OwnerKind::default(), "ns", labels(&pairs), None).unwrap();
        assert_eq!(owner.labels().collect::<Vec<_>>(), pairs);
    }

    #[test]
    fn an_owner_that_names_nothing_is_not_read_back() {
        let read = |namespace: &str, pairs: &[(&str, &str)], name| {
            let labels = labels(pairs).into_iter().collect();
            Owner::read_back(OwnerKind::default(), namespace, &labels, name)
        };
        assert_eq!(read("ns", &[], None), Err(OwnerError::NoSelector));
        assert_eq!(read("", &[("a", "b")], None), Err(OwnerError::NoNamespace));
        assert!(matches!(read("Bad NS/../", &[("a", "b")], None), Err(OwnerError::Namespace { .. })));
        assert!(matches!(read("ns", &[("a", "b")], Some("D")), Err(OwnerError::Name { .. })));
        assert!(matches!(read("ns", &[("a\0", "b")], None), Err(OwnerError::LabelKey { .. })));
        assert!(read("ns", &[("a b", "c")], Some("d")).is_ok(), "labels as another version took them");
    }

    #[test]
    fn a_label_is_split_at_its_first_equals_sign() {
        assert_eq!(Owner::split_label("a=b=c").unwrap(), ("a".to_owned(), "b=c".to_owned()));
        assert!(Owner::split_label("app").is_err());
    }

    #[test]
    fn an_error_shows_at_most_a_line_of_what_it_refuses() {
        let refused = refusal(&"x\n".repeat(10_000), &[("a", "b")], None);
        assert!(refused.len() < 500 && !refused.contains('\n'), "{refused}");
    }

    proptest! {
        #[test]
        fn an_owner_that_is_accepted_is_kept_as_it_was_given_and_accepted_again(
            kind in "[A-Z][a-z]{0,4}(\\.[a-z.]{0,8})?",
            namespace in "[a-z-]{0,5}|\\PC{0,70}",
            pairs in prop::collection::btree_map("[a-z/.]{0,6}|\\PC{0,3}", "[a-zA-Z_-]{0,6}|\\PC{0,3}", 0..4),
            name in prop::option::of("[a-z.-]{0,8}"),
        ) {
            let Ok(kind) = OwnerKind::parse(&kind) else { return Ok(()) };
            match Owner::new(kind.clone(), &namespace, pairs.clone(), name.as_deref()) {
                Ok(owner) => {
                    prop_assert_eq!((owner.kind(), owner.namespace(), owner.name()), (&kind, &*namespace, name.as_deref()));
                    let kept: BTreeMap<_, _> = owner.labels().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
                    prop_assert_eq!(&kept, &pairs);
                    prop_assert_eq!(Owner::new(kind, &namespace, kept, name.as_deref()), Ok(owner));
                }
                Err(error) => {
                    let message = error.to_string();
                    prop_assert!(message.len() < 700 && !message.contains(char::is_control), "{}", message);
                }
            }
        }
    }
}
