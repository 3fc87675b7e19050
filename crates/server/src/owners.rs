//! Owners: whether the Kubernetes objects that resources live for exist.
//!
//! Watches keep this up to date, so that looking it up needs no call. Before a resource is deleted for lack of its
//! owner, one fresh read must confirm it.

mod cluster;
mod follower;
mod fresh;
mod kinds;
mod names;
mod objects;

mod wanted;
mod watch;
mod watch_status;

use std::time::Duration;

use async_trait::async_trait;

use cloakroom_cluster::ApiFailure;
use cloakroom_core::metrics::LimitUse;
use cloakroom_core::resource::Owner;

pub use cloakroom_core::protocol::status::WatchState;
pub use cloakroom_core::resource::Unknown;
pub use cluster::{ClusterOwners, ClusterSettings, WatchIntervals};
use wanted::{MOST_OF_KIND, MOST_OF_NAMESPACE};
pub use watch::RESTART_CAUSES;
pub use watch_status::WatchReport;

/// Whether the owner of a resource exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// At least one owning object exists, and it is not a finished pod.
    Present,
    /// Pods exist, and all of them are in phase `Succeeded` or `Failed`.
    Finished,
    /// No owning object exists. This needs a complete list or a fresh read.
    Absent,
    /// The presence cannot be told at the moment. This is never a reason to delete.
    Unknown(Unknown),
    /// The server asks no cluster, so owners have no effect.
    NotAsked,
    /// The owner has no objects to look for.
    NoObjects,
}

impl Presence {
    /// The presence of an owner by the watches alone.
    pub fn look_up(owner: &Owner, owners: &dyn Owners) -> Self {
        if owner.has_objects() { owners.presence(owner) } else { Self::NoObjects }
    }

    /// Nobody can tell after this failure.
    fn unknown_after(failure: &ApiFailure) -> Self {
        Self::Unknown(match failure {
            ApiFailure::Forbidden { .. } => Unknown::Forbidden,
            _ => Unknown::Failing,
        })
    }
}

/// The cluster that the API server belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterIdentity {
    /// The uid of its namespace `kube-system`, which lives as long as the cluster.
    Uid(String),
    /// The API server does not show the uid.
    WithoutUid(NoUid),
}

/// Why the API server does not show the uid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoUid {
    /// The server's role does not allow it to read that namespace.
    #[error("this server may not read the namespace kube-system (403)")]
    Forbidden,
    /// The namespace does not exist, so this is not the API server of a whole cluster.
    #[error("there is no namespace kube-system (404)")]
    Missing,
}

/// Why the cluster cannot be identified.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The server asks no cluster about owners.
    #[error("this server asks no cluster about owners (--no-kubernetes, or none is configured)")]
    NotAsked,
    /// The API server gave no usable answer.
    #[error("cannot read the namespace kube-system: {0}")]
    Failed(ApiFailure),
}

/// The owner's presence could never be known, so an upload for it is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// The cluster has no such kind.
    #[error(
        "kind “{kind}” is not one of this cluster's: check the spelling, or install its CustomResourceDefinition first"
    )]
    NoSuchKind { kind: String },
    /// Objects of that kind are not in namespaces, or cannot be listed and watched.
    #[error("kind “{kind}” cannot own a resource: its objects must be in namespaces and watchable")]
    NotAnOwner { kind: String },
    /// The role of this server lacks the kind or the namespace.
    #[error(
        "this server may not look at objects of kind “{kind}” in namespace “{namespace}”, so it could never tell when \
         the resource is no longer needed: its admin can extend its role (get, list, watch)"
    )]
    Forbidden { kind: String, namespace: String },
    /// The owners in this namespace have the largest allowed number of different label keys.
    #[error(
        "resources for owners of kind “{kind}” in namespace “{namespace}” ask for {MOST_OF_NAMESPACE} different label keys \
         already: name the owner by keys that are in use, such as spark-app-selector, or by its name"
    )]
    TooManyKeysInNamespace { kind: String, namespace: String },
    /// The owners in all namespaces together have the largest allowed number of different label keys.
    #[error(
        "resources for owners of kind “{kind}” ask for {MOST_OF_KIND} different label keys already: name the owner by keys \
         that are in use in its namespace, such as spark-app-selector, or by its name"
    )]
    TooManyKeys { kind: String },
}

/// Keeps what is known of an upload's owner until it is dropped. The default value keeps nothing.
#[derive(Default)]
pub struct Admission(#[expect(dead_code, reason = "it only has to be there")] Option<cluster::KindInUse>);

/// The source of truth about owners: a cluster, or none.
#[async_trait]
pub trait Owners: Send + Sync {
    /// Checks whether a resource may be staged for `owner`. From then on the owner is looked for, at least until the
    /// admission is dropped. It waits a few seconds at most, and a cluster that does not answer is no reason to refuse.
    async fn admit(&self, owner: &Owner) -> Result<Admission, NotAdmitted>;

    /// Keeps looking for `owner`, because a ready resource needs it. Every sweep calls it again for every ready
    /// resource.
    fn follow(&self, owner: &Owner);

    /// Tells that a sweep has called [`Owners::follow`] for all ready resources. Owners that were registered before it
    /// and not again can be forgotten.
    fn looked_at_everything(&self) {}

    /// The presence of an owner that has objects, by the watches alone. Makes no call.
    fn presence(&self, owner: &Owner) -> Presence;

    /// Asks the API server now. If the answer contradicts a watch, the watch starts again.
    async fn confirm(&self, owner: &Owner) -> Presence;

    /// The longest time that [`Self::confirm`] waits for an answer.
    fn longest_read(&self) -> Duration {
        Duration::ZERO
    }

    /// Asks the API server now which cluster it belongs to.
    async fn cluster(&self) -> Result<ClusterIdentity, NoAnswer>;

    /// Whether there is a cluster to ask about owners.
    fn are_asked_for(&self) -> bool {
        true
    }

    /// The status of each watch.
    fn watches(&self) -> Vec<WatchReport>;

    /// Whether a watch has ended by a fault of its own.
    fn has_failed_watch(&self) -> bool {
        false
    }

    /// How much of the limits for label keys is in use.
    fn limits(&self) -> Vec<LimitUse> {
        Vec::new()
    }
}

/// No cluster is asked about owners.
#[derive(Debug, Clone, Copy)]
pub struct NoCluster;

#[async_trait]
impl Owners for NoCluster {
    async fn admit(&self, _: &Owner) -> Result<Admission, NotAdmitted> {
        Ok(Admission::default())
    }

    fn follow(&self, _: &Owner) {}

    fn are_asked_for(&self) -> bool {
        false
    }

    fn presence(&self, _: &Owner) -> Presence {
        Presence::NotAsked
    }

    async fn confirm(&self, _: &Owner) -> Presence {
        Presence::NotAsked
    }

    async fn cluster(&self) -> Result<ClusterIdentity, NoAnswer> {
        Err(NoAnswer::NotAsked)
    }

    fn watches(&self) -> Vec<WatchReport> {
        Vec::new()
    }
}
