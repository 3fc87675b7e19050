//! The server in this process: real SQLite file, real store in a temporary directory, a real socket.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloakroom_adapters::disk::{DataDirectory, DiskError, DiskStore};
use cloakroom_adapters::sqlite::SqliteLedger;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::protocol::problem::Problem;
use cloakroom_core::protocol::v1::Ticket;
use cloakroom_core::resource::{OwnerKinds, Ready, Resource, ResourceId};
use cloakroom_server::assembly::{Parts, Server};
use cloakroom_server::cleaner::{Cleaner, Ended, Policy, SweepRequest, Swept};
use cloakroom_server::http::{
    self, Connections, Edge, Lifetimes, Listener, PaceLimits, Serves, Settings, TokenFile, TrustedProxies,
    UploadAuth,
};
use cloakroom_server::owners::{NoCluster, Owners};
use cloakroom_server::shutdown::Shutdown;
use cloakroom_storage::ledger::{Ledger, Stored};
use cloakroom_storage::stamp::{Installation, Stamp};
use cloakroom_storage::store::Storage;
use cloakroom_storage::{AccessError, CapacityLimits, Limits, Ownership, Recovered, Staging, StraysGo};
use cloakroom_testing::clock::ManualClock;
use cloakroom_testing::logs;
use cloakroom_testing::wait::{BOUND, until_true};
use reqwest::{Client, RequestBuilder, Response};
use sqlx::Connection as _;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::faults::{Faults, FaultyStore};
use super::faulty_ledger::FaultyLedger;

/// What a test may want different.
pub struct Options {
    pub limits: Limits,
    pub settings: Settings,
    pub connections: Connections,
    pub policy: Policy,
    /// The time between two sweeps. Most tests ask for theirs.
    pub cleanup_interval: Duration,
    pub owners: Arc<dyn Owners>,
    pub tls: Option<http::ServerTls>,
    /// What the disk pretends to have free.
    pub free_bytes: Option<u64>,
    /// The tokens of admins.
    pub admin_tokens: Option<TokenFile>,
    /// The store that is used although it belongs to another ledger.
    pub adopt: Option<Installation>,
}

impl Default for Options {
    fn default() -> Self {
        let pace = PaceLimits {
            idle_timeout: Duration::from_secs(30),
            min_rate: 0,
            rate_window: Duration::from_secs(30),
        };
        Self {
            limits: Limits {
                capacity: CapacityLimits {
                    max_resource_size: 64 << 20,
                    max_total_size: None,
                    min_free_space: 0,
                    least_charge: 0,
                },
                max_resources: 100_000,
                owner_memory_bytes: 64 << 20,
                max_concurrent_uploads: 64,
                max_concurrent_downloads: 64,
                share: None,
                deletion_wait: Duration::from_mins(10),
                max_age: None,
            },
            settings: Settings {
                upload_auth: UploadAuth::None,
                token_hint: "as the client says".to_owned(),
                owner_kinds: OwnerKinds::parse(OwnerKinds::DEFAULT).unwrap(),
                namespaces: None,
                lifetimes: Lifetimes {
                    unused_timeout: Duration::from_mins(30),
                    max_unused: Duration::from_hours(24 * 7),
                    max_key_ttl: Duration::from_hours(24 * 7),
                },
                public_url: None,
                internal_url: None,
                max_proxied_size: 512 << 20,
                fetch_image: None,
                trusted_proxies: TrustedProxies::default(),
                tls: None,
                webhdfs: None,
            },
            connections: Connections {
                max: 256,
                max_operations: 256,
                max_waiting: 128,
                header_timeout: Duration::from_secs(30),
                keep_alive: Duration::from_secs(90),
                linger: Duration::from_secs(30),
                pace,
                shutdown_deadline: Duration::from_secs(30),
            },
            policy: Policy::default(),
            cleanup_interval: Duration::from_hours(24),
            owners: Arc::new(NoCluster),
            tls: None,
            free_bytes: None,
            admin_tokens: None,
            adopt: None,
        }
    }
}

