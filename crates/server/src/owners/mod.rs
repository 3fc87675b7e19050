//! Who exists: whether the Kubernetes objects that resources live for are there.
//!
//! What is known comes from watches, so that asking costs no call; before something is deleted, one fresh read must
//! say the same.

mod cluster;
mod follower;
mod fresh;
mod kinds;
mod names;
mod objects;

mod wanted;
mod watch;
mod watch_status;

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

/// Whether the owner of a resource is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// At least one owning object exists, and is not a finished pod.
    Present,
    /// Pods exist, and all of them are in phase `Succeeded` or `Failed`.
    Finished,
    /// There is none. Only what was listed completely, or read afresh, is absent.
    Absent,
    /// Nobody can tell at the moment. Never a reason to delete.
    Unknown(Unknown),
    /// No cluster is asked: owners do not matter.
    NotAsked,
}

impl Presence {
    /// Nobody can tell after this failure.
    fn unknown_after(failure: &ApiFailure) -> Self {
        Self::Unknown(match failure {
            ApiFailure::Forbidden { .. } => Unknown::Forbidden,
            _ => Unknown::Failing,
        })
    }
}

/// Which cluster the API server says that it is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterIdentity {
    /// The uid of its namespace `kube-system`, which is made with the cluster and stays as long.
    Uid(String),
    /// It does not show one.
    WithoutUid(NoUid),
}

/// Why a cluster shows no uid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoUid {
    /// This server may not read that namespace.
    #[error("this server may not read the namespace kube-system (403)")]
    Forbidden,
    /// As only something that is no whole cluster would say.
    #[error("there is no namespace kube-system (404)")]
    Missing,
}

/// Why it is not known which cluster the API server is of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// No cluster is asked about owners.
    #[error("this server asks no cluster about owners (--no-kubernetes, or none is configured)")]
    NotAsked,
    /// The API server did not say.
    #[error("cannot read the namespace kube-system: {0}")]
    Failed(ApiFailure),
}

/// An owner whose presence could never be known, so that nothing may be staged for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// The cluster was asked and has no such kind.
    #[error(
        "kind “{kind}” is not one of this cluster's: check the spelling, or install its CustomResourceDefinition first"
    )]
    NoSuchKind {
        /// The kind.
        kind: String,
    },
    /// Objects of that kind are not in namespaces, or cannot be watched.
    #[error("kind “{kind}” cannot own a resource: its objects must be in namespaces and watchable")]
    NotAnOwner {
        /// The kind.
        kind: String,
    },
    /// The role of this server lacks the kind or the namespace.
    #[error(
        "this server may not look at objects of kind “{kind}” in namespace “{namespace}”, so it could never tell when \
         the resource is no longer needed: its admin can extend its role (get, list, watch)"
    )]
    Forbidden {
        /// The kind.
        kind: String,
        /// The namespace.
        namespace: String,
    },
    /// Owners in this namespace have as many different label keys as the server looks for.
    #[error(
        "resources for owners of kind “{kind}” in namespace “{namespace}” ask for {MOST_OF_NAMESPACE} different label keys \
         already: name the owner by keys that are in use, such as spark-app-selector, or by its name"
    )]
    TooManyKeysInNamespace {
        /// The kind.
        kind: String,
        /// The namespace.
        namespace: String,
    },
    /// The same for all namespaces together.
    #[error(
        "resources for owners of kind “{kind}” ask for {MOST_OF_KIND} different label keys already: name the owner by keys \
         that are in use in its namespace, such as spark-app-selector, or by its name"
    )]
    TooManyKeys {
        /// The kind.
        kind: String,
    },
}

/// As long as it is there, what is known of the owner of an upload in flight is not forgotten. One that is made by itself
/// holds nothing.
#[derive(Default)]
#[must_use]
pub struct Admission(#[expect(dead_code, reason = "it only has to be there")] Option<cluster::Held>);

/// Who knows about owners.
#[async_trait]
pub trait Owners: Send + Sync {
    /// Whether a resource may be staged for `owner`; from then on it is looked for, at least until the upload is over.
    /// Waits for a cluster's answer for a few seconds at most, and a cluster that cannot be asked is no reason to refuse.
    async fn admit(&self, owner: &Owner) -> Result<Admission, NotAdmitted>;

    /// From now on `owner` is looked for: a resource that is ready needs it. To be said in each look at everything.
    fn follow(&self, owner: &Owner);

    /// Everything that is ready was looked at, and its owners were followed: what was asked for before and is needed no
    /// more is forgotten.
    fn looked_at_everything(&self) {}

    /// What the watches know. Makes no call.
    fn presence(&self, owner: &Owner) -> Presence;

    /// Asks the API server now, whatever the watches know. What contradicts a watch makes it begin anew.
    async fn confirm(&self, owner: &Owner) -> Presence;

    /// Asks the API server now which cluster it is of.
    async fn cluster(&self) -> Result<ClusterIdentity, NoAnswer>;

    /// Whether there is a cluster that is asked at all.
    fn are_asked_for(&self) -> bool {
        true
    }

    /// How the watches are.
    fn watches(&self) -> Vec<WatchReport>;

    /// How much is used of the limits for what owners are looked for by.
    fn limits(&self) -> Vec<LimitUse> {
        Vec::new()
    }
}

/// Without a cluster, nobody asks about owners.
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
