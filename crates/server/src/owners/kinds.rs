//! Finds the API server's resource for the kind that an upload names.

use std::time::Duration;

use kube::Client;
use kube::core::{ApiResource, GroupVersionKind};

use cloakroom_cluster::{ApiFailure, within};
use cloakroom_core::resource::{OwnerKind, POD};

/// Why a kind cannot be watched.
#[derive(Debug)]
pub(super) enum Unresolved {
    /// The cluster has no such kind.
    NoSuchKind,
    /// Objects of the kind are not in namespaces, or cannot be listed and watched.
    NotAnOwner,
    /// The cluster could not be asked.
    Failed(ApiFailure),
}

impl From<ApiFailure> for Unresolved {
    fn from(failure: ApiFailure) -> Self {
        Self::Failed(failure)
    }
}

/// The built-in kinds outside of the core group, by their group.
const BUILT_IN: [(&str, &[&str]); 2] =
    [("apps", &["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"]), ("batch", &["Job", "CronJob"])];

/// Splits `Kind.group`. A kind without a group is a built-in one.
pub(super) fn group_and_kind(kind: &OwnerKind) -> (&str, &str) {
    let text = kind.as_str();
    let built_in = || BUILT_IN.iter().find(|(_, kinds)| kinds.contains(&text)).map_or("", |(group, _)| group);
    text.split_once('.').map_or_else(|| (built_in(), text), |(kind, group)| (group, kind))
}

/// Asks the cluster for the version and the plural name of a kind. Pods are known without a call.
pub(super) async fn resolve(
    client: &Client,
    kind: &OwnerKind,
    patience: Duration,
) -> Result<ApiResource, Unresolved> {
    let (group, name) = group_and_kind(kind);
    if kind.as_str() == POD {
        return Ok(ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", POD), "pods"));
    }
    for version in versions(client, group, patience).await? {
        if let Some(found) = in_version(client, group, &version, name, patience).await? {
            return found;
        }
    }
    Err(Unresolved::NoSuchKind)
}

/// The versions of a group that the cluster serves. The preferred version comes first.
async fn versions(client: &Client, group: &str, patience: Duration) -> Result<Vec<String>, Unresolved> {
    if group.is_empty() {
        return Ok(vec!["v1".to_owned()]);
    }
    let groups = within(patience, client.list_api_groups()).await?.groups;
    let Some(found) = groups.into_iter().find(|served| served.name == group) else {
        return Err(Unresolved::NoSuchKind);
    };
    let preferred = found.preferred_version.map(|version| version.version);
    let others = found.versions.into_iter().map(|version| version.version);
    let others = others.filter(|version| Some(version) != preferred.as_ref());
    Ok(preferred.clone().into_iter().chain(others.collect::<Vec<_>>()).collect())
}

async fn in_version(
    client: &Client,
    group: &str,
    version: &str,
    kind: &str,
    patience: Duration,
) -> Result<Option<Result<ApiResource, Unresolved>>, Unresolved> {
    let served = if group.is_empty() {
        within(patience, client.list_core_api_resources(version)).await?
    } else {
        within(patience, client.list_api_group_resources(&format!("{group}/{version}"))).await?
    };
    // A name with a slash is a subresource, such as pods/status.
    let found = served.resources.into_iter().find(|served| served.kind == kind && !served.name.contains('/'));
    Ok(found.map(|served| {
        let can = |verb: &str| served.verbs.iter().any(|allowed| allowed == verb);
        if !served.namespaced || !["get", "list", "watch"].into_iter().all(can) {
            return Err(Unresolved::NotAnOwner);
        }
        Ok(ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), &served.name))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_kind_is_looked_for_where_kubernetes_has_it() {
        for (text, expected) in [
            ("Pod", ("", "Pod")),
            ("ConfigMap", ("", "ConfigMap")),
            ("StatefulSet", ("apps", "StatefulSet")),
            ("Job", ("batch", "Job")),
            ("SparkApplication.sparkoperator.k8s.io", ("sparkoperator.k8s.io", "SparkApplication")),
            ("Deployment.example.com", ("example.com", "Deployment")),
        ] {
            assert_eq!(group_and_kind(&OwnerKind::parse(text).unwrap()), expected);
        }
    }
}
