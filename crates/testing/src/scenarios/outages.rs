//! Outages of the API server: the server deletes nothing without knowledge.

use std::time::Duration;

use jiff::Timestamp;

use super::desk::{Desk, GRACE};
use crate::cable::Cable;
use crate::cluster::{Account, Cluster, Object};
use crate::wait::until;

const APP: &[(&str, &str)] = &[("app", "outage")];

/// The API server answers everything with 403. An open watch still reports that the pod is gone, but the fresh read
/// cannot confirm it.
pub async fn without_rights_nothing_goes(cluster: &dyn Cluster) {
    let cable = Cable::to(cluster.address());
    cluster.api(Account::Admin).create_namespace("no-rights").await;
    let desk = Desk::open_through(cluster, cable.address(), &[]);
    let pod = Object::pod("no-rights", "driver", APP);
    let ticket = desk.stage(&pod).await;
    desk.admin.create(&pod).await;
    desk.fetch(&ticket).await;
    desk.until_seen(&ticket).await;
    cluster.revoke().await;
    desk.admin.remove(&pod).await;
    desk.stays(&ticket, GRACE * 2).await;
    cable.cut();
    desk.until_kept_because(&ticket, "forbidden").await;
    desk.stays(&ticket, GRACE).await;
    let before = Timestamp::now();
    cluster.grant().await;
    desk.goes(&ticket).await.assert("orphaned", before);
}

/// The server deletes nothing while the API server is down. Once it is back, orphaned resources are deleted.
pub async fn while_the_api_server_is_down_nothing_goes(cluster: &dyn Cluster) {
    let grace = Duration::from_secs(3);
    let desk = Desk::open(cluster, "api-down", &["--orphan-grace", "3s"]).await;
    let (gone, here) = (
        Object::pod("api-down", "gone", &[("app", "gone")]),
        Object::pod("api-down", "here", &[("app", "here")]),
    );
    let (orphan, kept) = (desk.stage(&gone).await, desk.stage(&here).await);
    for (pod, ticket) in [(&gone, &orphan), (&here, &kept)] {
        desk.admin.create(pod).await;
        desk.fetch(ticket).await;
        desk.until_seen(ticket).await;
    }
    desk.admin.remove(&gone).await;
    cluster.stop().await;
    desk.stays(&orphan, grace + GRACE).await;
    desk.stays(&kept, Duration::ZERO).await;
    let before = Timestamp::now();
    cluster.start().await;
    desk.goes(&orphan).await.assert("orphaned", before);
    desk.until_seen(&kept).await;
}

/// Uploads and downloads need no API server. The lifecycle begins when it is up.
pub async fn an_api_server_may_be_down_at_the_start(cluster: &dyn Cluster) {
    let admin = cluster.api(Account::Admin);
    admin.create_namespace("down-at-start").await;
    let pod = Object::pod("down-at-start", "driver", APP);
    admin.create(&pod).await;
    cluster.stop().await;
    let desk = Desk::open_through(cluster, cluster.address(), &["--unused-timeout", "1s"]);
    let ticket = desk.stage(&pod).await;
    desk.fetch(&ticket).await;
    desk.until_kept_because(&ticket, "watch-failing").await;
    desk.stays(&ticket, Duration::from_secs(2)).await;
    cluster.start().await;
    desk.until_seen(&ticket).await;
    let before = Timestamp::now();
    desk.admin.remove(&pod).await;
    desk.goes(&ticket).await.assert("orphaned", before + GRACE);
}

/// A real 410: the watch resumes at a forgotten version, and the server lists everything again.
pub async fn a_watch_that_expired_begins_anew(cluster: &dyn Cluster) {
    let desk = Desk::open(cluster, "watch-expires", &[]).await;
    let pod = Object::pod("watch-expires", "driver", APP);
    let ticket = desk.stage(&pod).await;
    desk.admin.create(&pod).await;
    desk.fetch(&ticket).await;
    desk.until_seen(&ticket).await;
    let expired = desk.expired_watches().await;
    cluster.forget_the_past().await;
    until("a watch has begun anew", async || desk.expired_watches().await > expired).await;
    desk.until_seen(&ticket).await;
    let before = Timestamp::now();
    desk.admin.remove(&pod).await;
    desk.goes(&ticket).await.assert("orphaned", before + GRACE);
}

/// The watch is open but dead, and does not report the owner: the fresh read before the deletion finds it.
pub async fn an_owner_that_a_dead_watch_does_not_tell_of_keeps_its_resource(cluster: &dyn Cluster) {
    let cable = Cable::to(cluster.address());
    cluster.api(Account::Admin).create_namespace("dead-watch").await;
    let desk = Desk::open_through(cluster, cable.address(), &["--unused-timeout", "3s"]);
    let pod = Object::pod("dead-watch", "driver", APP);
    let ticket = desk.stage(&pod).await;
    desk.fetch(&ticket).await;
    desk.until_kept_because(&ticket, "owner-not-seen-yet").await;
    cable.go_dead();
    desk.admin.create(&pod).await;
    desk.until_seen(&ticket).await;
    let log = desk.server.log();
    assert!(log.contains("the watch did not know of an owner that is there"), "{log}");
    let before = Timestamp::now();
    desk.admin.remove(&pod).await;
    desk.goes(&ticket).await.assert("orphaned", before + GRACE);
}
