//! Finds owners in a Kubernetes cluster, by watches and fresh reads.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kube::Client;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout_at};

use super::follower::{Follower, Scope};
use super::kinds::Unresolved;
use super::wanted::{MOST_OF_KIND, MOST_OF_NAMESPACE, TooManyKeys};
use super::watch_status::WatchReport;
use super::{
    Admission, ClusterIdentity, NoAnswer, NotAdmitted, Owners, Presence, Unknown, WatchState, fresh, watch,
};
use cloakroom_core::clock::Clock;
use cloakroom_core::lock::lock;
use cloakroom_core::metrics::{LimitUse, Limited, Metrics};
use cloakroom_core::resource::{Namespaces, Owner, OwnerKind};
use cloakroom_core::retry::Backoff;

/// The settings for watching a cluster.
#[derive(Debug, Clone)]
pub struct ClusterSettings {
    /// The namespaces to watch; `None` watches all of them.
    pub namespaces: Option<Namespaces>,
    /// The longest time to wait for one answer of the API server.
    pub call_timeout: Duration,
    /// The longest time that an upload waits until the owner's presence is known.
    pub admission_timeout: Duration,
    /// The time after which the API server ends a watch, in seconds. A new watch continues where the old one ended.
    pub watch_timeout_seconds: u32,
    /// How fast a watch retries after failures.
    pub intervals: WatchIntervals,
}

/// How fast a watch retries after failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchIntervals {
    /// The waits after failures.
    pub backoff: Backoff,
    /// How long a resumed watch must run without a failure before it counts as working. The API server sends nothing
    /// that would confirm it earlier.
    pub settled: Duration,
    /// The shortest time between two lists that new label keys make necessary.
    pub between_lists: Duration,
}

impl Default for WatchIntervals {
    fn default() -> Self {
        Self {
            backoff: Backoff {
                first: Duration::from_millis(250),
                longest: Duration::from_secs(8),
                longest_asked: Duration::from_mins(5),
            },
            settled: Duration::from_secs(2),
            between_lists: Duration::from_secs(5),
        }
    }
}

impl Default for ClusterSettings {
    /// A watch lasts less than 240 s, because load balancers often drop connections that are quiet for so long.
    fn default() -> Self {
        Self {
            namespaces: None,
            call_timeout: Duration::from_secs(10),
            admission_timeout: Duration::from_secs(3),
            watch_timeout_seconds: 200,
            intervals: WatchIntervals::default(),
        }
    }
}

/// Watches the owners of staged resources. There is one watch for each kind in use, in each named namespace or for the
/// whole cluster; pods have two. Dropping this ends the watches.
pub struct ClusterOwners {
    client: Client,
    settings: ClusterSettings,
    metrics: Metrics,
    clock: Arc<dyn Clock>,
    kinds: Mutex<HashMap<OwnerKind, Followed>>,
    tasks: Mutex<JoinSet<()>>,
    has_failed_watch: AtomicBool,
}

/// A kind with its running watches.
struct Followed {
    follower: Arc<Follower>,
    watches: Vec<AbortHandle>,
}

/// Keeps what an upload in flight needs of one kind, until it is dropped.
pub(super) struct KindInUse {
    follower: Arc<Follower>,
    owner: Owner,
    is_admitted: bool,
}

impl Drop for KindInUse {
    fn drop(&mut self) {
        self.follower.let_go(&self.owner, self.is_admitted);
    }
}

impl Followed {
    fn end(&self) {
        self.watches.iter().for_each(AbortHandle::abort);
    }
}

impl ClusterOwners {
    /// Uses the cluster behind `client`. It makes no call before the first owner is needed. `clock` is that of the
    /// cleaner.
    pub fn new(client: Client, settings: ClusterSettings, metrics: Metrics, clock: Arc<dyn Clock>) -> Self {
        let has_failed_watch = AtomicBool::new(false);
        Self {
            client,
            settings,
            metrics,
            clock,
            kinds: Mutex::default(),
            tasks: Mutex::default(),
            has_failed_watch,
        }
    }

    fn new_follower(&self, kind: &OwnerKind) -> Follower {
        let (client, settings) = (self.client.clone(), self.settings.clone());
        Follower::new(kind.clone(), client, settings, self.metrics.clone(), Arc::clone(&self.clock))
    }

