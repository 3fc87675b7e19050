//! Why something is kept and when it goes, in words.

use jiff::Timestamp;

use cloakroom::protocol::admin::{ResourceDetails, StagedResource};
use cloakroom::protocol::v1::OwnerMetadata;

use super::age;

/// When it goes, in a few words for a column.
pub(super) fn goes(resource: &StagedResource, now: Timestamp) -> String {
    let Some(why) = resource.kept_because.as_deref() else {
        return if resource.due_because.is_some() { "next sweep" } else { "gone" }.to_owned();
    };
    let by_time = resource.expires_at.map(|at| format!("in {}", age::between(now, at)));
    match (why, by_time) {
        ("owner-present" | "owner-finished", Some(time)) => format!("with its owner, {time} at most"),
        ("owner-present" | "owner-finished", None) => "with its owner".to_owned(),
        ("downloading", _) => "after the download".to_owned(),
        (_, Some(time)) => time,
        ("owner-gone", None) => "when that is certain".to_owned(),
        ("owners-not-asked", None) => "by hand".to_owned(),
        ("other-cluster", None) => "when its owner's cluster answers".to_owned(),
        (_, None) => "when its owner is known".to_owned(),
    }
}

/// Why it is kept, as a part of a sentence that follows “because”.
pub(super) fn because(details: &ResourceDetails) -> String {
    let ago = |at: Option<Timestamp>| {
        at.map_or_else(|| "some time ago".to_owned(), |at| format!("{} ago", age::between(at, details.now)))
    };
    let resource = &details.resource;
    match resource.kept_because.as_deref().unwrap_or_default() {
        "owner-present" => "its owner exists".to_owned(),
        "owner-finished" => {
            let finished = ago(details.owner_finished_since);
            format!("its owner's pods are still there, which finished {finished}")
        }
        "not-used-yet" => "nobody has downloaded it yet, and there is still time".to_owned(),
        "owner-gone" => match details.owner_absent_since {
            Some(since) => {
                let time = age::between(since, details.now);
                format!("its owner is gone for {time} only, which proves too little")
            }
            None => "its owner seems to be gone, and no sweep has looked since".to_owned(),
        },
        "owner-not-seen-yet" => {
            let used = ago(resource.last_used_at);
            format!("it was downloaded {used} and its owner, which was never seen, may still come")
        }
        "watch-starting" => "the server is still finding out which owners exist".to_owned(),
        "watch-failing" => "the server cannot find out at the moment whether its owner exists".to_owned(),
        "forbidden" => "the API server does not let the server look for its owner".to_owned(),
        "no-such-kind" => {
            "the cluster does not have its owner's kind, so nobody knows of its owner".to_owned()
        }
        "other-namespace" => {
            "the server does not look into its owner's namespace, so nobody knows of its owner".to_owned()
        }
        "too-many-label-keys" => {
            "resources ask for more label keys than the server keeps, so nobody knows of its owner".to_owned()
        }
        "owners-not-asked" => {
            "it was downloaded, and no cluster is asked whether its owner exists".to_owned()
        }
        "downloading" => "somebody is downloading it at this moment".to_owned(),
        "held" => "it would go with more than half of all others, which is more likely a mistake".to_owned(),
        "other-cluster" => {
            "another cluster answers than the one that owners were seen in, or it does not show that it is the same".to_owned()
        }
        // A server of another version may have other reasons.
        other => other.to_owned(),
    }
}

/// When and how it goes, as a sentence without its full stop.
pub(super) fn end(details: &ResourceDetails) -> String {
    let resource = &details.resource;
    if let Some(reason) = &resource.due_because {
        return format!("with the next sweep ({reason})");
    }
    let at = resource.expires_at.map(|at| format!("at {at} (in {})", age::between(details.now, at)));
    match (resource.kept_because.as_deref().unwrap_or_default(), at) {
        ("owner-present", Some(at)) => format!("some time after its owner, {at} at the latest"),
        ("owner-present", None) => "some time after its owner".to_owned(),
        ("owner-finished", Some(at)) => format!("with its owner's pods, {at} at the latest"),
        ("owner-finished", None) => "with its owner's pods".to_owned(),
        ("not-used-yet", Some(at)) => format!("{at}, unless somebody downloads it before or its owner comes"),
        ("owner-gone", Some(at)) => format!("{at}, unless its owner comes back"),
        ("owner-not-seen-yet", Some(at)) => format!("{at}, unless its owner comes"),
        ("downloading", _) => "not before that is over".to_owned(),
        (_, Some(at)) => format!("{at}, whatever becomes known"),
        ("owner-gone", None) => "when another sweep has found the same".to_owned(),
        ("other-cluster", None) => {
            "when the known cluster answers again, or an admin accepts another one (cloakroom ls says how)"
                .to_owned()
        }
        ("owners-not-asked", None) => "by hand only: by its ticket or with cloakroom rm".to_owned(),
        (_, None) => "when its owner is known to be gone".to_owned(),
    }
}

