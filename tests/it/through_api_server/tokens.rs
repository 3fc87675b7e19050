//! A server that asks the cluster: the client requests a token for it, and shows no other.

use std::process::Output;

use cloakroom_testing::api_server::{Call, FakeApiServer, Fault, NETWORK_POLICY, SECRET, TOKEN, Verb};
use cloakroom_testing::cluster::{Account, CLOAKROOM_USER, CONFIG_MAP, Cluster as _, SERVICE, kubeconfig};
use cloakroom_testing::known::rules_of_submitters;
use cloakroom_testing::process::{output_in_time, stderr};
use serde_json::{Value, json};

use super::submissions::{IMAGE, SUBMIT};
use super::{Far, KUBE_TOKEN};

pub const UPLOADER: &str = "cloakroom-uploader";

/// A user with the roles of manifests/submitter in the namespace `default`, and the way to a server that asks the cluster.
pub fn asking() -> Far {
    let api_server = FakeApiServer::with("default", &[SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY]);
    let reviews = json!([
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    ]);
    api_server.grant_rules(CLOAKROOM_USER, None, reviews);
    api_server.add_service_account("default", UPLOADER);
    give(&api_server, UPLOADER, "cloakroom.dev");
    let of_server = kubeconfig(None, api_server.address(), &api_server.token(Account::Cloakroom));
    let far = Far::with_upload_auth(api_server, &["--fetch-image", IMAGE], |user| {
        let kubeconfig = user.write("of-server", of_server).display().to_string();
        ["--upload-auth", "kubernetes", "--kubeconfig", &kubeconfig].map(str::to_owned).into()
    });
    let may_submit = rules_of_submitters(&["submitter.yaml", "uploader.yaml"]);
    far.api_server.grant_rules("ann", Some("default"), may_submit);
    far.with_the_service()
}

/// Gives an account of the namespace `default` the right to stage there.
fn give(api_server: &FakeApiServer, account: &str, group: &str) {
    let rules = json!([{"apiGroups": [group], "resources": ["bundles"], "verbs": ["create"]}]);
    api_server.grant_rules(&format!("system:serviceaccount:default:{account}"), Some("default"), rules);
}

impl Far {
    pub fn submit(&self, more: &[&str]) -> (Output, String) {
        let arguments = [&SUBMIT[..], more, &["--files", "a.txt", "app.jar"]].concat();
        self.user.write("a.txt", "text");
        let mut submit = self.user.command();
        submit.args(&arguments).env("KUBECONFIG", self.user.path("kubeconfig"));
        let output = output_in_time(&mut submit);
        let said = stderr(&output);
        self.assert_tells_no_token(&said);
        (output, said)
    }

    pub fn stage_here(&self, more: &[&str]) -> (Output, String) {
        let mut stage = self.user.command();
        stage
            .args(["stage", "-l", "app=a", "--attempts", "1", "--context", "far"])
            .args(if more.contains(&"-n") { &[][..] } else { &["-n", "default"] })
            .args(more);
        stage.arg("app.jar").env("KUBECONFIG", self.user.path("kubeconfig"));
        let output = output_in_time(&mut stage);
        let said = stderr(&output);
        self.assert_tells_no_token(&said);
        (output, said)
    }

    fn assert_tells_no_token(&self, said: &str) {
        let requested = self.api_server.requested_token("default", UPLOADER);
        for secret in requested.iter().map(String::as_str).chain([KUBE_TOKEN]) {
            assert!(!said.contains(secret) && !self.server.log().contains(secret), "{said}");
        }
    }

    fn token_requests(&self) -> Vec<Value> {
        let is_one = |call: &Call| call.path.ends_with("/token");
        self.api_server.calls().into_iter().filter(is_one).map(|call| call.body["spec"].clone()).collect()
    }
}

#[test]
fn a_token_for_the_server_is_requested_and_used_for_both_bundles() {
    let far = asking();
    let (output, said) = far.submit(&[]);
    assert!(output.status.success(), "{said}");
    let wanted = json!({"audiences": ["cloakroom.cloakroom"], "expirationSeconds": 600});
    assert_eq!(far.token_requests(), [wanted]);
    let log = far.server.log();
    let staged: Vec<&str> = log.lines().filter(|line| line.contains("staged")).collect();
    assert_eq!(staged.len(), 2, "{log}");
    for line in staged {
        let by = format!("by=\"system:serviceaccount:default:{UPLOADER}\"");
        assert!(line.contains(&by) && line.contains("claimed_user=\"ann\""), "{line}");
    }
    let (output, said) = far.stage_here(&[]);
    assert!(output.status.success(), "{said}");
    assert_eq!(far.token_requests().len(), 2);
}

#[test]
fn a_token_that_ends_soon_is_used_for_one_attempt_only() {
    let far = asking();
    far.api_server.limit_tokens_to(179);
    let (output, said) = far.submit(&[]);
    assert!(output.status.success(), "{said}");
    assert_eq!(far.token_requests().len(), 2, "one for each bundle");
    far.api_server.limit_tokens_to(240);
    far.api_server.delete_pod("default", "app-driver");
    let (output, said) = far.submit(&[]);
    assert!(output.status.success(), "{said}");
    assert_eq!(far.token_requests().len(), 3);
}

#[test]
fn a_token_is_requested_again_after_a_failure_that_may_pass() {
    let far = asking();
    far.api_server.fail_some(TOKEN, Verb::Create, 0, 1, Fault::Status(503));
    let (output, said) = far.submit(&[]);
    assert!(output.status.success() && said.contains("can be requested"), "{said}");
}

