//! With a kubeconfig and nothing else: the server is reached through the API server.

mod directly;
mod forged;
mod pod_streams;
mod proxies;
mod submissions;
mod tokens;

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use cloakroom_testing::api_server::FakeApiServer;
use cloakroom_testing::cluster::{Cluster as _, SERVICE};
use cloakroom_testing::documentation::block;
use cloakroom_testing::front::{Front, Turn};
use cloakroom_testing::process::{Cloakroom, binary, output_in_time, read_until, stderr};
use cloakroom_testing::scripted::{Answer, Reply, Scripted, closed_port};
use cloakroom_testing::wait::until_true;
use cloakroom_testing::workspace::Workspace;
use serde_json::{Value, json};

const KUBE_TOKEN: &str = "token-of-the-kubeconfig";
const UPLOAD_TOKEN: &str = "upload-token-of-the-server";
const PROXIED: &str = "http:cloakroom:10000";

/// A cluster with a staging server in it, and a user who reaches its API server alone.
struct Far {
    api_server: FakeApiServer,
    server: Cloakroom,
    user: Workspace,
}

impl Far {
    fn new(more: &[&str]) -> Self {
        Self::of(FakeApiServer::start(), more)
    }

    fn of(api_server: FakeApiServer, more: &[&str]) -> Self {
        Self::with_upload_auth(api_server, more, |user| {
            let token = user.path("token").display().to_string();
            ["--no-kubernetes".to_owned(), "--upload-token-file".to_owned(), token].into()
        })
    }

    fn with_upload_auth(
        api_server: FakeApiServer,
        more: &[&str],
        flags: impl FnOnce(&Workspace) -> Vec<String>,
    ) -> Self {
        let user = Workspace::new();
        api_server.know_token(KUBE_TOKEN, "ann", &["data-engineers"]);
        let kubeconfig = json!({
            "current-context": "far",
            "contexts": [{"name": "far", "context": {"cluster": "c", "user": "ann"}}],
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{}", api_server.address())}}],
            "users": [{"name": "ann", "user": {"token": KUBE_TOKEN}}],
        });
        user.write("kubeconfig", kubeconfig.to_string());
        user.write("token", UPLOAD_TOKEN);
        user.write("app.jar", vec![7; 3_000_000]);
        let flags = flags(&user);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let server = user.serve(&[&flags[..], more].concat());
        Self { api_server, server, user }
    }

    /// With the right to reach the Service, which leads there.
    fn with_the_way(self, to: SocketAddr) -> Self {
        self.with_the_way_by(PROXIED, to)
    }

    fn with_the_way_by(self, service: &str, to: SocketAddr) -> Self {
        self.api_server.lead("cloakroom", service, to);
        let rules = json!([{
            "apiGroups": [""], "resources": ["services/proxy"], "resourceNames": [service],
            "verbs": ["get", "create", "update", "delete"],
        }]);
        self.api_server.grant_rules("ann", Some("cloakroom"), rules);
        self
    }

    /// With the usual Service before the server.
    fn with_the_service(self) -> Self {
        let to = self.address();
        self.with_the_way(to)
    }

    fn address(&self) -> SocketAddr {
        self.server.url("").replace("http://", "").parse().unwrap()
    }

    fn stage(&self, flags: &[&str]) -> Output {
        let mut stage = self.user.command();
        stage.args(["stage", "-n", "spark", "-l", "app=a", "--attempts", "1"]).args(flags);
        stage.arg(self.user.path("app.jar")).env("KUBECONFIG", self.user.path("kubeconfig"));
        let output = output_in_time(&mut stage);
        for secret in [KUBE_TOKEN, UPLOAD_TOKEN] {
            assert!(!stderr(&output).contains(secret) && !self.server.log().contains(secret));
        }
        output
    }
}

