//! Why something is kept and when it goes, in words.

use jiff::Timestamp;

use cloakroom_core::protocol::Word;
use cloakroom_core::protocol::admin::{ResourceDetails, StagedResource};
use cloakroom_core::protocol::status::WatchState;
use cloakroom_core::protocol::v1::OwnerMetadata;
use cloakroom_core::resource::{KeepReason, Unknown};

use super::age;

/// When it goes, in a few words for a column.
pub(super) fn goes(resource: &StagedResource, now: Timestamp) -> String {
    let Some(why) = &resource.kept_because else {
        return if resource.due_because.is_some() { "next sweep" } else { "gone" }.to_owned();
    };
    let (before, after, without_time) = match why {
        Word::Known(KeepReason::OwnerPresent | KeepReason::OwnerFinished) => {
            ("with its owner, ", " at most", "with its owner")
        }
        Word::Known(KeepReason::Downloading) => return "after the download".to_owned(),
        Word::Known(KeepReason::OwnerGone) => ("", "", "when that is certain"),
        Word::Known(KeepReason::OwnersNotAsked) => ("", "", "by hand"),
        Word::Known(KeepReason::OwnerUnknown(Unknown::OtherCluster)) => {
            ("", "", "when its owner's cluster answers")
        }
        Word::Known(
            KeepReason::NotUsedYet
            | KeepReason::OwnerNotSeenYet
            | KeepReason::Held
            | KeepReason::OwnerUnknown(_),
        )
        | Word::Other(_) => ("", "", "when its owner is known"),
    };
    match resource.expires_at {
        Some(at) => format!("{before}in {}{after}", age::between(now, at)),
        None => without_time.to_owned(),
    }
}

/// Why it is kept, as a part of a sentence that follows “because”.
pub(super) fn because(why: &Word<KeepReason>, details: &ResourceDetails) -> String {
    let ago = |at: Option<Timestamp>| {
        at.map_or_else(|| "some time ago".to_owned(), |at| format!("{} ago", age::between(at, details.now)))
    };
    let known = match why {
        Word::Known(known) => *known,
        Word::Other(text) => return text.clone(),
    };
    match known {
        KeepReason::OwnerPresent => "its owner exists",
        KeepReason::OwnerFinished => {
            let finished = ago(details.owner_finished_since);
            return format!("its owner's pods are still there, which finished {finished}");
        }
        KeepReason::NotUsedYet => "nobody has downloaded it yet, and there is still time",
        KeepReason::OwnerGone => match details.owner_absent_since {
            Some(since) => {
                let time = age::between(since, details.now);
                return format!("its owner is gone for {time} only, which proves too little");
            }
            None => "its owner seems to be gone, and no sweep has looked since",
        },
        KeepReason::OwnerNotSeenYet => {
            let used = ago(details.resource.last_used_at);
            return format!("it was downloaded {used} and its owner, which was never seen, may still come");
        }
        KeepReason::OwnerUnknown(unknown) => not_known(unknown),
        KeepReason::OwnersNotAsked => "it was downloaded, and no cluster is asked whether its owner exists",
        KeepReason::Downloading => "somebody is downloading it at this moment",
        KeepReason::Held => "it would go with more than half of all others, which is more likely a mistake",
    }
    .to_owned()
}

/// Why it is not known whether the owner exists.
fn not_known(unknown: Unknown) -> &'static str {
    match unknown {
        Unknown::Starting => "the server is still finding out which owners exist",
        Unknown::Failing => "the server cannot find out at the moment whether its owner exists",
        Unknown::Forbidden => "the API server does not let the server look for its owner",
        Unknown::NoSuchKind => "the cluster does not have its owner's kind, so nobody knows of its owner",
        Unknown::OtherNamespace => {
            "the server does not look into its owner's namespace, so nobody knows of its owner"
        }
        Unknown::TooManyLabelKeys => {
            "resources ask for more label keys than the server keeps, so nobody knows of its owner"
        }
        Unknown::OtherCluster => {
            "another cluster answers than the one that owners were seen in, or it does not show that it is the same"
        }
    }
}

