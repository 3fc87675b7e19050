//! Owners in a cluster.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kube::Client;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout_at};

use super::follower::{Follower, Scope, lock};
use super::kinds::Unresolved;
use super::standing::{WatchReport, WatchState};
use super::{ClusterIdentity, NotAdmitted, Owners, Presence, Unknown, fresh, watch};
use crate::metrics::Metrics;
use crate::resource::{Namespaces, Owner, OwnerKind};

/// How a cluster is watched.
#[derive(Debug, Clone)]
pub struct ClusterSettings {
    /// Only these namespaces; all if `None`.
    pub namespaces: Option<Namespaces>,
    /// How long an answer of the API server is waited for.
    pub call_timeout: Duration,
    /// How long an upload waits at most for what the API server says of its owner.
    pub admission_timeout: Duration,
    /// After so many seconds the API server is asked to end a watch, and a new one begins where it ended.
    pub watch_timeout_seconds: u32,
    /// How fast a watch gets over failures.
    pub pace: Pace,
}

/// How fast a watch gets over failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The wait after a first failure; each further one doubles it.
    pub first_pause: Duration,
    /// The longest wait.
    pub longest_pause: Duration,
    /// A watch that was taken up again and says nothing wrong for this long works: a success has no other sign.
    pub settled: Duration,
    /// Between two lists that new label keys make necessary.
    pub between_lists: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            first_pause: Duration::from_millis(250),
            longest_pause: Duration::from_secs(8),
            settled: Duration::from_secs(2),
            between_lists: Duration::from_secs(5),
        }
    }
}

impl Default for ClusterSettings {
    /// Load balancers drop quiet connections, often after 240 s: a watch must be shorter.
    fn default() -> Self {
        Self {
            namespaces: None,
            call_timeout: Duration::from_secs(10),
            admission_timeout: Duration::from_secs(3),
            watch_timeout_seconds: 200,
            pace: Pace::default(),
        }
    }
}

/// Watches the owners of staged resources: one watch for each kind in use, in each namespace that was named or
/// everywhere. The watches end when this is dropped.
pub struct ClusterOwners {
    client: Client,
    settings: ClusterSettings,
    metrics: Metrics,
    kinds: Mutex<HashMap<OwnerKind, Followed>>,
    tasks: Mutex<JoinSet<()>>,
}

/// A kind whose watches are open.
struct Followed {
    follower: Arc<Follower>,
    watches: Vec<AbortHandle>,
    /// Something is staged for this kind, or was about to be.
    is_needed: bool,
}

impl ClusterOwners {
    /// Asks the cluster behind `client`. Nothing is asked before the first owner is there.
    pub fn new(client: Client, settings: ClusterSettings, metrics: Metrics) -> Self {
        Self { client, settings, metrics, kinds: Mutex::default(), tasks: Mutex::default() }
    }

    fn new_follower(&self, kind: &OwnerKind) -> Follower {
        Follower::new(kind.clone(), self.client.clone(), self.settings.clone(), self.metrics.clone())
    }

    fn follower(&self, kind: &OwnerKind) -> Option<Arc<Follower>> {
        lock(&self.kinds).get(kind).map(|followed| Arc::clone(&followed.follower))
    }

    /// Opens the watches of the owner's kind, unless they are open. Those that are needed stay open.
    fn open(&self, owner: &Owner, is_needed: bool) -> Arc<Follower> {
        let mut kinds = lock(&self.kinds);
        let followed = kinds.entry(owner.kind().clone()).or_insert_with(|| self.watch(owner));
        followed.is_needed |= is_needed;
        Arc::clone(&followed.follower)
    }

    fn watch(&self, owner: &Owner) -> Followed {
        let follower = Arc::new(self.new_follower(owner.kind()));
        // Before the first list, so that it has the labels already.
        follower.want(owner);
        let mut tasks = lock(&self.tasks);
        let mut watches = Vec::new();
        for scope in 0..follower.scopes.len() {
            for source in follower.sources() {
                watches.push(tasks.spawn(watch::run(Arc::clone(&follower), scope, *source)));
            }
        }
        Followed { follower, watches, is_needed: false }
    }

    /// Ends watches that were opened for an upload that was refused, if nothing else needs them.
    fn close(&self, kind: &OwnerKind) {
        let mut kinds = lock(&self.kinds);
        if kinds.get(kind).is_some_and(|followed| !followed.is_needed)
            && let Some(followed) = kinds.remove(kind)
        {
            followed.watches.iter().for_each(AbortHandle::abort);
        }
    }

    /// Kinds come and go with their definitions, so what the cluster does not have is asked for each time. Where it
    /// could not be asked before, no further upload waits for that.
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
    async fn admit(&self, owner: &Owner) -> Result<(), NotAdmitted> {
        let until = Instant::now() + self.settings.admission_timeout;
        self.check_kind(owner, until).await?;
        let follower = self.open(owner, false);
        follower.want(owner);
        // Only the first uploads for a kind wait for its first list; an API server that hangs must not hold up all.
        let until = until.min(follower.opened + self.settings.admission_timeout);
        let state = timeout_at(until, follower.started(owner.namespace())).await.ok().flatten();
        let was_ready = follower.scope_of(owner.namespace()).is_some_and(Scope::was_ready);
        if state == Some(WatchState::Forbidden) && !was_ready {
            self.close(owner.kind());
            return Err(NotAdmitted::Forbidden {
                kind: owner.kind().to_string(),
                namespace: owner.namespace().to_owned(),
            });
        }
        // Meanwhile another upload's refusal may have ended the watches.
        self.follow(owner);
        Ok(())
    }

    fn follow(&self, owner: &Owner) {
        self.open(owner, true).want(owner);
    }

    fn presence(&self, owner: &Owner) -> Presence {
        match self.follower(owner.kind()) {
            Some(follower) => follower.presence(owner),
            None => Presence::Unknown(Unknown::Starting),
        }
    }

    async fn confirm(&self, owner: &Owner) -> Presence {
        let follower = self.open(owner, true);
        let patience = self.settings.call_timeout;
        let Some(scope) = follower.scope_of(owner.namespace()) else {
            return Presence::Unknown(Unknown::OtherNamespace);
        };
        let resource = match follower.resource().await {
            Ok(resource) => resource,
            Err(Unresolved::Failed(failure)) => return Presence::Unknown(Unknown::from(&failure)),
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

    async fn cluster(&self) -> ClusterIdentity {
        fresh::cluster(&self.client, self.settings.call_timeout).await
    }

    fn watches(&self) -> Vec<WatchReport> {
        let followers: Vec<Arc<Follower>> =
            lock(&self.kinds).values().map(|followed| Arc::clone(&followed.follower)).collect();
        followers.iter().flat_map(|follower| follower.reports()).collect()
    }
}