/// The owner in one word, as kubectl names objects: `Pod/NAME`, `Pod/KEY=VALUE,KEY=VALUE`. Of a tombstone's owner only the
/// kind is known.
pub(super) fn owner(owner: &OwnerMetadata) -> String {
    let labels = owner.labels.iter().map(|(key, value)| format!("{key}={value}"));
    let parts: Vec<String> = owner.name.clone().into_iter().chain(labels).collect();
    if parts.is_empty() { owner.kind.clone() } else { format!("{}/{}", owner.kind, parts.join(",")) }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use cloakroom::cleaner::Why;

    use super::*;

    pub fn details(why: Option<&str>, expires_in: Option<u64>) -> ResourceDetails {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let ago = |seconds| Some(now - Duration::from_secs(seconds));
        ResourceDetails {
            now,
            resource: StagedResource {
                resource_id: "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1".to_owned(),
                owner: OwnerMetadata {
                    kind: "Pod".to_owned(),
                    namespace: "demo".to_owned(),
                    labels: BTreeMap::from(
                        [("app", "x"), ("role", "y")].map(|(key, value)| (key.into(), value.into())),
                    ),
                    name: None,
                },
                size_bytes: 4,
                created_at: now - Duration::from_hours(2),
                last_used_at: ago(180),
                kept_because: why.map(str::to_owned),
                expires_at: expires_in.map(|seconds| now + Duration::from_secs(seconds)),
                due_because: None,
                uploaded_by: None,
                deleted_at: None,
                deletion_reason: None,
            },
            state: "ready".to_owned(),
            sha256: None,
            file_name: None,
            unused_timeout: "30m".to_owned(),
            ttl: None,
            first_used_at: None,
            owner_seen_at: None,
            owner_absent_since: ago(40),
            owner_finished_since: ago(600),
        }
    }

    #[test]
    fn every_reason_of_the_server_has_a_sentence() {
        for why in Why::all() {
            let details = details(Some(why.as_str()), None);
            let sentence = because(&details);
            assert!(sentence.contains(' ') && sentence != why.as_str(), "{sentence}");
            assert!(!end(&details).is_empty() && !goes(&details.resource, details.now).is_empty());
        }
        assert_eq!(because(&details(Some("new-in-2030"), None)), "new-in-2030");
    }

    #[test]
    fn the_last_column_says_when_it_goes_or_what_must_happen_before() {
        for (why, expires_in, expected) in [
            ("not-used-yet", Some(1380), "in 23m"),
            ("owner-gone", Some(20), "in 20s"),
            ("owner-gone", None, "when that is certain"),
            ("owner-present", None, "with its owner"),
            ("owner-present", Some(7200), "with its owner, in 2h at most"),
            ("owner-finished", None, "with its owner"),
            ("downloading", Some(5), "after the download"),
            ("owners-not-asked", None, "by hand"),
            ("owners-not-asked", Some(60), "in 60s"),
            ("other-cluster", None, "when its owner's cluster answers"),
            ("other-cluster", Some(60), "in 60s"),
            ("forbidden", None, "when its owner is known"),
            ("forbidden", Some(86_400), "in 24h"),
        ] {
            let details = details(Some(why), expires_in);
            assert_eq!(goes(&details.resource, details.now), expected, "{why}");
        }
        let mut due = details(None, None);
        due.resource.due_because = Some("unused".to_owned());
        assert_eq!(goes(&due.resource, due.now), "next sweep");
        assert_eq!(end(&due), "with the next sweep (unused)");
    }

    #[test]
    fn a_person_reads_why_and_since_when() {
        let sentence = because(&details(Some("owner-not-seen-yet"), Some(60)));
        assert_eq!(sentence, "it was downloaded 3m ago and its owner, which was never seen, may still come");
        assert!(because(&details(Some("owner-gone"), None)).contains("gone for 40s only"));
        assert!(because(&details(Some("owner-finished"), None)).contains("finished 10m ago"));
        let at = end(&details(Some("owner-gone"), Some(20)));
        assert_eq!(at, "at 2026-01-01T12:00:20Z (in 20s), unless its owner comes back");
    }

    #[test]
    fn an_owner_is_one_word() {
        let mut of = details(None, None).resource.owner;
        assert_eq!(owner(&of), "Pod/app=x,role=y");
        of.name = Some("driver".to_owned());
        assert_eq!(owner(&of), "Pod/driver,app=x,role=y");
        of.labels.clear();
        assert_eq!(owner(&of), "Pod/driver");
        of.name = None;
        assert_eq!(owner(&of), "Pod");
    }
}
