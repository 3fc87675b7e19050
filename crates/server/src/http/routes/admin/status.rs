//! The status of the server, and the acceptance of another cluster.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use tracing::field::display;

use super::access::Administrator;
use super::describe;
use crate::cleaner::{Accepted, ClusterCheck, ClusterState, NotAccepted};
use crate::http::error::ApiError;
use crate::http::proxies::Sender;
use crate::http::state::AppState;
use crate::owners::{ClusterIdentity, NoAnswer, WatchReport};
use cloakroom_core::protocol::admin::{
    AcceptedCluster, ClusterStatus, ResumedDeletions, ServerLimits, ServerStatus, UnreadableResource,
    WatchStatus,
};
use cloakroom_core::protocol::problem::Code;
use cloakroom_core::protocol::status::ClusterMatch;
use cloakroom_storage::ledger::UnreadableRow;
use cloakroom_storage::{Limits, Share};

/// Get the server's status: room, watches, sweeps.
#[utoipa::path(
    get, path = "/admin/v1/status", operation_id = "getStatus", tag = "admin", security(("adminToken" = [])),
    responses(
        (status = 200, description = "how it is", body = ServerStatus),
        (status = 401, description = "unauthorized: no admin token, or the wrong one"),
        (status = 403, description = "admin-off: this server has no --admin-token-file"),
    )
)]
pub(super) async fn status(
    Administrator { admin, .. }: Administrator,
    State(state): State<AppState>,
) -> Result<Json<ServerStatus>, ApiError> {
    let stock = state.staging.stock().await;
    let set_aside = state.staging.unreadable();
    let last = admin.cleaner.last();
    let next = last.ended_at.checked_add(admin.cleaner.interval()).ok();
    Ok(Json(ServerStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        now: state.staging.clock().now(),
        owners_asked: state.owners.are_asked_for(),
        cluster: cluster(state.identity.last()),
        ledger_behind: state.staging.is_behind(),
        unreadable_resources: set_aside.count as u64,
        damaged_ids: set_aside.damaged_ids as u64,
        unreadable: set_aside.first.into_iter().map(unreadable).collect(),
        strays: stock.strays,
        stray_bytes: stock.stray_bytes,
        watches: state.owners.watches().into_iter().map(watch).collect(),
        stored_bytes: stock.stored_bytes,
        free_bytes: stock.free_bytes,
        limits: limits(&state.staging.limits()),
        uploads_in_flight: stock.uploads,
        downloads_in_flight: stock.downloads,
        last_sweep_at: Some(last.ended_at),
        last_sweep: last.swept.as_ref().map(describe::report),
        next_sweep_at: next,
    }))
}

fn unreadable(row: UnreadableRow) -> UnreadableResource {
    let UnreadableRow { id, column, namespace, size_bytes, .. } = row;
    UnreadableResource { resource_id: id.to_string(), column: column.to_owned(), namespace, size_bytes }
}

fn cluster(check: ClusterCheck) -> Option<ClusterStatus> {
    let ClusterCheck { state, failure } = check;
    if state == ClusterState::NotAsked && failure.is_none() {
        return None;
    }
    let (state, known, seen) = match state {
        ClusterState::NotAsked => (ClusterMatch::NotAsked, None, None),
        ClusterState::Known(uid) => (ClusterMatch::Same, Some(uid.clone()), Some(ClusterIdentity::Uid(uid))),
        ClusterState::Unchecked(why) => {
            (ClusterMatch::Unchecked, None, Some(ClusterIdentity::WithoutUid(why)))
        }
        ClusterState::Other { known, seen } => (ClusterMatch::Other, Some(known), Some(seen)),
    };
    let (seen, no_uid) = match seen {
        Some(ClusterIdentity::Uid(uid)) => (Some(uid), None),
        Some(ClusterIdentity::WithoutUid(why)) => (None, Some(why.to_string())),
        None => (None, None),
    };
    let unanswered = failure.is_some();
    Some(ClusterStatus { state: state.into(), known, seen, failure: failure.or(no_uid), unanswered })
}

