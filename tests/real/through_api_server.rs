//! The way through a real API server: its refusals, and the role of the page.

use std::process::Output;

use cloakroom_testing::cluster::{Account, Cluster as _, kubeconfig};
use cloakroom_testing::control_plane::{ASSETS, ControlPlane};
use cloakroom_testing::documentation::block;
use cloakroom_testing::needs::{Need, trial};
use cloakroom_testing::process::{output_in_time, stderr};
use cloakroom_testing::wait::until;
use cloakroom_testing::workspace::Workspace;
use libtest_mimic::Trial;
use serde_json::{Value, json};

pub fn trials() -> Vec<Trial> {
    vec![trial(
        "through_api_server::the_role_of_the_page_opens_the_way_to_one_service",
        &[Need::Path(ASSETS, "a folder with etcd and kube-apiserver (tests/programs/build-control-plane)")],
        || {
            tokio::runtime::Runtime::new()
                .unwrap()
                .block_on(the_role_of_the_page_opens_the_way_to_one_service())
        },
    )]
}

async fn the_role_of_the_page_opens_the_way_to_one_service() {
    let (plane, user) = (ControlPlane::start(&["ServiceAccount"]).await, Workspace::new());
    plane.apply_manifests();
    let config = kubeconfig(plane.ca(), plane.address(), &plane.token(Account::Admin));
    let mut config: Value = serde_json::from_str(&config).unwrap();
    config["users"][0]["user"]["as"] = "ann".into();
    user.write("kubeconfig", config.to_string());
    user.write("app.jar", "jar");

    let said = stage(&user, "cloakroom");
    assert!(
        said.contains("does not let you reach the Service cloakroom in the namespace cloakroom (403"),
        "{said}"
    );
    assert!(said.contains("services \"http:cloakroom:10000\" is forbidden"), "{said}");

    without_credentials_or_trust(&plane);

    let page = block("docs/clients.md", "With a kubeconfig and nothing else", "kubectl create rolebinding");
    for line in page.replace("\\\n", "").lines() {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let output = plane.kubectl(&words);
        assert!(output.status.success(), "{line}: {}", stderr(&output));
    }
    let expected = "the API server cannot reach the Service cloakroom in the namespace cloakroom (503 no endpoints available";
    until("the right is in force", async || stage(&user, "cloakroom").contains(expected)).await;
    for (service, answer) in [("http:cloakroom:10000", "yes\n"), ("http:cloakroom-operations:10001", "no\n")]
    {
        let may = ["create", &format!("services/{service}")].map(str::to_owned);
        let output: Output = plane.kubectl(&[
            "auth",
            "can-i",
            &may[0],
            &may[1],
            "--subresource=proxy",
            "-n",
            "cloakroom",
            "--as=ann",
        ]);
        assert_eq!(String::from_utf8(output.stdout).unwrap(), answer);
    }
    let said = stage(&user, "default");
    assert!(
        said.contains("does not let you reach the Service cloakroom in the namespace default (403"),
        "{said}"
    );
    another_name(&plane, &user).await;
    plane.end().await;
}

/// A release of the chart may have another name. The labels of its Service lead there.
async fn another_name(plane: &ControlPlane, user: &Workspace) {
    let name = "prod-cloakroom";
    let proxied = format!("--resource-name=http:{name}:10000");
    for line in [
        &["delete", "service", "cloakroom"][..],
        &["create", "service", "clusterip", name, "--tcp=10000"],
        &["label", "service", name, "app.kubernetes.io/name=cloakroom"],
        &["create", "role", "prod", "--verb=get", "--resource=services/proxy", &proxied],
        &["create", "rolebinding", "prod", "--role=prod", "--user=ann"],
        &["create", "role", "lister", "--verb=list", "--resource=services"],
        &["create", "rolebinding", "lister", "--role=lister", "--user=ann"],
    ] {
        let output = plane.kubectl(&[&["-n", "cloakroom"], line].concat());
        assert!(output.status.success(), "{line:?}: {}", stderr(&output));
    }
    let expected = format!(
        "the API server cannot reach the Service {name} in the namespace cloakroom (503 no endpoints"
    );
    until("the labels lead there", async || stage(user, "cloakroom").contains(&expected)).await;
}

/// Kubeconfigs that lack something. Waiting would help none of them.
fn without_credentials_or_trust(plane: &ControlPlane) {
    let user = Workspace::new();
    user.write("app.jar", "jar");
    let config = kubeconfig(plane.ca(), plane.address(), &plane.token(Account::Admin));
    let mut whole: Value = serde_json::from_str(&config).unwrap();
    whole["users"][0]["user"]["as"] = "ann".into();
    for (pointer, value, words) in [
        // As a request without credentials, where the API server takes those.
        (
            "/users/0/user/as",
            json!("system:anonymous"),
            "the kubeconfig's user has no credentials that the API server knows (403",
        ),
        (
            "/clusters/0/cluster",
            json!({"server": whole["clusters"][0]["cluster"]["server"]}),
            "certificate-authority in the",
        ),
    ] {
        let mut config = whole.clone();
        *config.pointer_mut(pointer).unwrap() = value;
        user.write("kubeconfig", config.to_string());
        let said = stage(&user, "cloakroom");
        assert!(said.contains(words) && !said.contains("trying again"), "{said}");
        assert!(!said.contains("create rolebinding"), "{said}");
    }
}

/// What `cloakroom stage` says when it fails.
fn stage(user: &Workspace, server_namespace: &str) -> String {
    let mut stage = user.command();
    stage.args(["stage", "-n", "spark", "-l", "app=a", "--attempts", "1"]);
    stage.args(["--server-namespace", server_namespace, "app.jar"]);
    let output = output_in_time(stage.env("KUBECONFIG", user.path("kubeconfig")));
    assert!(!output.status.success());
    stderr(&output)
}
