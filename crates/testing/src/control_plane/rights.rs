//! Accounts and their rights; custom kinds.

use serde_json::{Value, json};

use crate::cluster::{Account, Api, Kind, POD};
use crate::wait::until;

const NAMESPACE: &str = "cloakroom";
const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/cloakroom";
const BINDING: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/cloakroom";

/// Creates the account without rights.
pub async fn make_nobody(admin: &Api) {
    let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
    created(admin.post(&accounts, &json!({"metadata": {"name": "nobody"}})).await);
}

/// Removes the binding of the server's role.
pub async fn unbind(admin: &Api) {
    let (status, answer) = admin.delete(BINDING).await;
    assert_eq!(status, 200, "{answer}");
}

/// The rules of the server's role.
pub async fn rules(admin: &Api) -> Value {
    let (status, answer) = admin.get(ROLE).await;
    assert_eq!(status, 200, "{answer}");
    answer["rules"].clone()
}

/// Waits until RBAC follows its objects, which takes a moment.
pub async fn until_in_force(cloakroom: &Api, may_list_pods: bool) {
    let expected = if may_list_pods { 200 } else { 403 };
    let path = POD.path(None);
    until("the rights are in force", async || cloakroom.get(&path).await.0 == expected).await;
}

/// A token of a service account, from the TokenRequest API.
pub async fn token(admin: &Api, account: Account) -> String {
    let name = if account == Account::Cloakroom { "cloakroom" } else { "nobody" };
    token_of(admin, NAMESPACE, name, &[]).await
}

/// The same for any service account. Without audiences the token is for the API server.
pub async fn token_of(admin: &Api, namespace: &str, name: &str, audiences: &[&str]) -> String {
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                         "spec": {"audiences": audiences, "expirationSeconds": 3600}});
    let (status, answer) = admin.post(&path, &request).await;
    assert_eq!(status, 201, "{answer}");
    answer["status"]["token"].as_str().unwrap().to_owned()
}

/// Defines a custom kind with any content, and waits until it is served.
pub async fn define(admin: &Api, kind: &Kind) {
    created(admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition(kind)).await);
    until(&format!("{} are served", kind.plural), async || admin.get(&kind.path(None)).await.0 == 200).await;
}

fn definition(kind: &Kind) -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{}.{}", kind.plural, kind.group),
            // Groups below k8s.io need this annotation; the operator's definition has it too.
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubeflow/spark-operator/pull/1298"},
        },
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.to_lowercase(),
                      "listKind": format!("{}List", kind.kind)},
            "versions": [{
                "name": kind.version, "served": true, "storage": true, "schema": {"openAPIV3Schema": any},
            }],
        },
    })
}

fn created((status, answer): (u16, Value)) {
    assert_eq!(status, 201, "{answer}");
}
