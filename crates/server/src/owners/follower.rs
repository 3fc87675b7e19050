//! One kind of owners: what its watches found, and whether they can be relied on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use kube::Client;
use kube::core::ApiResource;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::kinds::{self, Unresolved};
use super::objects::{Found, Objects, Source};
use super::wanted::TooManyKeys;
use super::watch_status::{WatchRecord, WatchReport};
use super::{ClusterSettings, Presence, Unknown, WatchState};
use cloakroom_core::clock::Clock;
use cloakroom_core::lock::lock;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::resource::{Owner, OwnerKind, POD};

/// The state of one kind, shared by its watches.
pub(super) struct Follower {
    pub(super) kind: OwnerKind,
    pub(super) client: Client,
    pub(super) settings: ClusterSettings,
    pub(super) metrics: Metrics,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) scopes: Vec<Scope>,
    pub(super) objects: Mutex<Objects>,
    pub(super) opened: Instant,
    resource: Mutex<Option<ApiResource>>,
    changes: watch::Sender<()>,
}

/// The part of the cluster in which a kind is watched: one namespace, or all of them.
pub(super) struct Scope {
    pub(super) namespace: Option<String>,
    /// The record of each watch, by [`Source`].
    records: [Mutex<WatchRecord>; 2],
    /// Wakes a watch, so that it checks whether it must start again. By [`Source`].
    pub(super) anew: [Notify; 2],
    /// Set when a fresh read contradicts the watch. By [`Source`].
    contradicted: [AtomicBool; 2],
}

impl Follower {
    pub(super) fn new(
        kind: OwnerKind,
        client: Client,
        settings: ClusterSettings,
        metrics: Metrics,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let namespaces: Vec<Option<String>> = match &settings.namespaces {
            Some(namespaces) => namespaces.iter().map(|name| Some(name.to_owned())).collect(),
            None => vec![None],
        };
        let scope = |namespace| Scope {
            namespace,
            records: [(); 2].map(|()| Mutex::new(WatchRecord::new(&*clock))),
            anew: Default::default(),
            contradicted: Default::default(),
        };
        let scopes = namespaces.into_iter().map(scope).collect();
        Self {
            kind,
            client,
            settings,
            metrics,
            clock,
            scopes,
            objects: Mutex::default(),
            opened: Instant::now(),
            resource: Mutex::default(),
            changes: watch::Sender::new(()),
        }
    }

