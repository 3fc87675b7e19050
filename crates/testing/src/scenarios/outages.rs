//! Outages of the API server: the server deletes nothing without knowledge.

use std::time::Duration;

use jiff::Timestamp;

use super::served::{GRACE, ServedCluster};
use crate::cable::Cable;
use crate::cluster::{Account, Cluster, Object};
use crate::wait::until;

const APP: &[(&str, &str)] = &[("app", "outage")];

/// The API server answers everything with 403. An open watch still reports that the pod is gone, but the fresh read
/// cannot confirm it.
pub async fn without_rights_nothing_goes(cluster: &dyn Cluster) {
    let cable = Cable::to(cluster.address());
    cluster.api(Account::Admin).create_namespace("no-rights").await;
    let served = ServedCluster::open_through(cluster, cable.address(), &[]);
    let pod = Object::pod("no-rights", "driver", APP);
    let ticket = served.stage(&pod).await;
    served.admin.create(&pod).await;
    served.fetch(&ticket).await;
    served.until_seen(&ticket).await;
    cluster.revoke().await;
    served.admin.remove(&pod).await;
    served.stays(&ticket, GRACE * 2).await;
    cable.cut();
    served.until_kept_because(&ticket, "forbidden").await;
    served.stays(&ticket, GRACE).await;
    let before = Timestamp::now();
    cluster.grant().await;
    served.goes(&ticket).await.assert("orphaned", before);
}

/// The server deletes nothing while the API server is down. Once it is back, orphaned resources are deleted.
pub async fn while_the_api_server_is_down_nothing_goes(cluster: &dyn Cluster) {
    let grace = Duration::from_secs(3);
    let served = ServedCluster::open(cluster, "api-down", &["--orphan-grace", "3s"]).await;
    let (gone, here) = (
        Object::pod("api-down", "gone", &[("app", "gone")]),
        Object::pod("api-down", "here", &[("app", "here")]),
    );
    let (orphan, kept) = (served.stage(&gone).await, served.stage(&here).await);
    for (pod, ticket) in [(&gone, &orphan), (&here, &kept)] {
        served.admin.create(pod).await;
        served.fetch(ticket).await;
        served.until_seen(ticket).await;
    }
    served.admin.remove(&gone).await;
    cluster.stop().await;
    served.stays(&orphan, grace + GRACE).await;
    served.stays(&kept, Duration::ZERO).await;
    let before = Timestamp::now();
    cluster.start().await;
    served.goes(&orphan).await.assert("orphaned", before);
    served.until_seen(&kept).await;
}

// Invariant: a restart or an outage deletes nothing of an owner that was known until then, for `--max-unused`.
/// In its first sweep a server knows of no owner yet. That is no reason to delete what a driver still waits for, though it
/// is older than `--max-unused`.
pub async fn a_restart_deletes_nothing_that_a_pending_pod_waits_for(cluster: &dyn Cluster) {
    let flags = ["--unused-timeout", "1s", "--max-unused", "3s"];
    let served = ServedCluster::open(cluster, "restarted", &flags).await;
    let pod = Object::pod("restarted", "driver", APP);
    let ticket = served.stage(&pod).await;
    served.admin.create(&pod).await;
    served.until_seen(&ticket).await;
    served.stays(&ticket, Duration::from_secs(4)).await;
    let served = served.restart();
    served.until_kept_because(&ticket, "owner-present").await;
    let before = Timestamp::now();
    served.admin.remove(&pod).await;
    served.goes(&ticket).await.assert("unused", before);
}

/// Uploads and downloads need no API server. The lifecycle begins when it is up.
pub async fn an_api_server_may_be_down_at_the_start(cluster: &dyn Cluster) {
    let admin = cluster.api(Account::Admin);
    admin.create_namespace("down-at-start").await;
    let pod = Object::pod("down-at-start", "driver", APP);
    admin.create(&pod).await;
    cluster.stop().await;
    let served = ServedCluster::open_through(cluster, cluster.address(), &["--unused-timeout", "1s"]);
    let ticket = served.stage(&pod).await;
    served.fetch(&ticket).await;
    served.until_kept_because(&ticket, "watch-failing").await;
    served.stays(&ticket, Duration::from_secs(2)).await;
    cluster.start().await;
    served.until_seen(&ticket).await;
    let before = Timestamp::now();
    served.admin.remove(&pod).await;
    served.goes(&ticket).await.assert("orphaned", before + GRACE);
}

/// A real 410: the watch resumes at a forgotten version, and the server lists everything again.
pub async fn a_watch_that_expired_begins_anew(cluster: &dyn Cluster) {
    let served = ServedCluster::open(cluster, "watch-expires", &[]).await;
    let pod = Object::pod("watch-expires", "driver", APP);
    let ticket = served.stage(&pod).await;
    served.admin.create(&pod).await;
    served.fetch(&ticket).await;
    served.until_seen(&ticket).await;
    let expired = served.expired_watches().await;
    cluster.forget_the_past().await;
    until("a watch has begun anew", async || served.expired_watches().await > expired).await;
    served.until_seen(&ticket).await;
    let before = Timestamp::now();
    served.admin.remove(&pod).await;
    served.goes(&ticket).await.assert("orphaned", before + GRACE);
}

/// The watch is open but dead, and does not report the owner: the fresh read before the deletion finds it.
pub async fn an_owner_that_a_dead_watch_does_not_tell_of_keeps_its_resource(cluster: &dyn Cluster) {
    let cable = Cable::to(cluster.address());
    cluster.api(Account::Admin).create_namespace("dead-watch").await;
    // Its end asks for the owner. Until then the pod must be there, on a slow machine too.
    let served = ServedCluster::open_through(cluster, cable.address(), &["--unused-timeout", "10s"]);
    let pod = Object::pod("dead-watch", "driver", APP);
    let ticket = served.stage(&pod).await;
    served.fetch(&ticket).await;
    served.until_kept_because(&ticket, "owner-not-seen-yet").await;
    cable.go_dead();
    served.admin.create(&pod).await;
    served.until_seen(&ticket).await;
    let log = served.server.log();
    assert!(log.contains("the watch did not know of an owner that is there"), "{log}");
    let before = Timestamp::now();
    served.admin.remove(&pod).await;
    served.goes(&ticket).await.assert("orphaned", before + GRACE);
}
