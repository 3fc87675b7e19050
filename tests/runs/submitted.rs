//! Applications whose every file is on the submitting machine: `cloakroom submit` stages them, and real Spark finds them.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_testing::cluster::{Api, Cluster as _, text};
use cloakroom_testing::jobs::Job;
use cloakroom_testing::scenarios::served::ServedCluster;
use cloakroom_testing::wait::until;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::shared::{CLOAKROOM, SharedCluster, VERSIONS};
use crate::submission::{DRIVER, Submission, Submitter};

pub fn trials(shared: &Arc<SharedCluster>) -> Vec<Trial> {
    let each = VERSIONS.into_iter().flat_map(|version| [(version, Job::Java), (version, Job::Python)]);
    each.map(|(version, job)| {
        let name = format!("submitted::a_{}_job_of_this_machine_runs_on_{version}", job.name());
        shared.trial_with(&name, job, move |shared| run(shared, version, job))
    })
    .collect()
}

async fn run(shared: Arc<SharedCluster>, version: &'static str, job: Job) {
    let cluster = shared.cluster().await;
    let namespace = format!("submitted-{}-{}", job.name(), version.replace('.', "-"));
    let api = cluster.namespace(&namespace).await;
    let served =
        ServedCluster::open_through(&cluster.plane, cluster.plane.address(), &["--fetch-image", CLOAKROOM]);
    let sources = cluster.jobs(version);
    let settings = vec![
        ("spark.kubernetes.resourceStagingServer.uri", served.server.url("")),
        ("spark.kubernetes.resourceStagingServer.internal.uri", served.server.url("")),
    ];
    let submission = Submission { submitter: Submitter::Cloakroom, version, job, namespace, settings };
    submission.runs_to_its_end(cluster, |file| sources.join(file).display().to_string()).await;
    let tickets = tickets(&api, &submission.namespace).await;
    assert_eq!(tickets.len(), if matches!(job, Job::Java) { 2 } else { 1 });
    goes_with_its_driver(&api, &submission, &served, &tickets).await;
}

/// As the init-container has them.
pub async fn tickets(api: &Api, namespace: &str) -> Vec<(&'static str, Ticket)> {
    let map = ending(api, namespace, "configmaps", "-init-config").await;
    let secret = ending(api, namespace, "secrets", "-init-secret").await;
    let properties = text(&map["data"]["download-submitted-files"]);
    let ticket = |what: &'static str| {
        let key = format!("spark.kubernetes.initcontainer.download{what}ResourceIdentifier=");
        let id = properties.lines().find_map(|line| line.strip_prefix(&key))?;
        let shown = STANDARD.decode(text(&secret["data"][format!("downloadSubmitted{what}Secret")])).unwrap();
        let ticket = json!({
            "resourceId": id, "resourceSecret": String::from_utf8(shown).unwrap(), "sizeBytes": 0, "sha256": "",
            "createdAt": "2026-01-01T00:00:00Z", "expiresAt": "2026-01-01T00:00:00Z", "url": "",
        });
        Some((what, serde_json::from_value(ticket).unwrap()))
    };
    ["Jars", "Files"].into_iter().filter_map(ticket).collect()
}

/// The one object of a kind whose name ends like this.
pub async fn ending(api: &Api, namespace: &str, plural: &str, end: &str) -> Value {
    let (_, list) = api.get(&format!("/api/v1/namespaces/{namespace}/{plural}")).await;
    let mut items = list["items"].as_array().unwrap().iter();
    items.find(|item| text(&item["metadata"]["name"]).ends_with(end)).unwrap().clone()
}

/// What was staged is kept for the finished driver, and not longer than that is there.
pub async fn goes_with_its_driver(
    api: &Api,
    submission: &Submission,
    served: &ServedCluster,
    tickets: &[(&str, Ticket)],
) {
    for (_, ticket) in tickets {
        served.until_kept_because(ticket, "owner-finished").await;
    }
    let driver = format!("{}/{DRIVER}", submission.pods());
    api.delete(&driver).await;
    until("the driver is gone", async || api.get(&driver).await.0 == 404).await;
    for (_, ticket) in tickets {
        assert_eq!(served.goes(ticket).await.reason, "orphaned");
    }
}
