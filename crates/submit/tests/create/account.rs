//! A driver whose service account cannot make executors is warned of before anything is made, and never an error.

use std::time::Instant;

use super::*;

const WARNING: &str = "service account default may not create pods in namespace spark";
const ACCOUNT: &str = "system:serviceaccount:spark:default";

fn planned() -> Submission {
    Submission { driver_account: Some("default".to_owned()), ..submission(NAMESPACE) }
}

#[tokio::test]
async fn an_account_that_may_not_create_pods_is_warned_of_before_any_object() {
    let server = start();
    let submitter = Submitter::new(&server);
    submitter.create(&planned()).await.unwrap();
    assert_eq!(made(&server)[..3], ["TRY pods", "GET localsubjectaccessreviews", "POST pods"]);
    let question = &server.calls_to(Verb::Review)[0].body["spec"];
    let groups = ["system:serviceaccounts", "system:serviceaccounts:spark", "system:authenticated"];
    let what = json!({"namespace": "spark", "verb": "create", "resource": "pods"});
    assert_eq!(question, &json!({"user": ACCOUNT, "groups": groups, "resourceAttributes": what}));
    let said = submitter.lines.all();
    assert!(
        said.len() == 1 && said[0].contains(" WARN Client: The driver's ") && said[0].contains(WARNING),
        "{said:?}"
    );
    for named in
        ["spark.kubernetes.authenticate.driver.serviceAccountName", "spark-driver", "manifests/submitter"]
    {
        assert!(said[0].contains(named), "{said:?}");
    }
}

#[tokio::test]
async fn nothing_is_said_of_an_account_that_may_or_that_cannot_be_asked_about() {
    let server = start();
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]);
    server.grant_rules(ACCOUNT, Some(NAMESPACE), rules);
    let submitter = Submitter::new(&server);
    submitter.create(&planned()).await.unwrap();
    assert_eq!(submitter.lines.all(), [""; 0]);
    for fault in [401, 403, 404, 429, 500].map(Fault::Status).into_iter().chain([Fault::Cut, Fault::Hang]) {
        let server = start();
        server.fail(Verb::Review, fault);
        let (submitter, began) = (Submitter::new(&server), Instant::now());
        submitter.create(&planned()).await.unwrap();
        assert_eq!(submitter.lines.all(), [""; 0], "{fault:?}");
        assert_eq!(server.calls_to(Verb::Review).len(), 1, "it is not tried again: {fault:?}");
        assert!(began.elapsed() < BOUND, "{fault:?}");
    }
}

#[tokio::test]
async fn a_driver_with_credentials_of_its_own_is_not_asked_about() {
    let server = start();
    Submitter::new(&server).create(&submission(NAMESPACE)).await.unwrap();
    assert!(server.calls_to(Verb::Review).is_empty());
}
