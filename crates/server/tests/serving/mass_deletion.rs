//! The guard: when most owners of a namespace vanish at once, that is more likely a mistake.

use std::sync::Arc;

use cloakroom_adapters::disk::DataDirectory;
use cloakroom_adapters::sqlite::SqliteLedger;
use cloakroom_core::clock::Clock as _;
use cloakroom_core::protocol::admin::{ServerStatus, SweepReport};
use cloakroom_core::protocol::v1::Metadata;
use cloakroom_core::resource::{Bundle, Lifetime, Owner, OwnerHistory, ResourceId, ResourceSecret};
use cloakroom_server::cleaner::{Released, SweepRequest};
use cloakroom_server::owners::{Presence, Unknown};
use cloakroom_storage::ledger::{Completion, Ledger as _, Observation, PendingResource};
use cloakroom_testing::clock::ManualClock;
use cloakroom_testing::logs;

use reqwest::Method;

use crate::admin::{Administered, read};
use crate::support::TestApp;
use crate::support::app::{Directory, Options};
use crate::support::owners::{ScriptedOwners, owner_of};
use crate::support::watched::{HOUR, MINUTE, SECOND};

/// The namespace of most tests.
const ETL: &str = "etl";

/// Used resources in a namespace: each of so many owners, `driver-0`, `driver-1`…, which were seen, has so many of them.
#[derive(Clone, Copy)]
struct Tenant {
    namespace: &'static str,
    owners: usize,
    resources_each: usize,
}

/// A server with the resources of some tenants, without their bytes.
struct Crowd {
    app: TestApp,
    owners: Arc<ScriptedOwners>,
}

impl Crowd {
    async fn of(tenants: &[Tenant]) -> Self {
        let clock = Arc::new(ManualClock::new());
        let directory = directory_of(tenants, &clock).await;
        let owners = ScriptedOwners::all(Presence::Present);
        let options = Options { owners: Arc::clone(&owners) as _, ..Options::default() };
        let app = TestApp::start_on(directory, clock, options).await;
        Self { app, owners }
    }

    async fn of_one(owners: usize) -> Self {
        Self::of(&[tenant(ETL, owners)]).await
    }

    /// The owners of these are absent, and a sweep notes it.
    async fn lose(&self, namespace: &str, lost: std::ops::Range<usize>) {
        for number in lost {
            self.owners.is(&nth(namespace, number), Presence::Absent);
        }
        assert_eq!(self.app.sweep().await.expired, 0);
    }

    /// Lets time pass and sweeps; returns what was deleted, and what was held back.
    async fn sweep_after(&self, time: std::time::Duration) -> (u64, u64) {
        self.app.clock.advance(time);
        let swept = self.app.sweep().await;
        (swept.expired, swept.held.values().sum())
    }

    async fn release(&self, releases: Released) -> u64 {
        let request = SweepRequest { releases, ..SweepRequest::default() };
        self.app.sweep_for(request).await.expired
    }

    async fn metric(&self, name: &str) -> String {
        self.app.metric(name).await
    }

    /// Why metadata say that one of the resources is kept.
    async fn kept_because(&self, namespace: &str, number: usize) -> Option<String> {
        let all = self.app.staging.ready(None, 1000);
        let id = all.iter().find(|listed| *listed.owner == nth(namespace, number)).unwrap().id;
        let request = self.app.get(&format!("/api/v1/resources/{id}/metadata")).bearer_auth(id);
        let metadata: Metadata =
            serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap();
        metadata.kept_because.map(|why| why.to_string())
    }

    async fn ready(&self) -> u64 {
        self.app.rows().await.get("ready").copied().unwrap_or_default()
    }
}

fn tenant(namespace: &'static str, owners: usize) -> Tenant {
    Tenant { namespace, owners, resources_each: 1 }
}

fn nth(namespace: &str, number: usize) -> Owner {
    owner_of("Pod", namespace, &format!("driver-{number}"))
}

async fn directory_of(tenants: &[Tenant], clock: &ManualClock) -> Directory {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let data = DataDirectory::open(directory.path()).unwrap();
    let ledger = SqliteLedger::open(&data.ledger()).await.unwrap();
    let created_at = clock.now();
    let all = tenants.iter().flat_map(|tenant| (0..tenant.owners).map(move |number| (tenant, number)));
    let all = all.flat_map(|(tenant, number)| (0..tenant.resources_each).map(move |_| (tenant, number)));
    let rows = all.map(async |(tenant, number)| {
        let id = ResourceId::generate(&mut rand::rng());
        let secret_hash = ResourceSecret::from_text(id.to_string()).hash();
        let pending = PendingResource { id, secret_hash, file_name: None, created_at, uploaded_by: None };
        ledger.begin(pending).await.unwrap();
        let lifetime = Lifetime { unused_timeout: 30 * MINUTE, ttl: None };
        let bundle = Bundle { size_bytes: 0, sha256: [0; 32] };
        let owner = nth(tenant.namespace, number);
        let completion = Completion { id, owner, bundle, lifetime, created_at };
        ledger.complete(completion).await.unwrap();
        ledger.mark_used(id, created_at).await.unwrap();
        let before = OwnerHistory::default();
        let after = before.present(created_at);
        ledger.observe(vec![Observation { id, before, after }]).await.unwrap();
    });
    futures_util::future::join_all(rows).await;
    ledger.close().await;
    directory
}

