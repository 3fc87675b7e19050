//! What the abuser has: a namespace admin's token, many addresses, many hands. What it got is counted.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Result;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use cloakroom_testing::cluster::Api;
use futures_util::future::BoxFuture;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::abuses::Abuse;
use crate::connection::{Answer, Connection};
use crate::reach::Reach;
use crate::round::Beside;
use crate::secrets::Secrets;
use crate::tenants::{ABUSER, Server, TwoTenants};

/// After a refusal or a broken connection; no abuser who wants to have an effect waits any longer.
const PAUSE: Duration = Duration::from_millis(200);

/// Until each abuse has its effect. Abusers and API server have the lowest priority, so builds beside them starve them.
const BOUND: Duration = Duration::from_secs(120);

/// Of the bundle that is downloaded or copied: more than sockets hold.
pub const BUNDLE_BYTES: usize = 16 << 20;

/// One tenant at one abuse.
pub struct Abuser {
    server: SocketAddr,
    reach: Reach,
    token: String,
    api: OnceCell<Api>,
    tenants: &'static TwoTenants,
    secrets: Arc<Secrets>,
    seen: Mutex<BTreeMap<String, u64>>,
    numbers: AtomicU64,
    /// Id and secret of a large bundle.
    bundle: (String, String),
}

impl Abuser {
    pub async fn connect(&self, hand: u64) -> Result<Connection> {
        Connection::open(self.reach.of_abuser(hand), self.server).await
    }

    /// A connection for what no proxy passes on.
    pub async fn connect_without_proxy(&self, hand: u64) -> Result<Connection> {
        Connection::open(Reach::Directly.of_abuser(hand), self.server).await
    }

    /// A connection on which the server cannot send ahead.
    pub async fn connect_narrow(&self, hand: u64) -> Result<Connection> {
        Connection::open_narrow(self.reach.of_abuser(hand), self.server).await
    }

    /// The head of an upload for its own namespace; `query` names the rest of the owner, `headers` have line ends.
    pub fn upload(&self, query: &str, headers: &str) -> String {
        upload(&self.token, query, headers)
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    /// The API server, as this tenant. Its connections belong to the abuser's runtime.
    pub async fn api(&self) -> &Api {
        self.api.get_or_init(async || self.tenants.api_of_the_abuser()).await
    }

    /// A number that no other request has.
    pub fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Id and secret of a bundle of [`BUNDLE_BYTES`], which was staged before.
    pub fn bundle(&self) -> &(String, String) {
        &self.bundle
    }

    /// Keeps the secret of a ticket, to be looked for in the log.
    pub fn keep(&self, answer: &Answer) -> Option<(String, String)> {
        self.secrets.keep_ticket(answer)
    }

    /// Releases what an answer is the ticket of: an abuse that is about something else fills no disk.
    pub async fn discard(&self, connection: &mut Connection, answer: &Answer) -> Result<()> {
        let Some((id, secret)) = self.keep(answer) else { return Ok(()) };
        let request = format!(
            "DELETE /api/v1/resources/{id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n\r\n"
        );
        connection.ask(request).await.map(|answer| self.saw(format!("{} of DELETE", answer.head.status)))
    }

    /// Counts what came of a request.
    pub fn saw(&self, outcome: impl Into<String>) {
        *self.seen.lock().unwrap().entry(outcome.into()).or_default() += 1;
    }

    /// Counts a refusal, and waits a little.
    pub async fn refused(&self, outcome: impl Into<String>) {
        self.saw(outcome);
        tokio::time::sleep(PAUSE).await;
    }

    fn has_seen(&self, outcomes: &[(&str, u64)]) -> bool {
        let seen = self.seen.lock().unwrap();
        outcomes.iter().all(|(outcome, times)| seen.get(*outcome).is_some_and(|count| count >= times))
    }

    fn has_begun(&self) -> bool {
        !self.seen.lock().unwrap().is_empty()
    }
}

impl fmt::Display for Abuser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = self.seen.lock().unwrap();
        let seen: Vec<String> = seen.iter().map(|(outcome, count)| format!("{outcome} × {count}")).collect();
        write!(f, "{}", if seen.is_empty() { "nothing".to_owned() } else { seen.join(", ") })
    }
}

