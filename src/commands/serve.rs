//! `cloakroom serve`: resolves the settings, starts the rooms from the bottom up, and serves until a signal stops it.

mod access;
mod cluster;
mod copies;
mod descriptors;
mod in_bucket;
mod limits;
mod reload;
mod settings;
mod sockets;
mod start;
mod store;
mod summary;
mod try_it;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};

use super::UsageError;
use crate::cli::ServeArgs;
use crate::telemetry;
use cloakroom_adapters::disk::DataDirectory;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::text::chain;
use cloakroom_server::assembly::NotClosed;
use cloakroom_server::descriptors::Allotment;
use cloakroom_server::http::Edge;
use cloakroom_server::shutdown::Shutdown;
use cloakroom_storage::log::LogStore as _;
pub(super) use cluster::Pod;
use in_bucket::InBucket;
use reload::Files;
use settings::ServeSettings;
use sockets::Sockets;
use start::Started;

/// How long requests in flight may still take if nothing more may be written.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

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
    for warning in super::variables::warnings().iter().chain(&settings.warnings) {
        tracing::warn!("{warning}");
    }
    let allotment = descriptors::allot(&settings)?;
    if args.check {
        sockets::check(&settings)?;
        DataDirectory::check(&settings.data_dir).map_err(start::in_surroundings)?;
        if let Some(bucket) = &settings.bucket {
            bucket.store.probe().await?;
            // It is read, and not used: a running server may have it.
            bucket.store.stamp().await?;
        }
        if let Some(cluster) = &settings.cluster {
            cluster.credential().await.context("the API server cannot be asked about owners")?;
        }
        print!("{}", summary::of(&settings, &allotment));
        return Ok(ExitCode::SUCCESS);
    }
    let shutdown = Shutdown::default();
    shutdown.on_signals().context("cannot listen for signals")?;
    let hangup = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
    tokio::spawn(Files::new(&settings).read_again_on(hangup));
    serve(settings, &allotment, metrics, shutdown).await
}

async fn serve(
    settings: ServeSettings,
    allotment: &Allotment,
    metrics: Metrics,
    shutdown: Shutdown,
) -> anyhow::Result<ExitCode> {
    let sockets = Sockets::bind(&settings)?;
    let addresses = sockets.addresses()?;
    let listeners = sockets.listeners(settings.http.tls.clone());
    let announcement = addresses.announcement(&settings);
    let next_commands = try_it::commands(&settings, &addresses);
    let edge = Edge::open(listeners, settings.connections_within(allotment), &metrics, &shutdown);
    let started = tokio::select! {
        started = start::start(settings, allotment, &addresses, &edge, metrics) => Some(started?),
        // No request was accepted yet, so there is nothing to finish.
        () = shutdown.requested() => None,
    };
    // Why the server ends, if nobody asked it to.
    let mut fault: Option<anyhow::Error> = None;
    if let Some(Started { mut server, local_admin, place, lock, in_bucket }) = started {
        for line in announcement {
            tracing::info!("{line}");
        }
        if let Some(commands) = next_commands {
            // A closed stdout does not end the server.
            let _ = write!(std::io::stdout(), "{commands}");
        }
        let is_finished = tokio::select! {
            is_finished = edge.finish_transfers() => is_finished,
            lost = place.lost() => {
                tracing::error!("{lost}");
                fault = Some(lost.into());
                end_soon(&shutdown);
                edge.finish_transfers().await
            }
            ended = over(in_bucket.as_ref()) => {
                tracing::error!("{ended}");
                fault = Some(ended);
                end_soon(&shutdown);
                edge.finish_transfers().await
            }
            ended = server.failed() => {
                tracing::error!("{ended}");
                fault = Some(ended.into());
                shutdown.request();
                edge.finish_transfers().await
            }
        };
        if is_finished {
            tracing::info!("all transfers are finished");
        } else {
            tracing::warn!("transfers in flight were cut off: unfinished uploads leave nothing behind");
        }
        if let Err(NotClosed) = server.close().await {
            tracing::warn!("the ledger did not close in time; it recovers at the next start");
        }
        if let Some(in_bucket) = in_bucket {
            in_bucket.stop().await;
        }
        drop((local_admin, lock));
    }
    // The sockets close last: until here, every request gets an answer.
    edge.close().await;
    tracing::info!("stopped");
    fault.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Waits until a server whose ledger is in a bucket must end.
async fn over(in_bucket: Option<&InBucket>) -> anyhow::Error {
    match in_bucket {
        Some(in_bucket) => in_bucket.over().await,
        None => std::future::pending().await,
    }
}

/// The requests that have met the fault still get their answers: 503, and not a broken connection.
fn end_soon(shutdown: &Shutdown) {
    shutdown.request();
    let shutdown = shutdown.clone();
    tokio::spawn(async move {
        tokio::time::sleep(LAST_ANSWERS).await;
        shutdown.hurry();
    });
}
