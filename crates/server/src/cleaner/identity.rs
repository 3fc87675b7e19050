//! Checks whether the API server belongs to the cluster in which owners were seen. Another cluster behind the same
//! address has none of these owners.
//!
//! The ledger keeps the uid of the first cluster that showed one. Each answer has this effect:
//!
//! | the answer | the ledger has no uid | the ledger has a uid |
//! |---|---|---|
//! | a uid | the ledger takes it | the same uid: no effect; another uid: owners are unknown |
//! | no uid (403, 404) | no effect; the cluster is not checked | owners are unknown |
//! | no answer | owners are unknown until there is one | owners are unknown until there is one |

use std::sync::{Arc, Mutex};

use crate::owners::{ClusterIdentity, NoAnswer, NoUid, Owners, Presence, Unknown};
use cloakroom_core::lock::lock;
use cloakroom_core::protocol::admin::WITHOUT_UID;
use cloakroom_core::text::chain;
use cloakroom_storage::{AccessError, Staging};

/// Which cluster the API server belongs to, compared with the one in the ledger. A uid is that of the namespace
/// `kube-system`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ClusterState {
    /// The API server has not answered since the start.
    #[default]
    NotAsked,
    /// The cluster has the uid that the ledger has.
    Known(String),
    /// The ledger has no uid and the cluster shows none, so another cluster would not be noticed.
    Unchecked(NoUid),
    /// The cluster has another uid than the ledger, or shows none although the ledger has one.
    Other {
        /// The uid in the ledger.
        known: String,
        /// What the API server showed.
        seen: ClusterIdentity,
    },
}

impl ClusterState {
    fn compare(known: Option<String>, seen: ClusterIdentity) -> Self {
        match (known, seen) {
            (None, ClusterIdentity::Uid(first)) => Self::Known(first),
            (Some(known), ClusterIdentity::Uid(seen)) if known == seen => Self::Known(known),
            (None, ClusterIdentity::WithoutUid(why)) => Self::Unchecked(why),
            (Some(known), seen) => Self::Other { known, seen },
        }
    }

    fn is_other(&self) -> bool {
        matches!(self, Self::Other { .. })
    }
}

/// The result of the last check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterCheck {
    /// The state by the last answer.
    pub state: ClusterState,
    /// Why the last check had no answer; `None` if it had one.
    pub failure: Option<String>,
}

impl ClusterCheck {
    fn after(&self, known: Option<String>, answer: Result<ClusterIdentity, String>) -> Self {
        match answer {
            Ok(seen) => Self { state: ClusterState::compare(known, seen), failure: None },
            Err(failure) => Self { state: self.state.clone(), failure: Some(failure) },
        }
    }

    /// Why nothing that the watches report counts; `None` if it counts.
    fn doubt(&self) -> Option<Unknown> {
        if self.state.is_other() {
            return Some(Unknown::OtherCluster);
        }
        self.failure.as_ref().map(|_| Unknown::Failing)
    }
}

/// What changed when an admin accepted a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The uid that the ledger had before.
    pub before: Option<String>,
    /// The uid that the ledger has now; `None` if the cluster is not checked any more.
    pub now: Option<String>,
}

/// Why a cluster was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum NotAccepted {
    /// The API server did not show which cluster it belongs to.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// The cluster has another uid than the admin named.
    #[error("the cluster that answers has the uid {seen}: give this uid if you mean that cluster")]
    OtherUid { seen: String },
    /// The cluster shows no uid that could be compared with the admin's.
    #[error(
        "the cluster that answers does not show its uid: {why}; correct that, or turn this check off with \
         “{WITHOUT_UID}” in place of the uid"
    )]
    WithoutUid { why: NoUid },
    /// The ledger could not be read or written.
    #[error(transparent)]
    Access(#[from] AccessError),
}

/// The result of the last check of the cluster. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Identity(Arc<Mutex<ClusterCheck>>);

impl Identity {
    /// The result of the last check.
    pub fn last(&self) -> ClusterCheck {
        lock(&self.0).clone()
    }

    /// Why nothing that the watches report counts; `None` if it counts.
    pub(super) fn doubt(&self) -> Option<Unknown> {
        lock(&self.0).doubt()
    }

    /// Whether the API server has answered since the start, and nothing is in doubt.
    pub(super) fn is_settled(&self) -> bool {
        let last = lock(&self.0);
        last.state != ClusterState::NotAsked && last.doubt().is_none()
    }

    /// Asks the API server now, and compares its answer with the ledger.
    pub(super) async fn check(&self, staging: &Staging, owners: &dyn Owners) -> Result<(), AccessError> {
        let known = staging.cluster().await?;
        let answer = match owners.cluster().await {
            Err(NoAnswer::NotAsked) => return Ok(()),
            answer => answer.map_err(|error| error.to_string()),
        };
        if let (None, Ok(ClusterIdentity::Uid(first))) = (&known, &answer) {
            write_down(staging, first).await;
        }
        let before = self.last();
        let after = before.after(known, answer);
        tell(&before, &after);
        self.set(staging, after);
        Ok(())
    }

