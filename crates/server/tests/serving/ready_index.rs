//! What sweeps remember between reads of the ledger is what the ledger has, whatever fails in between.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_core::protocol::v1::Ticket;
use cloakroom_server::owners::{Presence, Unknown};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use crate::support::TestApp;
use crate::support::app::Options;
use crate::support::faults::{Fault, Step};
use crate::support::owners::{ScriptedOwners, owner};

const STEPS: [Step; 9] = [
    Step::LedgerBegin,
    Step::LedgerComplete,
    Step::LedgerAbandon,
    Step::LedgerMarkUsed,
    Step::LedgerMarkDeleting,
    Step::StoreAbort,
    Step::StoreDelete,
    Step::LedgerFinishDeletion,
    Step::LedgerObserve,
];
const FAULTS: [Fault; 4] = [Fault::FailBefore, Fault::FailAfter, Fault::Full, Fault::FullButForTheReserve];
const PRESENCES: [Presence; 4] =
    [Presence::Present, Presence::Finished, Presence::Absent, Presence::Unknown(Unknown::Failing)];

struct Run {
    random: StdRng,
    app: TestApp,
    owners: Arc<ScriptedOwners>,
    tickets: Vec<Ticket>,
    log: Vec<String>,
}

impl Run {
    async fn start(seed: u64) -> Self {
        let owners = ScriptedOwners::all(Presence::Present);
        let options = Options { owners: Arc::clone(&owners) as _, ..Options::default() };
        let app = TestApp::start_with(options).await;
        let random = StdRng::seed_from_u64(seed);
        Self { random, app, owners, tickets: Vec::new(), log: vec![format!("seed {seed}")] }
    }

    fn choose<T: Copy>(&mut self, of: &[T]) -> T {
        *of.choose(&mut self.random).unwrap()
    }

    /// Something that a client, the cluster or the time does; it may fail.
    async fn act(&mut self) {
        let some = self.tickets.choose(&mut self.random).cloned();
        match (self.random.random_range(0..12), some) {
            (0..3, _) => self.stage().await,
            (3..5, Some(ticket)) => {
                let status = self.app.download(&ticket).send().await.unwrap().status();
                self.log.push(format!("download {}: {status}", ticket.resource_id));
            }
            (5, Some(ticket)) => {
                let status = self.app.delete(&ticket).send().await.unwrap().status();
                self.log.push(format!("delete {}: {status}", ticket.resource_id));
            }
            (6..9, _) => {
                let pod = format!("driver-{}", self.random.random_range(0..4));
                let presence = self.choose(&PRESENCES);
                self.owners.is(&owner(&pod), presence);
                self.log.push(format!("{pod} is {presence:?}"));
            }
            _ => {
                let seconds = self.choose(&[1, 60, 600, 1800]);
                self.app.clock.advance(Duration::from_secs(seconds));
                let swept = self.app.try_sweep().await.map(|swept| swept.deleted);
                self.log.push(format!("sweep after {seconds} s: {swept:?}"));
            }
        }
    }

    async fn stage(&mut self) {
        let pod = self.random.random_range(0..4);
        let url = self.app.url(&format!("/api/v1/resources/a?namespace=demo&name=driver-{pod}"));
        let response = self.app.client.put(url).body("jars").send().await.unwrap();
        self.log.push(format!("stage for driver-{pod}: {}", response.status()));
        if response.status() == 201 {
            let ticket = self.app.ticket(response).await;
            self.tickets.push(ticket);
        }
    }

    /// After a sweep in which nothing failed.
    async fn assert_agrees(&mut self) {
        self.app.sweep().await;
        let log = || self.log.join("\n");
        let listed = self.app.staging.ready(None, 10_000);
        let ready = self.app.rows().await.get("ready").copied().unwrap_or_default();
        assert_eq!(listed.len() as u64, ready, "{}", log());
        for listed in listed {
            let row = self.app.ready_row(&listed.id.to_string()).await;
            assert_eq!((row.life(), &row.data.owner), (listed.life, &*listed.owner), "{}", log());
            assert_eq!(row.data.bundle.size_bytes, listed.size_bytes, "{}", log());
        }
    }
}

// Invariant: the memory of sweeps agrees with the ledger.
#[tokio::test]
async fn the_memory_of_sweeps_agrees_with_the_ledger_after_whatever_failed() {
    for seed in 0..12 {
        let mut run = Run::start(seed).await;
        for _ in 0..20 {
            for _ in 0..run.random.random_range(0..3) {
                let (step, fault) = (run.choose(&STEPS), run.choose(&FAULTS));
                run.app.faults.set(step, fault);
                run.log.push(format!("{step:?} {fault:?}"));
            }
            for _ in 0..4 {
                run.act().await;
            }
            run.app.faults.clear();
            run.log.push("healed".to_owned());
            run.assert_agrees().await;
        }
    }
}
