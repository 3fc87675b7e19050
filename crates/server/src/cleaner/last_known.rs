//! When owners were last known. While an owner is unknown, `--max-unused` counts from then.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Knowledge;
use crate::owners::{Presence, Unknown, WatchReport};
use cloakroom_core::lock::lock;
use cloakroom_core::resource::{Owner, OwnerKind};
use cloakroom_storage::ledger::WatchScope;

/// An owner's kind and namespace.
pub(super) type Place = (OwnerKind, String);

/// The moments that count, by the monotonic clock of `staging`. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct LastKnown(Arc<Mutex<Moments>>);

#[derive(Debug)]
struct Moments {
    started: Duration,
    /// The kinds that this server, or an earlier one on this ledger, once read completely.
    watched: BTreeSet<WatchScope>,
    /// When a watch of this server was last complete and believed.
    complete: BTreeMap<WatchScope, Duration>,
    /// Since when the owners there have had too many label keys, though their watch may be complete.
    crowded: HashMap<Place, Duration>,
}

impl LastKnown {
    /// `started` is when this server started.
    pub(super) fn new(started: Duration) -> Self {
        let (watched, complete, crowded) = Default::default();
        Self(Arc::new(Mutex::new(Moments { started, watched, complete, crowded })))
    }

    /// Takes over what the ledger knows of earlier servers, and what was added to it.
    pub(super) fn remember(&self, watched: impl IntoIterator<Item = WatchScope>) {
        lock(&self.0).watched.extend(watched);
    }

    /// Notes when the watches were last complete. Call it only while they are believed. Returns what was read
    /// completely for the first time on this ledger.
    pub(super) fn note(&self, watches: &[WatchReport]) -> Vec<WatchScope> {
        let mut moments = lock(&self.0);
        for watch in watches.iter().filter(|watch| !watch.unfinished_only) {
            if let Some(at) = watch.complete_at {
                let scope = WatchScope { kind: watch.kind.clone(), namespace: watch.namespace.clone() };
                moments.complete.insert(scope, at);
            }
        }
        moments.complete.keys().filter(|scope| !moments.watched.contains(scope)).cloned().collect()
    }

    /// Notes at which places owners have too many label keys at this moment.
    pub(super) fn note_crowded(&self, places: impl IntoIterator<Item = Place>, now: Duration) {
        let mut moments = lock(&self.0);
        let before = std::mem::take(&mut moments.crowded);
        moments.crowded = places
            .into_iter()
            .map(|place| {
                let since = before.get(&place).copied().unwrap_or(now);
                (place, since)
            })
            .collect();
    }

    /// What is known of an owner with this presence.
    pub(super) fn knowledge(&self, owner: &Owner, presence: Presence, now: Duration) -> Knowledge {
        let unknown_for = match presence {
            Presence::Unknown(unknown) => self.unknown_for(owner, unknown, now),
            Presence::NoObjects => Some(now.saturating_sub(lock(&self.0).started)),
            _ => None,
        };
        Knowledge { presence, unknown_for }
    }

    fn unknown_for(&self, owner: &Owner, unknown: Unknown, now: Duration) -> Option<Duration> {
        let moments = lock(&self.0);
        let since = if unknown == Unknown::TooManyLabelKeys {
            let place = (owner.kind().clone(), owner.namespace().to_owned());
            Some(moments.crowded.get(&place).copied().unwrap_or(now))
        } else {
            moments.last_complete(owner).max(moments.was_watched(owner).then_some(moments.started))
        };
        since.map(|since| now.saturating_sub(since))
    }
}

impl Moments {
    fn last_complete(&self, owner: &Owner) -> Option<Duration> {
        WatchScope::covering(owner).iter().filter_map(|scope| self.complete.get(scope)).max().copied()
    }

    fn was_watched(&self, owner: &Owner) -> bool {
        WatchScope::covering(owner).iter().any(|scope| self.watched.contains(scope))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owners::WatchState;
    use jiff::Timestamp;

    const FAILING: Presence = Presence::Unknown(Unknown::Failing);

    fn second(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    fn owner(namespace: &str) -> Owner {
        Owner::new(OwnerKind::default(), namespace, [], Some("driver")).unwrap()
    }

    fn scope(namespace: Option<&str>) -> WatchScope {
        WatchScope { kind: OwnerKind::default(), namespace: namespace.map(str::to_owned) }
    }

    fn watch(namespace: Option<&str>, complete_at: Option<u64>) -> WatchReport {
        WatchReport {
            kind: OwnerKind::default(),
            namespace: namespace.map(str::to_owned),
            unfinished_only: false,
            state: WatchState::Failing,
            since: Timestamp::UNIX_EPOCH,
            last_failure: None,
            complete_at: complete_at.map(second),
        }
    }

    fn unknown_for(known: &LastKnown, namespace: &str, presence: Presence, now: u64) -> Option<u64> {
        let known = known.knowledge(&owner(namespace), presence, second(now));
        known.unknown_for.map(|time| time.as_secs())
    }

    #[test]
    fn a_kind_that_could_never_be_read_is_unknown_since_no_moment() {
        let known = LastKnown::new(second(10));
        assert_eq!(known.note(&[watch(None, None)]), []);
        assert_eq!(unknown_for(&known, "demo", FAILING, 100), None);
    }

    #[test]
    fn the_start_counts_where_an_earlier_server_could_read_the_kind() {
        let known = LastKnown::new(second(10));
        known.remember([scope(Some("demo"))]);
        assert_eq!(unknown_for(&known, "demo", FAILING, 100), Some(90));
        assert_eq!(unknown_for(&known, "other", FAILING, 100), None);
        known.remember([scope(None)]);
        assert_eq!(unknown_for(&known, "other", FAILING, 100), Some(90));
    }

    #[test]
    fn the_last_moment_of_a_complete_watch_is_new_until_it_is_remembered() {
        let known = LastKnown::new(second(10));
        assert_eq!(known.note(&[watch(Some("demo"), Some(50))]), [scope(Some("demo"))]);
        known.remember([scope(Some("demo"))]);
        assert_eq!(known.note(&[watch(Some("demo"), Some(60))]), []);
        assert_eq!(unknown_for(&known, "demo", FAILING, 100), Some(40));
        assert_eq!(unknown_for(&known, "demo", Presence::Present, 100), None);
        assert_eq!(unknown_for(&known, "other", FAILING, 100), None);
    }

    #[test]
    fn too_many_label_keys_count_from_the_first_sweep_that_met_them() {
        let known = LastKnown::new(second(10));
        let crowded = Presence::Unknown(Unknown::TooManyLabelKeys);
        let place = || [(OwnerKind::default(), "demo".to_owned())];
        assert_eq!(unknown_for(&known, "demo", crowded, 20), Some(0));
        for now in [20, 30, 40] {
            known.note(&[watch(None, Some(now))]);
            known.note_crowded(place(), second(now));
        }
        assert_eq!(unknown_for(&known, "demo", crowded, 100), Some(80));
        known.note_crowded([], second(110));
        known.note_crowded(place(), second(120));
        assert_eq!(unknown_for(&known, "demo", crowded, 130), Some(10));
    }
}