#[tokio::test]
async fn what_vanishes_at_once_waits_an_hour_and_goes_in_slices_read_afresh() {
    let crowd = Crowd::of_one(211).await;
    crowd.lose(ETL, 0..137).await;
    assert_eq!(crowd.sweep_after(MINUTE).await, (0, 137));
    assert_eq!(crowd.metric("mass_deletion_held").await, "137");
    assert_eq!(crowd.metric("resources_kept{why=\"held\"}").await, "137");
    assert_eq!(crowd.kept_because(ETL, 0).await.as_deref(), Some("held"));
    assert_eq!(crowd.kept_because(ETL, 200).await.as_deref(), Some("owner-present"));
    let lines = logs::lines_with("of a namespace vanished at once");
    let is_told = |line: &String| line.contains("ERROR") && line.contains("owners=211 vanished=137");
    assert!(lines.iter().any(is_told), "{lines:?}");
    assert_eq!(crowd.sweep_after(HOUR - SECOND).await, (0, 137));
    assert_eq!(crowd.owners.take_reads(), [], "what is held back costs no call");
    // Two are there after all: only the fresh read knows.
    for number in 0..137 {
        let fresh = if number < 2 { Presence::Present } else { Presence::Absent };
        crowd.owners.fresh_is(&nth(ETL, number), fresh);
    }
    let (mut deleted, held) = crowd.sweep_after(SECOND).await;
    assert_eq!(held, 37);
    assert!((98..=100).contains(&deleted), "{deleted}");
    let mut reads = crowd.owners.take_reads();
    reads.sort_by_key(|owner| owner.name().map(str::to_owned));
    reads.dedup();
    assert_eq!(reads.len(), 100);
    for _ in 0..2 {
        let (more, held) = crowd.sweep_after(30 * SECOND).await;
        assert_eq!(held, 0);
        deleted += more;
    }
    assert_eq!((deleted, crowd.ready().await), (135, 76));
    assert_eq!(crowd.metric("mass_deletion_held").await, "0");
}

#[tokio::test]
async fn what_one_namespace_loses_holds_back_no_other() {
    let crowd = Crowd::of(&[tenant(ETL, 120), tenant("ml", 12)]).await;
    crowd.owners.is(&nth("ml", 0), Presence::Absent);
    crowd.lose(ETL, 0..120).await;
    assert_eq!(crowd.sweep_after(MINUTE).await, (1, 120));
    assert_eq!(crowd.kept_because(ETL, 5).await.as_deref(), Some("held"));
}

#[tokio::test]
async fn an_owner_counts_once_however_many_resources_it_has() {
    let many = Tenant { resources_each: 40, ..tenant(ETL, 1) };
    let crowd = Crowd::of(&[many, tenant("ml", 10)]).await;
    crowd.lose(ETL, 0..1).await;
    assert_eq!(crowd.sweep_after(MINUTE).await, (40, 0));
    // Nine owners of ten are most of them, whatever else they have.
    crowd.lose("ml", 0..9).await;
    assert_eq!(crowd.sweep_after(MINUTE).await, (0, 9));
}

#[tokio::test]
async fn most_owners_of_most_namespaces_hold_everything_back() {
    let crowd = Crowd::of(&[tenant("a", 3), tenant("b", 4), tenant("c", 3), tenant("d", 1)]).await;
    crowd.owners.is(&nth("d", 0), Presence::Absent);
    crowd.owners.is(&nth("a", 0), Presence::Absent);
    crowd.owners.is(&nth("a", 1), Presence::Absent);
    crowd.lose("b", 0..3).await;
    assert_eq!(crowd.sweep_after(MINUTE).await, (0, 6));
    assert!(!logs::lines_with("check that this server asks the right cluster").is_empty());
    assert_eq!(crowd.release(Released::Namespace("b".to_owned())).await, 3);
    assert_eq!(crowd.sweep_after(MINUTE).await, (3, 0), "one of two namespaces that are left is not most");
}

#[tokio::test]
async fn an_admin_ends_the_hour_and_each_owner_is_read_afresh() {
    let crowd = Crowd::of(&[tenant(ETL, 150), tenant("ml", 20)]).await;
    crowd.owners.is(&nth("ml", 19), Presence::Present);
    for number in 0..19 {
        crowd.owners.is(&nth("ml", number), Presence::Absent);
    }
    crowd.lose(ETL, 0..150).await;
    assert_eq!(crowd.sweep_after(MINUTE).await, (0, 169));
    crowd.owners.fresh_is(&nth(ETL, 7), Presence::Present);
    assert_eq!(crowd.release(Released::Namespace(ETL.to_owned())).await, 149);
    assert_eq!(crowd.owners.take_reads().len(), 150);
    assert_eq!(crowd.sweep_after(SECOND).await, (0, 19), "the other one still waits");
    assert_eq!(crowd.release(Released::All).await, 19);
    assert_eq!(crowd.metric("mass_deletion_held").await, "0");
}