fn upload(token: &str, query: &str, headers: &str) -> String {
    format!(
        "PUT /api/v1/resources/x?namespace={ABUSER}&{query} HTTP/1.1\r\nHost: x\r\n\
         Authorization: Bearer {token}\r\n{headers}\r\n"
    )
}

/// Stages what some abuses download, for a pod of the abuser that exists. Returns id and secret.
pub async fn staged(tenants: &TwoTenants, server: &Server, secrets: &Secrets) -> (String, String) {
    let head =
        upload(&tenants.abuser_token, "label=app%3Dabuser", &format!("Content-Length: {BUNDLE_BYTES}\r\n"));
    let mut connection = Connection::open(Reach::Directly.of_abuser(0), server.address()).await.unwrap();
    connection.send(head).await.unwrap();
    let answer = connection.ask(vec![7; BUNDLE_BYTES]).await.unwrap();
    secrets.keep_ticket(&answer).unwrap_or_else(|| panic!("{}", answer.outcome()))
}

/// Abuses that are going on. They end when this is dropped.
pub struct Attack {
    under_way: Vec<(&'static Abuse, Arc<Abuser>)>,
    hands: JoinSet<()>,
}

impl Attack {
    /// `bundle` is what some abuses download.
    pub fn begin(
        abuses: &'static [Abuse],
        (tenants, reach): (&'static TwoTenants, Reach),
        server: &Server,
        secrets: &Arc<Secrets>,
        bundle: &(String, String),
    ) -> Self {
        let mut attack = Self { under_way: Vec::new(), hands: JoinSet::new() };
        for abuse in abuses {
            let abuser = Arc::new(Abuser {
                server: server.address(),
                reach,
                token: tenants.abuser_token.clone(),
                api: OnceCell::new(),
                tenants,
                secrets: Arc::clone(secrets),
                seen: Mutex::default(),
                numbers: AtomicU64::new(0),
                bundle: bundle.clone(),
            });
            for hand in 0..abuse.hands {
                let work = again_and_again(Arc::clone(&abuser), hand, abuse.work);
                attack.hands.spawn_on(work, runtime().handle());
            }
            attack.under_way.push((abuse, abuser));
        }
        attack
    }

    /// Waits until every abuse is in effect; says which ones are not in time.
    pub async fn until_in_effect(&self, beside: Beside) -> Vec<String> {
        let deadline = Instant::now() + BOUND;
        let mut complaints = Vec::new();
        for (abuse, abuser) in &self.under_way {
            let is_in_effect = || match beside {
                Beside::Nothing => abuser.has_seen(abuse.comes_to),
                Beside::Others => abuser.has_begun(),
            };
            while !is_in_effect() && Instant::now() < deadline {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            if !is_in_effect() {
                let awaited = abuse.comes_to;
                complaints.push(format!("{} does not come to {awaited:?}: it got {abuser}", abuse.name));
            }
        }
        complaints
    }

    /// What each of them got so far, one a line.
    pub fn report(&self) -> String {
        let lines = self.under_way.iter().map(|(abuse, abuser)| format!("  {}: {abuser}\n", abuse.name));
        lines.collect()
    }

    /// Closes all its connections.
    pub async fn end(mut self) {
        self.hands.shutdown().await;
    }
}

async fn again_and_again(
    abuser: Arc<Abuser>,
    hand: u64,
    work: fn(Arc<Abuser>, u64) -> BoxFuture<'static, Result<()>>,
) {
    loop {
        if let Err(error) = work(Arc::clone(&abuser), hand).await {
            abuser.refused(error.kind().to_string()).await;
        }
    }
}

/// One thread of its own, which gives way to the others: the abuser's processor is another machine's.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let give_way = || {
            // Of this thread alone. If it may not, figures are a little worse.
            let _ = rustix::process::setpriority_process(None, 19);
        };
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().on_thread_start(give_way).build().unwrap()
    })
}
