//! Every metric, with its name and its help text.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};

use super::labels::{
    CallLabels, CauseLabels, DirectionLabel, OfLabel, OutcomeLabel, ReasonLabel, RequestLabels, StateLabel,
    SweepOutcome, WatchLabels, WhyLabel,
};
use super::lock;

type Level = Gauge<u64, AtomicU64>;

/// Bounds from some kilobytes in the same rack to many gigabytes through a slow tunnel.
const TRANSFER_SECONDS: [f64; 13] =
    [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0];

/// Bounds from a sweep with nothing to do to a disk that hardly answers.
const SWEEP_SECONDS: [f64; 10] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 30.0];

#[derive(Debug)]
pub(super) struct Families {
    pub(super) http_requests: Family<RequestLabels, Counter>,
    pub(super) uploads: Family<OutcomeLabel, Counter>,
    pub(super) upload_refusals: Family<ReasonLabel, Counter>,
    pub(super) upload_bytes: Counter,
    pub(super) copied_bytes: Counter,
    pub(super) upload_duration: Histogram,
    pub(super) downloads: Family<OutcomeLabel, Counter>,
    pub(super) download_bytes: Counter,
    pub(super) download_duration: Histogram,
    pub(super) in_flight: Family<DirectionLabel, Level>,
    pub(super) resources: Family<StateLabel, Level>,
    pub(super) stored_bytes: Level,
    pub(super) strays: Level,
    pub(super) stray_bytes: Level,
    pub(super) disk_free_bytes: KnownLevel,
    pub(super) certificate_ends: KnownLevel,
    pub(super) limit: Family<OfLabel, Level>,
    pub(super) limit_used: Family<OfLabel, Level>,
    pub(super) sweeps: Family<OutcomeLabel, Counter>,
    pub(super) sweep_duration: Histogram,
    pub(super) last_sweep: Gauge<f64, AtomicU64>,
    pub(super) deletions: Family<ReasonLabel, Counter>,
    pub(super) kept: Family<WhyLabel, Level>,
    pub(super) mass_deletion_held: Level,
    pub(super) ledger_behind: Level,
    pub(super) ledger_copied: KnownLevel,
    pub(super) ledger_logged: KnownLevel,
    pub(super) ledger_stalled: KnownLevel,
    pub(super) ledger_epoch: KnownLevel,
    pub(super) ledger_takeover: KnownLevel,
    pub(super) other_cluster: Level,
    pub(super) tombstones_dropped: Counter,
    pub(super) unreadable: Level,
    pub(super) owner_watches: Family<WatchLabels, Level>,
    pub(super) owner_watch_restarts: Family<CauseLabels, Counter>,
    pub(super) api_requests: Family<CallLabels, Counter>,
    pub(super) store_requests: Family<CallLabels, Counter>,
}

