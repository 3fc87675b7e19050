//! A fresh read asks the API server directly, with no watch and no cache in between.

use std::time::Duration;

use kube::api::{DynamicObject, ListParams, PartialObjectMeta};
use kube::core::ApiResource;
use kube::{Api, Client, ResourceExt as _};

use super::{ClusterIdentity, NoUid, Presence};
use cloakroom_cluster::{ApiFailure, within};
use cloakroom_core::resource::{Owner, POD};

/// The most pages of one list. Pages without an object are rare; a list that has only such pages may have no end.
const MOST_PAGES: usize = 100;

/// The field selector for pods that have not finished.
pub(super) const UNFINISHED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// Reads whether objects of `owner` exist. A list without a resource version shows the most recent state, and never
/// that of a cache that is behind (<https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions>).
///
/// All calls together have `patience`.
pub(super) async fn read(
    client: &Client,
    resource: &ApiResource,
    owner: &Owner,
    patience: Duration,
) -> Result<Presence, ApiFailure> {
    tokio::time::timeout(patience, presence(client, resource, owner, patience))
        .await
        .unwrap_or(Err(ApiFailure::TimedOut { after: patience }))
}

async fn presence(
    client: &Client,
    resource: &ApiResource,
    owner: &Owner,
    patience: Duration,
) -> Result<Presence, ApiFailure> {
    let api: Api<PartialObjectMeta<DynamicObject>> =
        Api::namespaced_with(client.clone(), owner.namespace(), resource);
    let any = selecting(owner);
    if resource.kind == POD && resource.group.is_empty() {
        let unfinished = any.clone().fields(&fields(owner, Some(UNFINISHED)));
        if is_any(&api, &unfinished, patience).await? {
            return Ok(Presence::Present);
        }
        let finished = is_any(&api, &any.fields(&fields(owner, None)), patience).await?;
        return Ok(if finished { Presence::Finished } else { Presence::Absent });
    }
    let found = match owner.name() {
        Some(name) => is_that(&api, name, owner, patience).await?,
        None => is_any(&api, &any, patience).await?,
    };
    Ok(if found { Presence::Present } else { Presence::Absent })
}

fn selecting(owner: &Owner) -> ListParams {
    let labels: Vec<String> = owner.labels().map(|(key, value)| format!("{key}={value}")).collect();
    let list = ListParams::default().limit(1);
    if labels.is_empty() { list } else { list.labels(&labels.join(",")) }
}

fn fields(owner: &Owner, more: Option<&str>) -> String {
    let name = owner.name().map(|name| format!("metadata.name={name}"));
    name.into_iter().chain(more.map(str::to_owned)).collect::<Vec<_>>().join(",")
}

/// Whether the object of this name exists and carries the owner's labels.
async fn is_that(
    api: &Api<PartialObjectMeta<DynamicObject>>,
    name: &str,
    owner: &Owner,
    patience: Duration,
) -> Result<bool, ApiFailure> {
    match within(patience, api.get(name)).await {
        Ok(object) => {
            let labels = object.labels();
            Ok(owner.labels().all(|(key, value)| labels.get(key).is_some_and(|carried| carried == value)))
        }
        Err(ApiFailure::NotFound { .. }) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// Whether a list has at least one object. It follows `continue`, because a page of a filtered list can be empty before
/// the end.
async fn is_any(
    api: &Api<PartialObjectMeta<DynamicObject>>,
    list: &ListParams,
    patience: Duration,
) -> Result<bool, ApiFailure> {
    let mut list = list.clone();
    if list.field_selector.as_deref() == Some("") {
        list.field_selector = None;
    }
    for _ in 0..MOST_PAGES {
        let page = within(patience, api.list(&list)).await?;
        if !page.items.is_empty() {
            return Ok(true);
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => list.continue_token = Some(token),
            None => return Ok(false),
        }
    }
    Err(ApiFailure::Unreadable { why: format!("a list of {MOST_PAGES} empty pages that goes on") })
}

/// Whether the namespace does not exist. Only a clear "not found" counts.
pub(super) async fn is_namespace_gone(client: &Client, namespace: &str, patience: Duration) -> bool {
    matches!(within(patience, namespaces(client).get(namespace)).await, Err(ApiFailure::NotFound { .. }))
}

fn namespaces(client: &Client) -> Api<PartialObjectMeta<DynamicObject>> {
    let namespaces = ApiResource::from_gvk_with_plural(
        &kube::core::GroupVersionKind::gvk("", "v1", "Namespace"),
        "namespaces",
    );
    Api::all_with(client.clone(), &namespaces)
}

/// Identifies the cluster by the uid of its namespace `kube-system`. Every cluster has it, and it cannot be deleted;
/// most tools tell clusters apart in the same way.
pub(super) async fn cluster(client: &Client, patience: Duration) -> Result<ClusterIdentity, ApiFailure> {
    match within(patience, namespaces(client).get("kube-system")).await {
        Ok(namespace) => namespace
            .uid()
            .map(ClusterIdentity::Uid)
            .ok_or_else(|| ApiFailure::Unreadable { why: "an object without a uid".to_owned() }),
        Err(ApiFailure::Forbidden { .. }) => Ok(ClusterIdentity::WithoutUid(NoUid::Forbidden)),
        Err(ApiFailure::NotFound { .. }) => Ok(ClusterIdentity::WithoutUid(NoUid::Missing)),
        Err(failure) => Err(failure),
    }
}

/// The presence of an owner after a failed read. A server has no role in a deleted namespace, so every read there is
/// forbidden. If the namespace does not exist, the owner is absent.
pub(super) async fn after_failure(
    client: &Client,
    owner: &Owner,
    failure: &ApiFailure,
    patience: Duration,
) -> Presence {
    let forbidden = matches!(failure, ApiFailure::Forbidden { .. });
    if forbidden && is_namespace_gone(client, owner.namespace(), patience).await {
        return Presence::Absent;
    }
    // At level debug, because the sweep logs one line for all failed reads.
    tracing::debug!(
        kind = %owner.kind(), namespace = owner.namespace(), error = %failure,
        "cannot read whether an owner is there"
    );
    Presence::unknown_after(failure)
}