/// As with an API server that has just started, and does not know all roles yet.
#[test]
fn a_right_that_is_gone_for_a_moment_between_two_tokens_is_waited_for() {
    let far = asking();
    far.api_server.limit_tokens_to(179);
    far.api_server.fail_some(TOKEN, Verb::Create, 1, 1, Fault::Status(403));
    let (output, said) = far.submit(&[]);
    assert!(output.status.success() && said.contains("you may not request a token"), "{said}");
    assert_eq!(far.token_requests().len(), 3);
}

#[test]
fn each_right_that_is_missing_has_its_sentence() {
    let far = asking();
    far.api_server.revoke_all(&format!("system:serviceaccount:default:{UPLOADER}"));
    let refused = |far: &Far, words: &str| {
        for (output, said) in [far.stage_here(&[]), far.submit(&[])] {
            assert_eq!(output.status.code(), Some(1));
            assert!(said.contains(words), "no “{words}” in: {said}");
        }
    };
    refused(&far, "cloakroom-uploader may not create bundles.cloakroom.dev in the namespace default");

    let far = asking();
    far.api_server.revoke_all("ann");
    let far = far.with_the_service();
    far.api_server.grant_rules("ann", Some("default"), rules_of_submitters(&["submitter.yaml"]));
    refused(
        &far,
        "you may not request a token of the service account cloakroom-uploader in the namespace default (403",
    );
    refused(&far, "kubectl apply -k manifests/submitter");

    let far = asking();
    let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    far.api_server.grant_rules("ann", None, everything);
    let conf = "spark.kubernetes.cloakroom.uploadServiceAccount=other";
    for (output, said) in
        [far.stage_here(&["--upload-service-account", "other"]), far.submit(&["--conf", conf])]
    {
        assert_eq!(output.status.code(), Some(1));
        assert!(
            said.contains("the service account other in the namespace default does not exist (404"),
            "{said}"
        );
        assert!(!said.contains("manifests/submitter makes it"), "it makes another account: {said}");
    }
    far.api_server.add_service_account("default", "other");
    give(&far.api_server, "other", "cloakroom.dev");
    let (output, said) = far.stage_here(&["--upload-service-account", "other"]);
    assert!(output.status.success(), "{said}");
}

#[test]
fn the_audience_is_that_of_the_place_and_no_answer_changes_it() {
    let far = asking();
    let server = format!("spark.kubernetes.resourceStagingServer.uri={}", far.server.url(""));
    let for_pods = "spark.kubernetes.resourceStagingServer.internal.uri=http://cloakroom.cloakroom.svc:10000";
    let by_address = ["--conf", &server, "--conf", for_pods];
    // The server at an address may be anyone's.
    let (output, said) = far.submit(&by_address);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.contains("cloakroom submit and stage --for request where the server's namespace is named"),
        "{said}"
    );
    for (namespace, words) in [
        ("cloakroom", None),
        (
            "other",
            Some(
                "the token was requested from the API server, of the service account cloakroom-uploader for the audience cloakroom.other",
            ),
        ),
    ] {
        let namespace = format!("spark.kubernetes.cloakroom.namespace={namespace}");
        let (output, said) = far.submit(&[&by_address[..], &["--conf", &namespace]].concat());
        assert_eq!(output.status.success(), words.is_none(), "{said}");
        assert!(said.contains(words.unwrap_or_default()), "{said}");
        if output.status.success() {
            far.api_server.delete_pod("default", "app-driver");
        }
    }
    let audiences: Vec<Value> =
        far.token_requests().iter().map(|spec| spec["audiences"][0].clone()).collect();
    assert_eq!(audiences, ["cloakroom.cloakroom", "cloakroom.other"]);
}

#[test]
fn no_token_is_requested_where_one_is_given_or_none_is_wanted() {
    let far = asking();
    let given = far.user.path("token").display().to_string();
    let (_, said) = far.stage_here(&["--server-namespace", "cloakroom", "--token-file", &given]);
    assert!(said.contains("no such token for the audience cloakroom.cloakroom"), "{said}");
    assert_eq!(far.token_requests(), [Value::Null; 0]);

    let api_server = FakeApiServer::with("default", &[]);
    let far = Far::of(api_server, &[]).with_the_service();
    let (_, said) = far.stage_here(&[]);
    assert!(said.contains("need its upload token"), "{said}");
    assert_eq!(far.token_requests(), [Value::Null; 0]);
    assert!(far.api_server.calls_to(Verb::Review).is_empty());
}

#[test]
fn stage_for_another_submitter_requests_a_token_on_both_ways() {
    let far = asking();
    let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    far.api_server.grant_rules("ann", Some("default"), everything);
    let server = format!("spark.kubernetes.resourceStagingServer.uri={}", far.server.url(""));
    let for_pods = "spark.kubernetes.resourceStagingServer.internal.uri=http://cloakroom.cloakroom.svc:10000";
    let by_address =
        ["--conf", &server, "--conf", for_pods, "--conf", "spark.kubernetes.cloakroom.namespace=cloakroom"];
    for more in [&[][..], &by_address] {
        let mut stage = far.user.command();
        stage.args(["stage", "--for", "spark-submit", "-n", "default"]).args(more).arg("app.jar");
        let output = output_in_time(stage.env("KUBECONFIG", far.user.path("kubeconfig")));
        let said = stderr(&output);
        assert!(output.status.success(), "{said}");
        far.assert_tells_no_token(&said);
    }
    assert_eq!(far.token_requests().len(), 2);
}

#[test]
fn an_account_is_no_use_without_an_api_server() {
    let far = asking();
    let mut stage = far.user.command();
    stage.args(["stage", "-n", "default", "-l", "app=a", "--server", &far.server.url("")]);
    let output = output_in_time(stage.args(["--upload-service-account", "a", "app.jar"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("give --server-namespace, --context or --master as well"));
}