    fn follower(&self, kind: &OwnerKind) -> Option<Arc<Follower>> {
        lock(&self.kinds).get(kind).map(|followed| Arc::clone(&followed.follower))
    }

    /// Opens the watches of the owner's kind if they are not open, and calls `ask` to register what the owner needs. It
    /// calls `ask` before the watches start, so that their first list has the labels already. It holds the lock, so
    /// that the kind cannot be closed in between.
    fn open<T>(&self, owner: &Owner, ask: impl FnOnce(&Follower) -> T) -> (Arc<Follower>, T) {
        let mut kinds = lock(&self.kinds);
        if let Some(followed) = kinds.get(owner.kind()) {
            return (Arc::clone(&followed.follower), ask(&followed.follower));
        }
        let follower = Arc::new(self.new_follower(owner.kind()));
        let asked = ask(&follower);
        kinds.insert(owner.kind().clone(), self.watch(Arc::clone(&follower)));
        (follower, asked)
    }

    fn watch(&self, follower: Arc<Follower>) -> Followed {
        let mut tasks = lock(&self.tasks);
        self.remove_ended(&mut tasks);
        let mut watches = Vec::new();
        for scope in 0..follower.scopes.len() {
            for source in follower.sources() {
                watches.push(tasks.spawn(watch::run(Arc::clone(&follower), scope, *source)));
            }
        }
        Followed { follower, watches }
    }