    /// Accepts the cluster that answers now, if the admin named it: by its uid, or as the one without a uid.
    pub async fn accept(
        &self,
        staging: &Staging,
        owners: &dyn Owners,
        named: &str,
    ) -> Result<Accepted, NotAccepted> {
        let seen = owners.cluster().await?;
        let now = match &seen {
            ClusterIdentity::Uid(uid) if uid == named => Some(uid.clone()),
            ClusterIdentity::WithoutUid(_) if named == WITHOUT_UID => None,
            ClusterIdentity::Uid(seen) => return Err(NotAccepted::OtherUid { seen: seen.clone() }),
            ClusterIdentity::WithoutUid(why) => return Err(NotAccepted::WithoutUid { why: *why }),
        };
        let before = staging.cluster().await.map_err(AccessError::from)?;
        if now != before {
            staging.remember_cluster(now.clone()).await.map_err(AccessError::from)?;
        }
        self.set(staging, self.last().after(now.clone(), Ok(seen)));
        Ok(Accepted { before, now })
    }

    fn set(&self, staging: &Staging, check: ClusterCheck) {
        staging.metrics().other_cluster(check.state.is_other());
        *lock(&self.0) = check;
    }
}

/// The presence to decide by: what the watches report, unless the cluster is in doubt. An owner that they do not know
/// keeps its own reason.
pub(super) fn believed(watched: Presence, doubt: Option<Unknown>) -> Presence {
    match watched {
        Presence::Present | Presence::Finished | Presence::Absent => doubt.map_or(watched, Presence::Unknown),
        Presence::Unknown(_) | Presence::NotAsked | Presence::NoObjects => watched,
    }
}

async fn write_down(staging: &Staging, uid: &str) {
    match staging.remember_cluster(Some(uid.to_owned())).await {
        Ok(()) => tracing::info!(cluster = uid, "owners are looked for in this cluster from now on"),
        Err(error) => tracing::warn!(error = %chain(&error), "the cluster could not be written down"),
    }
}

/// Logs a change once.
fn tell(before: &ClusterCheck, after: &ClusterCheck) {
    if before.state != after.state {
        tell_state(&after.state, before.state.is_other());
    }
    match (&before.failure, &after.failure) {
        (None, Some(error)) => tracing::warn!(
            error,
            "the API server cannot be asked which cluster it is: no resource is deleted for lack of an owner until it \
             can"
        ),
        (Some(_), None) => tracing::info!("the API server can be asked again which cluster it is"),
        (None, None) | (Some(_), Some(_)) => {}
    }
}

fn tell_state(state: &ClusterState, was_other: bool) {
    match state {
        ClusterState::Other { known, seen: ClusterIdentity::Uid(seen) } => tracing::error!(
            known,
            seen,
            "another cluster answers than the one that owners were seen in: no resource is deleted for lack of an \
             owner; if you mean the new cluster, run “cloakroom clean --accept-cluster” with the uid that was seen; \
             if not, correct the address or the kubeconfig"
        ),
        ClusterState::Other { known, seen: ClusterIdentity::WithoutUid(why) } => tracing::error!(
            known, %why,
            "the cluster does not show any more that it is the one that owners were seen in: no resource is deleted \
             for lack of an owner; correct the role, the address or the kubeconfig, or turn this check off with \
             “cloakroom clean --accept-cluster {WITHOUT_UID}”"
        ),
        ClusterState::Unchecked(why) => tracing::info!(
            %why,
            "the uid of the cluster cannot be read, so another cluster at the same address would not be noticed; to \
             have it noticed, allow this server to get namespaces"
        ),
        ClusterState::Known(uid) if was_other => {
            tracing::info!(cluster = uid, "the cluster is the one that is known");
        }
        ClusterState::Known(_) | ClusterState::NotAsked => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Invariant: another cluster behind the same address deletes nothing until an admin accepts it.
    #[test]
    fn each_answer_does_one_thing_to_what_is_known_of_the_cluster() {
        let uid = |uid: &str| ClusterIdentity::Uid(uid.to_owned());
        let (forbidden, missing) =
            (ClusterIdentity::WithoutUid(NoUid::Forbidden), ClusterIdentity::WithoutUid(NoUid::Missing));
        let known = |uid: &str| ClusterState::Known(uid.to_owned());
        let other =
            |seen: &ClusterIdentity| ClusterState::Other { known: "a".to_owned(), seen: seen.clone() };
        let (unchecked, in_doubt) = (ClusterState::Unchecked, Some(Unknown::OtherCluster));
        for (in_ledger, answer, state, doubt) in [
            (None, uid("a"), known("a"), None),
            (None, forbidden.clone(), unchecked(NoUid::Forbidden), None),
            (None, missing.clone(), unchecked(NoUid::Missing), None),
            (Some("a"), uid("a"), known("a"), None),
            (Some("a"), uid("b"), other(&uid("b")), in_doubt),
            (Some("a"), forbidden.clone(), other(&forbidden), in_doubt),
            (Some("a"), missing.clone(), other(&missing), in_doubt),
        ] {
            // The answer has the same effect after any earlier state.
            for before in [ClusterState::NotAsked, known("a"), unchecked(NoUid::Missing), other(&uid("c"))] {
                let before = ClusterCheck { state: before, failure: Some("no route".to_owned()) };
                let after = before.after(in_ledger.map(str::to_owned), Ok(answer.clone()));
                assert_eq!(after, ClusterCheck { state: state.clone(), failure: None }, "{in_ledger:?}");
                assert_eq!(after.doubt(), doubt, "{answer:?}");
                // Without an answer the state stays, and owners are unknown.
                let failed = after.after(None, Err("no route".to_owned()));
                assert_eq!(failed.state, state);
                assert_eq!(failed.doubt(), Some(doubt.unwrap_or(Unknown::Failing)), "{answer:?}");
            }
        }
    }
}
