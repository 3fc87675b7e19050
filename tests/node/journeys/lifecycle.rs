//! What is staged stays while it is unknown whether somebody needs it, and goes when nobody does.

use std::time::Duration;

use super::Journey;
use super::deploy::{GRACE_SECONDS, SERVER, server};
use super::transfers::{goes_after_the_grace, status};
use crate::cluster::cluster;
use crate::shell::{laptop, until};

pub const JOURNEYS: &[Journey] = &[
    Journey("a_pending_driver_keeps_its_files_past_the_unused_timeout", pending),
    Journey("a_deleted_namespace_takes_its_bundles_along", namespace),
    Journey("a_revoked_role_deletes_nothing", revoked),
    Journey("three_minutes_without_an_api_server_lose_nothing", api_server),
];

/// How long the resources of these journeys may stay unused. The server's own limit is half an hour: a stock spark-submit starts two
/// JVMs before its driver exists.
pub const UNUSED_SECONDS: u64 = 30;

/// Longer than all that would have to pass before something is deleted.
pub fn more_than_the_grace() {
    std::thread::sleep(Duration::from_secs(2 * GRACE_SECONDS));
}

/// A namespace with a pod that sleeps, and a bundle for it that was used; the ticket is `NAMESPACE.json`.
fn owner(namespace: &str) {
    server();
    laptop(&format!(
        "kubectl create namespace {namespace}
         kubectl run -n {namespace} owner --image=busybox:1.36 --labels=app=owner --restart=Never -- sh -c 'trap exit TERM; sleep 3600 & wait'
         kubectl wait -n {namespace} --for=condition=Ready pod/owner --timeout=60s
         cloakroom stage --server {SERVER} --ca-file tls.crt --token-file upload-token --namespace {namespace} --label app=owner \
             app.jar >{namespace}.json"
    ));
    download(namespace);
}

fn download(namespace: &str) {
    laptop(&format!(
        "curl -sS --fail-with-body --cacert tls.crt -o /dev/null -H \"Authorization: Bearer $(jq -r .resourceSecret {namespace}.json)\" \
             {SERVER}/api/v1/resources/$(jq -r .resourceId {namespace}.json)"
    ));
}

fn delete(namespace: &str) -> String {
    format!("kubectl delete pod -n {namespace} owner")
}

/// No node takes it, so it downloads nothing.
fn pending() {
    server();
    let pod = serde_json::json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "owner", "labels": {"app": "owner"}},
        "spec": {"nodeSelector": {"none": "such"}, "containers": [{"name": "main", "image": "busybox:1.36"}]},
    });
    laptop(&format!(
        "kubectl create namespace pending
         kubectl apply -n pending -f - <<'END'\n{pod}\nEND
         cloakroom stage --server {SERVER} --ca-file tls.crt --token-file upload-token --namespace pending --label app=owner \
             --unused-timeout {UNUSED_SECONDS}s app.jar >pending.json
         cloakroom stage --server {SERVER} --ca-file tls.crt --token-file upload-token --namespace pending --label app=none \
             --unused-timeout {UNUSED_SECONDS}s app.jar >unowned.json"
    ));
    let took = until("what belongs to nothing is gone", || status("unowned.json") == "410");
    assert!(took >= Duration::from_secs(UNUSED_SECONDS - 2), "{took:?}");
    more_than_the_grace();
    assert_eq!(status("pending.json"), "200");
    laptop("kubectl delete namespace pending --wait=false");
    until("it goes with its owner", || status("pending.json") == "410");
}

fn namespace() {
    owner("leaving");
    goes_after_the_grace("leaving.json", "kubectl delete namespace leaving --timeout=60s");
}

/// The watch is refused from then on: nothing is known of the owner.
fn revoked() {
    owner("revoked");
    laptop("kubectl delete clusterrolebinding cloakroom");
    until("the server knows that it may not ask", || {
        let log = laptop("kubectl logs -n cloakroom deployment/cloakroom").stdout;
        log.lines().any(|line| line.contains("owners cannot be watched") && line.contains("403 "))
    });
    laptop(&delete("revoked"));
    more_than_the_grace();
    assert_eq!(status("revoked.json"), "200");
    laptop("kubectl apply -k manifests/overlays/nodeport");
    until("it goes when the role is back", || status("revoked.json") == "410");
}

/// Uploads and downloads go on; what lost its owner meanwhile goes afterwards.
fn api_server() {
    owner("present");
    owner("absent");
    laptop(&delete("absent"));
    cluster().stop_api_server();
    std::thread::sleep(Duration::from_secs(90));
    assert_eq!(status("absent.json"), "200");
    download("present");
    laptop(&format!(
        "cloakroom stage --server {SERVER} --ca-file tls.crt --token-file upload-token --namespace present --label app=owner \
             --unused-timeout {UNUSED_SECONDS}s app.jar >late.json"
    ));
    std::thread::sleep(Duration::from_secs(90));
    for ticket in ["absent.json", "present.json", "late.json"] {
        assert_eq!(status(ticket), "200", "{ticket}");
    }
    cluster().start_api_server();
    until("what lost its owner goes", || status("absent.json") == "410");
    more_than_the_grace();
    // For a moment the controllers may take the pods of a node out of their Services that they have not heard of meanwhile.
    until("what has its owner is still there", || status("present.json") == "200");
    goes_after_the_grace("present.json", &delete("present"));
}
