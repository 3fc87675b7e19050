//! Messages about a resource: why the server keeps it, and when it will delete it.

use jiff::Timestamp;

use cloakroom_core::protocol::WireName;
use cloakroom_core::protocol::admin::{ResourceDetails, StagedResource};
use cloakroom_core::protocol::status::WatchState;
use cloakroom_core::protocol::v1::OwnerMetadata;
use cloakroom_core::resource::{KeepReason, Unknown};

use super::time_between;

/// When the server will delete the resource, in a few words for a column.
pub(super) fn ending(resource: &StagedResource, now: Timestamp) -> String {
    let Some(why) = &resource.kept_because else {
        return if resource.due_because.is_some() { "next sweep" } else { "gone" }.to_owned();
    };
    let (before, after, without_time) = match why {
        WireName::Known(KeepReason::OwnerPresent | KeepReason::OwnerFinished) => {
            ("with its owner, ", " at most", "with its owner")
        }
        WireName::Known(KeepReason::Downloading) => return "after the download".to_owned(),
        WireName::Known(KeepReason::OwnerGone) => ("", "", "when that is certain"),
        WireName::Known(KeepReason::OwnersNotAsked) => ("", "", "by hand"),
        WireName::Known(KeepReason::OwnerUnknown(Unknown::OtherCluster)) => {
            ("", "", "when its owner's cluster answers")
        }
        WireName::Known(
            KeepReason::NotUsedYet
            | KeepReason::NotReadYet
            | KeepReason::ReadRecently
            | KeepReason::OwnerNotSeenYet
            | KeepReason::Held
            | KeepReason::OwnerUnknown(_),
        )
        | WireName::Other(_) => ("", "", "when its owner is known"),
    };
    match resource.expires_at {
        Some(at) => format!("{before}in {}{after}", time_between(now, at)),
        None => without_time.to_owned(),
    }
}

/// Why the server keeps the resource, as the part of a sentence after “because”.
pub(super) fn because(why: &WireName<KeepReason>, details: &ResourceDetails) -> String {
    let ago = |at: Option<Timestamp>| {
        at.map_or_else(|| "some time ago".to_owned(), |at| format!("{} ago", time_between(at, details.now)))
    };
    let known = match why {
        WireName::Known(known) => *known,
        WireName::Other(text) => return text.clone(),
    };
    match known {
        KeepReason::OwnerPresent => "its owner exists",
        KeepReason::OwnerFinished => {
            let finished = ago(details.owner_finished_since);
            return format!("its owner's pods finished {finished} and still exist");
        }
        KeepReason::NotUsedYet => "it was never downloaded, and its unused timeout is not over",
        KeepReason::OwnerGone => match details.owner_absent_since {
            Some(since) => {
                let time = time_between(since, details.now);
                return format!("its owner has been absent for only {time}, so it may still come back");
            }
            None => "its owner seems to be gone, but no sweep has checked it since",
        },
        KeepReason::OwnerNotSeenYet => {
            let used = ago(details.resource.last_used_at);
            return format!("it was downloaded {used}, and its owner was never seen but may still come");
        }
        KeepReason::OwnerUnknown(unknown) => not_known(unknown),
        KeepReason::OwnersNotAsked => "it was downloaded, and no cluster is asked whether its owner exists",
        KeepReason::NotReadYet => "it has no owner, and was never read to its end",
        KeepReason::ReadRecently => "it has no owner, and its unused timeout since the last read is not over",
        KeepReason::Downloading => "a client is downloading it",
        KeepReason::Held => "more than half of all owners vanished at once, which is more likely a mistake",
    }
    .to_owned()
}

/// Why the server does not know whether the owner exists.
fn not_known(unknown: Unknown) -> &'static str {
    match unknown {
        Unknown::Starting => "the server is still finding out which owners exist",
        Unknown::Failing => "the server cannot find out at the moment whether its owner exists",
        Unknown::Forbidden => "the API server does not let the server look for its owner",
        Unknown::NoSuchKind => {
            "the cluster does not have its owner's kind, so the server cannot know whether its owner exists"
        }
        Unknown::OtherNamespace => {
            "the server does not watch its owner's namespace, so it cannot know whether its owner exists"
        }
        Unknown::TooManyLabelKeys => {
            "resources name more label keys than the server keeps, so it cannot know whether its owner exists"
        }
        Unknown::OtherCluster => {
            "another cluster answers than the one that owners were seen in, or it does not show that it is the same"
        }
    }
}