#[tokio::test]
async fn a_mistake_that_ends_within_the_hour_costs_nothing() {
    let crowd = Crowd::of_one(150).await;
    crowd.lose(ETL, 0..150).await;
    for _ in 0..59 {
        assert_eq!(crowd.sweep_after(MINUTE).await, (0, 150));
    }
    crowd.owners.are(Presence::Present);
    assert_eq!(crowd.sweep_after(SECOND).await, (0, 0));
    // The next one must last for an hour of its own.
    crowd.lose(ETL, 0..150).await;
    for _ in 0..60 {
        assert_eq!(crowd.sweep_after(MINUTE).await, (0, 150));
    }
    assert_eq!(crowd.sweep_after(MINUTE).await, (100, 50));
}

#[tokio::test]
async fn knowledge_that_is_lost_meanwhile_lets_nothing_go() {
    let crowd = Crowd::of_one(150).await;
    crowd.lose(ETL, 0..150).await;
    assert_eq!(crowd.sweep_after(MINUTE).await, (0, 150));
    crowd.owners.are(Presence::Unknown(Unknown::Failing));
    assert_eq!(crowd.sweep_after(MINUTE).await, (0, 0));
    crowd.lose(ETL, 0..150).await;
    assert_eq!(crowd.sweep_after(MINUTE).await, (0, 150));
}

#[tokio::test]
async fn a_restart_begins_the_hour_anew() {
    let crowd = Crowd::of_one(150).await;
    crowd.lose(ETL, 0..150).await;
    assert_eq!(crowd.sweep_after(MINUTE).await, (0, 150));
    crowd.app.clock.advance(59 * MINUTE);
    let Crowd { app, owners } = crowd;
    let options = Options { owners: Arc::clone(&owners) as _, ..Options::default() };
    let crowd = Crowd { app: app.crash_and_restart_with(options).await, owners };
    assert_eq!(crowd.sweep_after(MINUTE).await, (0, 150));
    assert_eq!(crowd.sweep_after(59 * MINUTE).await, (0, 150));
    assert_eq!(crowd.sweep_after(MINUTE).await, (100, 50));
}

#[tokio::test]
async fn few_owners_go_even_if_they_are_all_there_are() {
    let crowd = Crowd::of_one(9).await;
    crowd.lose(ETL, 0..9).await;
    assert_eq!(crowd.sweep_after(MINUTE).await, (9, 0));
}

#[tokio::test]
async fn many_deletions_pass_if_they_are_no_more_than_half() {
    let crowd = Crowd::of_one(240).await;
    crowd.lose(ETL, 0..120).await;
    assert_eq!(crowd.sweep_after(MINUTE).await, (120, 0));
}

#[tokio::test]
async fn an_admin_sees_what_waits_and_lets_one_namespace_go_by_a_request() {
    let owners = ScriptedOwners::all(Presence::Present);
    let server =
        Administered::start_with(Options { owners: Arc::clone(&owners) as _, ..Options::default() }).await;
    for number in 0..10 {
        let path = format!("/api/v1/resources/deps.tgz?namespace={ETL}&name=driver-{number}");
        let put = server.app.client.put(server.app.url(&path)).body("jars");
        let ticket = server.app.ticket(put.send().await.unwrap()).await;
        assert_eq!(server.app.download(&ticket).send().await.unwrap().text().await.unwrap(), "jars");
    }
    server.app.sweep().await;
    owners.are(Presence::Absent);
    server.app.sweep().await;
    server.app.clock.advance(2 * MINUTE);
    let sweep = async |query: &str| {
        read::<SweepReport>(server.ask(Method::POST, &format!("/admin/v1/sweeps{query}")).await).await
    };
    assert_eq!(sweep("").await.held_in, [(ETL.to_owned(), 10)].into());
    let status: ServerStatus = server.get("/admin/v1/status").await;
    assert_eq!(status.last_sweep.unwrap().held_in, [(ETL.to_owned(), 10)].into());
    assert_eq!(sweep("?releaseHeld=other").await.held, 10);
    for wrong in ["?strays=maybe", "?releaseheld=etl", "?releaseHeld=a&releaseHeld=b"] {
        let refused = server.ask(Method::POST, &format!("/admin/v1/sweeps{wrong}")).await;
        assert_eq!(refused.status(), 400, "{wrong}");
    }
    let released = sweep("?releaseHeld=etl").await;
    assert_eq!((released.held, released.deleted.values().sum::<u64>()), (0, 10));
}
