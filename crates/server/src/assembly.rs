//! Puts the parts of a server together. The program and the tests do it here, so both have the same server.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::cleaner::{Cleaner, Ended, Policy, Sweeper};
use crate::http::{Admin, AppState, Edge, Settings, Splices, TokenFile};
use crate::owners::Owners;
use cloakroom_core::clock::Clock;
use cloakroom_core::metrics::Metrics;
use cloakroom_storage::ledger::Ledger;
use cloakroom_storage::store::Storage;
use cloakroom_storage::{AccessError, ClaimError, Limits, Ownership, Staging};

/// How long the cleaner, and then the ledger, may take to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(3);

/// Everything that a server consists of, apart from its sockets.
pub struct Parts {
    /// The rows of the resources.
    pub ledger: Arc<dyn Ledger>,
    pub storage: Storage,
    /// The time for both.
    pub clock: Arc<dyn Clock>,
    /// How much may be staged, and by how many clients at once.
    pub limits: Limits,
    /// The source of truth about owners.
    pub owners: Arc<dyn Owners>,
    /// The rules of the cleaner.
    pub policy: Policy,
    /// The time between two sweeps.
    pub cleanup_interval: Duration,
    /// The settings of the HTTP server.
    pub settings: Settings,
    /// The tokens of admins. If it is `None`, the server takes no admin requests.
    pub admin_tokens: Option<TokenFile>,
    /// Where everything is counted.
    pub metrics: Metrics,
    /// What shows that ledger and store are this server's.
    pub ownership: Ownership,
}

/// A server that serves.
pub struct Server {
    staging: Staging,
    cleaner: Cleaner,
    /// `None` once it has ended by a fault.
    sweeping: Option<JoinHandle<Result<(), Ended>>>,
}

/// The server could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Ledger and store do not belong together, or could not be read.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// What a crash interrupted could not be finished.
    #[error("cannot recover the data directory")]
    Recovery(#[source] AccessError),
}

/// The ledger did not close in time. It recovers at the next start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotClosed;

impl Server {
    /// Makes the first sweep, which finishes what a crash interrupted, and then serves on the sockets of `edge`.
    ///
    /// The future may be dropped at any point. That leaves no more than a crash, which the next start repairs.
    pub async fn start(parts: Parts, edge: &Edge) -> Result<Self, StartError> {
        let Parts { ledger, storage, clock, limits, metrics, .. } = parts;
        let opened =
            Staging::open(Arc::clone(&ledger), storage, clock, limits, metrics.clone(), parts.ownership)
                .await;
        let staging = match opened {
            Ok(staging) => staging,
            Err(error) => {
                // A log that is left would be read into a ledger that is put into its place.
                ledger.close().await;
                return Err(error.into());
            }
        };
        let sweeper = Sweeper::new(staging.clone(), Arc::clone(&parts.owners), parts.policy);
        let (identity, judge, downloads) = (sweeper.identity(), sweeper.judge(), sweeper.downloads());
        let (cleaner, sweeps) = Cleaner::start(sweeper, parts.cleanup_interval, edge.shutdown().clone())
            .await
            .map_err(StartError::Recovery)?;
        let sweeping = Some(tokio::spawn(sweeps));
        let admin = parts.admin_tokens.map(|tokens| Arc::new(Admin { tokens, cleaner: cleaner.clone() }));
        edge.serve(&AppState {
            staging: staging.clone(),
            owners: parts.owners,
            identity,
            judge,
            downloads,
            admin,
            settings: Arc::new(parts.settings),
            splices: Splices::default(),
            metrics,
        });
        Ok(Self { staging, cleaner, sweeping })
    }

    /// The staged resources.
    pub fn staging(&self) -> &Staging {
        &self.staging
    }

    /// Asks for sweeps.
    pub fn cleaner(&self) -> &Cleaner {
        &self.cleaner
    }

    /// Waits until a task has ended without which nothing is deleted any more.
    pub async fn failed(&mut self) -> Ended {
        let Some(sweeping) = &mut self.sweeping else { return pending().await };
        let ended = sweeping.await;
        self.sweeping = None;
        match ended {
            // It stops with the server.
            Ok(Ok(())) => pending().await,
            Ok(Err(ended)) => ended,
            Err(_panic) => Ended { task: "the cleaner" },
        }
    }

    /// Waits for the cleaner, which stops between two sweeps after a shutdown was requested, and closes the ledger. The
    /// next start finishes what is left.
    pub async fn close(self) -> Result<(), NotClosed> {
        if let Some(sweeping) = self.sweeping {
            let _ = tokio::time::timeout(STOP_PATIENCE, sweeping).await;
        }
        tokio::time::timeout(STOP_PATIENCE, self.staging.close()).await.map_err(|_| NotClosed)
    }
}
