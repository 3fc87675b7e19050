//! Submissions from their first object to their last, as the API server has them.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_submit::Submission;
use cloakroom_submit::create::Undo;
use cloakroom_submit::follow::Outcome;
use cloakroom_submit::jobs::{SubmissionId, kill};
use cloakroom_testing::cluster::{Account, Api, CLAIM, CONFIG_MAP, Cluster, Kind, POD, SERVICE};
use cloakroom_testing::wait::until;
use serde_json::{Value, json};

use crate::submitter::{APP_ID, DRIVER, Submitter, claim, hurried, pod_group, submission};

const SERVICE_NAME: &str = "my-app-driver-svc";
const CONFIG_MAP_NAME: &str = "spark-drv-conf-map";
const CLAIM_NAME: &str = "my-app-driver-pvc-0";

fn path(kind: Kind, namespace: &str, name: &str) -> String {
    format!("{}/{name}", kind.path(Some(namespace)))
}

async fn found(admin: &Api, kind: Kind, namespace: &str, name: &str) -> Value {
    let (status, object) = admin.get(&path(kind, namespace, name)).await;
    assert_eq!(status, 200, "{object}");
    object
}

async fn until_gone(admin: &Api, kind: Kind, namespace: &str, name: &str) {
    let path = path(kind, namespace, name);
    until(&format!("{path} is gone"), async || admin.get(&path).await.0 == 404).await;
}

/// Without a claim: who deletes it waits for a controller that is not there.
fn planned(namespace: &str) -> Submission {
    let mut planned = submission(namespace);
    planned.after_pod.retain(|object| object["kind"] != "PersistentVolumeClaim");
    planned.follow.report_interval = Duration::from_millis(50);
    planned
}

/// What is applied has the pod as its owner, and goes with it.
pub async fn what_is_made_belongs_to_the_driver_pod(cluster: &dyn Cluster) {
    let namespace = "submission-made";
    let (admin, submitter) = (cluster.api(Account::Admin), Submitter::new(cluster));
    admin.create_namespace(namespace).await;
    let created = submitter.create(&planned(namespace)).await.unwrap();
    let pod = found(&admin, POD, namespace, DRIVER).await;
    assert_eq!(pod["metadata"]["uid"], created.uid);
    assert_eq!(pod["metadata"]["labels"]["spark-app-selector"], APP_ID);
    let owner = json!([{
        "apiVersion": "v1", "kind": "Pod", "name": DRIVER, "uid": created.uid, "controller": true,
    }]);
    for (kind, name) in [(SERVICE, SERVICE_NAME), (CONFIG_MAP, CONFIG_MAP_NAME)] {
        assert_eq!(found(&admin, kind, namespace, name).await["metadata"]["ownerReferences"], owner);
    }
    let again = submitter.create(&planned(namespace)).await.unwrap_err();
    assert!(again.to_string().contains("and belongs to application spark-0123"), "{again}");
    assert_eq!(again.undo, Undo::Nothing);
    found(&admin, POD, namespace, DRIVER).await;
    admin.delete(&path(POD, namespace, DRIVER)).await;
    until_gone(&admin, SERVICE, namespace, SERVICE_NAME).await;
    until_gone(&admin, CONFIG_MAP, namespace, CONFIG_MAP_NAME).await;
}

// Invariant: a submission that fails, at any step, leaves nothing behind and never touches another pod.
/// The last object is of a kind that the cluster does not have.
pub async fn a_submission_that_fails_leaves_only_what_was_there_before(cluster: &dyn Cluster) {
    let namespace = "submission-undone";
    let (admin, submitter) = (cluster.api(Account::Admin), Submitter::new(cluster));
    admin.create_namespace(namespace).await;
    let (status, answer) = admin.post(&CLAIM.path(Some(namespace)), &claim(CLAIM_NAME)).await;
    assert_eq!(status, 201, "{answer}");
    let mut planned = submission(namespace);
    planned.after_pod.push(pod_group());
    let error = submitter.create(&planned).await.unwrap_err();
    let said = error.to_string();
    assert!(said.contains("does not know podgroups.scheduling.volcano.sh (404"), "{said}");
    assert_eq!(error.undo, Undo::Removed(vec![format!("pod {DRIVER}")]));
    until_gone(&admin, POD, namespace, DRIVER).await;
    until_gone(&admin, SERVICE, namespace, SERVICE_NAME).await;
    until_gone(&admin, CONFIG_MAP, namespace, CONFIG_MAP_NAME).await;
    let kept = found(&admin, CLAIM, namespace, CLAIM_NAME).await;
    assert!(kept["metadata"]["ownerReferences"].is_null(), "{kept}");
    assert!(kept["metadata"]["deletionTimestamp"].is_null(), "{kept}");
}