    /// Removes the ended tasks from the set, which would otherwise grow.
    fn remove_ended(&self, tasks: &mut JoinSet<()>) {
        while let Some(ended) = tasks.try_join_next() {
            if ended.is_err_and(|error| error.is_panic()) {
                self.has_failed_watch.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Registers what an upload needs, for as long as the returned value lives.
    fn hold(&self, owner: &Owner) -> Result<KindInUse, NotAdmitted> {
        let (follower, held) = self.open(owner, |follower| follower.hold(owner));
        let kind = owner.kind().to_string();
        held.map_err(|too_many| match too_many {
            TooManyKeys::InNamespace => {
                NotAdmitted::TooManyKeysInNamespace { kind, namespace: owner.namespace().to_owned() }
            }
            TooManyKeys::InAll => NotAdmitted::TooManyKeys { kind },
        })?;
        Ok(KindInUse { follower, owner: owner.clone(), is_admitted: false })
    }

    /// Ends the watches that were opened for a refused upload, if nothing else needs them.
    fn close(&self, kind: &OwnerKind) {
        let mut kinds = lock(&self.kinds);
        if kinds.get(kind).is_some_and(|followed| followed.follower.is_unused())
            && let Some(followed) = kinds.remove(kind)
        {
            followed.end();
        }
    }

    /// Checks that the cluster has this kind. Custom kinds come and go, so a missing kind is looked up again for each
    /// upload. Uploads do not wait for a kind that could not be looked up before.
    async fn check_kind(&self, owner: &Owner, until: Instant) -> Result<(), NotAdmitted> {
        if self.follower(owner.kind()).is_some_and(|follower| !follower.lacks_kind()) {
            return Ok(());
        }
        let kind = owner.kind().to_string();
        let probe = self.new_follower(owner.kind());
        match timeout_at(until, probe.resource()).await.ok() {
            Some(Err(Unresolved::NoSuchKind)) => Err(NotAdmitted::NoSuchKind { kind }),
            Some(Err(Unresolved::NotAnOwner)) => Err(NotAdmitted::NotAnOwner { kind }),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Owners for ClusterOwners {
    async fn admit(&self, owner: &Owner) -> Result<Admission, NotAdmitted> {
        let until = Instant::now() + self.settings.admission_timeout;
        self.check_kind(owner, until).await?;
        let mut held = self.hold(owner)?;
        let follower = &held.follower;
        // The time counts from the opening of the watches. Only the first uploads for a kind wait for its first list,
        // and an API server that hangs delays no later upload.
        let until = until.min(follower.opened + self.settings.admission_timeout);
        let state = timeout_at(until, follower.started(owner.namespace())).await.ok().flatten();
        let was_ready = follower.scope_of(owner.namespace()).is_some_and(Scope::was_ready);
        if state == Some(WatchState::Forbidden) && !was_ready {
            drop(held);
            self.close(owner.kind());
            return Err(NotAdmitted::Forbidden {
                kind: owner.kind().to_string(),
                namespace: owner.namespace().to_owned(),
            });
        }
        held.is_admitted = true;
        Ok(Admission(Some(held)))
    }

    fn follow(&self, owner: &Owner) {
        self.open(owner, |follower| follower.want(owner));
    }

    fn looked_at_everything(&self) {
        lock(&self.kinds).retain(|kind, followed| {
            let is_needed = followed.follower.looked();
            if !is_needed {
                tracing::debug!(%kind, "no resource needs owners of this kind any more: they are not watched");
                followed.end();
            }
            is_needed
        });
    }

    fn presence(&self, owner: &Owner) -> Presence {
        match self.follower(owner.kind()) {
            Some(follower) => follower.presence(owner),
            None => Presence::Unknown(Unknown::Starting),
        }
    }

    async fn confirm(&self, owner: &Owner) -> Presence {
        let (follower, ()) = self.open(owner, |follower| follower.want(owner));
        let patience = self.settings.call_timeout;
        let Some(scope) = follower.scope_of(owner.namespace()) else {
            return Presence::Unknown(Unknown::OtherNamespace);
        };
        let resource = match follower.resource().await {
            Ok(resource) => resource,
            Err(Unresolved::Failed(failure)) => return Presence::unknown_after(&failure),
            Err(_) => return Presence::Unknown(Unknown::NoSuchKind),
        };
        let fresh = match fresh::read(&self.client, &resource, owner, patience).await {
            Ok(fresh) => fresh,
            Err(failure) => fresh::after_failure(&self.client, owner, &failure, patience).await,
        };
        let watched = follower.presence(owner);
        let is_contradiction = matches!(
            (watched, fresh),
            (Presence::Absent, Presence::Present | Presence::Finished)
                | (Presence::Finished, Presence::Present)
        );
        if is_contradiction {
            tracing::warn!(
                kind = %owner.kind(), namespace = owner.namespace(),
                "the watch did not know of an owner that is there; it begins anew"
            );
            follower.contradict(scope);
        }
        fresh
    }

    fn longest_read(&self) -> Duration {
        self.settings.call_timeout
    }

    async fn cluster(&self) -> Result<ClusterIdentity, NoAnswer> {
        fresh::cluster(&self.client, self.settings.call_timeout).await.map_err(NoAnswer::Failed)
    }

    fn watches(&self) -> Vec<WatchReport> {
        let followers: Vec<Arc<Follower>> =
            lock(&self.kinds).values().map(|followed| Arc::clone(&followed.follower)).collect();
        followers.iter().flat_map(|follower| follower.reports()).collect()
    }

    fn has_failed_watch(&self) -> bool {
        self.remove_ended(&mut lock(&self.tasks));
        self.has_failed_watch.load(Ordering::Relaxed)
    }

    fn limits(&self) -> Vec<LimitUse> {
        let kinds = lock(&self.kinds);
        let counts = kinds.values().map(|followed| followed.follower.label_keys());
        let (in_all, of_namespace) = counts.fold((0, 0), |(in_all, of_namespace), (all, namespace)| {
            (in_all.max(all), of_namespace.max(namespace))
        });
        vec![
            LimitUse::from_counts(Limited::LabelKeys, in_all, MOST_OF_KIND),
            LimitUse::from_counts(Limited::ShareOfLabelKeys, of_namespace, MOST_OF_NAMESPACE),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloakroom_core::clock::SystemClock;

    #[tokio::test]
    async fn a_watch_that_panics_is_not_forgotten() {
        let client = Client::try_from(kube::Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let clock = Arc::new(SystemClock::new());
        let owners = ClusterOwners::new(client, ClusterSettings::default(), Metrics::new(), clock);
        for (panics, is_known) in [(false, false), (true, true), (false, true)] {
            let task = lock(&owners.tasks).spawn(async move { assert!(!panics) });
            while !task.is_finished() {
                tokio::task::yield_now().await;
            }
            assert_eq!(owners.has_failed_watch(), is_known);
        }
    }
}
