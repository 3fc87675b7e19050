//! Resources whose owners are pods, from their staging to their end.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::served::{GRACE, ServedCluster};
use crate::cluster::{Cluster, Object};

const APP: &[(&str, &str)] = &[("spark-app-selector", "spark-0a1b"), ("spark-role", "driver")];

/// Stage, create the pod, fetch, delete the pod.
pub async fn a_resource_goes_after_the_grace_and_not_before(cluster: &dyn Cluster) {
    let served = ServedCluster::open(cluster, "pod-goes", &[]).await;
    let pod = Object::pod("pod-goes", "driver", APP);
    let ticket = served.stage(&pod).await;
    served.until_kept_because(&ticket, "not-used-yet").await;
    served.admin.create(&pod).await;
    served.until_seen(&ticket).await;
    served.fetch(&ticket).await;
    let others = Object::pod("pod-goes", "other", &[("spark-app-selector", "spark-0a1b")]);
    served.admin.create(&others).await;
    served.stays(&ticket, GRACE).await;
    let before = Timestamp::now();
    served.admin.remove(&pod).await;
    served.goes(&ticket).await.assert("orphaned", before + GRACE);
}

/// Deleting a namespace deletes its pods, and with them the owners.
pub async fn a_resource_goes_with_its_owners_namespace(cluster: &dyn Cluster) {
    let served = ServedCluster::open(cluster, "namespace-goes", &[]).await;
    let pod = Object::pod("namespace-goes", "driver", APP);
    let ticket = served.stage(&pod).await;
    served.admin.create(&pod).await;
    served.fetch(&ticket).await;
    served.until_seen(&ticket).await;
    let before = Timestamp::now();
    served.admin.remove_namespace("namespace-goes").await;
    served.goes(&ticket).await.assert("orphaned", before + GRACE);
}

/// A finished pod still counts as an owner for a time: its user may look at it, and run it again.
pub async fn a_finished_pod_keeps_its_resource_for_the_retention(cluster: &dyn Cluster) {
    let flags = ["--finished-owner-retention", "4s"];
    let served = ServedCluster::open(cluster, "pod-finishes", &flags).await;
    let pod = Object::pod("pod-finishes", "driver", APP);
    let ticket = served.stage(&pod).await;
    served.admin.create(&pod).await;
    served.fetch(&ticket).await;
    served.until_seen(&ticket).await;
    let before = Timestamp::now();
    served.admin.finish_pod(&pod, "Succeeded").await;
    served.until_kept_because(&ticket, "owner-finished").await;
    served.goes(&ticket).await.assert("owner-finished", before + Duration::from_secs(4));
}

/// A user tries the ticket before the pod exists.
pub async fn an_owner_may_come_after_a_trial_download(cluster: &dyn Cluster) {
    let timeout = Duration::from_secs(4);
    let served = ServedCluster::open(cluster, "pod-comes-late", &["--unused-timeout", "4s"]).await;
    let pod = Object::pod("pod-comes-late", "driver", APP);
    let never = Object::pod("pod-comes-late", "never", &[("app", "never")]);
    let (ticket, unowned) = (served.stage(&pod).await, served.stage(&never).await);
    let before = Timestamp::now();
    served.fetch(&ticket).await;
    served.fetch(&unowned).await;
    served.until_kept_because(&ticket, "owner-not-seen-yet").await;
    served.admin.create(&pod).await;
    served.until_seen(&ticket).await;
    served.goes(&unowned).await.assert("owner-never-seen", before + timeout);
    served.stays(&ticket, timeout).await;
    let before = Timestamp::now();
    served.admin.remove(&pod).await;
    served.goes(&ticket).await.assert("orphaned", before + GRACE);
}

/// A queue such as Kueue holds the pod back. The pod is pending, and its resources stay.
pub async fn a_gated_pod_keeps_its_resource(cluster: &dyn Cluster) {
    let served = ServedCluster::open(cluster, "pod-waits", &["--unused-timeout", "1s"]).await;
    let pod = Object::pod("pod-waits", "driver", APP);
    let ticket = served.stage(&pod).await;
    let mut gated = pod.manifest();
    gated["spec"]["schedulingGates"] = json!([{"name": "kueue.x-k8s.io/admission"}]);
    let (status, answer) = served.admin.post(&pod.collection(), &gated).await;
    assert_eq!(status, 201, "{answer}");
    served.until_seen(&ticket).await;
    served.stays(&ticket, GRACE + Duration::from_secs(2)).await;
    let (status, answer) = served.admin.merge(&pod.path(), &json!({"spec": {"schedulingGates": null}})).await;
    assert_eq!(status, 200, "{answer}");
    served.fetch(&ticket).await;
    let before = Timestamp::now();
    served.admin.remove(&pod).await;
    served.goes(&ticket).await.assert("orphaned", before + GRACE);
}