    /// The watches that this kind needs. Pods have a second watch, because the metadata that a watch reads does not
    /// tell whether a pod has finished.
    pub(super) fn sources(&self) -> &'static [Source] {
        if self.kind.as_str() == POD { &[Source::All, Source::Unfinished] } else { &[Source::All] }
    }

    /// The API server's name of this kind. It is looked up once and kept until [`Follower::forget_resource`].
    pub(super) async fn resource(&self) -> Result<ApiResource, Unresolved> {
        let known = lock(&self.resource).clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let resource = kinds::resolve(&self.client, &self.kind, self.settings.call_timeout).await?;
        *lock(&self.resource) = Some(resource.clone());
        Ok(resource)
    }

    /// Makes the next call look the kind up again, because the API server rejected the known name.
    pub(super) fn forget_resource(&self) {
        *lock(&self.resource) = None;
    }

    /// Whether the cluster was asked and does not have this kind.
    pub(super) fn lacks_kind(&self) -> bool {
        self.scopes.iter().all(|scope| scope.record(Source::All).state == WatchState::NoSuchKind)
    }

    /// Registers the labels of a resource's owner. If one of the keys is new, the watch lists all objects again. If
    /// there is no room for the keys, the owner stays unknown.
    pub(super) fn want(&self, owner: &Owner) {
        let wanted = lock(&self.objects).wanted.want(owner);
        self.list_if(owner, wanted.unwrap_or_default());
    }

    /// Does the same for an upload in flight, until [`Follower::let_go`].
    pub(super) fn hold(&self, owner: &Owner) -> Result<(), TooManyKeys> {
        let is_new = lock(&self.objects).wanted.hold(owner)?;
        self.list_if(owner, is_new);
        Ok(())
    }

    /// How many label keys are in use: in all namespaces, and in the namespace with the most of them.
    pub(super) fn label_keys(&self) -> (usize, usize) {
        lock(&self.objects).wanted.counts()
    }

    /// Ends what [`Follower::hold`] began. If the upload was admitted, the owner is registered once more for the
    /// resource that it may have become.
    pub(super) fn let_go(&self, owner: &Owner, is_followed: bool) {
        let mut objects = lock(&self.objects);
        if is_followed {
            // The keys are registered already, so no list is needed and there is no error.
            let _ = objects.wanted.want(owner);
        }
        objects.wanted.let_go(owner);
    }

    fn list_if(&self, owner: &Owner, has_new_keys: bool) {
        if let Some(scope) = self.scope_of(owner.namespace()).filter(|_| has_new_keys) {
            scope.anew[Source::All as usize].notify_one();
        }
    }

    /// Tells that a sweep has looked at all ready resources. Returns `false` if nothing needs this kind any more.
    pub(super) fn looked(&self) -> bool {
        let mut objects = lock(&self.objects);
        objects.looked();
        !objects.wanted.is_unused()
    }

    /// Whether no resource and no upload needs this kind.
    pub(super) fn is_unused(&self) -> bool {
        lock(&self.objects).wanted.is_unused()
    }

    /// Handles a fresh read that contradicts the watches: they count as starting until they have listed everything
    /// again.
    pub(super) fn contradict(&self, scope: &Scope) {
        for source in self.sources() {
            self.set(scope, *source, |record| record.enter(WatchState::Starting, None, &*self.clock));
            scope.contradicted[*source as usize].store(true, Ordering::SeqCst);
            scope.anew[*source as usize].notify_one();
        }
    }

    pub(super) fn scope_of(&self, namespace: &str) -> Option<&Scope> {
        let covers = |scope: &&Scope| scope.namespace.as_deref().is_none_or(|scope| scope == namespace);
        self.scopes.iter().find(covers)
    }

    /// The owner's presence by the watches alone, without a call.
    pub(super) fn presence(&self, owner: &Owner) -> Presence {
        let Some(scope) = self.scope_of(owner.namespace()) else {
            return Presence::Unknown(Unknown::OtherNamespace);
        };
        let (state, listed_keys) = {
            let all = scope.record(Source::All);
            (all.state, all.listed_keys)
        };
        match state {
            WatchState::Ready => {}
            WatchState::NamespaceGone => return Presence::Absent,
            state => return Presence::Unknown(unknown(state)),
        }
        let objects = lock(&self.objects);
        let found = objects.find(owner);
        let has_keys = found != Found::default()
            || listed_keys.is_some_and(|version| objects.wanted.has_since(owner, version));
        let is_full = objects.wanted.is_full_for(owner);
        drop(objects);
        let unfinished =
            self.sources().contains(&Source::Unfinished).then(|| scope.record(Source::Unfinished).state);
        match (unfinished, found) {
            (None, Found { only_in_all: true, .. })
            | (Some(_), Found { in_both: true, .. })
            | (Some(WatchState::Ready), Found { only_in_unfinished: true, .. }) => Presence::Present,
            (Some(WatchState::Ready), Found { only_in_all: true, .. }) => Presence::Finished,
            // The pod exists, but only the other watch could tell whether it has finished.
            (Some(state), Found { only_in_all: true, .. }) => Presence::Unknown(unknown(state)),
            _ if has_keys => Presence::Absent,
            _ if is_full => Presence::Unknown(Unknown::TooManyLabelKeys),
            // The last list is older than the owner's label keys, so it may have missed the object.
            _ => Presence::Unknown(Unknown::Starting),
        }
    }

    /// Changes the record of a watch, and wakes the tasks that wait for a change.
    pub(super) fn set<T>(
        &self,
        scope: &Scope,
        source: Source,
        change: impl FnOnce(&mut WatchRecord) -> T,
    ) -> T {
        let changed = change(&mut scope.record(source));
        self.changes.send_replace(());
        changed
    }

    /// Waits until the watch of all objects in this namespace is no longer starting. `None` if the namespace is not
    /// watched.
    pub(super) async fn started(&self, namespace: &str) -> Option<WatchState> {
        let scope = self.scope_of(namespace)?;
        let mut changes = self.changes.subscribe();
        loop {
            let state = scope.record(Source::All).state;
            if state != WatchState::Starting {
                return Some(state);
            }
            changes.changed().await.ok()?;
        }
    }

    pub(super) fn reports(&self) -> Vec<WatchReport> {
        let sources = self.sources();
        let of = |scope: &Scope, source: Source| {
            let record = scope.record(source).clone();
            WatchReport {
                kind: self.kind.clone(),
                complete_at: record.complete_at(&*self.clock),
                namespace: scope.namespace.clone(),
                unfinished_only: source == Source::Unfinished,
                state: record.state,
                since: record.since,
                last_failure: record.last_failure,
            }
        };
        self.scopes.iter().flat_map(|scope| sources.iter().map(move |source| of(scope, *source))).collect()
    }
}

impl Scope {
    pub(super) fn record(&self, source: Source) -> MutexGuard<'_, WatchRecord> {
        lock(&self.records[source as usize])
    }

    /// Whether a fresh read has contradicted the watch since the last call.
    pub(super) fn take_contradiction(&self, source: Source) -> bool {
        self.contradicted[source as usize].swap(false, Ordering::SeqCst)
    }

    /// Whether the watch has ever completed a list.
    pub(super) fn was_ready(&self) -> bool {
        self.record(Source::All).listed_keys.is_some()
    }
}

/// Why the presence of an owner is unknown in this state of its watch.
fn unknown(state: WatchState) -> Unknown {
    match state {
        WatchState::Starting => Unknown::Starting,
        WatchState::Forbidden => Unknown::Forbidden,
        WatchState::NoSuchKind => Unknown::NoSuchKind,
        WatchState::Failing | WatchState::NamespaceGone | WatchState::Ready => Unknown::Failing,
    }
}
