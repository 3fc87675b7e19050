//! The overlays with another namespace, and with a prefix before all names.

use cloakroom_testing::known::list;
use serde_json::Value;

use super::rendered::Rendered;
use super::{everything, manifests, render_own};

/// The lines that a user's own kustomization adds.
const MOVES: [&str; 3] =
    ["namespace: team-a", "namePrefix: theirs-", "namespace: team-a\nnamePrefix: theirs-"];

/// A namespace would move the Roles of this overlay, as docs/deploy.md says.
const FIXED: &str = "namespaced";

pub fn every_overlay_can_be_moved_and_renamed() {
    for folder in everything().iter().filter(|folder| !folder.ends_with(FIXED)) {
        let folder = folder.strip_prefix(manifests()).unwrap().display();
        for moved in MOVES {
            let rendered = render_own(&format!(
                "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n\
                 resources: [cloakroom/manifests/{folder}]\n{moved}\n"
            ));
            let references: Vec<_> = rendered.objects().iter().flat_map(references).collect();
            assert!(references.len() > 3, "{folder}: {references:?}");
            let is_there = |(kind, namespace, name): &Reference| {
                rendered.objects().iter().any(|object| {
                    let metadata = &object["metadata"];
                    object["kind"] == *kind
                        && metadata["name"] == *name
                        && text(&metadata["namespace"]) == *namespace
                })
            };
            let lost: Vec<_> = references.iter().filter(|reference| !is_there(reference)).collect();
            assert!(lost.is_empty(), "{folder} with “{moved}” refers to what is not there: {lost:?}");
            assert!(is_moved(&rendered, moved), "{folder} with “{moved}” stays where it was");
        }
    }
}

/// Kind, namespace and name. What is cluster-wide has an empty namespace.
type Reference = (String, String, String);

/// What an object refers to by its name.
fn references(object: &Value) -> Vec<Reference> {
    let own = text(&object["metadata"]["namespace"]);
    let reference = |kind: &str, namespace: &str, name: &Value| {
        (kind.to_owned(), namespace.to_owned(), text(name).to_owned())
    };
    let mut found = Vec::new();
    for subject in list(&object["subjects"]) {
        found.push(reference(text(&subject["kind"]), text(&subject["namespace"]), &subject["name"]));
    }
    let role = &object["roleRef"];
    if role.is_object() {
        let kind = text(&role["kind"]);
        found.push(reference(kind, if kind == "Role" { own } else { "" }, &role["name"]));
    }
    let pod = &object["spec"]["template"]["spec"];
    if pod.is_object() {
        found.push(reference("ServiceAccount", own, &pod["serviceAccountName"]));
    }
    let claims = list(&pod["volumes"]).iter().map(|volume| &volume["persistentVolumeClaim"]["claimName"]);
    found.extend(
        claims.filter(|name| name.is_string()).map(|name| reference("PersistentVolumeClaim", own, name)),
    );
    for rule in list(&object["spec"]["rules"]) {
        let of_ingress = list(&rule["http"]["paths"]).iter().map(|path| &path["backend"]["service"]["name"]);
        let of_route = list(&rule["backendRefs"]).iter().map(|backend| &backend["name"]);
        found.extend(of_ingress.chain(of_route).map(|name| reference("Service", own, name)));
    }
    found
}

/// Empty where there is none: what is cluster-wide has no namespace.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn is_moved(rendered: &Rendered, moved: &str) -> bool {
    let mut deployments = rendered.of_kind("Deployment");
    deployments.all(|deployment| {
        let metadata = &deployment["metadata"];
        (!moved.contains("team-a") || metadata["namespace"] == "team-a")
            && (!moved.contains("theirs-") || metadata["name"] == "theirs-cloakroom")
    })
}
