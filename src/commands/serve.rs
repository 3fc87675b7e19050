//! `cloakroom serve`: settings, then the rooms from the bottom up, then connections until it is asked to stop.

mod cluster;
mod settings;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpListener;

use crate::cli::ServeArgs;
use cloakroom::cleaner::{self, Sweeper};
use cloakroom::clock::SystemClock;
use cloakroom::ledger::SqliteLedger;
use cloakroom::metrics::Metrics;
use cloakroom::server::{self, Admin, AppState, Listener};
use cloakroom::shutdown::Shutdown;
use cloakroom::staging::Staging;
use cloakroom::store::{DataDirectory, DiskStore};
use cloakroom::telemetry;
use settings::ServeSettings;

/// After the deadline, what was already received may still be written down, for so long.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Serves until SIGTERM or SIGINT; with `--check` only says whether it could.
pub async fn run(args: ServeArgs) -> anyhow::Result<ExitCode> {
    telemetry::start(args.log.log_format, &args.log.log).with_context(|| {
        format!(
            "--log {} is not a level or a filter: write info, debug, or directives as in RUST_LOG",
            args.log.log
        )
    })?;
    let metrics = Metrics::new();
    let settings = ServeSettings::resolve(&args, &metrics)?;
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    if args.check {
        DataDirectory::check(&args.storage.data_dir)?;
        print!("{}", settings.summary(&args));
        return Ok(ExitCode::SUCCESS);
    }
    let shutdown = Shutdown::default();
    shutdown.on_signals().context("cannot listen for signals")?;
    serve(args, settings, metrics, shutdown).await
}

async fn serve(
    args: ServeArgs,
    settings: ServeSettings,
    metrics: Metrics,
    shutdown: Shutdown,
) -> anyhow::Result<ExitCode> {
    let sockets = Sockets::bind(&settings).await?;
    let staging = open_staging(&args, &settings, metrics.clone()).await?;
    let owners = settings.owners(&metrics);
    let policy = settings::policy(&args);
    let mut sweeper = Sweeper::new(staging.clone(), owners, policy);
    let judge = sweeper.judge();
    // What a crash interrupted is put right before the first request sees it.
    sweeper.sweep().await.context("cannot recover the data directory")?.log();
    let interval = args.lifecycle.cleanup_interval.get();
    let (cleaner, sweeps) = cleaner::run(sweeper, interval, shutdown.clone());
    let sweeping = tokio::spawn(sweeps);

    let connections = settings.connections(&args);
    sockets.announce(&settings);
    let state = AppState {
        staging: staging.clone(),
        judge,
        admin: settings.admin_tokens.map(|tokens| Arc::new(Admin { tokens, cleaner })),
        settings: Arc::new(settings.server),
        shutdown: shutdown.clone(),
        metrics,
    };
    let listeners = sockets.listeners(&state, settings.tls);
    let finished = server::serve(listeners, connections, &shutdown).await;
    if finished {
        tracing::info!("all transfers are finished");
    } else {
        tracing::warn!("transfers in flight were cut off: nothing of unfinished uploads is kept");
    }
    // The cleaner stops between two passes; what it leaves is finished at the next start.
    let _ = tokio::time::timeout(LAST_WORDS, sweeping).await;
    if tokio::time::timeout(LAST_WORDS, staging.close()).await.is_err() {
        tracing::warn!("the ledger did not close in time; it recovers at the next start");
    }
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

async fn open_staging(
    args: &ServeArgs,
    settings: &ServeSettings,
    metrics: Metrics,
) -> anyhow::Result<Staging> {
    let directory = DataDirectory::open(&args.storage.data_dir)?;
    let ledger = SqliteLedger::open(&directory.ledger()).await?;
    let store = DiskStore::new(directory);
    let clock = Arc::new(SystemClock::new());
    Ok(Staging::open(Arc::new(ledger), Arc::new(store), clock, settings.limits, metrics).await?)
}

/// Bound sockets: addresses in use are found out before anything else is touched.
struct Sockets {
    staging: TcpListener,
    operational: Option<TcpListener>,
}

impl Sockets {
    async fn bind(settings: &ServeSettings) -> anyhow::Result<Self> {
        let bind = async |flag: &str, address| {
            TcpListener::bind(address).await.with_context(|| {
                format!("cannot listen on {address} (another address can be chosen with {flag})")
            })
        };
        let staging = bind("--listen", settings.listen).await?;
        let operational = match settings.ops_listen {
            Some(address) => Some(bind("--ops-listen", address).await?),
            None => None,
        };
        Ok(Self { staging, operational })
    }

    /// The line that people and scripts wait for: the address is the bound one, also when port 0 was asked for.
    fn announce(&self, settings: &ServeSettings) {
        let scheme = if settings.tls.is_some() { "https" } else { "http" };
        if let Some(address) = self.operational.as_ref().and_then(|socket| socket.local_addr().ok()) {
            tracing::info!("health checks are on http://{address}");
        }
        if let Some(cluster) = &settings.cluster {
            let (address, credentials) = (cluster.address(), cluster.credentials());
            tracing::info!("owners are asked for at {address}, as {credentials}");
        } else {
            tracing::info!(
                "owners are not asked for: unused resources go after {}, used ones stay until their ttl or DELETE",
                cloakroom::spark::format_duration(settings.server.lifetimes.unused_timeout)
            );
        }
        if let Ok(address) = self.staging.local_addr() {
            tracing::info!("cloakroom {} serves on {scheme}://{address}", env!("CARGO_PKG_VERSION"));
        }
    }

    fn listeners(self, state: &AppState, tls: Option<server::ServerTls>) -> Vec<Listener> {
        let with_operational = self.operational.is_none();
        let mut listeners = vec![Listener {
            socket: self.staging,
            tls,
            router: server::staging(state.clone(), with_operational),
        }];
        listeners.extend(self.operational.map(|socket| Listener {
            socket,
            tls: None,
            router: server::operational(state.clone()),
        }));
        listeners
    }
}
