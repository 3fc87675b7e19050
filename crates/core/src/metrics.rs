//! What Prometheus is told: typed methods in, text out. Nothing here is global; whoever measures is given a [`Metrics`].
//!
//! Every label has few values: they are types, words of the code, or the kinds that `--owner-kinds` allows. No id, no
//! path as a client wrote it, no name of an owner becomes a label.

mod families;
mod labels;
mod limits;
mod transfers;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use families::Families;
use labels::{CallLabels, CauseLabels, RequestLabels, WatchLabels, method};

pub use labels::{ApiCall, Limited, SweepOutcome};
pub use limits::{LimitUse, Occupancy, Occupant};
pub use transfers::{DownloadMeasurement, UploadMeasurement};

/// The content type of [`Metrics::exposition`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The route of requests to paths that do not exist.
const NO_ROUTE: &str = "unknown";

/// Everything that is measured. Clones measure the same.
#[derive(Debug, Clone, Default)]
pub struct Metrics(Arc<Measured>);

#[derive(Debug)]
struct Measured {
    registry: Registry,
    families: Families,
    /// Why resources were kept, each word that was ever said: one that does not apply any more is 0.
    whys: Mutex<BTreeMap<&'static str, u64>>,
    /// Counts that go up and down by themselves, each with its limit.
    occupancies: Mutex<Vec<(Limited, Occupancy, u64)>>,
    /// One exposition at a time: what it looks up is set before it is written.
    exposing: Mutex<()>,
}

impl Default for Measured {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("cloakroom");
        let families = Families::registered(&mut registry);
        Self {
            registry,
            families,
            whys: Mutex::default(),
            occupancies: Mutex::default(),
            exposing: Mutex::default(),
        }
    }
}

/// What is looked up for each exposition, because somebody else keeps the account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stock {
    /// Uploads going on.
    pub uploads: u64,
    /// Downloads going on.
    pub downloads: u64,
    /// Bytes of acknowledged bundles.
    pub stored_bytes: u64,
    /// What the store could still take; `None` if it has no bound or does not answer.
    pub free_bytes: Option<u64>,
    /// Resources in each state; `None` if the ledger does not answer.
    pub resources: Option<BTreeMap<&'static str, u64>>,
    /// How much of each limit is used. Where there is no limit, or it is not known, there is nothing.
    pub limits: Vec<LimitUse>,
}

impl Metrics {
    /// All counters at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything in the text format of `OpenMetrics`. What is not known is left out, so that nobody takes it for 0.
    pub fn exposition(&self, stock: &Stock) -> Result<String, fmt::Error> {
        let _one_at_a_time = lock(&self.0.exposing);
        self.take_stock(stock);
        let mut text = String::new();
        text::encode(&mut text, &self.0.registry)?;
        Ok(text)
    }

    /// A request was answered with `status`, or given up by its client before that (`None`). `route` is the template
    /// that its path matched; `None` if there is none.
    pub fn http_request(&self, route: Option<&str>, method_name: &str, status: Option<u16>) {
        let route = route.unwrap_or(NO_ROUTE).to_owned();
        let labels = RequestLabels { route, method: method(method_name), status: status.into() };
        self.of().http_requests.get_or_create(&labels).inc();
    }

    /// An upload begins. It has failed if its last measurement is dropped before it was stored or refused.
    pub fn upload(&self) -> UploadMeasurement {
        UploadMeasurement::begin(self.clone())
    }

    /// What uploads may be refused for: from then on each has a count, as of [`Metrics::deletions_have`].
    pub fn upload_refusals_have(&self, reasons: impl IntoIterator<Item = &'static str>) {
        for reason in reasons {
            drop(self.of().upload_refusals.get_or_create(&reason.into()));
        }
    }

    /// Bytes of a bundle arrived.
    pub fn upload_received(&self, bytes: u64) {
        self.of().upload_bytes.inc_by(bytes);
    }

    /// A download begins to send `bytes`. It is broken if it is dropped before all of them were sent.
    pub fn download(&self, bytes: u64) -> DownloadMeasurement {
        DownloadMeasurement::begin(self.clone(), bytes)
    }

    /// A download was refused: nothing is sent.
    pub fn download_refused(&self) {
        self.of().downloads.get_or_create(&"refused".into()).inc();
    }

    /// A download failed before its first byte, by the server's own doing.
    pub fn download_failed(&self) {
        self.of().downloads.get_or_create(&"broken".into()).inc();
    }

