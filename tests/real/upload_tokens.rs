//! Tokens for uploads, by a real API server: the admin of a namespace sets it up, and users request them.

use std::process::{Command, Output};

use cloakroom_testing::cluster::{Account, Cluster as _, kubeconfig};
use cloakroom_testing::control_plane::{ASSETS, ControlPlane};
use cloakroom_testing::documentation::block;
use cloakroom_testing::needs::{Need, path, trial};
use cloakroom_testing::process::{Cloakroom, output_in_time, stderr};
use cloakroom_testing::wait::until;
use cloakroom_testing::workspace::Workspace;
use libtest_mimic::Trial;
use serde_json::{Value, json};

pub fn trials() -> Vec<Trial> {
    vec![trial(
        "upload_tokens::a_namespaces_admin_lets_users_request_tokens_for_the_server_alone",
        &[Need::Path(ASSETS, "a folder with etcd and kube-apiserver (tests/programs/build-control-plane)")],
        || tokio::runtime::Runtime::new().unwrap().block_on(users_request_tokens()),
    )]
}

/// The kubeconfig of this user, with the group of the kustomization's example.
fn kubeconfig_as(plane: &ControlPlane, user: &str) -> String {
    let config = kubeconfig(plane.ca(), plane.address(), &plane.token(Account::Admin));
    let mut config: Value = serde_json::from_str(&config).unwrap();
    config["users"][0]["user"]["as"] = user.into();
    config["users"][0]["user"]["as-groups"] = json!(["data-engineers", "system:authenticated"]);
    config.to_string()
}

/// The kustomization of the submitters, with the lines for the group of users.
fn with_the_group(user: &Workspace) -> String {
    let folder = cloakroom_testing::project().join("manifests/submitter");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let (head, patches) = text.split_once("# patches:").unwrap_or((&text, ""));
        let patches: Vec<&str> = patches.lines().map(|line| line.trim_start_matches('#')).collect();
        let patches =
            if patches.is_empty() { String::new() } else { format!("patches:{}", patches.join("\n")) };
        user.write(&format!("submitter/{name}"), format!("{head}{patches}"));
    }
    user.text("submitter")
}

async fn users_request_tokens() {
    let (plane, user) = (ControlPlane::start(&["ServiceAccount"]).await, Workspace::new());
    plane.apply("manifests/base");
    let may_admin =
        ["create", "rolebinding", "nsadmin", "-n", "spark", "--clusterrole=admin", "--user=nsadmin"];
    for line in [&["create", "namespace", "spark"][..], &may_admin] {
        ok(&plane.kubectl(line));
    }
    let folder = with_the_group(&user);
    let apply = || plane.kubectl(&["apply", "--server-side", "-k", &folder, "--as=nsadmin"]);
    until("the roles of the cluster are complete, and all is made", async || apply().status.success()).await;

    plane.apply("manifests/overlays/accept-cluster-tokens");
    user.write("kubeconfig", kubeconfig_as(&plane, "ann"));
    user.write(
        "server-kubeconfig",
        kubeconfig(plane.ca(), plane.address(), &plane.token(Account::Cloakroom)),
    );
    user.write("app.jar", "jar");
    let server =
        user.serve(&["--upload-auth", "kubernetes", "--kubeconfig", &user.text("server-kubeconfig")]);
    until("a token of the page's line is taken", async || by_the_page(&user, &server).status.success()).await;

    // For another server, and for the API server.
    for audience in [&["--audience=cloakroom.other"][..], &[]] {
        let line =
            ["create", "token", "cloakroom-uploader", "-n", "spark", "--as=ann", "--as-group=data-engineers"];
        let token = plane.kubectl(&[&line[..], audience].concat());
        ok(&token);
        user.write("upload-token", token.stdout);
        let said = stderr(&stage(&user, &server));
        assert!(
            said.contains("the cluster knows no such token for the audience cloakroom.cloakroom"),
            "{said}"
        );
    }
    opens_nothing_else(&plane, &user).await;
    submitted(&user, &server);
    plane.end().await;
}

/// The line of the page, and then an upload with its token.
fn by_the_page(user: &Workspace, server: &Cloakroom) -> Output {
    let page = block(
        "docs/security.md",
        "Cluster tokens for clients",
        "(umask 077; kubectl create token cloakroom-uploader",
    );
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &page]).current_dir(user.root()).env_clear().env("KUBECONFIG", user.path("kubeconfig"));
    let programs = format!("{}:/usr/bin:/bin", path(ASSETS).display());
    ok(&output_in_time(shell.env("PATH", programs)));
    stage(user, server)
}

fn stage(user: &Workspace, server: &Cloakroom) -> Output {
    let mut stage = user.command();
    stage.args([
        "stage",
        "--server",
        &server.url(""),
        "--token-file",
        "upload-token",
        "-n",
        "spark",
        "-l",
        "app=a",
    ]);
    output_in_time(stage.arg("app.jar"))
}

/// At the API server, the token of the page is good for nothing.
async fn opens_nothing_else(plane: &ControlPlane, user: &Workspace) {
    let token = plane.token_for("spark", "cloakroom-uploader", "cloakroom.cloakroom").await;
    user.write("upload-token", &token);
    assert_eq!(plane.api_with_token(&token).get("/api/v1/namespaces/spark/pods").await.0, 401);
    let whole = plane.token_of("spark", "cloakroom-uploader").await;
    assert_eq!(plane.api_with_token(&whole).get("/api/v1/namespaces/spark/pods").await.0, 403);
}

/// With a kubeconfig and no token at all.
fn submitted(user: &Workspace, server: &Cloakroom) {
    let settings = [
        "spark.kubernetes.container.image=repo.example/spark:4".to_owned(),
        "spark.kubernetes.initContainer.image=repo.example/cloakroom:1".to_owned(),
        "spark.kubernetes.namespace=spark".to_owned(),
        "spark.kubernetes.cloakroom.namespace=cloakroom".to_owned(),
        "spark.kubernetes.submission.waitAppCompletion=false".to_owned(),
        format!("spark.kubernetes.resourceStagingServer.uri={}", server.url("")),
        "spark.kubernetes.resourceStagingServer.internal.uri=http://cloakroom.cloakroom.svc:10000".to_owned(),
    ];
    let mut submit = user.command();
    submit.args(["submit", "--deploy-mode", "cluster", "--class", "org.example.App"]);
    submit.args(settings.iter().flat_map(|setting| ["--conf", setting])).arg("app.jar");
    ok(&output_in_time(submit.env("KUBECONFIG", user.path("kubeconfig"))));
    let log = server.log();
    assert!(log.contains("claimed_user=\"ann\""), "{log}");
}

fn ok(output: &Output) {
    assert!(output.status.success(), "{}", stderr(output));
}
