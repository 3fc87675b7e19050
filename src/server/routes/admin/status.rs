//! How the server is.

use std::net::SocketAddr;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{ConnectInfo, Path, State};

use super::access::Administrator;
use super::describe;
use crate::cleaner::Clusters;
use crate::owners::WatchReport;
use crate::protocol::admin::{ClusterStatus, ServerLimits, ServerStatus, UnreadableResource, WatchStatus};
use crate::protocol::problem::{Code, Problem};
use crate::resource::RowName;
use crate::server::error::ApiError;
use crate::server::state::AppState;
use crate::staging::{Limits, Share};

/// How the server is: room, watches, sweeps.
#[utoipa::path(
    get, path = "/admin/v1/status", tag = "admin", security(("bearer" = [])),
    responses(
        (status = 200, description = "how it is", body = ServerStatus),
        (status = 401, description = "unauthorized: no admin token, or the wrong one", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "admin-off: this server has no --admin-token-file", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn status(
    Administrator(admin): Administrator,
    State(state): State<AppState>,
) -> Result<Json<ServerStatus>, ApiError> {
    let owners = state.judge.owners();
    let stock = state.staging.stock().await;
    let last = admin.cleaner.last();
    let next = last.as_ref().and_then(|last| last.ended_at.checked_add(admin.cleaner.interval()).ok());
    Ok(Json(ServerStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        now: state.staging.clock().now(),
        owners_asked: owners.are_asked_for(),
        cluster: cluster(state.judge.clusters()),
        unreadable_resources: state.staging.count_set_aside() as u64,
        unreadable: state.staging.first_set_aside().iter().map(unreadable).collect(),
        watches: owners.watches().into_iter().map(watch).collect(),
        stored_bytes: stock.stored_bytes,
        free_bytes: stock.free_bytes,
        limits: limits(&state.staging.limits()),
        uploads_in_flight: stock.uploads,
        downloads_in_flight: stock.downloads,
        last_sweep_at: last.as_ref().map(|last| last.ended_at),
        last_sweep: last.and_then(|last| last.swept).as_ref().map(describe::report),
        next_sweep_at: next,
    }))
}

fn unreadable((name, column): &(RowName, &'static str)) -> UnreadableResource {
    UnreadableResource { resource_id: name.to_string(), column: (*column).to_owned() }
}

fn cluster(clusters: Clusters) -> Option<ClusterStatus> {
    let Clusters { known, seen } = clusters;
    Some(ClusterStatus { known: known?, seen: seen? })
}

/// Accept the cluster that answers now as the one to ask about owners.
#[utoipa::path(
    put, path = "/admin/v1/clusters/{uid}", tag = "admin", security(("bearer" = [])),
    params(("uid" = String, Path, description = "the uid of its namespace kube-system, as the status and the log have it")),
    responses(
        (status = 200, description = "it is the one from now on", body = ClusterStatus),
        (status = 400, description = "invalid-parameter: this is not the cluster that answers", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "unauthorized: no admin token, or the wrong one", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "admin-off: this server has no --admin-token-file", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "insufficient-storage: the disk is full", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn accept_cluster(
    _: Administrator,
    State(state): State<AppState>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<ClusterStatus>, ApiError> {
    let uid = path.map(|Path(uid)| uid).unwrap_or_default();
    if !state.judge.accept_cluster(&uid).await? {
        let detail = match state.judge.clusters().seen {
            Some(seen) => format!("this is not the uid of the cluster that answers: that one has {seen}"),
            None => "it is not known yet which cluster answers: try again after the next sweep".to_owned(),
        };
        return Err(ApiError::new(Code::InvalidParameter, detail));
    }
    tracing::warn!(cluster = uid, peer = %peer.ip(), "the admin accepted the cluster");
    Ok(Json(ClusterStatus { known: uid.clone(), seen: uid }))
}

fn watch(report: WatchReport) -> WatchStatus {
    let WatchReport { kind, namespace, unfinished_only, state, since, last_failure } = report;
    WatchStatus { kind, namespace, unfinished_only, state: state.as_str().to_owned(), since, last_failure }
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