#[test]
fn a_bundle_is_staged_through_the_api_server_and_its_url_is_that_of_pods() {
    let far = Far::new(&[]).with_the_service();
    let page = block("docs/clients.md", "With a kubeconfig and nothing else", "cloakroom stage");
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", &page.replace("cloakroom stage", &format!("{} stage", binary().display()))])
        .env_clear();
    shell.current_dir(far.user.root()).env("KUBECONFIG", far.user.path("kubeconfig"));
    shell.env("CLOAKROOM_UPLOAD_TOKEN_FILE", far.user.path("token"));
    let output = output_in_time(&mut shell);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(
        said.contains("by the Service cloakroom in the namespace cloakroom, through the API server"),
        "{said}"
    );
    let ticket: Value =
        serde_json::from_slice(&std::fs::read(far.user.path("ticket.json")).unwrap()).unwrap();
    let id = ticket["resourceId"].as_str().unwrap();
    assert_eq!(ticket["url"], format!("http://cloakroom.cloakroom.svc:10000/api/v1/resources/{id}"));
    let mut curl = Command::new("curl");
    let secret = ticket["resourceSecret"].as_str().unwrap();
    curl.args(["--silent", "--fail", "--header", &format!("Authorization: Bearer {secret}")]);
    curl.arg(far.server.url(&format!("/api/v1/resources/{id}")));
    curl.arg("--output").arg(far.user.path("fetched"));
    assert!(output_in_time(&mut curl).status.success());
    let fetched = std::fs::metadata(far.user.path("fetched")).unwrap().len();
    assert_eq!(fetched, ticket["sizeBytes"].as_u64().unwrap());

    let refused = far.stage(&["--context", "far"]);
    assert!(stderr(&refused).contains("401 unauthorized"), "{}", stderr(&refused));
}

#[test]
fn a_right_to_the_service_with_tls_is_enough_and_its_url_says_so() {
    let far = Far::new(&[]);
    let to = far.address();
    let far = far.with_the_way_by("https:cloakroom:10000", to);
    let token = far.user.path("token");
    let flags =
        ["--context", "far", "--server-namespace", "cloakroom", "--token-file", token.to_str().unwrap()];
    let output = far.stage(&flags);
    let ticket: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = "https://cloakroom.cloakroom.svc:10000/api/v1/resources/";
    assert!(ticket["url"].as_str().unwrap().starts_with(expected), "{ticket}");
}

#[test]
fn the_url_of_pods_is_what_the_admin_says() {
    let far = Far::new(&["--internal-url", "https://inside.example.com"]).with_the_service();
    let token = far.user.path("token");
    let output = far.stage(&["--server-namespace", "cloakroom", "--token-file", token.to_str().unwrap()]);
    let ticket: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(ticket["url"].as_str().unwrap().starts_with("https://inside.example.com/api/v1/"), "{ticket}");
}

