//! The submitter's role in manifests/submitter allows what `cloakroom submit` asks for, and nothing else.

use std::collections::BTreeSet;

use cloakroom_cluster::Timeouts;
use cloakroom_submit::Submission;
use cloakroom_submit::follow::Outcome;
use cloakroom_submit::jobs::{SubmissionId, kill, status};
use cloakroom_testing::api_server::{
    Call, EVENT, FakeApiServer, Fault, NETWORK_POLICY, POD_GROUP, SECRET, Verb,
};
use cloakroom_testing::cluster::{CLAIM, CONFIG_MAP, NAMESPACE, SERVICE};
use cloakroom_testing::known::{rights_of, rules_of_submitters};
use cloakroom_testing::wait::until_true;
use serde_json::{Value, json};

use crate::submitter::{DRIVER, Submitter, hurried, pod_group, submission};

const SPARK: &str = "spark";

/// The rules of the role, and of the one for Volcano.
fn rules() -> Value {
    rules_of_submitters(&["submitter.yaml", "volcano.yaml"])
}

/// A submitter with that role, and everything that one can make.
fn start() -> (FakeApiServer, Submitter, Submission) {
    let server = FakeApiServer::start();
    for kind in [SERVICE, CLAIM, CONFIG_MAP, SECRET, NETWORK_POLICY, POD_GROUP, EVENT] {
        server.define(kind);
    }
    server.add(NAMESPACE, "", json!({"metadata": {"name": SPARK}}));
    server.know_token("of-the-submitter", "submitter", &[]);
    server.grant_rules("submitter", Some(SPARK), rules());
    let submitter = Submitter::with(&server, "of-the-submitter", Timeouts::default());
    let mut planned = submission(SPARK);
    planned.driver_account = Some("default".to_owned());
    planned.before_pod.push(pod_group());
    for (api_version, kind) in [("v1", "Secret"), ("networking.k8s.io/v1", "NetworkPolicy")] {
        planned.after_pod.push(json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}));
    }
    (server, submitter, planned)
}

fn id(name: &str) -> SubmissionId {
    SubmissionId::parse(name, SPARK).unwrap()
}

// Invariant: the submitter's role has exactly the rights that submitting needs.
#[tokio::test]
async fn the_role_of_the_submitter_is_exactly_what_it_asks_for() {
    let (server, submitter, planned) = start();
    // A driver that is long pending, runs, has its state asked for, and is killed.
    let created = submitter.create(&planned).await.unwrap();
    let submitter = std::sync::Arc::new(submitter);
    let (follower, followed) = (std::sync::Arc::clone(&submitter), planned.clone());
    let following = tokio::spawn(async move { follower.follow(hurried(), &followed, &created).await });
    let called = |verb: Verb, kind: &str| {
        server.calls_to(verb).iter().any(|call| call.path.ends_with(&format!("/{kind}")))
    };
    until_true("events are asked for", || called(Verb::List, "events")).await;
    server.set_phase(SPARK, DRIVER, "Running");
    until_true("executors are asked for", || called(Verb::List, "pods")).await;
    let log = submitter.lines.log();
    status(&submitter.server, "k8s://here", &id(DRIVER), &log).await.unwrap();
    kill(&submitter.server, "k8s://here", &id("my-app-*"), None, &log).await.unwrap();
    assert!(matches!(following.await.unwrap(), Ok(Outcome::Deleted { .. })));
    // One that fails.
    let created = submitter.create(&planned).await.unwrap();
    server.set_log(SPARK, DRIVER, "what it said\n");
    let ended = json!({"exitCode": 3, "startedAt": null, "finishedAt": null});
    let container = json!({"name": "spark-kubernetes-driver", "image": "i", "imageID": "", "ready": false,
                           "restartCount": 0, "state": {"terminated": ended}});
    server.set_status(SPARK, DRIVER, &json!({"phase": "Failed", "containerStatuses": [container]}));
    let outcome = submitter.follow(hurried(), &planned, &created).await.unwrap();
    assert_eq!(outcome, Outcome::Failed { exit_code: Some(3) });
    assert_eq!(submitter.lines.with("\n\t | what it said").len(), 1);
    assert_eq!(submitter.lines.with("service account default may not create pods").len(), 2);
    kill(&submitter.server, "k8s://here", &id(DRIVER), None, &log).await.unwrap();
    // One that is taken back although nobody knows what it did.
    for kind in [SERVICE, CLAIM, CONFIG_MAP, SECRET, NETWORK_POLICY] {
        server.fail_some(kind, Verb::Patch, 0, 4, Fault::LostAnswer);
        submitter.create(&planned).await.unwrap_err();
        server.heal();
        assert_eq!(server.everything_in(SPARK), [""; 0]);
    }
    server.fail_some(POD_GROUP, Verb::Patch, 0, 4, Fault::LostAnswer);
    submitter.create(&planned).await.unwrap_err();
    assert_eq!(server.everything_in(SPARK), [""; 0]);
    let asked: BTreeSet<String> = server.calls().iter().flat_map(Call::rights).collect();
    assert_eq!(asked, rights_of(&json!({"rules": rules()})));
    assert!(submitter.lines.with("403").is_empty(), "{:#?}", submitter.lines.with("403"));
}
