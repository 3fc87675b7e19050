//! Discovery: versions, groups and kinds of the API server.

use serde_json::{Value, json};

use crate::cluster::Kind;

/// The document at a path of discovery; `None` if the path has none.
pub fn document(kinds: &[Kind], segments: &[&str]) -> Option<Value> {
    match segments {
        ["version"] => Some(json!({"major": "1", "minor": "34", "gitVersion": "v1.34.4"})),
        ["api"] => Some(json!({"kind": "APIVersions", "versions": ["v1"]})),
        ["api", "v1"] => Some(resources(kinds, "", "v1")),
        ["apis"] => {
            let mut names: Vec<&str> = kinds.iter().map(|kind| kind.group).collect();
            names.sort_unstable();
            names.dedup();
            let groups: Vec<Value> = names.into_iter().filter_map(|name| group(kinds, name)).collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["apis", name] => {
            let mut group = group(kinds, name)?;
            group["kind"] = "APIGroup".into();
            group["apiVersion"] = "v1".into();
            Some(group)
        }
        ["apis", group, version] => {
            let is_known = kinds.iter().any(|kind| kind.group == *group && kind.version == *version);
            is_known.then(|| resources(kinds, group, version))
        }
        _ => None,
    }
}

fn group(kinds: &[Kind], name: &str) -> Option<Value> {
    let mut versions: Vec<&str> =
        kinds.iter().filter(|kind| kind.group == name && !name.is_empty()).map(|kind| kind.version).collect();
    versions.dedup();
    let versions: Vec<Value> = versions
        .into_iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    let preferred = versions.first()?.clone();
    Some(json!({"name": name, "versions": versions, "preferredVersion": preferred}))
}

fn resources(kinds: &[Kind], group: &str, version: &str) -> Value {
    let own = kinds.iter().filter(|kind| kind.group == group && kind.version == version);
    let resources: Vec<Value> = own.flat_map(resource).collect();
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version,
        "resources": resources,
    })
}

/// The entries of a kind: itself and its status.
fn resource(kind: &Kind) -> [Value; 2] {
    let verbs = ["create", "delete", "get", "list", "patch", "watch"];
    [
        json!({
            "name": kind.plural, "singularName": kind.kind.to_lowercase(), "kind": kind.kind,
            "namespaced": kind.is_namespaced, "verbs": verbs,
        }),
        json!({
            "name": format!("{}/status", kind.plural), "singularName": "", "kind": kind.kind,
            "namespaced": kind.is_namespaced, "verbs": ["get", "patch"],
        }),
    ]
}