#[test]
fn the_refusal_of_a_bundle_too_large_for_the_way_names_other_ways() {
    let flags = ["--public-url", "https://staging.example.com", "--max-proxied-size"];
    // The client refuses a bundle that it knows to be too large. The server refuses the others.
    for (most, size, words) in [
        (
            "64MiB",
            65 << 20,
            "is larger than the Service cloakroom in the namespace cloakroom takes through the API server: at most 64 MiB",
        ),
        (
            "1MiB",
            3_000_000,
            "a bundle that comes through the API server has at most 1 MiB (--max-proxied-size): send it to an address",
        ),
    ] {
        let far = Far::new(&[&flags[..], &[most]].concat()).with_the_service();
        std::fs::File::create(far.user.path("app.jar")).unwrap().set_len(size).unwrap();
        let token = far.user.path("token");
        let far_away = ["--server-namespace", "cloakroom", "--token-file", token.to_str().unwrap()];
        let output = far.stage(&far_away);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(words), "no “{words}” in: {said}");
        assert_eq!(said.contains("such as https://staging.example.com"), size > 64 << 20, "{said}");
        // It may have that size on another way.
        let output = far.stage(&["--server", &far.server.url(""), "--token-file", token.to_str().unwrap()]);
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

#[test]
fn a_server_of_another_name_is_found_by_its_labels_unless_there_are_two() {
    let far = Far::of(FakeApiServer::with("cloakroom", &[SERVICE]), &[]);
    let ours = ("app.kubernetes.io/name", "cloakroom");
    let operations = [ours, ("app.kubernetes.io/component", "operations")];
    far.api_server.create(SERVICE, "cloakroom", "release-cloakroom", &[ours]);
    far.api_server.create(SERVICE, "cloakroom", "release-cloakroom-operations", &operations);
    far.api_server.create(SERVICE, "cloakroom", "other", &[]);
    let to = far.address();
    let far = far.with_the_way_by("http:release-cloakroom:10000", to);
    let token = far.user.path("token");
    let stage = || far.stage(&["--server-namespace", "cloakroom", "--token-file", token.to_str().unwrap()]);
    let said = stderr(&stage());
    assert!(said.contains("does not let you reach the Service cloakroom"), "{said}");

    let list = json!([{"apiGroups": [""], "resources": ["services"], "verbs": ["list"]}]);
    far.api_server.grant_rules("ann", Some("cloakroom"), list);
    let output = stage();
    let ticket: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = "http://release-cloakroom.cloakroom.svc:10000/api/v1/";
    assert!(ticket["url"].as_str().unwrap().starts_with(expected), "{ticket}");
    assert!(stderr(&output).contains("by the Service release-cloakroom in"), "{}", stderr(&output));

    far.api_server.create(SERVICE, "cloakroom", "second", &[ours]);
    let said = stderr(&stage());
    assert!(said.contains("behind the Services release-cloakroom, second: name one by"), "{said}");
}

#[test]
fn an_address_that_no_pod_can_use_is_refused_before_anything_is_staged() {
    for info in [
        r#"{"version": "1", "internalUrl": "javascript:alert(1)"}"#,
        r#"{"version": "1", "internalUrl": "http://u:hush@evil.example"}"#,
        r#"{"version": "1", "internalUrl": "http://x/?q=1"}"#,
        r#"{"version": "1", "internalUrl": ""}"#,
    ] {
        let far = Far::new(&[]);
        let front = Front::before(far.address(), move |_| Turn::Answer(200, "application/json", info));
        let far = far.with_the_way(front.url().replace("http://", "").parse().unwrap());
        let output = far.stage(&["--server-namespace", "cloakroom"]);
        let said = stderr(&output);
        assert!(!output.status.success() && output.stdout.is_empty(), "{info}: {said}");
        assert!(said.contains("pods cannot use the address") && !said.contains("hush"), "{info}: {said}");
    }
}

#[test]
fn a_right_to_http_where_the_server_has_tls_is_told_as_a_missing_right() {
    let malformed = r#"{"message": "error trying to reach service: malformed HTTP response"}"#;
    let far = Far::new(&[]);
    let front = Front::before(far.address(), move |_| Turn::Answer(503, "application/json", malformed));
    let far = far.with_the_way(front.url().replace("http://", "").parse().unwrap());
    let said = stderr(&far.stage(&["--server-namespace", "cloakroom"]));
    assert!(said.contains("does not let you reach") && !said.contains("firewall"), "{said}");
}

#[test]
fn a_silent_api_server_is_asked_for_the_service_once_in_each_attempt() {
    let (user, listener) = (Workspace::new(), TcpListener::bind("127.0.0.1:0").unwrap());
    let master = format!("k8s://http://{}", listener.local_addr().unwrap());
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 200];
            let read = stream.read(&mut head).unwrap_or_default();
            seen.lock().unwrap().push(String::from_utf8_lossy(&head[..read]).into_owned());
            open.push(stream);
        }
    });
    user.write("app.jar", "jar");
    let mut stage = user.command();
    stage.args(["stage", "-n", "spark", "-l", "app=a", "--attempts", "1", "--master", &master, "app.jar"]);
    let said = stderr(&output_in_time(&mut stage));
    assert!(said.contains("cannot be reached: no answer within 10s"), "{said}");
    let heads = heads.lock().unwrap();
    // The second is for a stream to the pod.
    assert!(heads.len() == 2 && heads[0].contains("/services/http:cloakroom"), "{heads:?}");
    assert!(heads[1].starts_with("GET /api/v1/namespaces/cloakroom/services/cloakroom "), "{heads:?}");
}

#[test]
fn a_bundle_whose_answer_was_lost_on_the_way_is_told_as_perhaps_kept() {
    let far = Far::new(&[]);
    let front =
        Front::before(
            far.address(),
            |head| {
                if head.starts_with("POST") { Turn::LoseAnswer } else { Turn::Pass }
            },
        );
    let far = far.with_the_way(front.url().replace("http://", "").parse().unwrap());
    let token = far.user.path("token");
    let said =
        stderr(&far.stage(&["--server-namespace", "cloakroom", "--token-file", token.to_str().unwrap()]));
    assert!(said.contains("could not stage to the Service cloakroom in the namespace cloakroom"), "{said}");
    assert!(said.contains("the connection between the API server and the Service"), "{said}");
    assert!(said.contains("perhaps the server keeps it"), "{said}");
}

