//! The start: waits for the data directory, opens the ledger, and puts the server together.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::cluster::Pod;
use super::in_bucket::{self, InBucket};
use super::settings::ServeSettings;
use super::sockets::Addresses;
use super::store::ConfiguredBucket;
use crate::commands::local::{self, TokenOfThisRun};
use cloakroom_adapters::Place;
use cloakroom_adapters::bucket::ProbeError;
use cloakroom_adapters::disk::{DataDirectory, DiskError, DiskStore};
use cloakroom_adapters::sqlite::{Changes, SqliteLedger};
use cloakroom_core::clock::SystemClock;
use cloakroom_core::metrics::Metrics;
use cloakroom_core::text::chain;
use cloakroom_server::assembly::{Parts, Server, StartError};
use cloakroom_server::descriptors::Allotment;
use cloakroom_server::http::Edge;
use cloakroom_storage::ledger::LedgerError;
use cloakroom_storage::store::{Storage, StoreError};
use cloakroom_storage::{ClaimError, Ownership, check_new_ledger};

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
    /// Held until the ledger is closed.
    pub lock: DataDirectory,
    /// What goes on beside a server whose ledger is in a bucket.
    pub in_bucket: Option<InBucket>,
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
    let (place, lock) = (directory.place().clone(), directory.clone());
    let mut in_bucket = None;
    let (storage, ledger, name) = if let Some(bucket) = &settings.bucket {
        let (storage, ledger, beside) = from_bucket(bucket, &settings, &directory, &metrics).await?;
        in_bucket = Some(beside);
        (storage, ledger, bucket.location.to_string())
    } else {
        let path = directory.ledger();
        let store = Arc::new(DiskStore::with_open_blobs(directory, allotment.bundles));
        let (storage, name) = (Storage::on_disk(Arc::clone(&store)), settings.data_dir.display().to_string());
        if !path.try_exists()? {
            check_new_ledger(&*store, settings.adopt_store).await.map_err(|error| on(&name, error))?;
        }
        let ledger = open_ledger(&place, &path, &storage).await?;
        (storage, Arc::new(ledger), name)
    };
    let owners = settings.owners(&metrics, Arc::clone(&clock) as _);
    if let Some(in_bucket) = in_bucket.as_mut().filter(|_| settings.cluster.is_some()) {
        in_bucket.yield_without(Arc::clone(&owners), settings.succession);
    }
    let ownership = Ownership {
        adopt: settings.adopt_store,
        heartbeat: in_bucket
            .as_ref()
            .and_then(InBucket::heartbeat)
            .map(|heartbeat| (heartbeat, settings.succession.rest)),
        is_read_only: in_bucket.as_ref().is_some_and(InBucket::is_read_only),
    };
    let parts = Parts {
        ledger,
        storage,
        owners,
        clock,
        limits: settings.limits,
        policy: settings.policy,
        cleanup_interval: settings.cleanup_interval,
        settings: settings.http,
        admin_tokens: settings
            .admin_tokens
            .or_else(|| local_admin.as_ref().map(|local| local.tokens.clone())),
        metrics,
        ownership,
    };
    let server = Server::start(parts, edge).await.map_err(|error| match error {
        StartError::Claim(error) => on(&name, error),
        error @ StartError::Recovery(_) => error.into(),
    })?;
    Ok(Started { server, local_admin, place, lock, in_bucket })
}

/// Makes the ledger from what is in the bucket, in a file of the data directory.
async fn from_bucket(
    bucket: &ConfiguredBucket,
    settings: &ServeSettings,
    directory: &DataDirectory,
    metrics: &Metrics,
) -> anyhow::Result<(Storage, Arc<SqliteLedger>, InBucket)> {
    let of_a_disk = directory.ledger();
    if of_a_disk.try_exists()? {
        anyhow::bail!(
            "{} is the ledger of a server without --store: give this one a --data-dir of its own, because its ledger is in the \
             bucket",
            of_a_disk.display()
        );
    }
    tracing::info!("trying what the server needs of the bucket {}", bucket.location);
    match bucket.store.probe().await {
        // The bundles in the store can still be fetched, and their removal makes room.
        Err(ProbeError::Store { source: source @ StoreError::Full { .. }, .. }) => {
            tracing::warn!(error = %chain(&source), "the store takes no bundles");
        }
        probed => probed?,
    }
    let (path, place) = (directory.cache(), directory.place().clone());
    let (ledger, beside) = in_bucket::start(bucket, settings.succession, (&place, &path), metrics).await?;
    Ok((Storage::elsewhere(Arc::clone(&bucket.store)), ledger, beside))
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
    let opened = SqliteLedger::open_in(place, path, Changes::OnDisk).await;
    let (Err(LedgerError::Full), Some(disk)) = (&opened, &storage.disk) else { return Ok(opened?) };
    disk.release_reserve().await?;
    Ok(SqliteLedger::open_in(place, path, Changes::OnDisk).await?)
}

/// Fits the advice in the error to the place of the server: in a pod or not.
pub fn in_surroundings(error: DiskError) -> DiskError {
    if Pod::from_environment().is_some() { error.in_a_pod() } else { error }
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
