//! The guard: when more than half of everything seems to have lost its owner at once, that is more likely a mistake.

use std::sync::Arc;

use cloakroom_core::clock::Clock as _;
use cloakroom_core::protocol::v1::Metadata;
use cloakroom_core::resource::{Bundle, Lifetime, Owner, OwnerHistory, ResourceId, ResourceSecret};
use cloakroom_server::owners::Presence;
use cloakroom_staging::ledger::{
    Completion, LeaseId, Ledger as _, Observation, PendingResource, SqliteLedger,
};
use cloakroom_staging::store::DataDirectory;
use cloakroom_testing::clock::ManualClock;
use cloakroom_testing::logs;

use crate::support::TestApp;
use crate::support::app::{Directory, Options};
use crate::support::owners::{ScriptedOwners, owner};
use crate::support::watched::{HOUR, MINUTE, SECOND};

/// A server with so many resources, without their bytes; each has an owner that was seen, `driver-0`, `driver-1`…
struct Crowd {
    app: TestApp,
    owners: Arc<ScriptedOwners>,
}

impl Crowd {
    async fn of(used: usize, unused: usize) -> Self {
        let clock = Arc::new(ManualClock::new());
        let directory = directory_of(used, unused, &clock).await;
        let owners = ScriptedOwners::all(Presence::Present);
        let options = Options { owners: Arc::clone(&owners) as _, ..Options::default() };
        let app = TestApp::start_on(directory, clock, options).await;
        Self { app, owners }
    }

    /// The owners of these are absent, and a sweep notes it.
    async fn lose(&self, lost: std::ops::Range<usize>) {
        for number in lost {
            self.owners.is(&nth(number), Presence::Absent);
        }
        assert_eq!(self.app.sweep().await.expired, 0);
    }

    /// Lets time pass and sweeps; returns what was deleted, and what was held back.
    async fn sweep_after(&self, time: std::time::Duration) -> (u64, u64) {
        self.app.clock.advance(time);
        let swept = self.app.sweep().await;
        (swept.expired, swept.held)
    }

    async fn metric(&self, name: &str) -> String {
        self.app.metric(name).await
    }

    /// Why metadata say that one of those whose owners are lost is kept.
    async fn kept_because(&self, number: usize) -> Option<String> {
        let all = self.app.staging.ready(None, 1000).await.unwrap();
        let id = all.iter().find(|listed| *listed.owner == nth(number)).unwrap().id;
        let request = self.app.get(&format!("/api/v1/resources/{id}/metadata")).bearer_auth("secret");
        let metadata: Metadata =
            serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap();
        metadata.kept_because.map(|why| why.to_string())
    }

    async fn ready(&self) -> u64 {
        self.app.rows().await.get("ready").copied().unwrap_or_default()
    }
}

fn nth(number: usize) -> Owner {
    owner(&format!("driver-{number}"))
}

async fn directory_of(used: usize, unused: usize, clock: &ManualClock) -> Directory {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let data = DataDirectory::open(directory.path()).unwrap();
    let ledger = SqliteLedger::open(&data.ledger()).await.unwrap();
    let created_at = clock.now();
    let rows = (0..used + unused).map(async |number| {
        let id = ResourceId::generate(&mut rand::rng());
        let secret_hash = ResourceSecret::from_text("secret").hash();
        let pending = PendingResource { id, secret_hash, file_name: None, created_at, uploaded_by: None };
        let lease = LeaseId::generate(&mut rand::rng());
        ledger.begin(pending, lease, &[]).await.unwrap();
        let lifetime = Lifetime { unused_timeout: 30 * MINUTE, ttl: None };
        let bundle = Bundle { size_bytes: 0, sha256: [0; 32] };
        let completion = Completion { id, owner: nth(number), bundle, lifetime, created_at };
        ledger.complete(completion, lease).await.unwrap();
        if number < used {
            ledger.mark_used(id, created_at).await.unwrap();
            let before = OwnerHistory::default();
            let after = before.present(created_at);
            ledger.observe(vec![Observation { id, before, after }]).await.unwrap();
        }
    });
    futures_util::future::join_all(rows).await;
    ledger.close().await;
    directory
}