impl Families {
    /// Registers all metrics. The library appends `_total` and `_info` to the names of counters and infos, and a full
    /// stop to the help text.
    pub(super) fn registered(registry: &mut Registry) -> Self {
        registry.register("build", "What is running", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        let mut all = Registrar(registry);
        let families = Self {
            http_requests: all.family("http_requests", "HTTP requests that were answered or given up"),
            uploads: all.family("uploads", "Uploads that ended"),
            upload_refusals: all.family("upload_refusals", "Uploads that were refused"),
            upload_bytes: all.counter("upload_bytes", "Bytes of bundles that arrived"),
            copied_bytes: all.counter("copied_bytes", "Bytes of bundles that were copied from other bundles"),
            upload_duration: all.histogram(
                "upload_duration_seconds",
                "Time from request to acknowledgement of stored bundles",
                &TRANSFER_SECONDS,
            ),
            downloads: all.family("downloads", "Downloads that ended"),
            download_bytes: all.counter("download_bytes", "Bytes of bundles handed to connections"),
            download_duration: all.histogram(
                "download_duration_seconds",
                "Time from the first to the last byte of completed downloads",
                &TRANSFER_SECONDS,
            ),
            in_flight: all.family("transfers_in_flight", "Transfers in flight"),
            resources: all.family("resources", "Resources in the ledger"),
            stored_bytes: all.metric("stored_bytes", "Bytes of acknowledged bundles"),
            strays: all.metric("strays", "Bundles that belong to no resource"),
            stray_bytes: all.metric("stray_bytes", "Bytes of bundles that belong to no resource"),
            disk_free_bytes: all.metric("disk_free_bytes", "Bytes free on the disk of the data directory"),
            certificate_ends: all.metric(
                "tls_certificate_expiration_timestamp_seconds",
                "When the certificate of the server ends",
            ),
            limit: all.family("limit", "The limit of what the label names"),
            limit_used: all.family("limit_used", "How much of the limit is used"),
            sweeps: all.family("sweeps", "Passes of the cleaner"),
            sweep_duration: all.histogram(
                "sweep_duration_seconds",
                "Time that a pass of the cleaner took",
                &SWEEP_SECONDS,
            ),
            last_sweep: all.metric("last_sweep_timestamp_seconds", "End of the last pass that succeeded"),
            deletions: all.family("deletions", "Resources deleted"),
            kept: all.family("resources_kept", "Resources that the last sweep kept"),
            mass_deletion_held: all
                .metric("mass_deletion_held", "Resources that are held back from a mass deletion"),
            ledger_behind: all.metric("ledger_behind", "Whether the ledger is an earlier copy"),
            ledger_copied: all.metric("ledger_copy_timestamp_seconds", "When the ledger was copied last"),
            ledger_logged: all
                .metric("ledger_log_timestamp_seconds", "When the log of the ledger went on last"),
            ledger_stalled: all.metric("ledger_log_stalled", "Whether the bucket does not take log or stamp"),
            ledger_epoch: all.metric("ledger_epoch", "The epoch of this server in its bucket"),
            ledger_takeover: all.metric("ledger_takeover_seconds", "Time that this server took to take over"),
            other_cluster: all.metric("other_cluster", "Whether another cluster answers than before"),
            tombstones_dropped: all.counter("tombstones_dropped", "Tombstones that went before their time"),
            unreadable: all.metric("unreadable_resources", "Resources that this version cannot read"),
            owner_watches: all.family("owner_watches", "Watches of owners"),
            owner_watch_restarts: all.family("owner_watch_restarts", "Watches that had to start again"),
            api_requests: all.family("api_requests", "Calls to the API server"),
            store_requests: all.family("store_requests", "Calls to the bucket"),
        };
        families.start_at_zero();
        families
    }

    /// Creates the counters whose labels are known from the start. Prometheus then sees their first event as an
    /// increase.
    fn start_at_zero(&self) {
        for outcome in ["stored", "refused", "failed"] {
            drop(self.uploads.get_or_create(&outcome.into()));
        }
        for outcome in ["completed", "broken", "refused"] {
            drop(self.downloads.get_or_create(&outcome.into()));
        }
        for outcome in SweepOutcome::ALL {
            drop(self.sweeps.get_or_create(&outcome.as_str().into()));
        }
    }
}

struct Registrar<'a>(&'a mut Registry);

impl Registrar<'_> {
    fn metric<M: Metric + Clone + Default>(&mut self, name: &str, help: &str) -> M {
        self.registered(name, help, M::default())
    }

    fn counter(&mut self, name: &str, help: &str) -> Counter {
        self.metric(name, help)
    }

    fn family<S, M>(&mut self, name: &str, help: &str) -> Family<S, M>
    where
        S: Clone + std::hash::Hash + Eq,
        M: Default,
        Family<S, M>: Metric,
    {
        self.metric(name, help)
    }

    fn histogram(&mut self, name: &str, help: &str, buckets: &[f64]) -> Histogram {
        self.registered(name, help, Histogram::new(buckets.iter().copied()))
    }

    fn registered<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register(name, help, metric.clone());
        metric
    }
}

/// A level that may be unknown. If it is, the metric is left out.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownLevel(Arc<Mutex<Option<u64>>>);

impl KnownLevel {
    pub(super) fn set(&self, level: Option<u64>) {
        *lock(&self.0) = level;
    }
}

impl EncodeMetric for KnownLevel {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        lock(&self.0).as_ref().map_or(Ok(()), |level| encoder.encode_gauge(level))
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }

    fn is_empty(&self) -> bool {
        lock(&self.0).is_none()
    }
}
