//! The metrics for Prometheus: typed methods record, and [`Metrics::exposition`] writes the text. There is no global
//! state: each part that measures gets a [`Metrics`].
//!
//! Every label has few values: names of types, words of the code, or the kinds that `--owner-kinds` allows. An id, a
//! path as a client wrote it, or the name of an owner never becomes a label.

mod families;
mod labels;
mod limits;
mod process;
mod transfers;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::lock::lock;

use jiff::Timestamp;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use families::Families;
use labels::{CallLabels, CauseLabels, RequestLabels, WatchLabels, method};
use process::Process;

pub use labels::{ApiCall, Limited, StoreCall, StoreOutcome, SweepOutcome};
pub use limits::{LimitUse, Occupancy, Occupant};
pub use transfers::{DownloadMeasurement, UploadMeasurement};

/// The content type of [`Metrics::exposition`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The label for requests to paths that do not exist.
const NO_ROUTE: &str = "unknown";

/// All metrics of this process. Clones record into the same metrics.
#[derive(Debug, Clone, Default)]
pub struct Metrics(Arc<Measured>);

#[derive(Debug)]
struct Measured {
    registry: Registry,
    families: Families,
    /// How many resources each reason keeps. A reason that once applied and no longer does stays, with 0.
    whys: Mutex<BTreeMap<&'static str, u64>>,
    /// Counts that follow the life of their occupants, each with its limit.
    occupancies: Mutex<Vec<(Limited, Occupancy, u64)>>,
    /// Only one exposition runs at a time, because each sets looked-up values before it writes them.
    exposing: Mutex<()>,
}

impl Default for Measured {
    fn default() -> Self {
        let mut registry = Registry::default();
        let families = Families::registered(registry.sub_registry_with_prefix("cloakroom"));
        registry.register_collector(Box::new(Process::starting_now()));
        Self {
            registry,
            families,
            whys: Mutex::default(),
            occupancies: Mutex::default(),
            exposing: Mutex::default(),
        }
    }
}

/// Values that other parts count. They are looked up for each exposition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stock {
    /// Uploads in flight.
    pub uploads: u64,
    /// Downloads in flight.
    pub downloads: u64,
    /// Bytes of acknowledged bundles.
    pub stored_bytes: u64,
    /// Number of strays: whole bundles that belong to no resource.
    pub strays: u64,
    /// Bytes of strays.
    pub stray_bytes: u64,
    /// Bytes that the store can still take; `None` if it has no bound or does not answer.
    pub free_bytes: Option<u64>,
    /// Number of resources in each state.
    pub resources: BTreeMap<&'static str, u64>,
    /// How much of each limit is used. A limit that is not set or not known is left out.
    pub limits: Vec<LimitUse>,
}

impl Metrics {
    /// Starts all counters at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// All metrics in the text format of `OpenMetrics`. An unknown value is left out, so that a reader does not take it
    /// for 0.
    pub fn exposition(&self, stock: &Stock) -> Result<String, fmt::Error> {
        let _one_at_a_time = lock(&self.0.exposing);
        self.take_stock(stock);
        let mut text = String::new();
        text::encode(&mut text, &self.0.registry)?;
        Ok(text)
    }

    /// Counts a request that was answered with `status`; `None` means that its client left before the answer. `route`
    /// is the template that the path matched; `None` means that there is no such path.
    pub fn http_request(&self, route: Option<&str>, method_name: &str, status: Option<u16>) {
        let route = route.unwrap_or(NO_ROUTE).to_owned();
        let labels = RequestLabels { route, method: method(method_name), status: status.into() };
        self.of().http_requests.get_or_create(&labels).inc();
    }

    /// Begins to measure an upload. It counts as failed if all clones are dropped before it is stored or refused.
    pub fn upload(&self) -> UploadMeasurement {
        UploadMeasurement::begin(self.clone())
    }

    /// Sets the counts of all `reasons` for which uploads may be refused to 0; see [`Metrics::deletions_have`].
    pub fn upload_refusals_have(&self, reasons: impl IntoIterator<Item = &'static str>) {
        for reason in reasons {
            drop(self.of().upload_refusals.get_or_create(&reason.into()));
        }
    }

    /// Counts bytes of a bundle that arrived.
    pub fn upload_received(&self, bytes: u64) {
        self.of().upload_bytes.inc_by(bytes);
    }

    /// Counts bytes of a bundle that were copied from another one.
    pub fn upload_copied(&self, bytes: u64) {
        self.of().copied_bytes.inc_by(bytes);
    }

    /// Begins to measure a download of `bytes`. It counts as broken if it is dropped before all of them are sent.
    pub fn download(&self, bytes: u64) -> DownloadMeasurement {
        DownloadMeasurement::begin(self.clone(), bytes)
    }

    /// Counts a download that was refused before anything was sent.
    pub fn download_refused(&self) {
        self.of().downloads.get_or_create(&"refused".into()).inc();
    }

    /// Counts a download that failed on the server's side before its first byte.
    pub fn download_failed(&self) {
        self.of().downloads.get_or_create(&"broken".into()).inc();
    }

    /// Counts a pass of the cleaner that ended `at`, after `took`.
    pub fn swept(&self, outcome: SweepOutcome, took: Duration, at: Timestamp) {
        self.of().sweeps.get_or_create(&outcome.as_str().into()).inc();
        self.of().sweep_duration.observe(took.as_secs_f64());
        if outcome == SweepOutcome::Ok {
            self.of().last_sweep.set(at.as_duration().as_secs_f64());
        }
    }