    /// A pass of the cleaner ended `at`, after `took`.
    pub fn swept(&self, outcome: SweepOutcome, took: Duration, at: Timestamp) {
        self.of().sweeps.get_or_create(&outcome.as_str().into()).inc();
        self.of().sweep_duration.observe(took.as_secs_f64());
        if outcome == SweepOutcome::Ok {
            self.of().last_sweep.set(at.as_duration().as_secs_f64());
        }
    }

    /// The reasons for which resources may be deleted: from then on each has a count, 0 at first, so that the first
    /// deletion shows as an increase.
    pub fn deletions_have(&self, reasons: impl IntoIterator<Item = &'static str>) {
        for reason in reasons {
            drop(self.of().deletions.get_or_create(&reason.into()));
        }
    }

    /// A resource was deleted.
    pub fn deleted(&self, reason: &'static str) {
        self.of().deletions.get_or_create(&reason.into()).inc();
    }

    /// Why how many resources were kept by the last sweep. What is not among them is 0 from now on.
    pub fn kept(&self, counts: &[(&'static str, u64)]) {
        let mut whys = lock(&self.0.whys);
        whys.values_mut().for_each(|count| *count = 0);
        whys.extend(counts.iter().copied());
        for (why, count) in &*whys {
            self.of().kept.get_or_create(&(*why).into()).set(*count);
        }
    }

    /// Whether a mass deletion is being held back, and of how many resources.
    pub fn mass_deletion(&self, held: bool, candidates: u64) {
        self.of().mass_deletion_held.set(held.into());
        self.of().mass_deletion_candidates.set(candidates);
    }

    /// Tombstones went before their time, because there were too many.
    pub fn tombstones_dropped(&self, count: u64) {
        self.of().tombstones_dropped.inc_by(count);
    }

    /// A count of something that has a limit. Each one of it enters the count, and leaves it when it is dropped.
    pub fn occupancy(&self, of: Limited, limit: usize) -> Occupancy {
        let occupancy = Occupancy::default();
        lock(&self.0.occupancies).push((of, occupancy.clone(), limit as u64));
        occupancy
    }

    /// How many ready resources this version cannot read.
    pub fn unreadable(&self, count: u64) {
        self.of().unreadable.set(count);
    }

    /// Whether another cluster answers than the one that owners were seen in, or one that does not show which it is.
    pub fn other_cluster(&self, is_other: bool) {
        self.of().other_cluster.set(is_other.into());
    }

    /// How many watches of an owner kind are in `state`. The kind is one that the server was told to accept.
    pub fn owner_watches(&self, kind: &str, state: &'static str, count: u64) {
        let labels = WatchLabels { kind: kind.to_owned(), state };
        self.of().owner_watches.get_or_create(&labels).set(count);
    }

    /// The counts of owner watches go, to be counted anew.
    pub fn forget_owner_watches(&self) {
        self.of().owner_watches.clear();
    }

    /// A watch of an owner kind had to begin anew.
    pub fn owner_watch_restarted(&self, kind: &str, cause: &'static str) {
        self.of().owner_watch_restarts.get_or_create(&CauseLabels { kind: kind.to_owned(), cause }).inc();
    }

    /// The API server was called: `outcome` is `ok` or the word for the failure.
    pub fn api_request(&self, call: ApiCall, outcome: &'static str) {
        self.of().api_requests.get_or_create(&CallLabels { call: call.as_str(), outcome }).inc();
    }

    fn of(&self) -> &Families {
        &self.0.families
    }

    fn take_stock(&self, stock: &Stock) {
        let families = self.of();
        families.in_flight.get_or_create(&"upload".into()).set(stock.uploads);
        families.in_flight.get_or_create(&"download".into()).set(stock.downloads);
        families.stored_bytes.set(stock.stored_bytes);
        families.disk_free_bytes.set(stock.free_bytes);
        families.resources.clear();
        for (state, count) in stock.resources.iter().flatten() {
            families.resources.get_or_create(&(*state).into()).set(*count);
        }
        families.limit.clear();
        families.limit_used.clear();
        let occupancies = lock(&self.0.occupancies);
        let occupied = occupancies.iter();
        let occupied = occupied.map(|(of, occupancy, limit)| LimitUse {
            of: *of,
            used: occupancy.count(),
            limit: *limit,
        });
        for LimitUse { of, used, limit } in stock.limits.iter().copied().chain(occupied) {
            families.limit.get_or_create(&of.as_str().into()).set(limit);
            families.limit_used.get_or_create(&of.as_str().into()).set(used);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