/// A running server. When it is dropped, the log must be free of every secret that it handed out.
pub struct TestApp {
    pub address: SocketAddr,
    pub clock: Arc<ManualClock>,
    pub faults: Faults,
    pub staging: Staging,
    pub shutdown: Shutdown,
    pub client: Client,
    pub store: Arc<FaultyStore>,
    ledger: Arc<dyn Ledger>,
    cleaner: Cleaner,
    secrets: Mutex<Vec<String>>,
    serving: Option<(JoinHandle<bool>, Server)>,
    directory: Directory,
}

/// The data directory outlives a server that is restarted on it.
pub type Directory = Arc<TempDir>;

impl TestApp {
    pub async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    pub async fn start_with(options: Options) -> Self {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        Self::start_on(directory, Arc::new(ManualClock::new()), options).await
    }

    /// Starts on a data directory that is there already.
    pub async fn start_on(directory: Directory, clock: Arc<ManualClock>, options: Options) -> Self {
        logs::capture();
        let faults = Faults::default();
        // The connections of a server that was stopped here may hold it a moment longer.
        // So may a process that is being started by another test: until it runs its program, it has all that is open here.
        let mut opened = DataDirectory::open(directory.path());
        until_true("the data directory is free", || {
            if matches!(opened, Err(DiskError::Locked { .. })) {
                opened = DataDirectory::open(directory.path());
            }
            !matches!(opened, Err(DiskError::Locked { .. }))
        })
        .await;
        let data = opened.unwrap();
        let ledger = SqliteLedger::open(&data.ledger()).await.unwrap();
        let ledger: Arc<dyn Ledger> = Arc::new(ledger);
        let ledger: Arc<dyn Ledger> = Arc::new(FaultyLedger { inner: ledger, faults: faults.clone() });
        let store = Arc::new(FaultyStore {
            inner: Storage::on_disk(Arc::new(DiskStore::new(data))),
            faults: faults.clone(),
            free_bytes: Mutex::new(options.free_bytes),
        });
        let (metrics, shutdown) = (Metrics::new(), Shutdown::default());
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let listener = Listener { socket, tls: options.tls, serves: Serves::Everything };
        let edge = Edge::open(vec![listener], options.connections, &metrics, &shutdown);
        let parts = Parts {
            ledger: Arc::clone(&ledger),
            storage: Storage::on_disk(Arc::clone(&store)),
            clock: Arc::clone(&clock) as _,
            limits: Limits { max_age: options.policy.max_age, ..options.limits },
            owners: options.owners,
            policy: options.policy,
            cleanup_interval: options.cleanup_interval,
            settings: options.settings,
            admin_tokens: options.admin_tokens,
            metrics,
            ownership: Ownership { adopt: options.adopt, ..Ownership::default() },
        };
        let server = Server::start(parts, &edge).await.unwrap();
        let serving = tokio::spawn(async move {
            let finished = edge.finish_transfers().await;
            edge.close().await;
            finished
        });
        Self {
            address,
            clock,
            faults,
            staging: server.staging().clone(),
            cleaner: server.cleaner().clone(),
            shutdown,
            client: Client::builder()
                .no_proxy()
                .tls_backend_preconfigured(cloakroom_testing::tls::no_roots())
                .build()
                .unwrap(),
            store,
            ledger,
            secrets: Mutex::default(),
            serving: Some((serving, server)),
            directory,
        }
    }