    /// Sets the counts of all `reasons` for deletions to 0. Prometheus then sees the first deletion as an increase.
    pub fn deletions_have(&self, reasons: impl IntoIterator<Item = &'static str>) {
        for reason in reasons {
            drop(self.of().deletions.get_or_create(&reason.into()));
        }
    }

    /// Counts a resource that was deleted.
    pub fn deleted(&self, reason: &'static str) {
        self.of().deletions.get_or_create(&reason.into()).inc();
    }

    /// Sets how many resources the last sweep kept, by reason. Reasons that are not in `counts` become 0.
    pub fn kept(&self, counts: &[(&'static str, u64)]) {
        let mut whys = lock(&self.0.whys);
        whys.values_mut().for_each(|count| *count = 0);
        whys.extend(counts.iter().copied());
        for (why, count) in &*whys {
            self.of().kept.get_or_create(&(*why).into()).set(*count);
        }
    }

    /// Sets how many resources are held back from a mass deletion.
    pub fn mass_deletion_held(&self, resources: u64) {
        self.of().mass_deletion_held.set(resources);
    }

    /// Counts tombstones that were removed before their time, because there were too many.
    pub fn tombstones_dropped(&self, count: u64) {
        self.of().tombstones_dropped.inc_by(count);
    }

    /// Makes a count of something that has a limit. Each occupant adds one, until it is dropped.
    pub fn occupancy(&self, of: Limited, limit: usize) -> Occupancy {
        let occupancy = Occupancy::default();
        lock(&self.0.occupancies).push((of, occupancy.clone(), limit as u64));
        occupancy
    }

    /// Sets how many ready resources this version cannot read.
    pub fn unreadable(&self, count: u64) {
        self.of().unreadable.set(count);
    }

    /// Sets when the certificate of the server ends, in seconds since 1970; `None` if it has none.
    pub fn certificate_ends(&self, at: Option<u64>) {
        self.of().certificate_ends.set(at);
    }

    /// Sets whether the ledger is an earlier copy than the one that the store has seen.
    pub fn ledger_behind(&self, is_behind: bool) {
        self.of().ledger_behind.set(is_behind.into());
    }

    /// Sets when the newest copy of the ledger had all.
    pub fn ledger_copied(&self, at: Timestamp) {
        self.of().ledger_copied.set(u64::try_from(at.as_second()).ok());
    }

    /// Sets the epoch of this server in its bucket, and how long it took to take over.
    pub fn took_over(&self, epoch: u64, took: Duration) {
        self.of().ledger_epoch.set(Some(epoch));
        self.of().ledger_takeover.set(Some(took.as_secs()));
    }

    /// Sets when the log of the ledger in the bucket went on last.
    pub fn ledger_logged(&self, at: Timestamp) {
        self.of().ledger_logged.set(u64::try_from(at.as_second()).ok());
    }

    /// Sets whether the bucket does not take the log of the ledger, or the stamp of this server.
    pub fn ledger_stalled(&self, is_stalled: bool) {
        self.of().ledger_stalled.set(Some(is_stalled.into()));
    }

    /// Sets whether another cluster answers than the one that owners were seen in, or a cluster that does not show
    /// which one it is.
    pub fn other_cluster(&self, is_other: bool) {
        self.of().other_cluster.set(is_other.into());
    }

    /// Sets how many watches of an owner kind are in `state`. The kind is one of the server's `--owner-kinds`.
    pub fn owner_watches(&self, kind: &str, state: &'static str, count: u64) {
        let labels = WatchLabels { kind: kind.to_owned(), state };
        self.of().owner_watches.get_or_create(&labels).set(count);
    }

    /// Removes all counts of owner watches before they are set again.
    pub fn forget_owner_watches(&self) {
        self.of().owner_watches.clear();
    }

    /// Counts a watch of an owner kind that had to start again.
    pub fn owner_watch_restarted(&self, kind: &str, cause: &'static str) {
        self.of().owner_watch_restarts.get_or_create(&CauseLabels { kind: kind.to_owned(), cause }).inc();
    }

    /// Counts a call to the API server. `outcome` is `ok`, or the name of the failure.
    pub fn api_request(&self, call: ApiCall, outcome: &'static str) {
        self.of().api_requests.get_or_create(&CallLabels { call: call.as_str(), outcome }).inc();
    }

    /// Counts a call to a bucket.
    pub fn store_request(&self, call: StoreCall, outcome: StoreOutcome) {
        let labels = CallLabels { call: call.as_str(), outcome: outcome.as_str() };
        self.of().store_requests.get_or_create(&labels).inc();
    }

    fn of(&self) -> &Families {
        &self.0.families
    }

    fn take_stock(&self, stock: &Stock) {
        let families = self.of();
        families.in_flight.get_or_create(&"upload".into()).set(stock.uploads);
        families.in_flight.get_or_create(&"download".into()).set(stock.downloads);
        families.stored_bytes.set(stock.stored_bytes);
        families.strays.set(stock.strays);
        families.stray_bytes.set(stock.stray_bytes);
        families.disk_free_bytes.set(stock.free_bytes);
        families.resources.clear();
        for (state, count) in &stock.resources {
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
