//! Owners in a cluster.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kube::Client;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::follower::{Follower, Scope, lock};
use super::kinds::Unresolved;
use super::standing::{WatchReport, WatchState};
use super::{NotAdmitted, Owners, Presence, Unknown, fresh, watch};
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
    kinds: Mutex<HashMap<OwnerKind, Arc<Follower>>>,
    tasks: Mutex<JoinSet<()>>,
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
        lock(&self.kinds).get(kind).cloned()
    }

    /// Opens the watches of the owner's kind, unless they are open.
    fn open(&self, owner: &Owner) -> Arc<Follower> {
        let mut kinds = lock(&self.kinds);
        if let Some(follower) = kinds.get(owner.kind()) {
            return Arc::clone(follower);
        }
        let follower = Arc::new(self.new_follower(owner.kind()));
        // Before the first list, so that it has the labels already.
        follower.want(owner);
        let mut tasks = lock(&self.tasks);
        for scope in 0..follower.scopes.len() {
            for source in follower.sources() {
                tasks.spawn(watch::run(Arc::clone(&follower), scope, *source));
            }
        }
        kinds.insert(owner.kind().clone(), Arc::clone(&follower));
        follower
    }

    /// Kinds come and go with their definitions, so what the cluster does not have is asked for each time.
    async fn check_kind(&self, owner: &Owner) -> Result<(), NotAdmitted> {
        if self.follower(owner.kind()).is_some_and(|follower| follower.scopes.iter().any(Scope::has_kind)) {
            return Ok(());
        }
        let kind = owner.kind().to_string();
        let probe = self.new_follower(owner.kind());
        match timeout(self.settings.admission_timeout, probe.resource()).await.ok() {
            Some(Err(Unresolved::NoSuchKind)) => Err(NotAdmitted::NoSuchKind { kind }),
            Some(Err(Unresolved::NotAnOwner)) => Err(NotAdmitted::NotAnOwner { kind }),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Owners for ClusterOwners {
    async fn admit(&self, owner: &Owner) -> Result<(), NotAdmitted> {
        self.check_kind(owner).await?;
        let follower = self.open(owner);
        follower.want(owner);
        // Only the first uploads for a kind wait for its first list; an API server that hangs must not hold up all.
        let patience = self.settings.admission_timeout.saturating_sub(follower.opened.elapsed());
        let state = timeout(patience, follower.started(owner.namespace())).await.ok().flatten();
        let was_ready = follower.scope_of(owner.namespace()).is_some_and(Scope::was_ready);
        if state == Some(WatchState::Forbidden) && !was_ready {
            return Err(NotAdmitted::Forbidden {
                kind: owner.kind().to_string(),
                namespace: owner.namespace().to_owned(),
            });
        }
        Ok(())
    }

    fn follow(&self, owner: &Owner) {
        self.open(owner).want(owner);
    }

    fn presence(&self, owner: &Owner) -> Presence {
        match self.follower(owner.kind()) {
            Some(follower) => follower.presence(owner),
            None => Presence::Unknown(Unknown::Starting),
        }
    }

    async fn confirm(&self, owner: &Owner) -> Presence {
        let follower = self.open(owner);
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

    fn watches(&self) -> Vec<WatchReport> {
        let followers: Vec<Arc<Follower>> = lock(&self.kinds).values().cloned().collect();
        followers.iter().flat_map(|follower| follower.reports()).collect()
    }
}