/// Accept the cluster that answers now as the one to ask about owners. The server asks it for its uid now.
#[utoipa::path(
    put, path = "/admin/v1/clusters/{uid}", operation_id = "acceptCluster", tag = "admin", security(("adminToken" = [])),
    params(("uid" = String, Path, description = "the uid of its namespace kube-system, as the status and the log have it; without-uid for a cluster whose uid cannot be read: from then on it is not checked")),
    responses(
        (status = 200, description = "accepted", body = AcceptedCluster),
        (status = 400, description = "invalid-parameter: this is not the cluster that answers, or no cluster is asked"),
        (status = 401, description = "unauthorized: no admin token, or the wrong one"),
        (status = 403, description = "admin-off: this server has no --admin-token-file"),
        (status = 503, description = "cluster-unavailable: the API server cannot be asked; overloaded, not-writable"),
        (status = 507, description = "insufficient-storage: the disk is full"),
    )
)]
pub(super) async fn accept_cluster(
    admin: Administrator,
    State(state): State<AppState>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<AcceptedCluster>, ApiError> {
    let named = path.map(|Path(uid)| uid).unwrap_or_default();
    let Accepted { before, now } = state.identity.accept(&state.staging, &*state.owners, &named).await?;
    let Administrator { name: by, sender: Sender { address: peer, proxy }, .. } = admin;
    let (by, proxy) = (by.as_deref(), proxy.map(display));
    if now == before {
        tracing::info!(cluster = named, by, %peer, proxy, "the admin accepted the cluster that is known: nothing was changed");
    } else {
        tracing::warn!(cluster = named, known_before = before, by, %peer, proxy, "the admin accepted the cluster");
    }
    Ok(Json(AcceptedCluster { known: now, known_before: before }))
}

/// Let sweeps delete again, although the ledger is an earlier copy than the one that its store has seen.
#[utoipa::path(
    post, path = "/admin/v1/resume-deletions", operation_id = "resumeDeletions", tag = "admin", security(("adminToken" = [])),
    responses(
        (status = 200, description = "sweeps delete", body = ResumedDeletions),
        (status = 401, description = "unauthorized: no admin token, or the wrong one"),
        (status = 403, description = "admin-off: this server has no --admin-token-file"),
        (status = 500, description = "internal: the store belongs to another ledger now"),
        (status = 503, description = "overloaded, not-writable"),
        (status = 507, description = "insufficient-storage: the disk is full"),
    )
)]
pub(super) async fn resume_deletions(
    admin: Administrator,
    State(state): State<AppState>,
) -> Result<Json<ResumedDeletions>, ApiError> {
    let was_behind = state.staging.resume_deletions().await?;
    if was_behind {
        let Administrator { name: by, sender: Sender { address: peer, proxy }, .. } = admin;
        let (by, proxy) = (by.as_deref(), proxy.map(display));
        tracing::warn!(by, %peer, proxy, "the admin lets sweeps delete again, although the ledger is an earlier copy");
    }
    Ok(Json(ResumedDeletions { was_behind }))
}

impl From<NotAccepted> for ApiError {
    fn from(error: NotAccepted) -> Self {
        match error {
            NotAccepted::Access(error) => error.into(),
            NotAccepted::NoAnswer(NoAnswer::Failed(_)) => Self::try_again(
                Code::ClusterUnavailable,
                format!("{error}: nothing was changed; try again later"),
            ),
            NotAccepted::NoAnswer(NoAnswer::NotAsked)
            | NotAccepted::OtherUid { .. }
            | NotAccepted::WithoutUid { .. } => {
                Self::new(Code::InvalidParameter, format!("nothing was changed: {error}"))
            }
        }
    }
}

fn watch(report: WatchReport) -> WatchStatus {
    let WatchReport { kind, namespace, unfinished_only, state, since, last_failure, .. } = report;
    let (kind, state) = (kind.to_string(), state.into());
    WatchStatus { kind, namespace, unfinished_only, state, since, last_failure }
}

fn limits(limits: &Limits) -> ServerLimits {
    let Limits { capacity, max_resources, max_concurrent_uploads, max_concurrent_downloads, share, .. } =
        *limits;
    ServerLimits {
        max_resource_size: capacity.max_resource_size,
        max_total_size: capacity.max_total_size,
        min_free_space: capacity.min_free_space,
        max_resources: Some(max_resources as u64),
        max_concurrent_uploads: max_concurrent_uploads as u64,
        max_concurrent_downloads: max_concurrent_downloads as u64,
        share_percent: share.map(Share::percent),
    }
}
