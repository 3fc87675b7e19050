//! Whether the API server is of the cluster that owners were seen in: another one behind the same address knows none of
//! them.
//!
//! The ledger remembers the uid of the first cluster that told one. This is what each answer does:
//!
//! | the answer | no uid is known | a uid is known |
//! |---|---|---|
//! | a uid | it is written down | the same: as ever. Another one: owners are unknown |
//! | no uid (403, 404) | as ever, unchecked | owners are unknown |
//! | no answer | owners are unknown until there is one | the same |

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::owners::{ClusterIdentity, NoAnswer, NoUid, Owners, Presence, Unknown};
use cloakroom_core::protocol::admin::WITHOUT_UID;
use cloakroom_core::text::chain;
use cloakroom_staging::{AccessError, Staging};

/// Which cluster answers, beside the one that the ledger knows. Uids are those of the namespaces `kube-system`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ClusterState {
    /// There was no answer since the start.
    #[default]
    NotAsked,
    /// The one that the ledger knows.
    Known(String),
    /// The ledger knows none, and this one tells no uid: another one would not be noticed.
    Unchecked(NoUid),
    /// Not the one that the ledger knows, or it does not show that it is.
    Other {
        /// The uid that the ledger knows.
        known: String,
        /// What the API server says.
        seen: ClusterIdentity,
    },
}

impl ClusterState {
    fn of(known: Option<String>, seen: ClusterIdentity) -> Self {
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

/// What was found out last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterCheck {
    /// By the last answer.
    pub state: ClusterState,
    /// Why there was none the last time.
    pub failure: Option<String>,
}

impl ClusterCheck {
    fn after(&self, known: Option<String>, answer: Result<ClusterIdentity, String>) -> Self {
        match answer {
            Ok(seen) => Self { state: ClusterState::of(known, seen), failure: None },
            Err(failure) => Self { state: self.state.clone(), failure: Some(failure) },
        }
    }

    /// Why nothing that the watches know counts.
    fn doubt(&self) -> Option<Unknown> {
        if self.state.is_other() {
            return Some(Unknown::OtherCluster);
        }
        self.failure.as_ref().map(|_| Unknown::Failing)
    }
}

/// What an admin's word for a cluster changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The uid that was known before.
    pub before: Option<String>,
    /// The one that is known now; `None` if the cluster is not checked any more.
    pub now: Option<String>,
}

/// Why a cluster was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum NotAccepted {
    /// It cannot be seen which one answers.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// It has another uid than the admin said.
    #[error("the cluster that answers has the uid {seen}: give this one if that cluster is meant")]
    OtherUid {
        /// The uid that it has.
        seen: String,
    },
    /// It has no uid to compare with the admin's.
    #[error(
        "the cluster that answers does not show its uid: {why}; mend that, or go on without this check, with \
         “{WITHOUT_UID}” in place of the uid"
    )]
    WithoutUid {
        /// Why not.
        why: NoUid,
    },
    /// The ledger failed.
    #[error(transparent)]
    Access(#[from] AccessError),
}

/// Which cluster is asked about owners, as a sweep found it out last. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Identity(Arc<Mutex<ClusterCheck>>);

impl Identity {
    /// What was found out last.
    pub fn last(&self) -> ClusterCheck {
        self.lock().clone()
    }

    /// Why nothing that the watches know counts.
    pub(super) fn doubt(&self) -> Option<Unknown> {
        self.lock().doubt()
    }

    /// Whether there was an answer since the start, and nothing is in doubt.
    pub(super) fn is_settled(&self) -> bool {
        let last = self.lock();
        last.state != ClusterState::NotAsked && last.doubt().is_none()
    }

    /// Asks now which cluster it is.
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

    /// From now on the cluster that answers is the right one, if it is the one that the admin names: by its uid, or as the
    /// one without a uid. It is asked now.
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
        *self.lock() = check;
    }

    fn lock(&self) -> MutexGuard<'_, ClusterCheck> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The watches' word for an owner, or the doubt in its place. An owner that they do not know keeps their own reason.
pub(super) fn believed(watched: Presence, doubt: Option<Unknown>) -> Presence {
    match watched {
        Presence::Present | Presence::Finished | Presence::Absent => doubt.map_or(watched, Presence::Unknown),
        Presence::Unknown(_) | Presence::NotAsked => watched,
    }
}

async fn write_down(staging: &Staging, uid: &str) {
    match staging.remember_cluster(Some(uid.to_owned())).await {
        Ok(()) => tracing::info!(cluster = uid, "owners are looked for in this cluster from now on"),
        Err(error) => tracing::warn!(error = %chain(&error), "the cluster could not be written down"),
    }
}

/// Says once what has changed.
fn tell(before: &ClusterCheck, after: &ClusterCheck) {
    if before.state != after.state {
        tell_state(&after.state, before.state.is_other());
    }
    match (&before.failure, &after.failure) {
        (None, Some(error)) => tracing::warn!(
            error,
            "the API server cannot be asked which cluster it is: nothing goes for lack of an owner until it can"
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
            "another cluster answers than the one that owners were seen in: nothing goes for lack of an owner; if this is \
             meant, say “cloakroom clean --accept-cluster” with the uid that was seen; if not, mend the address or the \
             kubeconfig"
        ),
        ClusterState::Other { known, seen: ClusterIdentity::WithoutUid(why) } => tracing::error!(
            known, %why,
            "the cluster does not show any more that it is the one that owners were seen in: nothing goes for lack of an \
             owner; mend the role, the address or the kubeconfig, or go on without this check by “cloakroom clean \
             --accept-cluster {WITHOUT_UID}”"
        ),
        ClusterState::Unchecked(why) => tracing::info!(
            %why,
            "the uid of the cluster cannot be read, so another cluster at the same address would not be noticed; a get on \
             namespaces lets this server notice it"
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
            // What was before makes no difference to what an answer says.
            for before in [ClusterState::NotAsked, known("a"), unchecked(NoUid::Missing), other(&uid("c"))] {
                let before = ClusterCheck { state: before, failure: Some("no route".to_owned()) };
                let after = before.after(in_ledger.map(str::to_owned), Ok(answer.clone()));
                assert_eq!(after, ClusterCheck { state: state.clone(), failure: None }, "{in_ledger:?}");
                assert_eq!(after.doubt(), doubt, "{answer:?}");
                // Without an answer all that was found out stays, and owners are unknown.
                let failed = after.after(None, Err("no route".to_owned()));
                assert_eq!(failed.state, state);
                assert_eq!(failed.doubt(), Some(doubt.unwrap_or(Unknown::Failing)), "{answer:?}");
            }
        }
    }
}
