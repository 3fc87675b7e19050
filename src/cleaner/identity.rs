//! Whether the API server is still of the cluster that owners were seen in: another one behind the same address knows
//! none of them.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use crate::owners::{ClusterIdentity, Owners, Unknown, WatchState};
use crate::staging::{AccessError, Staging};
use crate::telemetry::chain;

use super::Why;

/// Which cluster was asked about owners so far, and which one answers now, by the uids of their namespaces `kube-system`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clusters {
    /// The one that the ledger knows.
    pub known: Option<String>,
    /// The one that answered last.
    pub seen: Option<String>,
}

impl Clusters {
    /// Whether another one answers than the ledger knows.
    pub fn is_other(&self) -> bool {
        self.known.is_some() && self.seen.is_some() && self.known != self.seen
    }
}

/// What was found out last. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedClusters(Arc<Mutex<Clusters>>);

impl SharedClusters {
    pub(super) fn get(&self) -> Clusters {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, clusters: Clusters) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = clusters;
    }
}

/// Remembers what was said of the cluster, and when it must be asked again.
#[derive(Debug, Default)]
pub(super) struct Identity {
    pub(super) clusters: SharedClusters,
    /// Why nothing goes for lack of an owner, by the last answer.
    keeps: Option<Why>,
    /// When a watch had last changed its state when there was an answer; the beginning of time if there was no watch.
    answered_with: Option<Timestamp>,
    /// It cannot be told, and will not be.
    is_forbidden: bool,
}

impl Identity {
    /// Why nothing goes for lack of an owner; `None` if that is as ever. It is asked before anything goes, after every
    /// change of a watch, and as long as something is wrong.
    pub(super) async fn check(
        &mut self,
        staging: &Staging,
        owners: &dyn Owners,
        is_about_to_delete: bool,
    ) -> Result<Option<Why>, AccessError> {
        let watches = owners.watches();
        let is_working = watches.is_empty() || watches.iter().any(|watch| watch.state == WatchState::Ready);
        if !is_about_to_delete && !is_working {
            // Nothing is known of owners meanwhile, and the API server may have asked for patience.
            return Ok(self.keeps);
        }
        let changed_at = watches.iter().map(|watch| watch.since).max().unwrap_or(Timestamp::MIN);
        let is_answered = self.answered_with == Some(changed_at) && self.keeps.is_none();
        if is_answered && (self.is_forbidden || !is_about_to_delete) {
            return Ok(None);
        }
        let known = staging.cluster().await?;
        let identity = owners.cluster().await;
        self.answered_with = (identity != ClusterIdentity::Unknown).then_some(changed_at);
        self.keeps = self.judge(staging, known, identity).await;
        Ok(self.keeps)
    }

    async fn judge(
        &mut self,
        staging: &Staging,
        known: Option<String>,
        identity: ClusterIdentity,
    ) -> Option<Why> {
        let was_forbidden = std::mem::replace(&mut self.is_forbidden, identity == ClusterIdentity::Forbidden);
        match (identity, known) {
            (ClusterIdentity::NotAsked, _) | (ClusterIdentity::Missing, None) => None,
            (ClusterIdentity::Forbidden, _) => {
                if !was_forbidden {
                    tracing::info!(
                        "this server may not read the namespace kube-system, so it cannot tell whether another cluster answers \
                         one day at the same address; a get on namespaces lets it"
                    );
                }
                // Another one was seen, and what it forbids says nothing new.
                self.clusters.get().is_other().then_some(Why::OtherCluster)
            }
            (ClusterIdentity::Unknown, _) => Some(Why::OwnerUnknown(Unknown::Failing)),
            (ClusterIdentity::Missing, Some(_)) => Some(Why::OtherCluster),
            (ClusterIdentity::Uid(seen), None) => {
                match staging.remember_cluster(&seen).await {
                    Ok(()) => {
                        tracing::info!(cluster = seen, "owners are looked for in this cluster from now on");
                    }
                    Err(error) => {
                        tracing::warn!(error = %chain(&error), "the cluster could not be written down");
                    }
                }
                self.found(Some(seen.clone()), seen)
            }
            (ClusterIdentity::Uid(seen), known) => self.found(known, seen),
        }
    }

    fn found(&self, known: Option<String>, seen: String) -> Option<Why> {
        let clusters = Clusters { known, seen: Some(seen) };
        let is_other = clusters.is_other();
        let was_other = self.clusters.get().is_other();
        let uid = |uid: &Option<String>| uid.clone().unwrap_or_default();
        if is_other && self.clusters.get() != clusters {
            tracing::error!(
                known = uid(&clusters.known),
                seen = uid(&clusters.seen),
                "another cluster answers than the one that owners were seen in: nothing goes for lack of an owner; if this \
                 is meant, say “cloakroom clean --accept-cluster” with the uid that was seen; if not, mend the address or \
                 the kubeconfig"
            );
        } else if was_other && !is_other {
            tracing::info!(cluster = uid(&clusters.seen), "the cluster is the one that is known");
        }
        self.clusters.set(clusters);
        is_other.then_some(Why::OtherCluster)
    }
}