#[test]
fn a_right_that_was_never_there_is_not_waited_for() {
    let far = Far::new(&[]).with_the_service();
    far.api_server.revoke_all("ann");
    let rules = json!([{
        "apiGroups": [""], "resources": ["services/proxy"], "resourceNames": [PROXIED], "verbs": ["get"],
    }]);
    far.api_server.grant_rules("ann", Some("cloakroom"), rules);
    let mut stage = far.user.command();
    stage.args(["stage", "-n", "spark", "-l", "app=a", "--server-namespace", "cloakroom"]);
    stage.args(["--token-file", &far.user.text("token"), &far.user.text("app.jar")]);
    let said = stderr(&output_in_time(stage.env("KUBECONFIG", far.user.path("kubeconfig"))));
    assert!(said.contains("does not let you reach") && !said.contains("trying again"), "{said}");
    assert!(
        said.contains("cannot create resource") && said.contains("also where there is no such"),
        "{said}"
    );
}

/// As a gateway before the API server answers, which shows what it could not pass on.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_gateway_echoes_is_shown_without_the_token() {
    let gateway = Scripted::start(|_, request| match request.method.as_str() {
        "GET" => {
            Answer::new(200, r#"{"version": "0.1.0"}"#).header("content-type", "application/json").into()
        }
        _ => {
            let shown = request.header("x-cloakroom-authorization").unwrap_or_default();
            // It begins before the end of what is shown, and would end behind it.
            let echo = Answer::new(403, format!("{} {shown}", "x".repeat(380)));
            let echo = echo.header("content-type", "text/plain");
            // What the client has not sent yet could reset the connection before it has read the answer.
            Reply::TakeBody(Box::new(move |_| echo.clone()))
        }
    })
    .await;
    let far = Far::new(&[]).with_the_way(gateway.address());
    let said = stderr(&far.stage(&[
        "--context",
        "far",
        "--server-namespace=cloakroom",
        "--token-file",
        &far.user.text("token"),
    ]));
    assert!(said.contains("xxx Bearer [hidden]") && !said.contains(&UPLOAD_TOKEN[..8]), "{said}");
}

#[test]
fn a_flag_wins_over_a_variable_also_of_the_same_value() {
    let far = Far::new(&[]).with_the_service();
    let (token, server) = (far.user.path("token"), far.server.url(""));
    let mut stage = far.user.command();
    stage.args(["stage", "-n", "spark", "-l", "app=a", "--server-namespace", "cloakroom", "--token-file"]);
    stage.arg(&token).arg(far.user.path("app.jar")).env("KUBECONFIG", far.user.path("kubeconfig"));
    stage.env("CLOAKROOM_SERVER", &server).env("CLOAKROOM_SERVER_NAMESPACE", "cloakroom");
    let said = stderr(&output_in_time(&mut stage));
    assert!(said.contains("by the Service cloakroom"), "{said}");

    stage.args(["--server", &server]);
    let said = stderr(&output_in_time(&mut stage));
    assert!(said.contains("leave one out"), "{said}");
}

#[test]
fn the_variable_of_the_namespace_counts_beside_a_flag_of_the_service() {
    let far = Far::new(&[]).with_the_service();
    let mut stage = far.user.command();
    stage.args(["stage", "-n", "spark", "-l", "app=a", "--server-service", "cloakroom"]);
    stage.arg(far.user.path("app.jar")).env("KUBECONFIG", far.user.path("kubeconfig"));
    let said = stderr(&output_in_time(stage.env("CLOAKROOM_SERVER_NAMESPACE", "other")));
    assert!(said.contains("the Service cloakroom in the namespace other"), "{said}");
    let said = stderr(&output_in_time(stage.env("CLOAKROOM_SERVER_NAMESPACE", "Other")));
    assert!(said.contains("the environment variable CLOAKROOM_SERVER_NAMESPACE is “Other”"), "{said}");
}

