//! What is said where a submission is refused, or where something else than an API server answers.

use std::net::SocketAddr;
use std::path::Path;

use cloakroom_cluster::Timeouts;
use cloakroom_submit::create::{CreateCause, Undo};
use cloakroom_testing::api_server::{Fault, Verb};
use cloakroom_testing::cluster::Cluster as _;
use cloakroom_testing::scripted::{Answer, Scripted};
use cloakroom_testing::tls::server_config;
use cloakroom_testing::tls::signed_by_ca;
use serde_json::json;

use super::{NAMESPACE, POD_GROUP, refused, start, with_volcano};
use crate::submitter::{Submitter, submission};

#[tokio::test]
async fn refusals_are_told_in_one_line_that_says_what_to_do() {
    let server = start();
    server.know_token("of-ann", "ann", &[]);
    let ann = Submitter::with(&server, "of-ann", Timeouts::default());
    let planned = submission(NAMESPACE);
    let not_allowed = ann.create(&planned).await.unwrap_err().to_string();
    let verbs = json!([{"apiGroups": [""], "resources": ["pods", "services"], "verbs": ["*"]}]);
    server.grant_rules("ann", Some(NAMESPACE), verbs);
    let no_claim = ann.create(&planned).await.unwrap_err().to_string();
    let unknown = Submitter::with(&server, "of-nobody", Timeouts::default());
    let unauthorized = unknown.create(&planned).await.unwrap_err().to_string();
    let elsewhere = refused(&server, &submission("nowhere")).await.to_string();
    server.fail_with("dryRun", Verb::Create, Fault::Status(422));
    let invalid = refused(&server, &planned).await.to_string();
    server.undefine(POD_GROUP);
    server.heal();
    let no_kind = refused(&server, &with_volcano()).await.to_string();
    let address = server.address();
    server.stop();
    let unreachable = refused(&server, &planned).await.to_string();
    for (said, parts) in [
        (
            not_allowed,
            vec![
                "not allowed to create pods in namespace spark (as the current context of ",
                " says): 403 pods is forbidden: User \"ann\" cannot create",
                "“kubectl auth can-i create pods -n spark” must say yes for this user",
                "(nothing was created)",
            ],
        ),
        (
            no_claim,
            vec![
                "not allowed to create and patch persistentvolumeclaims in namespace spark (as ",
                "“kubectl auth can-i create persistentvolumeclaims -n spark” and “kubectl auth can-i patch \
                 persistentvolumeclaims -n spark” must say yes",
                "(removed again: pod my-app-0123456789abcdef-driver)",
            ],
        ),
        (
            unauthorized,
            vec!["does not accept the credentials (as the current context of", "401 Unauthorized"],
        ),
        (elsewhere, vec!["the namespace nowhere does not exist at http://", "spark.kubernetes.namespace"]),
        (invalid, vec!["the API server does not accept pod my-app-", "422 the test wants a 422"]),
        (no_kind, vec!["does not know podgroups.scheduling.volcano.sh (404"]),
        (unreachable, vec![&format!("the API server at http://{address} cannot be reached: "), "refused"]),
    ] {
        assert!(!said.contains('\n'));
        for part in parts {
            assert!(said.contains(part), "{part} is not in {said}");
        }
    }
}

/// What a submission says that is tried against this.
async fn refused_at(address: SocketAddr, ca: Option<&Path>) -> String {
    let submitter = Submitter::at(address, ca, "x", Timeouts::default());
    let error = submitter.create(&submission(NAMESPACE)).await.unwrap_err();
    assert_eq!(error.undo, Undo::Nothing);
    error.to_string()
}

#[tokio::test]
async fn a_proxy_that_redirects_is_no_api_server() {
    let location = "https://login.example.com:8443/oauth?token=hunter2";
    let proxy = Scripted::start(move |_, _| Answer::new(302, "").header("location", location).into()).await;
    let said = refused_at(proxy.url().strip_prefix("http://").unwrap().parse().unwrap(), None).await;
    let expected = format!(
        "what answers at {} is no API server (302, it redirects to login.example.com): check --master",
        proxy.url()
    );
    assert!(said.starts_with(&expected) && !said.contains("hunter2"), "{said}");
    assert_eq!(proxy.requests().len(), 1, "it is not tried again");
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_told_with_what_names_its_ca() {
    let folder = tempfile::tempdir().unwrap();
    let pem = |name: &str, names: &[&str]| {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        signed_by_ca(&folder.path().join(name), names)
    };
    let (ours, others, elsewhere) =
        (pem("ours", &["127.0.0.1"]), pem("others", &["127.0.0.1"]), pem("elsewhere", &["x.example"]));
    for (shown, trusted, words) in [
        (&ours, &others, "not signed by a CA that is trusted"),
        (&elsewhere, &elsewhere, "is for another name (certificate not valid for name"),
    ] {
        let server =
            Scripted::start_tls(server_config(shown, None), |_, _| Answer::new(200, "{}").into()).await;
        let address = server.url().strip_prefix("https://").unwrap().parse().unwrap();
        let said = refused_at(address, Some(&trusted.ca)).await;
        for part in
            [words, "spark.kubernetes.authenticate.submission.caCertFile", "certificate-authority in the"]
        {
            assert!(said.contains(part), "{part} is not in {said}");
        }
        assert!(!said.contains("whether it runs"), "{said}");
    }
}

#[tokio::test]
async fn a_quota_is_not_taken_for_a_missing_right() {
    let server = start();
    server.fail_with("dryRun", Verb::Create, Fault::Status(403));
    let error = refused(&server, &submission(NAMESPACE)).await;
    assert!(matches!(error.cause, CreateCause::Refused { .. }), "{error}");
}

#[tokio::test]
async fn the_contexts_namespace_is_suggested_where_the_default_is_forbidden() {
    let server = start();
    server.know_token("of-ann", "ann", &[]);
    let kubeconfig = cloakroom_testing::cluster::kubeconfig(server.ca(), server.address(), "of-ann");
    for (context, is_hinted_at) in [("team-a", true), ("default", false), ("", false)] {
        let user = r#""user":"test""#;
        let kubeconfig = kubeconfig.replacen(user, &format!(r#""namespace":"{context}",{user}"#), 1);
        let ann = Submitter::by(&kubeconfig, Timeouts::default());
        let said = ann.create(&submission("default")).await.unwrap_err().to_string();
        assert!(said.contains("not allowed to create pods in namespace default"), "{said}");
        let hint = "the kubeconfig's context is for namespace team-a, which counts only if no master is \
                    given: give --namespace team-a if that one is meant";
        assert_eq!(said.contains(hint), is_hinted_at, "{said}");
        assert_eq!(said.contains("the kubeconfig's context is for"), is_hinted_at, "{said}");
    }
}
