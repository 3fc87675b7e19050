//! `cloakroom serve`: resolves the settings, starts the rooms from the bottom up, and serves until a signal stops it.

mod cluster;
mod descriptors;
mod limits;
mod reload;
mod settings;
mod sockets;
mod start;
mod try_it;
mod variables;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use super::{UsageError, local};
use crate::cli::ServeArgs;
use crate::telemetry;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::text::chain;
use cloakroom_server::cleaner;
use cloakroom_server::descriptors::Allotment;
use cloakroom_server::http::{Admin, AppState, Edge, TokenFile};
use cloakroom_server::shutdown::Shutdown;
use cloakroom_staging::Staging;
use cloakroom_staging::store::DataDirectory;
use reload::Files;
use settings::ServeSettings;
use sockets::{Addresses, Sockets};
use start::Started;

/// How long the server may take after the deadline to write down what it has received.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Serves until SIGTERM or SIGINT, and reads files again at SIGHUP. With `--check` it only says whether it could serve.
pub async fn run(args: ServeArgs) -> anyhow::Result<ExitCode> {
    telemetry::start(args.log.log_format, &args.log.log).map_err(|error| {
        UsageError::new(format!(
            "--log {} is not a level or a filter: write info, debug, or directives as in RUST_LOG: {}",
            args.log.log,
            chain(&error)
        ))
    })?;
    let metrics = Metrics::new();
    let settings = ServeSettings::resolve(&args, &metrics)?;
    for warning in variables::warnings().iter().chain(&settings.warnings) {
        tracing::warn!("{warning}");
    }
    let allotment = descriptors::allot(&args, &settings)?;
    if args.check {
        sockets::check(&settings)?;
        DataDirectory::check(&args.storage.data_dir).map_err(start::in_surroundings)?;
        print!("{}", settings.summary(&args, &allotment));
        return Ok(ExitCode::SUCCESS);
    }
    let shutdown = Shutdown::default();
    shutdown.on_signals().context("cannot listen for signals")?;
    let hangup = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
    tokio::spawn(Files::of(&settings).read_again_on(hangup));
    serve(args, settings, &allotment, metrics, shutdown).await
}

async fn serve(
    args: ServeArgs,
    settings: ServeSettings,
    allotment: &Allotment,
    metrics: Metrics,
    shutdown: Shutdown,
) -> anyhow::Result<ExitCode> {
    let sockets = Sockets::bind(&settings)?;
    let addresses = sockets.addresses()?;
    let listeners = sockets.listeners(settings.tls.clone());
    let edge = Edge::open(listeners, settings::connections(&args, allotment), &metrics, &shutdown);
    let started = tokio::select! {
        started = start::start(&args, &settings, allotment, &metrics) => Some(started?),
        // No request was accepted yet, so there is nothing to finish.
        () = shutdown.requested() => None,
    };
    if let Some(Started { staging, sweeper }) = started {
        let (owners, identity) = (sweeper.owners(), sweeper.identity());
        let (judge, downloads) = (sweeper.judge(), sweeper.downloads());
        let interval = args.lifecycle.cleanup_interval.get();
        let (cleaner, sweeps) = cleaner::run(sweeper, interval, shutdown.clone());
        let sweeping = tokio::spawn(sweeps);
        let local = local_admin(&args, &settings, &addresses)?;
        let announcement = addresses.announcement(&settings);
        let next_commands = try_it::commands(&args, &settings, &addresses);
        let has_left = local.is_some();
        let admin_tokens = settings.admin_tokens.or(local);
        let state = AppState {
            staging: staging.clone(),
            owners,
            identity,
            judge,
            downloads,
            admin: admin_tokens.map(|tokens| Arc::new(Admin { tokens, cleaner })),
            settings: Arc::new(settings.server),
            metrics,
        };
        edge.serve(&state);
        for line in announcement {
            tracing::info!("{line}");
        }
        if let Some(commands) = next_commands {
            // A closed stdout does not end the server.
            let _ = write!(std::io::stdout(), "{commands}");
        }
        if edge.finish_transfers().await {
            tracing::info!("all transfers are finished");
        } else {
            tracing::warn!("transfers in flight were cut off: unfinished uploads leave nothing behind");
        }
        last_words(sweeping, &staging).await;
        if has_left {
            // An error does no harm: the next server removes the file too.
            let _ = local::clear(&args.storage.data_dir);
        }
    }
    // The sockets close last: until here, every request gets an answer.
    edge.close().await;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// Makes an admin token if all addresses are loopback and the settings give none.
fn local_admin(
    args: &ServeArgs,
    settings: &ServeSettings,
    addresses: &Addresses,
) -> anyhow::Result<Option<TokenFile>> {
    let data_dir = &args.storage.data_dir;
    if settings.admin_tokens.is_some() || !addresses.are_local() {
        local::clear(data_dir)?;
        return Ok(None);
    }
    let Some((tokens, path)) = local::leave(data_dir, &addresses.admin_url(settings))? else {
        tracing::warn!(
            "no admin token was made, because other users may write to the data directory {}: give --admin-token-file \
             for cloakroom ls, show, rm and clean",
            data_dir.display()
        );
        return Ok(None);
    };
    let path = std::path::absolute(&path).unwrap_or(path);
    tracing::info!(
        "cloakroom ls, show, rm and clean on this machine use the admin token in {}",
        path.display()
    );
    Ok(Some(tokens))
}

/// Waits for the cleaner, which stops between two passes, and closes the ledger. The next start finishes what is left.
async fn last_words(sweeping: JoinHandle<()>, staging: &Staging) {
    let _ = tokio::time::timeout(LAST_WORDS, sweeping).await;
    if tokio::time::timeout(LAST_WORDS, staging.close()).await.is_err() {
        tracing::warn!("the ledger did not close in time; it recovers at the next start");
    }
}