#[test]
fn each_refusal_on_the_way_says_what_to_do() {
    let far = Far::new(&[]);
    let said = stderr(&far.stage(&["--server-namespace", "cloakroom"]));
    assert!(
        said.contains("does not let you reach the Service cloakroom in the namespace cloakroom"),
        "{said}"
    );
    assert!(said.contains("--role=cloakroom-user"), "{said}");

    let far = far.with_the_way(SocketAddr::from(([127, 0, 0, 1], closed_port())));
    let said = stderr(&far.stage(&["--context", "far"]));
    assert!(said.contains("no pod of it is ready, or a firewall") && said.contains("503"), "{said}");

    far.api_server.grant_rules(
        "ann",
        None,
        json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]),
    );
    // An empty context is the current one.
    let said = stderr(&far.stage(&["--server-namespace", "other", "--context", ""]));
    assert!(said.contains("there is no Service cloakroom in the namespace other (404"), "{said}");

    far.api_server.forget_token(KUBE_TOKEN);
    let said = stderr(&far.stage(&["--server-namespace", "cloakroom"]));
    assert!(said.contains("does not accept the kubeconfig's credentials (401"), "{said}");
}

#[test]
fn without_a_kubeconfig_the_error_says_where_one_is_looked_for() {
    let user = Workspace::with(&[("app.jar", "jar")]);
    let mut stage = user.command();
    stage.args(["stage", "-n", "spark", "-l", "app=a", "--server-namespace", "cloakroom", "app.jar"]);
    let said = stderr(&output_in_time(&mut stage));
    assert!(said.contains("there is no kubeconfig") && !said.contains("--master"), "{said}");
}

#[test]
fn flags_that_contradict_each_other_are_refused_before_anything_is_asked() {
    let far = Far::new(&[]);
    for (flags, expected) in [
        (&["--server", "http://h:1", "--server-namespace", "a"][..], "leave one out"),
        (&["--server", "http://h:1", "--master", "k8s://https://h"], "leave one out"),
        (&["--server-namespace", "A/b"], "--server-namespace is “A/b”: it must be a name"),
        (&["--server-service", "a."], "--server-service is “a.”: it must be a name"),
        (&["--context", "far", "--token-file", "token"], "give --server-namespace, or no token"),
        (&["--master", "yarn"], "--master is “yarn”: only Kubernetes is supported here"),
    ] {
        let output = far.stage(flags);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    assert!(far.api_server.calls().is_empty());
}

/// As while the server's pod is on its way to another node.
#[test]
fn a_service_without_a_pod_is_waited_for() {
    let far = Far::new(&[]).with_the_way(SocketAddr::from(([127, 0, 0, 1], closed_port())));
    let mut stage = far.user.command();
    stage.args(["stage", "-n", "spark", "-l", "app=a", "--server-namespace", "cloakroom"]);
    stage.args(["--token-file", &far.user.text("token"), &far.user.text("app.jar")]);
    stage.env("KUBECONFIG", far.user.path("kubeconfig"));
    let mut running = stage.stderr(Stdio::piped()).spawn().unwrap();
    let mut told = running.stderr.take().unwrap();
    let mut said = read_until(&mut told, "trying again for up to 2m\n");
    let far = far.with_the_service();
    told.read_to_string(&mut said).unwrap();
    assert!(running.wait().unwrap().success(), "{said}");
    assert_eq!(said.matches("for up to").count(), 1, "{said}");
    drop(far);
}

/// As with an API server that has just started, and does not know all roles yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_gone_for_a_moment_during_an_upload_is_waited_for() {
    let far = Far::new(&[]);
    let turn = |head: &str| if head.starts_with("POST ") { Turn::Hold { after: 1_000 } } else { Turn::Pass };
    let front = Front::before(far.address(), turn);
    let to = front.url().replace("http://", "").parse().unwrap();
    let far = far.with_the_way(to);
    let mut stage = far.user.command();
    stage.args(["stage", "-n", "spark", "-l", "app=a", "--server-namespace", "cloakroom"]);
    stage.args(["--token-file", &far.user.text("token"), &far.user.text("app.jar")]);
    stage.env("KUBECONFIG", far.user.path("kubeconfig"));
    let staging = tokio::task::spawn_blocking(move || output_in_time(&mut stage));
    front.holds().await;
    far.api_server.revoke_all("ann");
    let before = far.api_server.calls().len();
    front.let_go();
    until_true("the client is refused", || far.api_server.calls().len() > before).await;
    let to = far.address();
    let far = far.with_the_way(to);
    let staged = staging.await.unwrap();
    assert!(staged.status.success(), "{}", stderr(&staged));
    drop(far);
}