    /// Why ledger and store of a data directory are not used together.
    pub async fn refused(data_dir: &Path) -> String {
        let data = DataDirectory::open(data_dir).unwrap();
        let ledger = Arc::new(SqliteLedger::open(&data.ledger()).await.unwrap());
        let storage = Storage::on_disk(Arc::new(DiskStore::new(data)));
        let (clock, limits) = (Arc::new(ManualClock::new()), Options::default().limits);
        let opened = Staging::open(
            Arc::clone(&ledger) as _,
            storage,
            clock,
            limits,
            Metrics::new(),
            Ownership::default(),
        )
        .await;
        ledger.close().await;
        opened.err().expect("they belong together").to_string()
    }

    /// Stops this server as a crash would, as far as data is concerned, and starts another one on its data.
    pub async fn crash_and_restart(self) -> Self {
        self.crash_and_restart_with(Options::default()).await
    }

    /// The same, with the options of the other one.
    pub async fn crash_and_restart_with(self, options: Options) -> Self {
        let (directory, clock) = self.end().await;
        Self::start_on(directory, clock, options).await
    }

    /// Stops this server; its data directory and its clock are left.
    pub async fn end(mut self) -> (Directory, Arc<ManualClock>) {
        self.stop().await;
        (Arc::clone(&self.directory), Arc::clone(&self.clock))
    }

    /// Asks the server to stop; `true` if all transfers finished.
    pub async fn stop(&mut self) -> bool {
        self.shutdown.request();
        let Some((serving, server)) = self.serving.take() else { return true };
        let finished = serving.await.unwrap();
        self.faults.clear();
        server.close().await.unwrap();
        finished
    }

    /// Waits until the server says that it cannot go on.
    pub async fn failed(&mut self) -> Ended {
        let (_, server) = self.serving.as_mut().expect("it serves");
        timeout(BOUND, server.failed()).await.expect("the server notices that it cannot go on")
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(self.url(path))
    }

    /// `PUT /api/v1/resources/deps.tgz` for a pod with the label app=demo, with further query parameters.
    pub fn put(&self, more_query: &str, body: impl Into<reqwest::Body>) -> RequestBuilder {
        let path = format!("/api/v1/resources/deps.tgz?namespace=demo&label=app%3Ddemo{more_query}");
        self.client.put(self.url(&path)).body(body)
    }

    /// Stages a bundle and takes note of its secret.
    pub async fn stage(&self, body: impl Into<reqwest::Body>) -> Ticket {
        self.ticket(self.put("", body).send().await.unwrap()).await
    }

    /// Reads the ticket of a `201` and takes note of its secret.
    pub async fn ticket(&self, response: Response) -> Ticket {
        let status = response.status();
        let text = response.text().await.unwrap();
        assert_eq!(status, 201, "{text}");
        let ticket: Ticket = serde_json::from_str(&text).unwrap();
        self.keep_secret(&ticket.resource_secret);
        ticket
    }

    /// From now on the log must not have this text.
    pub fn keep_secret(&self, secret: &str) {
        self.secrets.lock().unwrap().push(secret.to_owned());
    }

    pub fn download(&self, ticket: &Ticket) -> RequestBuilder {
        self.get(&format!("/api/v1/resources/{}", ticket.resource_id)).bearer_auth(&ticket.resource_secret)
    }

    pub fn delete(&self, ticket: &Ticket) -> RequestBuilder {
        let url = self.url(&format!("/api/v1/resources/{}", ticket.resource_id));
        self.client.delete(url).bearer_auth(&ticket.resource_secret)
    }

    pub async fn sweep(&self) -> Swept {
        self.try_sweep().await.unwrap()
    }

    /// A sweep that outlives this borrow.
    pub fn sweeping(&self) -> impl Future<Output = Swept> + Send + use<> {
        let cleaner = self.cleaner.clone();
        async move { cleaner.sweep(SweepRequest::default()).await.unwrap().unwrap() }
    }

    pub async fn try_sweep(&self) -> Result<Swept, AccessError> {
        self.cleaner.sweep(SweepRequest::default()).await.unwrap()
    }

    /// Asks for a sweep that ends no more.
    pub async fn broken_sweep(&self) {
        // The answer is an error, or none comes.
        let _ = self.cleaner.sweep(SweepRequest::default()).await;
    }

