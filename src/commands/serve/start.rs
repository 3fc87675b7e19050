//! The start: waits for the data directory, opens the ledger, and puts the server together.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::Instant;

use super::cluster::Pod;
use super::copies::{self, Copies};
use super::settings::ServeSettings;
use super::sockets::Addresses;
use super::store::Bucket;
use crate::commands::local::{self, TokenOfThisRun};
use cloakroom_adapters::Place;
use cloakroom_adapters::bucket::ProbeError;
use cloakroom_adapters::disk::{DataDirectory, DiskError, DiskStore};
use cloakroom_adapters::sqlite::SqliteLedger;
use cloakroom_core::clock::SystemClock;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::text::chain;
use cloakroom_server::assembly::{Parts, Server, StartError};
use cloakroom_server::descriptors::Allotment;
use cloakroom_server::http::Edge;
use cloakroom_storage::ledger::LedgerError;
use cloakroom_storage::store::{Storage, StoreError};
use cloakroom_storage::{ClaimError, check_new_ledger};

/// How long the server waits until another process releases the data directory. This is more than twice the time that
/// the shipped pod has to end.
const LOCK_PATIENCE: Duration = Duration::from_secs(90);

/// How often it tries the lock. A wait in the kernel could not be ended at SIGTERM.
const LOCK_INTERVAL: Duration = Duration::from_millis(100);

/// A server that serves.
pub struct Started {
    pub server: Server,
    /// The admin token that the server made for itself. It is dropped when the server has stopped.
    pub local_admin: Option<TokenOfThisRun>,
    /// Tells when the data directory is not at its path any more.
    pub place: Place,
    /// Held until the last copy of the ledger is made.
    pub lock: DataDirectory,
    /// Makes copies of the ledger, if there is a bucket for them.
    pub copies: Option<Copies>,
}

/// Starts the server behind `edge`. The future may be dropped at any point: that leaves no more than a crash, which the
/// next start repairs.
pub async fn start(
    settings: ServeSettings,
    allotment: &Allotment,
    addresses: &Addresses,
    edge: &Edge,
    metrics: Metrics,
) -> anyhow::Result<Started> {
    let open = if settings.bucket.is_some() { DataDirectory::open_for_ledger } else { DataDirectory::open };
    let directory = data_directory(&settings.data_dir, open, LOCK_PATIENCE).await.map_err(in_surroundings)?;
    let local_admin = local_admin(&settings, addresses)?;
    let clock = Arc::new(SystemClock::new());
    let (path, place) = (directory.ledger(), directory.place().clone());
    let lock = directory.clone();
    let (storage, name) = if let Some(Bucket { location, store, .. }) = &settings.bucket {
        match store.probe().await {
            // The bundles in the store can still be fetched, and their removal makes room.
            Err(ProbeError::Store { source: source @ StoreError::Full { .. }, .. }) => {
                tracing::warn!(error = %chain(&source), "the store takes no bundles");
            }
            probed => probed?,
        }
        (Storage::elsewhere(Arc::clone(store), Some(Arc::new(directory))), location.to_string())
    } else {
        let store = DiskStore::with_open_blobs(directory, allotment.bundles);
        (Storage::on_disk(Arc::new(store)), settings.data_dir.display().to_string())
    };
    if !path.try_exists()? {
        prepare_ledger(&settings, &storage, &name, &path).await?;
    }
    let ledger = Arc::new(open_ledger(&place, &path, &storage).await?);
    let parts = Parts {
        ledger: Arc::clone(&ledger) as _,
        storage,
        owners: settings.owners(&metrics, Arc::clone(&clock) as _),
        clock,
        limits: settings.limits,
        policy: settings.policy,
        cleanup_interval: settings.cleanup_interval,
        settings: settings.http,
        admin_tokens: settings
            .admin_tokens
            .or_else(|| local_admin.as_ref().map(|local| local.tokens.clone())),
        metrics: metrics.clone(),
        adopt: settings.adopt_store,
    };
    let server = Server::start(parts, edge).await.map_err(|error| match error {
        StartError::Claim(error) => on(&name, error),
        error @ StartError::Recovery(_) => error.into(),
    })?;
    let copies = settings.bucket.as_ref();
    let copies = copies.map(|bucket| {
        Copies::begin(bucket, ledger, path, server.staging().clone(), metrics, edge.shutdown().clone())
    });
    Ok(Started { server, local_admin, place, lock, copies })
}

