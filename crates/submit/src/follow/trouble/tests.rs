//! Tests of the messages about pods that do not start.
#![expect(clippy::needless_pass_by_value, reason = "tables of JSON are read more easily without borrows")]

use serde_json::{Value, json};

use super::*;

const DRIVER: &str = "spark-kubernetes-driver";

fn texts(status: Value) -> Vec<String> {
    troubles(status).into_iter().map(|trouble| trouble.text).collect()
}

fn troubles(status: Value) -> Vec<Trouble> {
    let pod: Pod = serde_json::from_value(json!({"status": status})).unwrap();
    of_pod(&pod, "the driver pod", DRIVER)
}

fn container(name: &str, state: Value) -> Value {
    json!({"name": name, "image": "repo/x:1", "imageID": "", "ready": false, "restartCount": 0, "state": state})
}

fn waiting(reason: &str, message: &str) -> Value {
    json!({"waiting": {"reason": reason, "message": message}})
}

#[test]
fn a_pod_that_no_node_takes_says_why() {
    let message = "0/3 nodes are available: 3 Insufficient cpu.";
    let condition =
        json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message});
    let found = troubles(json!({"phase": "Pending", "conditions": [condition]}));
    assert_eq!(found[0].text, format!("No node takes the driver pod: {message}"));
    let event =
        json!({"metadata": {}, "involvedObject": {}, "reason": "FailedScheduling", "message": message});
    let event = of_event(&serde_json::from_value(event).unwrap(), "the driver pod");
    assert_eq!(event, Some(found[0].clone()), "told once, by whichever comes first");
}

/// A cluster may grow while a pod waits, and the message counts each new node.
#[test]
fn an_unschedulable_pod_is_one_trouble_for_any_number_of_nodes() {
    let key = |message: &str| unschedulable("the driver pod", message).key;
    let one = key("0/1 nodes are available: 1 Insufficient cpu.");
    assert_eq!(one, key("0/12 nodes are available: 12 Insufficient cpu."));
    assert_ne!(one, key("0/1 nodes are available: 1 Insufficient memory."));
}

#[test]
fn the_number_of_told_troubles_has_a_bound() {
    let mut told = ToldTroubles::default();
    assert!(told.is_new("0".to_owned()) && !told.is_new("0".to_owned()));
    let count = (0..1000).filter(|number| told.is_new(number.to_string())).count();
    assert_eq!((count + 1, told.0.len()), (ToldTroubles::MOST, ToldTroubles::MOST));
}

#[test]
fn an_image_that_cannot_be_pulled_is_one_trouble() {
    let status = |reason: &str, message: &str| json!({"phase": "Pending", "containerStatuses": [container(DRIVER, waiting(reason, message))]});
    let first = troubles(status("ErrImagePull", "not found"));
    let second = troubles(status("ImagePullBackOff", "Back-off pulling image"));
    assert_eq!(
        first[0].text,
        "The image repo/x:1 of container spark-kubernetes-driver in the driver pod cannot be pulled: ErrImagePull: not \
         found: the cluster goes on trying; check the name and the tag, and whether the registry wants a pull secret \
         (spark.kubernetes.container.image.pullSecrets)"
    );
    assert_eq!(first[0].key, second[0].key);
}

#[test]
fn an_image_that_the_node_does_not_even_ask_for_says_what_to_do() {
    let told = |reason: &str| {
        let status =
            json!({"phase": "Pending", "containerStatuses": [container(DRIVER, waiting(reason, "why"))]});
        texts(status).pop().unwrap()
    };
    let name = told("InvalidImageName");
    assert!(
        name.contains("cannot be pulled: InvalidImageName: why: this cannot be the name of an image"),
        "{name}"
    );
    let never = told("ErrImageNeverPull");
    assert!(
        never.contains("ErrImageNeverPull: why: the node does not have it") && never.contains("pullPolicy")
    );
    for text in [name, never] {
        assert!(!text.contains("goes on trying"), "{text}");
    }
}

#[test]
fn a_container_that_cannot_start_says_why() {
    let bad = container(DRIVER, waiting("CreateContainerConfigError", "secret \"x\" not found"));
    let init = container("fetch", waiting("CreateContainerError", ""));
    let status = json!({"phase": "Pending", "containerStatuses": [bad], "initContainerStatuses": [init]});
    assert_eq!(
        texts(status),
        [
            "Container fetch in the driver pod cannot start: CreateContainerError",
            "Container spark-kubernetes-driver in the driver pod cannot start: CreateContainerConfigError: secret \"x\" not \
             found",
        ]
    );
}

#[test]
fn a_pod_on_its_way_is_no_trouble() {
    for reason in ["ContainerCreating", "PodInitializing"] {
        let status =
            json!({"phase": "Pending", "containerStatuses": [container(DRIVER, waiting(reason, ""))]});
        assert_eq!(texts(status), [""; 0]);
    }
    assert_eq!(texts(Value::Null), [""; 0]);
    let running = [container(DRIVER, json!({"running": {}})), container("proxy", json!({"running": {}}))];
    assert_eq!(texts(json!({"phase": "Running", "containerStatuses": running})), [""; 0]);
}

#[test]
fn a_sidecar_that_holds_up_the_end_is_told() {
    let ended = container(DRIVER, json!({"terminated": {"exitCode": 0}}));
    let containers = [ended, container("istio-proxy", json!({"running": {}}))];
    assert_eq!(
        texts(json!({"phase": "Running", "containerStatuses": containers})),
        [
            "Container spark-kubernetes-driver in the driver pod has ended with code 0; the pod goes on until these end as \
             well: istio-proxy"
        ]
    );
}

#[test]
fn events_are_told_if_the_state_does_not_say_the_same() {
    let told = |reason: &str, count: i32| {
        let event = json!({
            "metadata": {}, "involvedObject": {}, "reason": reason, "count": count,
            "message": "MountVolume.SetUp failed for volume \"x\": configmap \"y\" not found",
        });
        of_event(&serde_json::from_value(event).unwrap(), "the driver pod").map(|trouble| trouble.text)
    };
    assert_eq!(
        told("FailedMount", 4).unwrap(),
        "Event of the driver pod: FailedMount: MountVolume.SetUp failed for volume \"x\": configmap \"y\" not found"
    );
    // The config map is created after the pod, so the first attempts fail in normal submissions too.
    assert_eq!(told("FailedMount", 1), None);
    assert!(told("FailedAttachVolume", 1).is_some());
    for reason in ["Scheduled", "Pulling", "Pulled", "Created", "Started", "Failed", "BackOff"] {
        assert_eq!(told(reason, 9), None, "{reason}");
    }
}