    /// What `cloakroom clean --strays` asks for.
    pub async fn clean_strays(&self) -> u64 {
        let request = SweepRequest { removes_strays: true, ..SweepRequest::default() };
        self.sweep_for(request).await.recovered.strays
    }

    pub async fn sweep_for(&self, request: SweepRequest) -> Swept {
        self.cleaner.sweep(request).await.unwrap().unwrap()
    }

    /// A thorough recovery, as a sweep begins with it.
    pub async fn recover(&self) -> Result<Recovered, AccessError> {
        self.staging.recover(true, StraysGo::Now).await
    }

    pub async fn row(&self, id: &str) -> Option<Resource> {
        self.ledger.find(ResourceId::parse(id).unwrap()).await.unwrap()
    }

    /// A row that must be ready.
    pub async fn ready_row(&self, id: &str) -> Resource<Ready> {
        let row = self.row(id).await.unwrap_or_else(|| panic!("{id} has no row"));
        let state = row.state();
        row.into_ready().unwrap_or_else(|| panic!("{id} is {state}"))
    }

    /// How many rows there are in each state.
    pub async fn rows(&self) -> BTreeMap<&'static str, u64> {
        self.ledger.totals().await.unwrap().by_state
    }

    /// What is acknowledged and not yet removed.
    pub async fn stored(&self) -> Stored {
        self.ledger.totals().await.unwrap().stored.into_values().sum()
    }

    /// A change of the ledger that no version of this server makes, behind its back.
    pub async fn change_ledger(&self, sql: &str) {
        change_ledger(self.data_dir(), sql).await;
    }

    pub async fn metric(&self, name: &str) -> String {
        let text = self.get("/metrics").send().await.unwrap().text().await.unwrap();
        let line = text.lines().find(|line| line.starts_with(&format!("cloakroom_{name} "))).unwrap();
        line.rsplit_once(' ').unwrap().1.to_owned()
    }

    pub fn data_dir(&self) -> &Path {
        self.directory.path()
    }

    /// Files of bundles, arriving or stored, as paths below the data directory.
    pub fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        for folder in ["incoming", "bundles"] {
            walk(&self.data_dir().join(folder), &mut found);
        }
        let mut names: Vec<String> = found
            .iter()
            .map(|path| path.strip_prefix(self.data_dir()).unwrap().to_string_lossy().into_owned())
            .filter(|name| name != "bundles/stamp")
            .collect();
        names.sort();
        names
    }

    /// Neither rows nor bytes: what a refused upload leaves.
    pub async fn assert_nothing_kept(&self) {
        assert_eq!(self.files(), Vec::<String>::new());
        assert_eq!(self.rows().await, BTreeMap::new());
    }

    fn assert_nothing_leaked(&self) {
        logs::assert_free_of(&self.secrets.lock().unwrap());
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        self.shutdown.request();
        if !std::thread::panicking() {
            self.assert_nothing_leaked();
        }
    }
}

/// The installation that the bundles of a data directory belong to.
pub fn installation(data_dir: &Path) -> Installation {
    let stamp: Stamp = std::fs::read_to_string(data_dir.join("bundles/stamp")).unwrap().parse().unwrap();
    stamp.installation
}

/// Runs statements on the ledger of a data directory, whether a server has it open or not.
pub async fn change_ledger(data_dir: &Path, sql: &str) {
    let url = format!("sqlite://{}", data_dir.join("ledger.db").display());
    let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// Reads an error answer and checks its form.
pub async fn problem(response: Response) -> Problem {
    let status = response.status().as_u16();
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let request_id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    let problem: Problem = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!(problem.status, status);
    assert_eq!(problem.request_id.as_deref(), Some(request_id.as_str()));
    problem
}

/// Adds all files below a folder.
pub fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(path);
        }
    }
}