/// A pod that the API server would not store is refused before anything is made.
pub async fn a_pod_that_is_not_valid_is_refused_in_the_api_servers_words(cluster: &dyn Cluster) {
    let namespace = "submission-refused";
    let (admin, submitter) = (cluster.api(Account::Admin), Submitter::new(cluster));
    admin.create_namespace(namespace).await;
    let mut planned = planned(namespace);
    planned.pod["metadata"]["labels"]["team"] = "not a label".into();
    let error = submitter.create(&planned).await.unwrap_err();
    let said = error.to_string();
    for part in [
        "does not accept pod my-app-",
        "422 Pod \"my-app-",
        "Invalid value: \"not a label\"",
        "(nothing was created)",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    let elsewhere = submitter.create(&submission("submission-nowhere")).await.unwrap_err().to_string();
    assert!(elsewhere.starts_with("the namespace submission-nowhere does not exist at "), "{elsewhere}");
}

/// A driver that runs, loses an executor, and ends; its status as a kubelet writes it.
pub async fn an_application_is_followed_to_its_end(cluster: &dyn Cluster) {
    let namespace = "submission-followed";
    let (admin, submitter) = (cluster.api(Account::Admin), Arc::new(Submitter::new(cluster)));
    admin.create_namespace(namespace).await;
    let mut planned = planned(namespace);
    planned.follow.executor_poll_interval = Duration::from_millis(200);
    let created = submitter.create(&planned).await.unwrap();
    let follower = Arc::clone(&submitter);
    let following = tokio::spawn(async move { follower.follow(hurried(), &planned, &created).await });
    let said = async |needle: &str| {
        until(needle, async || !submitter.lines.with(needle).is_empty()).await;
    };
    said("phase: Pending").await;
    let running = json!({"running": {"startedAt": "2026-01-01T12:00:00Z"}});
    set_status(&admin, namespace, "Running", &running).await;
    said("container state: running").await;
    let labels = json!({"spark-app-selector": APP_ID, "spark-role": "executor", "spark-exec-id": "1"});
    let spec = json!({"containers": [{"name": "spark-kubernetes-executor", "image": "x"}]});
    let executor = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "my-app-exec-1", "labels": labels}, "spec": spec,
    });
    let removed = "Executor 1 (pod my-app-exec-1) was removed: its pod was deleted";
    // Again until it is noticed: executors are looked at only from a moment after the driver runs.
    until(removed, async || {
        assert_eq!(admin.post(&POD.path(Some(namespace)), &executor).await.0, 201);
        admin.delete(&path(POD, namespace, "my-app-exec-1")).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        !submitter.lines.with(removed).is_empty()
    })
    .await;
    let end = json!({"terminated": {
        "exitCode": 3, "reason": "Error", "message": "no such table",
        "startedAt": "2026-01-01T12:00:00Z", "finishedAt": "2026-01-01T12:00:30Z",
    }});
    set_status(&admin, namespace, "Failed", &end).await;
    let outcome = following.await.unwrap().unwrap();
    assert_eq!(outcome, Outcome::Failed { exit_code: Some(3) });
    said("The container spark-kubernetes-driver left this message: no such table").await;
    admin.delete(&path(POD, namespace, DRIVER)).await;
}

async fn set_status(admin: &Api, namespace: &str, phase: &str, state: &Value) {
    let container = json!({
        "name": "spark-kubernetes-driver", "image": "repo.example/spark:4", "imageID": "", "ready": false,
        "restartCount": 0, "state": state,
    });
    let patch = json!({"status": {"phase": phase, "containerStatuses": [container]}});
    let (status, answer) = admin.merge(&format!("{}/status", path(POD, namespace, DRIVER)), &patch).await;
    assert_eq!(status, 200, "{answer}");
}

/// Drivers whose names begin so are deleted, and nothing else.
pub async fn drivers_are_killed_by_the_beginning_of_their_names(cluster: &dyn Cluster) {
    let namespace = "submission-killed";
    let (admin, submitter) = (cluster.api(Account::Admin), Submitter::new(cluster));
    admin.create_namespace(namespace).await;
    for (name, role) in [
        ("a-1-driver", "driver"),
        ("a-2-driver", "driver"),
        ("a-3-exec-1", "executor"),
        ("b-driver", "driver"),
    ] {
        let object = cloakroom_testing::cluster::Object::pod(namespace, name, &[("spark-role", role)]);
        admin.create(&object).await;
    }
    let id = SubmissionId::parse(&format!("{namespace}:a-*"), "default").unwrap();
    kill(&submitter.server, "k8s://here", &id, Some(0), &submitter.lines.log()).await.unwrap();
    until_gone(&admin, POD, namespace, "a-1-driver").await;
    until_gone(&admin, POD, namespace, "a-2-driver").await;
    for name in ["a-3-exec-1", "b-driver"] {
        let left = found(&admin, POD, namespace, name).await;
        assert!(left["metadata"]["deletionTimestamp"].is_null(), "{left}");
    }
}