/// When and how the resource ends, as a sentence without its full stop.
pub(super) fn end(details: &ResourceDetails) -> String {
    let resource = &details.resource;
    let Some(why) = &resource.kept_because else {
        return format!("with the next sweep ({})", resource.due_because.as_deref().unwrap_or_default());
    };
    let (before, after, without_time) = match why {
        WireName::Known(KeepReason::OwnerPresent) => {
            ("some time after its owner is gone, ", " at the latest", "some time after its owner is gone")
        }
        WireName::Known(KeepReason::OwnerFinished) => {
            ("with its owner's pods, ", " at the latest", "with its owner's pods")
        }
        WireName::Known(KeepReason::NotUsedYet) => {
            ("", ", unless it is downloaded before or its owner comes", OWNER_IS_GONE)
        }
        WireName::Known(KeepReason::OwnerGone) => {
            ("", ", unless its owner comes back", "when another sweep confirms that its owner is gone")
        }
        WireName::Known(KeepReason::OwnerNotSeenYet) => ("", ", unless its owner comes", OWNER_IS_GONE),
        WireName::Known(KeepReason::NotReadYet | KeepReason::ReadRecently) => {
            ("", ", unless it is read before", "some time after it is read")
        }
        WireName::Known(KeepReason::Downloading) => return "not before the download is over".to_owned(),
        WireName::Known(KeepReason::OwnersNotAsked) => {
            ("", IN_ANY_CASE, "by hand only: by its ticket or with cloakroom rm")
        }
        WireName::Known(KeepReason::OwnerUnknown(Unknown::OtherCluster)) => (
            "",
            IN_ANY_CASE,
            "when the known cluster answers again, or an admin accepts another one (cloakroom ls says how)",
        ),
        WireName::Known(KeepReason::Held | KeepReason::OwnerUnknown(_)) | WireName::Other(_) => {
            ("", IN_ANY_CASE, OWNER_IS_GONE)
        }
    };
    match resource.expires_at {
        Some(at) => format!("{before}at {at} (in {}){after}", time_between(details.now, at)),
        None => without_time.to_owned(),
    }
}

const IN_ANY_CASE: &str = " in any case";
const OWNER_IS_GONE: &str = "when its owner is known to be gone";

/// Whether owners may exist that a watch in this state does not show. A namespace that is gone has no owners, so its
/// watch is not blind.
pub(super) fn is_blind(state: &WireName<WatchState>) -> bool {
    match state {
        WireName::Known(WatchState::Ready | WatchState::NamespaceGone) => false,
        WireName::Known(
            WatchState::Starting | WatchState::Forbidden | WatchState::Failing | WatchState::NoSuchKind,
        )
        | WireName::Other(_) => true,
    }
}

/// The owner in one word, as kubectl names objects: `Pod/NAME`, `Pod/KEY=VALUE,KEY=VALUE`. A tombstone has only the
/// owner's kind.
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
                kept_because: why.map(|why| WireName::read(why.to_owned())),
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
        because(&WireName::read(why.to_owned()), &details(None, None))
    }

    #[test]
    fn every_reason_of_the_server_has_a_sentence() {
        for why in KeepReason::ALL {
            let details = details(Some(why.as_str()), None);
            let sentence = because(&(*why).into(), &details);
            assert!(sentence.contains(' ') && sentence != why.as_str(), "{sentence}");
            assert!(!end(&details).is_empty() && !ending(&details.resource, details.now).is_empty());
        }
    }

    #[test]
    fn a_reason_of_a_newer_server_is_shown_as_it_came() {
        let new = Some("new-in-2030");
        assert_eq!(sentence("new-in-2030"), "new-in-2030");
        assert_eq!(end(&details(new, None)), "when its owner is known to be gone");
        assert_eq!(ending(&details(new, Some(60)).resource, details(new, None).now), "in 60s");
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
            assert_eq!(ending(&details.resource, details.now), expected, "{why}");
        }
        let mut due = details(None, None);
        due.resource.due_because = Some(DeletionReason::Unused.into());
        assert_eq!(ending(&due.resource, due.now), "next sweep");
        assert_eq!(end(&due), "with the next sweep (unused)");
    }

    #[test]
    fn a_person_reads_why_and_since_when() {
        assert_eq!(
            sentence("owner-not-seen-yet"),
            "it was downloaded 3m ago, and its owner was never seen but may still come"
        );
        assert!(sentence("owner-gone").contains("absent for only 40s"));
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
