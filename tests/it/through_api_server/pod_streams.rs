//! Where the API server's proxy does not reach the server's pod, a stream to the pod is the way.

use std::net::{SocketAddr, TcpListener};

use cloakroom_testing::api_server::{FakeApiServer, Verb};
use cloakroom_testing::cluster::{POD, SERVICE};
use cloakroom_testing::front::{Front, Turn};
use cloakroom_testing::process::{output_in_time, stderr};
use cloakroom_testing::scripted::closed_port;
use cloakroom_testing::wait::until_true;
use serde_json::json;

use super::Far;

const STAGE: [&str; 3] = ["--context", "far", "--server-namespace=cloakroom"];

/// A server whose proxy has no way to it, and its Service with a pod as the manifests make them.
fn behind_a_firewall(to: impl FnOnce(&Far) -> SocketAddr) -> Far {
    let far = Far::of(FakeApiServer::with("cloakroom", &[SERVICE]), &[]);
    let to = to(&far);
    let far = far.with_the_way(to);
    let selector = json!({"app.kubernetes.io/name": "cloakroom"});
    let port = json!({"name": "http", "port": 10_000, "targetPort": "staging"});
    far.api_server.add(
        SERVICE,
        "cloakroom",
        json!({"metadata": {"name": "cloakroom"}, "spec": {"selector": selector, "ports": [port]}}),
    );
    for (name, is_ready) in [("old", "False"), ("new", "True")] {
        let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": is_ready}]});
        let ports = json!([{"name": "operations", "containerPort": 10_001}, {"name": "staging", "containerPort": 4711}]);
        far.api_server.add(
            POD,
            "cloakroom",
            json!({
                "metadata": {"name": name, "labels": selector},
                "spec": {"containers": [{"name": "cloakroom", "ports": ports}]},
            }),
        );
        far.api_server.set_status("cloakroom", name, &ready);
    }
    far.api_server.lead_to_pod("cloakroom", "new", 4711, far.address());
    far
}

impl Far {
    /// With what `kubectl port-forward` needs.
    fn with_the_rights_of_streams(self) -> Self {
        let rules = json!([
            {"apiGroups": [""], "resources": ["services"], "resourceNames": ["cloakroom"], "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
            {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["get", "create"]},
        ]);
        self.api_server.grant_rules("ann", Some("cloakroom"), rules);
        self
    }
}

fn nowhere(_: &Far) -> SocketAddr {
    ([127, 0, 0, 1], closed_port()).into()
}

const BY_STREAM: &str =
    "by the Service cloakroom in the namespace cloakroom, by a stream to its pod through the API server";

#[test]
fn a_stream_to_the_ready_pod_is_the_way_where_the_proxy_has_none() {
    let far = behind_a_firewall(nowhere).with_the_rights_of_streams();
    let staged = far.stage(&[&STAGE[..], &["--token-file", &far.user.text("token")]].concat());
    let said = stderr(&staged);
    assert!(staged.status.success(), "{said}");
    assert!(said.contains(BY_STREAM) && said.contains("whose proxy does not reach it"), "{said}");
    let ticket: serde_json::Value = serde_json::from_slice(&staged.stdout).unwrap();
    assert!(ticket["url"].as_str().unwrap().starts_with("http://cloakroom.cloakroom.svc:10000/"), "{ticket}");
}

#[test]
fn a_proxy_that_says_nothing_is_not_waited_for() {
    // It takes no connection, as if a firewall dropped all packets.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let far = behind_a_firewall(|_| address).with_the_rights_of_streams();
    let staged = far.stage(&[&STAGE[..], &["--token-file", &far.user.text("token")]].concat());
    let said = stderr(&staged);
    assert!(staged.status.success() && said.contains(BY_STREAM), "{said}");
}

/// As API servers say it that open their connections through a tunnel.
#[test]
fn a_tunnel_without_a_way_to_the_pod_is_none() {
    let front = |far: &Far| {
        let words = "error trying to reach service: proxy error from 127.0.0.1:6443 while dialing 10.42.1.8:10000, code 502: \
                     502 Bad Gateway";
        Front::before(far.address(), move |_| Turn::Answer(503, "text/plain", words))
    };
    let mut fronts = Vec::new();
    let mut before = |far: &Far| {
        fronts.push(front(far));
        fronts[0].url().replace("http://", "").parse().unwrap()
    };
    let far = behind_a_firewall(&mut before);
    let said = stderr(&far.stage(&STAGE));
    assert!(said.contains("or a firewall between the control plane and the nodes"), "{said}");
    let far = far.with_the_rights_of_streams();
    let staged = far.stage(&[&STAGE[..], &["--token-file", &far.user.text("token")]].concat());
    assert!(staged.status.success() && stderr(&staged).contains(BY_STREAM), "{}", stderr(&staged));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_by_stream_outlives_the_pod() {
    let far = behind_a_firewall(nowhere).with_the_rights_of_streams();
    let turn = |head: &str| if head.starts_with("POST ") { Turn::Hold { after: 1_000 } } else { Turn::Pass };
    let front = Front::before(far.address(), turn);
    far.api_server.lead_to_pod("cloakroom", "new", 4711, front.url().replace("http://", "").parse().unwrap());
    let mut stage = far.user.command();
    stage.args(["stage", "-n", "spark", "-l", "app=a"]).args(STAGE);
    stage.args(["--token-file", &far.user.text("token"), &far.user.text("app.jar")]);
    stage.env("KUBECONFIG", far.user.path("kubeconfig"));
    let staging = tokio::task::spawn_blocking(move || output_in_time(&mut stage));
    front.holds().await;
    let ready = |is_ready: &str| {
        let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": is_ready}]});
        far.api_server.set_status("cloakroom", "new", &status);
    };
    let looked = || far.api_server.calls_to(Verb::List).len();
    ready("False");
    let before = looked();
    front.let_go();
    until_true("the client finds no ready pod", || looked() > before).await;
    // The next pod has another address.
    far.api_server.lead_to_pod("cloakroom", "new", 4711, far.address());
    ready("True");
    let staged = staging.await.unwrap();
    let said = stderr(&staged);
    assert!(staged.status.success() && said.contains("trying again for up to 2m"), "{said}");
}

#[test]
fn a_proxy_that_says_nothing_is_told_with_what_a_stream_lacks() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let said = stderr(&behind_a_firewall(|_| address).stage(&STAGE));
    for words in [
        "the API server's proxy gave no answer within 10s, as if a firewall",
        "is no way either: services \"cloakroom\" is forbidden",
    ] {
        assert!(said.contains(words), "no “{words}” in {said}");
    }
}

#[test]
fn without_the_rights_of_a_stream_the_proxys_words_stay_and_name_them() {
    let far = behind_a_firewall(nowhere);
    let said = stderr(&far.stage(&STAGE));
    for words in [
        "the API server cannot reach the Service cloakroom in the namespace cloakroom",
        "or a firewall between the control plane and the nodes shuts port 10000",
        "A stream to its pod, as kubectl port-forward opens one, is no way either: services \"cloakroom\" is forbidden",
    ] {
        assert!(said.contains(words), "no “{words}” in {said}");
    }
}
