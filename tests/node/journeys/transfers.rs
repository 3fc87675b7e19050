//! Bundles go in from a laptop, and come out in a pod.

use std::time::{Duration, Instant};

use cloakroom_testing::documentation::block;

use super::Journey;
use super::deploy::{GRACE_SECONDS, SERVER, server};
use crate::shell::{At, laptop, run, until};

pub const JOURNEYS: &[Journey] = &[
    Journey("an_upload_by_curl_from_another_network_comes_back_whole", curl),
    Journey("a_kubeconfig_and_one_right_are_enough_to_stage", through_the_api_server),
    Journey("an_init_container_of_the_documentation_fetches_what_was_staged", init_container),
];

/// `--cacert` and the upload token, as curl takes them.
const CURL: &str = "curl -sS --fail-with-body -m 30 --cacert tls.crt";

fn curl() {
    server();
    laptop(&format!(
        "head -c 5000000 /dev/urandom >deps.tgz
         {CURL} -T deps.tgz -H \"Authorization: Bearer $(cat upload-token)\" '{SERVER}/api/v1/resources/?namespace=demo&label=app=curl' >curl.json
         {CURL} -H \"Authorization: Bearer $(jq -r .resourceSecret curl.json)\" -o back.tgz {SERVER}/api/v1/resources/$(jq -r .resourceId curl.json)
         cmp deps.tgz back.tgz"
    ));
}

/// By the words of docs/clients.md, for a server with TLS, as a user who has this right alone.
fn through_the_api_server() {
    server();
    let rights = block("docs/clients.md", "With a kubeconfig and nothing else", "kubectl create rolebinding");
    let stage = block("docs/clients.md", "With a kubeconfig and nothing else", "cloakroom stage");
    let staged = laptop(&format!(
        "kubectl config view --raw --flatten -o json | jq '.users[0].user.as = \"ann\"' >ann.kubeconfig
         head -c 300000000 /dev/urandom >far.bin
         {rights}
         until kubectl auth can-i create services/https:cloakroom:10000 --subresource=proxy -n cloakroom --as=ann; do sleep 0.2; done
         export KUBECONFIG=ann.kubeconfig CLOAKROOM_UPLOAD_TOKEN_FILE=upload-token
         {}
         jq -r .url ticket.json",
        stage.replace("app.jar", "far.bin")
    ));
    assert!(
        staged.stderr.contains("by the Service cloakroom in the namespace cloakroom"),
        "{}",
        staged.stderr
    );
    eprintln!("node: {}", staged.stderr.lines().last().unwrap_or_default());
    assert!(
        staged.stdout.contains("https://cloakroom.cloakroom.svc:10000/api/v1/resources/"),
        "{}",
        staged.stdout
    );
    laptop(&format!(
        "{CURL} -H \"Authorization: Bearer $(jq -r .resourceSecret ticket.json)\" -o far.tgz {SERVER}/api/v1/resources/$(jq -r .resourceId ticket.json)
         tar xzOf far.tgz far.bin | cmp - far.bin"
    ));
    // The client cannot know how small this becomes, so the server refuses it in the middle. The API server says which way it came.
    let too_large = run(
        At::Laptop,
        &format!(
            "head -c 300000000 /dev/urandom >>far.bin
             export KUBECONFIG=ann.kubeconfig CLOAKROOM_UPLOAD_TOKEN_FILE=upload-token
             {}",
            stage.replace("app.jar", "far.bin")
        ),
    );
    let refusal = "a bundle that comes through the API server has at most 512 MiB (--max-proxied-size)";
    let said = too_large.ended_with(1).stderr;
    assert!(said.contains(refusal), "{said}");
}

/// By the words of docs/clients.md, in a namespace that enforces the restricted standard.
fn init_container() {
    server();
    let secret = block("docs/clients.md", "In a pod", "ID=");
    let pod = block("docs/clients.md", "In a pod", "apiVersion: v1");
    laptop(&format!(
        "kubectl create namespace demo
         kubectl label namespace demo pod-security.kubernetes.io/enforce=restricted
         cloakroom stage --server {SERVER} --ca-file tls.crt --token-file upload-token --namespace demo --label app=demo \
             app.jar dep.jar >ticket.json
         {secret}
         kubectl apply -f - <<'END'\n{pod}\nEND
         kubectl wait -n demo --for=jsonpath={{.status.phase}}=Succeeded pod/demo --timeout=60s"
    ));
    let log = laptop("kubectl logs -n demo demo").stdout;
    assert!(log.contains("app.jar") && log.contains("dep.jar"), "{log}");
    goes_after_the_grace("ticket.json", "kubectl delete pod -n demo demo");
}

/// Deletes an owner, and looks when its resource goes: not before the grace, and soon after it.
pub fn goes_after_the_grace(ticket: &str, delete: &str) {
    assert_eq!(status(ticket), "200");
    let asked = Instant::now();
    laptop(delete);
    let gone = Instant::now();
    let grace = Duration::from_secs(GRACE_SECONDS);
    until("the resource is gone", || {
        // No answer is no deletion: after an outage of the API server a node is not ready for some seconds.
        let is_gone = status(ticket) == "410";
        assert!(!is_gone || asked.elapsed() >= grace, "gone before the grace");
        is_gone
    });
    let took = gone.elapsed();
    eprintln!("node: gone {:.1} s after its owner (grace {GRACE_SECONDS} s)", took.as_secs_f64());
}

/// What the server says of a ticket, without downloading.
pub fn status(ticket: &str) -> String {
    let curl = "curl -s -m 5 -o /dev/null -w '%{http_code}' --head --cacert tls.crt";
    let script = format!(
        "{curl} -H \"Authorization: Bearer $(jq -r .resourceSecret {ticket})\" {SERVER}/api/v1/resources/$(jq -r .resourceId {ticket})"
    );
    run(At::Laptop, &script).stdout
}
