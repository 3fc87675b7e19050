//! One kind of owners: what its watches know, and how far that can be relied on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::Client;
use kube::core::ApiResource;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::kinds::{self, Unresolved};
use super::objects::{Found, Objects, Source};
use super::wanted::TooManyKeys;
use super::watch_status::{WatchRecord, WatchReport};
use super::{ClusterSettings, Presence, Unknown, WatchState};
use cloakroom_core::metrics::Metrics;
use cloakroom_core::resource::{Owner, OwnerKind, POD};

/// Everything about one kind.
pub(super) struct Follower {
    pub(super) kind: OwnerKind,
    pub(super) client: Client,
    pub(super) settings: ClusterSettings,
    pub(super) metrics: Metrics,
    pub(super) scopes: Vec<Scope>,
    pub(super) objects: Mutex<Objects>,
    pub(super) opened: Instant,
    resource: Mutex<Option<ApiResource>>,
    changes: watch::Sender<()>,
}

/// Where a kind is watched: in one namespace, or everywhere.
pub(super) struct Scope {
    pub(super) namespace: Option<String>,
    /// For all objects, and for pods also for those that are not finished.
    records: [Mutex<WatchRecord>; 2],
    /// Wakes the watches, to see whether they must begin anew.
    pub(super) anew: [Notify; 2],
    /// A fresh read knew better.
    contradicted: [AtomicBool; 2],
}

impl Follower {
    pub(super) fn new(kind: OwnerKind, client: Client, settings: ClusterSettings, metrics: Metrics) -> Self {
        let namespaces: Vec<Option<String>> = match &settings.namespaces {
            Some(namespaces) => namespaces.iter().map(|name| Some(name.to_owned())).collect(),
            None => vec![None],
        };
        let scope = |namespace| Scope {
            namespace,
            records: [Mutex::new(WatchRecord::new()), Mutex::new(WatchRecord::new())],
            anew: Default::default(),
            contradicted: Default::default(),
        };
        Self {
            kind,
            client,
            settings,
            metrics,
            scopes: namespaces.into_iter().map(scope).collect(),
            objects: Mutex::default(),
            opened: Instant::now(),
            resource: Mutex::default(),
            changes: watch::Sender::new(()),
        }
    }

    /// The watches that this kind needs: pods are also watched for being finished, which their metadata does not say.
    pub(super) fn sources(&self) -> &'static [Source] {
        if self.kind.as_str() == POD { &[Source::All, Source::Unfinished] } else { &[Source::All] }
    }

    /// What the API server calls this kind; asked once, until it turns out to be wrong.
    pub(super) async fn resource(&self) -> Result<ApiResource, Unresolved> {
        let known = lock(&self.resource).clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let resource = kinds::resolve(&self.client, &self.kind, self.settings.call_timeout).await?;
        *lock(&self.resource) = Some(resource.clone());
        Ok(resource)
    }

    /// The API server does not know it by that name: it is asked again.
    pub(super) fn forget_resource(&self) {
        *lock(&self.resource) = None;
    }

    /// Whether the cluster was asked and does not have this kind.
    pub(super) fn lacks_kind(&self) -> bool {
        self.scopes.iter().all(|scope| scope.record(Source::All).state == WatchState::NoSuchKind)
    }

    /// Asks for the labels of a resource's owner. If there are new keys among them, everything is listed again. Without room
    /// for them the owner stays unknown.
    pub(super) fn want(&self, owner: &Owner) {
        let wanted = lock(&self.objects).wanted.want(owner);
        self.list_if(owner, wanted.unwrap_or_default());
    }

    /// The same for an upload in flight, until [`Follower::let_go`].
    pub(super) fn hold(&self, owner: &Owner) -> Result<(), TooManyKeys> {
        let is_new = lock(&self.objects).wanted.hold(owner)?;
        self.list_if(owner, is_new);
        Ok(())
    }

    /// How many label keys are asked for: in all, and in the namespace that has most of them.
    pub(super) fn label_keys(&self) -> (usize, usize) {
        lock(&self.objects).wanted.counts()
    }

    /// The upload is over. A resource that it has become needs the owner from now on.
    pub(super) fn let_go(&self, owner: &Owner, is_followed: bool) {
        let mut objects = lock(&self.objects);
        if is_followed {
            // They are there: nothing is new.
            let _ = objects.wanted.want(owner);
        }
        objects.wanted.let_go(owner);
    }

    fn list_if(&self, owner: &Owner, has_new_keys: bool) {
        if let Some(scope) = self.scope_of(owner.namespace()).filter(|_| has_new_keys) {
            scope.anew[Source::All as usize].notify_one();
        }
    }

    /// Everything that is ready was looked at. `false` if nothing needs this kind any more.
    pub(super) fn looked(&self) -> bool {
        let mut objects = lock(&self.objects);
        objects.looked();
        !objects.wanted.is_unused()
    }

    /// Whether no resource and no upload needs this kind.
    pub(super) fn is_unused(&self) -> bool {
        lock(&self.objects).wanted.is_unused()
    }

    /// A fresh read knew better: nothing that the watches of this scope say counts until they have listed again.
    pub(super) fn contradict(&self, scope: &Scope) {
        for source in self.sources() {
            self.set(scope, *source, |record| record.enter(WatchState::Starting, None));
            scope.contradicted[*source as usize].store(true, Ordering::SeqCst);
            scope.anew[*source as usize].notify_one();
        }
    }

    pub(super) fn scope_of(&self, namespace: &str) -> Option<&Scope> {
        let covers = |scope: &&Scope| scope.namespace.as_deref().is_none_or(|scope| scope == namespace);
        self.scopes.iter().find(covers)
    }

    /// What the watches say.
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
            // It is there, and only the other watch could tell whether it is at work.
            (Some(state), Found { only_in_all: true, .. }) => Presence::Unknown(unknown(state)),
            _ if has_keys => Presence::Absent,
            _ if is_full => Presence::Unknown(Unknown::TooManyLabelKeys),
            // A list from before this owner's label keys were asked for may have it and not know.
            _ => Presence::Unknown(Unknown::Starting),
        }
    }

    /// Writes down how a watch is, and tells whoever waits for that.
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

    /// Waits until the watch of all objects in the owner's namespace is no longer starting.
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
                kind: self.kind.to_string(),
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

    /// Whether a fresh read knew better since the last time this was asked.
    pub(super) fn take_contradiction(&self, source: Source) -> bool {
        self.contradicted[source as usize].swap(false, Ordering::SeqCst)
    }

    /// Whether the watch has ever completed a list.
    pub(super) fn was_ready(&self) -> bool {
        self.record(Source::All).listed_keys.is_some()
    }
}

/// Why a watch in that state knows nothing.
fn unknown(state: WatchState) -> Unknown {
    match state {
        WatchState::Starting => Unknown::Starting,
        WatchState::Forbidden => Unknown::Forbidden,
        WatchState::NoSuchKind => Unknown::NoSuchKind,
        WatchState::Failing | WatchState::NamespaceGone | WatchState::Ready => Unknown::Failing,
    }
}

/// What is behind these locks is whole after every statement.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