/// When and how it goes, as a sentence without its full stop.
pub(super) fn end(details: &ResourceDetails) -> String {
    let resource = &details.resource;
    let Some(why) = &resource.kept_because else {
        return format!("with the next sweep ({})", resource.due_because.as_deref().unwrap_or_default());
    };
    let (before, after, without_time) = match why {
        Word::Known(KeepReason::OwnerPresent) => {
            ("some time after its owner, ", " at the latest", "some time after its owner")
        }
        Word::Known(KeepReason::OwnerFinished) => {
            ("with its owner's pods, ", " at the latest", "with its owner's pods")
        }
        Word::Known(KeepReason::NotUsedYet) => {
            ("", ", unless somebody downloads it before or its owner comes", OWNER_IS_GONE)
        }
        Word::Known(KeepReason::OwnerGone) => {
            ("", ", unless its owner comes back", "when another sweep has found the same")
        }
        Word::Known(KeepReason::OwnerNotSeenYet) => ("", ", unless its owner comes", OWNER_IS_GONE),
        Word::Known(KeepReason::Downloading) => return "not before that is over".to_owned(),
        Word::Known(KeepReason::OwnersNotAsked) => {
            ("", WHATEVER, "by hand only: by its ticket or with cloakroom rm")
        }
        Word::Known(KeepReason::OwnerUnknown(Unknown::OtherCluster)) => (
            "",
            WHATEVER,
            "when the known cluster answers again, or an admin accepts another one (cloakroom ls says how)",
        ),
        Word::Known(KeepReason::Held | KeepReason::OwnerUnknown(_)) | Word::Other(_) => {
            ("", WHATEVER, OWNER_IS_GONE)
        }
    };
    match resource.expires_at {
        Some(at) => format!("{before}at {at} (in {}){after}", age::between(details.now, at)),
        None => without_time.to_owned(),
    }
}

const WHATEVER: &str = ", whatever becomes known";
const OWNER_IS_GONE: &str = "when its owner is known to be gone";

/// Whether owners may be there that a watch in this state does not show. Where a namespace is gone, nothing is in it: that
/// is known.
pub(super) fn is_blind(state: &Word<WatchState>) -> bool {
    match state {
        Word::Known(WatchState::Ready | WatchState::NamespaceGone) => false,
        Word::Known(
            WatchState::Starting | WatchState::Forbidden | WatchState::Failing | WatchState::NoSuchKind,
        )
        | Word::Other(_) => true,
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

    use cloakroom_core::resource::{DeletionReason, State};

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
                kept_because: why.map(|why| Word::of(why.to_owned())),
                expires_at: expires_in.map(|seconds| now + Duration::from_secs(seconds)),
                due_because: None,
                uploaded_by: None,
                deleted_at: None,
                deletion_reason: None,
            },
            state: State::Ready.into(),
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

    fn sentence(why: &str) -> String {
        because(&Word::of(why.to_owned()), &details(None, None))
    }

    #[test]
    fn every_reason_of_the_server_has_a_sentence() {
        for why in KeepReason::ALL {
            let details = details(Some(why.as_str()), None);
            let sentence = because(&(*why).into(), &details);
            assert!(sentence.contains(' ') && sentence != why.as_str(), "{sentence}");
            assert!(!end(&details).is_empty() && !goes(&details.resource, details.now).is_empty());
        }
    }

    #[test]
    fn a_reason_of_a_newer_server_is_shown_as_it_came() {
        let new = Some("new-in-2030");
        assert_eq!(sentence("new-in-2030"), "new-in-2030");
        assert_eq!(end(&details(new, None)), "when its owner is known to be gone");
        assert_eq!(goes(&details(new, Some(60)).resource, details(new, None).now), "in 60s");
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
        due.resource.due_because = Some(DeletionReason::Unused.into());
        assert_eq!(goes(&due.resource, due.now), "next sweep");
        assert_eq!(end(&due), "with the next sweep (unused)");
    }

    #[test]
    fn a_person_reads_why_and_since_when() {
        assert_eq!(
            sentence("owner-not-seen-yet"),
            "it was downloaded 3m ago and its owner, which was never seen, may still come"
        );
        assert!(sentence("owner-gone").contains("gone for 40s only"));
        assert!(sentence("owner-finished").contains("finished 10m ago"));
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
