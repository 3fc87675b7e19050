//! Owners as a test says that they are.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use cloakroom_core::resource::{Owner, OwnerKind};
use cloakroom_server::owners::{
    Admission, ClusterIdentity, NoAnswer, NoUid, NotAdmitted, Owners, Presence, WatchReport,
};
use tokio::sync::Semaphore;

/// An owner in the namespace `demo`: a pod with these labels (`app=demo,role=driver`), or of this name.
pub fn owner(selector: &str) -> Owner {
    owner_of("Pod", "demo", selector)
}

/// An owner of any kind and namespace.
pub fn owner_of(kind: &str, namespace: &str, selector: &str) -> Owner {
    let kind = OwnerKind::parse(kind).unwrap();
    if !selector.contains('=') {
        return Owner::new(kind, namespace, [], Some(selector)).unwrap();
    }
    let labels = selector.split(',').map(|label| Owner::split_label(label).unwrap());
    Owner::new(kind, namespace, labels, None).unwrap()
}

/// A double of the cluster: what its watches know and what a fresh read says are two things.
pub struct ScriptedOwners {
    script: Mutex<Script>,
    /// Its permits are the fresh reads that are answered; all of them while nothing holds them up.
    answers: Semaphore,
    /// Whether a watch has ended by a fault.
    pub has_failed_watch: AtomicBool,
}

struct Script {
    watched: Presence,
    fresh: Presence,
    watched_of: HashMap<Owner, Presence>,
    fresh_of: HashMap<Owner, Presence>,
    reads: Vec<Owner>,
    cluster: ClusterAnswer,
    /// What it is from the next fresh read of an owner on.
    next_cluster: Option<ClusterAnswer>,
}

/// What an API server says of its cluster.
pub type ClusterAnswer = Result<ClusterIdentity, NoAnswer>;

impl ScriptedOwners {
    /// All owners are so, for the watches and for a fresh read.
    pub fn all(presence: Presence) -> Arc<Self> {
        let (watched_of, fresh_of) = (HashMap::new(), HashMap::new());
        let script = Script {
            watched: presence,
            fresh: presence,
            watched_of,
            fresh_of,
            reads: Vec::new(),
            // As the fake API server.
            cluster: Ok(ClusterIdentity::WithoutUid(NoUid::Missing)),
            next_cluster: None,
        };
        Arc::new(Self {
            script: Mutex::new(script),
            answers: Semaphore::new(Semaphore::MAX_PERMITS),
            has_failed_watch: AtomicBool::new(false),
        })
    }

    /// From now on all owners are so.
    pub fn are(&self, presence: Presence) {
        self.watches_say(presence);
        self.fresh_reads_say(presence);
    }

    pub fn watches_say(&self, presence: Presence) {
        let mut script = self.lock();
        script.watched = presence;
        script.watched_of.clear();
    }

    pub fn fresh_reads_say(&self, presence: Presence) {
        let mut script = self.lock();
        script.fresh = presence;
        script.fresh_of.clear();
    }

    /// From now on one owner is so, whatever the others are.
    pub fn is(&self, owner: &Owner, presence: Presence) {
        let mut script = self.lock();
        script.watched_of.insert(owner.clone(), presence);
        script.fresh_of.insert(owner.clone(), presence);
    }

    /// From now on a fresh read says that of one owner.
    pub fn fresh_is(&self, owner: &Owner, presence: Presence) {
        self.lock().fresh_of.insert(owner.clone(), presence);
    }

    /// From now on no fresh read gets an answer, but for so many.
    pub fn answer_only(&self, reads: usize) {
        self.answers.forget_permits(Semaphore::MAX_PERMITS);
        self.answers.add_permits(reads);
    }

    /// From now on that cluster answers.
    pub fn cluster_is(&self, cluster: ClusterAnswer) {
        self.lock().cluster = cluster;
    }

    /// From the next fresh read of an owner on, that cluster answers.
    pub fn cluster_changes_with_the_next_read(&self, cluster: ClusterAnswer) {
        self.lock().next_cluster = Some(cluster);
    }

    /// The owners that were read afresh since this was last asked.
    pub fn take_reads(&self) -> Vec<Owner> {
        std::mem::take(&mut self.lock().reads)
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }
}

#[async_trait]
impl Owners for ScriptedOwners {
    async fn admit(&self, _: &Owner) -> Result<Admission, NotAdmitted> {
        Ok(Admission::default())
    }

    fn follow(&self, _: &Owner) {}

    fn presence(&self, owner: &Owner) -> Presence {
        let script = self.lock();
        script.watched_of.get(owner).copied().unwrap_or(script.watched)
    }

    async fn confirm(&self, owner: &Owner) -> Presence {
        self.answers.acquire().await.unwrap().forget();
        let mut script = self.lock();
        script.reads.push(owner.clone());
        if let Some(next) = script.next_cluster.take() {
            script.cluster = next;
        }
        script.fresh_of.get(owner).copied().unwrap_or(script.fresh)
    }

    async fn cluster(&self) -> ClusterAnswer {
        self.lock().cluster.clone()
    }

    fn has_failed_watch(&self) -> bool {
        self.has_failed_watch.load(Ordering::Relaxed)
    }

    fn watches(&self) -> Vec<WatchReport> {
        Vec::new()
    }
}