/// Gets a copy of the ledger if that is asked for. Otherwise makes sure that a new one may be made for the store `name`.
async fn prepare_ledger(
    settings: &ServeSettings,
    storage: &Storage,
    name: &str,
    path: &Path,
) -> anyhow::Result<()> {
    let bucket = settings.bucket.as_ref();
    if let (Some(bucket), Some(which)) = (bucket, settings.restore_ledger) {
        return copies::restore(bucket, which, path).await.context("cannot restore the ledger");
    }
    let Err(error) = check_new_ledger(&*storage.blobs, settings.adopt_store).await else { return Ok(()) };
    let error = on(name, error);
    Err(match copies::newest(bucket).await {
        None => error,
        Some(copy) => error.context(format!(
            "there is no ledger in {}, and the bucket has a copy of one ({copy}): if no other server uses it, \
             start with --restore-ledger latest",
            settings.data_dir.display()
        )),
    })
}

/// The error with the store that it is about.
fn on(store: &str, error: ClaimError) -> anyhow::Error {
    match error {
        ClaimError::OtherLedger { .. } | ClaimError::OtherStore { .. } => {
            anyhow::Error::new(error).context(format!("cannot start on {store}"))
        }
        error => error.into(),
    }
}

/// Makes an admin token if the settings give none, and commands on this machine reach the server.
fn local_admin(settings: &ServeSettings, addresses: &Addresses) -> anyhow::Result<Option<TokenOfThisRun>> {
    let data_dir = &settings.data_dir;
    let url = addresses.admin_url_here(settings).filter(|_| settings.admin_tokens.is_none());
    let Some(url) = url else {
        local::clear(data_dir)?;
        return Ok(None);
    };
    if !local::may_leave_in(data_dir) {
        local::clear(data_dir)?;
        tracing::warn!(
            "no admin token was made, because other users may write to the data directory {}: give --admin-token-file \
             for cloakroom ls, show, rm and clean",
            data_dir.display()
        );
        return Ok(None);
    }
    let made = local::leave(data_dir, &url)?;
    let path = std::path::absolute(&made.path).unwrap_or_else(|_| made.path.clone());
    tracing::info!(
        "cloakroom ls, show, rm and clean on this machine use the admin token in {}",
        path.display()
    );
    Ok(Some(made))
}

/// Opens the ledger. A migration needs room: on a full disk it gets the reserve, as a deletion does.
async fn open_ledger(place: &Place, path: &Path, storage: &Storage) -> anyhow::Result<SqliteLedger> {
    let opened = SqliteLedger::open_in(place, path, None).await;
    let (Err(LedgerError::Full), Some(folder)) = (&opened, &storage.folder) else { return Ok(opened?) };
    folder.release_reserve().await?;
    Ok(SqliteLedger::open_in(place, path, None).await?)
}

/// Fits the advice in the error to the place of the server: in a pod or not.
pub fn in_surroundings(error: DiskError) -> DiskError {
    if Pod::of_environment().is_some() { error.in_a_pod() } else { error }
}

/// Opens the data directory by `open`. While another process uses it, waits up to `patience`.
async fn data_directory(
    path: &Path,
    open: fn(&Path) -> Result<DataDirectory, DiskError>,
    patience: Duration,
) -> Result<DataDirectory, DiskError> {
    let began = Instant::now();
    let mut is_waiting = false;
    loop {
        let opened = open(path);
        match opened {
            Err(DiskError::Locked { .. }) if began.elapsed() < patience => {
                if !is_waiting {
                    tracing::info!(
                        "waiting for the data directory {}: another process uses it; this one gives up after {} s",
                        path.display(),
                        patience.as_secs()
                    );
                }
                is_waiting = true;
                tokio::time::sleep(LOCK_INTERVAL).await;
            }
            opened => {
                if is_waiting && opened.is_ok() {
                    let waited = began.elapsed().as_secs_f64();
                    tracing::info!("got the data directory {} after {waited:.1} s", path.display());
                }
                return opened;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_data_directory_that_stays_in_use_is_an_error_once_patience_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let _held = DataDirectory::open(folder.path()).unwrap();
        let patience = Duration::from_millis(250);
        let began = Instant::now();
        let error = data_directory(folder.path(), DataDirectory::open, patience).await.unwrap_err();
        assert!(began.elapsed() >= patience, "it gave up too early");
        let said = error.to_string();
        assert!(
            said.contains("is in use by another process") && said.contains("--data-dir of its own"),
            "{said}"
        );
        assert!(said.contains(&folder.path().display().to_string()), "{said}");
    }

    #[tokio::test]
    async fn a_data_directory_is_taken_as_soon_as_it_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let held = DataDirectory::open(folder.path()).unwrap();
        let taking = data_directory(folder.path(), DataDirectory::open, Duration::from_mins(1));
        let letting_go = async {
            tokio::time::sleep(LOCK_INTERVAL).await;
            drop(held);
        };
        let (taken, ()) = tokio::join!(taking, letting_go);
        assert!(matches!(DataDirectory::check(folder.path()), Err(DiskError::Locked { .. })));
        drop(taken.unwrap());
    }
}
