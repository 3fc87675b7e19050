//! One round: the honest load, beside abuses or alone, and what must be true of the server after it.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloakroom_testing::wait::until;
use tokio::task::JoinSet;

use crate::abuser::{Attack, staged};
use crate::abuses::Abuse;
use crate::figures::Measured;
use crate::honest::Honest;
use crate::reach::Reach;
use crate::secrets::Secrets;
use crate::tenants::{HONEST, Server, Store, TwoTenants};

/// How often a probe asks (`periodSeconds` of the manifest).
const PROBE_PERIOD: Duration = Duration::from_secs(1);

/// What the process itself may take of its limit, in fourths: the last one is for what the kernel keeps for its sockets
/// and files.
const FOURTHS: u64 = 3;

/// A server and its honest tenant, who has staged something already.
pub struct Field {
    pub tenants: &'static TwoTenants,
    reach: Reach,
    pub server: Arc<Server>,
    pub honest: Arc<Honest>,
    pub secrets: Arc<Secrets>,
    /// Id and secret of the bundle that the abuser downloads. It is staged while the abuser has room.
    bundle: (String, String),
}

/// How much of what must be so is known to hold beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// The load begins once each abuse got what it must get.
    Nothing,
    /// The load begins once each abuse has begun: what one gets depends on the others.
    Others,
}

/// What a round came to.
pub struct Round {
    pub measured: Measured,
    /// What is not as it must be.
    pub complaints: Vec<String>,
}

impl Field {
    pub async fn new(
        (tenants, reach): (&'static TwoTenants, Reach),
        store: Store,
        size_bytes: usize,
        flags: &[&str],
    ) -> Self {
        let secrets = Arc::new(tenants.secrets());
        let server = Arc::new(Server::start(tenants, store, flags).await);
        let honest = Honest::new(&server, (tenants, reach), size_bytes, &secrets);
        honest.fill_the_stock().await;
        let bundle = staged(tenants, &server, &secrets).await;
        Self { tenants, reach, server, honest, secrets, bundle }
    }

    /// One round. `abuses` may be none.
    pub async fn round(&self, abuses: &'static [Abuse], beside: Beside, seconds: u64) -> Round {
        let attack =
            Attack::begin(abuses, (self.tenants, self.reach), &self.server, &self.secrets, &self.bundle);
        let mut complaints = attack.until_in_effect(beside).await;
        let probes = Probes::begin(&self.server);
        let measured = self.honest.load(seconds).await;
        complaints.extend(probes.end());
        println!("{measured}\n{}{}", attack.report(), self.memory());
        attack.end().await;
        let failures = measured.failures();
        if let Some(first) = failures.first() {
            complaints.push(format!("{} honest requests failed, such as {first}", failures.len()));
        }
        if complaints.is_empty() {
            self.until_nothing_is_in_flight().await;
        }
        complaints.extend(self.damage().await);
        Round { measured, complaints }
    }

    /// What is wrong with the server that no request showed.
    async fn damage(&self) -> Vec<String> {
        let server = &self.server;
        let mut damage = Vec::new();
        if server.group().killed() > 0 {
            damage.push("the kernel killed the server for its memory".to_owned());
            return damage;
        }
        if server.peak_bytes() > server.limit_bytes() / 4 * FOURTHS {
            damage.push(format!("too much memory: {}", self.memory().trim()));
        }
        match server.ask_operations("/metrics").await {
            Ok(answer) => self.secrets.assert_none_in("metrics", &String::from_utf8_lossy(&answer.body)),
            Err(error) => damage.push(format!("metrics: {error}")),
        }
        self.secrets.assert_none_in("the log", &server.log());
        match server.resources_of(HONEST).await {
            Ok(count) if count == self.honest.staged() => {}
            other => damage.push(format!("the honest tenant has {}: {other:?}", self.honest.staged())),
        }
        damage
    }

    /// The server has noticed that the abuser's connections are closed. A row that an upload left is for the next sweep.
    async fn until_nothing_is_in_flight(&self) {
        until("nothing is in flight", async || {
            let Ok(answer) = self.server.ask_operations("/metrics").await else { return false };
            let metrics = String::from_utf8_lossy(&answer.body);
            let mut in_flight =
                metrics.lines().filter(|line| line.starts_with("cloakroom_transfers_in_flight{"));
            in_flight.all(|line| line.ends_with(" 0"))
        })
        .await;
    }

    /// In words.
    fn memory(&self) -> String {
        let mib = |bytes: u64| bytes >> 20;
        let mut text = format!("  memory of the process {} MiB at most", mib(self.server.peak_bytes()));
        if let Some(peak) = self.server.group().peak_bytes() {
            let _ = write!(text, ", of its group {}", mib(peak));
        }
        let _ = write!(text, " of {}", mib(self.server.limit_bytes()));
        text
    }
}

/// What the kubelet and Prometheus ask for all the time.
struct Probes {
    failures: Arc<Mutex<Vec<String>>>,
    asking: JoinSet<()>,
}

impl Probes {
    fn begin(server: &Arc<Server>) -> Self {
        let mut probes = Self { failures: Arc::default(), asking: JoinSet::new() };
        for path in ["/healthz", "/readyz", "/metrics"] {
            let (server, failures) = (Arc::clone(server), Arc::clone(&probes.failures));
            probes.asking.spawn(async move {
                let mut due = tokio::time::interval(PROBE_PERIOD);
                loop {
                    due.tick().await;
                    let failure = match server.ask_operations(path).await {
                        Ok(answer) if answer.head.status == 200 => continue,
                        Ok(answer) => answer.outcome(),
                        Err(error) => error.to_string(),
                    };
                    failures.lock().unwrap().push(format!("{path}: {failure}"));
                }
            });
        }
        probes
    }

    /// What failed, if anything.
    fn end(self) -> Option<String> {
        let failures = self.failures.lock().unwrap();
        failures.first().map(|first| format!("{} probes failed, such as {first}", failures.len()))
    }
}