#[tokio::test]
async fn what_is_out_of_proportion_is_held_for_an_hour_and_then_goes_in_slices_each_read_afresh() {
    let crowd = Crowd::of(211, 0).await;
    crowd.lose(0..137).await;
    assert_eq!(crowd.sweep_after(MINUTE).await, (0, 137));
    assert_eq!(crowd.metric("mass_deletion_held").await, "1");
    assert_eq!(crowd.metric("mass_deletion_candidates").await, "137");
    assert_eq!(crowd.metric("resources_kept{why=\"held\"}").await, "137");
    assert_eq!(crowd.kept_because(0).await.as_deref(), Some("held"));
    assert_eq!(crowd.kept_because(200).await.as_deref(), Some("owner-present"));
    let lines = logs::lines_with("check that this server asks the right cluster");
    assert!(
        lines.iter().any(|line| line.contains("ERROR") && line.contains("candidates=137 used=211")),
        "{lines:?}"
    );
    assert_eq!(crowd.sweep_after(HOUR - SECOND).await, (0, 137));
    assert_eq!(crowd.owners.take_reads(), [], "what is held back costs no call");
    // Two are there after all: only the fresh read knows.
    for number in 0..137 {
        crowd.owners.fresh_is(&nth(number), if number < 2 { Presence::Present } else { Presence::Absent });
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
async fn a_mistake_that_ends_within_the_hour_costs_nothing() {
    let crowd = Crowd::of(150, 0).await;
    crowd.lose(0..150).await;
    for _ in 0..59 {
        assert_eq!(crowd.sweep_after(MINUTE).await, (0, 150));
    }
    crowd.owners.are(Presence::Present);
    assert_eq!(crowd.sweep_after(SECOND).await, (0, 0));
    // The next one must last for an hour of its own.
    crowd.lose(0..150).await;
    for _ in 0..60 {
        assert_eq!(crowd.sweep_after(MINUTE).await, (0, 150));
    }
    assert_eq!(crowd.sweep_after(MINUTE).await, (100, 50));
}

#[tokio::test]
async fn knowledge_that_is_lost_meanwhile_begins_the_hour_anew() {
    let crowd = Crowd::of(150, 0).await;
    crowd.lose(0..150).await;
    assert_eq!(crowd.sweep_after(MINUTE).await, (0, 150));
    assert_eq!(crowd.sweep_after(59 * MINUTE).await, (0, 150));
    crowd.owners.are(Presence::Unknown(cloakroom_server::owners::Unknown::Failing));
    assert_eq!(crowd.sweep_after(MINUTE).await, (0, 0));
    crowd.lose(0..150).await;
    for _ in 0..60 {
        assert_eq!(crowd.sweep_after(MINUTE).await, (0, 150));
    }
    assert_eq!(crowd.sweep_after(MINUTE).await, (100, 50));
}

#[tokio::test]
async fn a_restart_begins_the_hour_anew() {
    let crowd = Crowd::of(150, 0).await;
    crowd.lose(0..150).await;
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
async fn a_few_deletions_pass_even_if_they_are_all_there_is() {
    let crowd = Crowd::of(100, 0).await;
    crowd.lose(0..100).await;
    assert_eq!(crowd.sweep_after(MINUTE).await, (100, 0));
}

#[tokio::test]
async fn many_deletions_pass_if_they_are_no_more_than_half() {
    let crowd = Crowd::of(240, 0).await;
    crowd.lose(0..120).await;
    assert_eq!(crowd.sweep_after(MINUTE).await, (120, 0));
}

#[tokio::test]
async fn what_was_never_used_does_not_count() {
    let crowd = Crowd::of(10, 150).await;
    crowd.lose(10..160).await;
    assert_eq!(crowd.sweep_after(30 * MINUTE).await, (150, 0));
    assert_eq!(crowd.ready().await, 10);
}
