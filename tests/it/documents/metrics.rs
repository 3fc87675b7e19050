//! The table of metrics, against what is exported when everything has happened once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cloakroom_cluster::ApiFailure;
use cloakroom_core::metrics::{
    ApiCall, LimitUse, Limited, Metrics, Stock, StoreCall, StoreOutcome, SweepOutcome,
};
use cloakroom_core::resource::{DeletionReason, State};
use cloakroom_server::cleaner::KeepReason;
use cloakroom_server::owners::{RESTART_CAUSES, WatchState};
use jiff::Timestamp;

use super::markdown::Page;
use super::{NOTHING, repository};

/// Type, and labels with their values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metric {
    kind: String,
    labels: BTreeMap<String, BTreeSet<String>>,
}

/// What is exported, by name as it is queried; of a histogram the name without its suffixes.
pub fn exported() -> BTreeMap<String, Metric> {
    let resources = State::ALL.iter().map(|state| (state.as_str(), 1)).collect();
    let limits = Limited::ALL.iter().map(|of| LimitUse { of: *of, used: 1, limit: 2 }).collect();
    let free_bytes = Some(1);
    let stock = Stock {
        uploads: 1,
        downloads: 1,
        stored_bytes: 1,
        strays: 1,
        stray_bytes: 1,
        free_bytes,
        resources,
        limits,
    };
    read(&after_everything().exposition(&stock).unwrap())
}

fn after_everything() -> Metrics {
    let metrics = Metrics::new();
    metrics.http_request(None, "GET", Some(200));
    metrics.certificate_ends(Some(1));
    metrics.deletions_have(DeletionReason::ALL.iter().map(|reason| reason.as_str()));
    metrics.upload_refusals_have(["share"]);
    metrics.swept(SweepOutcome::Ok, Duration::ZERO, Timestamp::UNIX_EPOCH);
    metrics.kept(&KeepReason::ALL.iter().map(|why| (why.as_str(), 1)).collect::<Vec<_>>());
    for state in WatchState::ALL {
        metrics.owner_watches("Pod", state.as_str(), 1);
    }
    for cause in RESTART_CAUSES {
        metrics.owner_watch_restarted("Pod", cause);
    }
    for call in ApiCall::ALL {
        for outcome in std::iter::once("ok").chain(failures().iter().map(ApiFailure::label)) {
            metrics.api_request(*call, outcome);
        }
    }
    for call in StoreCall::ALL {
        for outcome in StoreOutcome::ALL {
            metrics.store_request(*call, *outcome);
        }
    }
    metrics.ledger_copied(Timestamp::UNIX_EPOCH);
    metrics.ledger_logged(Timestamp::UNIX_EPOCH);
    metrics.ledger_stalled(false);
    metrics.took_over(1, Duration::ZERO);
    metrics
}

fn failures() -> [ApiFailure; 11] {
    let (message, why) = (String::new, String::new);
    [
        ApiFailure::Unauthorized { message: message() },
        ApiFailure::Forbidden { message: message() },
        ApiFailure::NotFound { message: message() },
        ApiFailure::Expired { message: message() },
        ApiFailure::Throttled { message: message(), retry_after: None },
        ApiFailure::Refused { code: 503, message: message() },
        ApiFailure::Refused { code: 409, message: message() },
        ApiFailure::TimedOut { after: Duration::ZERO },
        ApiFailure::NoCredential { why: why() },
        ApiFailure::Unreachable { why: why() },
        ApiFailure::Unreadable { why: why() },
    ]
}

fn read(text: &str) -> BTreeMap<String, Metric> {
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            current = match kind {
                "counter" => format!("{name}_total"),
                "info" => format!("{name}_info"),
                _ => name.to_owned(),
            };
            metrics.insert(current.clone(), Metric { kind: kind.to_owned(), ..Metric::default() });
        } else if !line.starts_with('#') {
            let metric = metrics.get_mut(&current).unwrap();
            let labels = line.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}'));
            for (label, value) in labels
                .iter()
                .flat_map(|(labels, _)| labels.split("\","))
                .filter_map(|label| label.split_once("=\""))
            {
                if label != "le" {
                    metric
                        .labels
                        .entry(label.to_owned())
                        .or_default()
                        .insert(value.trim_end_matches('"').to_owned());
                }
            }
        }
    }
    metrics
}

/// The names that the source registers, without prefix and suffix.
pub fn registered() -> BTreeSet<String> {
    let files =
        ["families.rs", "process.rs"].map(|file| repository().join("crates/core/src/metrics").join(file));
    let source = files.map(|file| std::fs::read_to_string(file).unwrap()).concat();
    let packed: String = source.split_whitespace().collect();
    let calls = packed.split("(\"").skip(1).filter_map(|call| call.split_once("\",\""));
    calls.map(|(name, _)| name.to_owned()).filter(|name| !name.contains('"')).collect()
}

/// The table has every metric with its type, its labels, and where they are listed and not described, their values.
pub fn about(page: &Page, known: &BTreeMap<String, Metric>) -> Vec<String> {
    let rows = page.rows("Metrics");
    let mut complaints = Vec::new();
    for row in &rows {
        let Some(metric) = known.get(&row[0]) else {
            complaints.push(page.complain(format!("there is no metric {}", row[0])));
            continue;
        };
        if row[1] != metric.kind {
            complaints.push(page.complain(format!("{} is a {}, not a {}", row[0], metric.kind, row[1])));
        }
        let documented = labels(&row[2]);
        if documented.keys().ne(metric.labels.keys()) {
            let of = |labels: &BTreeMap<String, BTreeSet<String>>| {
                labels.keys().cloned().collect::<Vec<_>>().join(", ")
            };
            complaints.push(page.complain(format!(
                "{} has the labels “{}”, not “{}”",
                row[0],
                of(&metric.labels),
                of(&documented)
            )));
        }
        for (label, values) in documented.iter().filter(|(_, values)| !values.is_empty()) {
            if metric.labels.get(label).is_some_and(|exported| exported != values) {
                let exported: Vec<_> = metric.labels[label].iter().cloned().collect();
                complaints.push(page.complain(format!(
                    "{} of {} is one of {}",
                    label,
                    row[0],
                    exported.join(", ")
                )));
            }
        }
    }
    let missing = known.keys().filter(|name| rows.iter().all(|row| row[0] != **name));
    complaints.extend(missing.map(|name| page.complain(format!("the metric {name} is missing"))));
    complaints
}

/// `label: value, value; label (a description)`
fn labels(cell: &str) -> BTreeMap<String, BTreeSet<String>> {
    let entries = cell.split(';').map(str::trim).filter(|entry| *entry != NOTHING);
    entries
        .map(|entry| match (entry.split_once(" ("), entry.split_once(": ")) {
            (None, Some((label, values))) => {
                (label.to_owned(), values.split(", ").map(str::to_owned).collect())
            }
            (described, _) => (described.map_or(entry, |(label, _)| label).to_owned(), BTreeSet::new()),
        })
        .collect()
}

#[test]
fn planted_mistakes_in_the_table_of_metrics_are_found() {
    let known = read(
        "# HELP a A.\n# TYPE a counter\na_total{x=\"1\",y=\"2\"} 1\n# TYPE b gauge\nb 1\n# TYPE c histogram\nc_bucket{le=\"1\"} 1\n# EOF\n",
    );
    let page = |rows: &str| {
        let text = format!("## Metrics\n\n| name | type | labels |\n|---|---|---|\n{rows}");
        Page::new(repository().join("docs/planted.md"), text)
    };
    let right =
        "| `a_total` | counter | `x`: `1`; `y` (a number) |\n| `b` | gauge | – |\n| `c` | histogram | – |\n";
    assert_eq!(about(&page(right), &known), Vec::<String>::new());
    for (wrong, complaints) in [
        (right.replace("`b`", "`d`"), 2),
        (right.replace("gauge", "counter"), 1),
        (right.replace("`x`: `1`; ", ""), 1),
        (right.replace("`x`: `1`", "`x`: `3`"), 1),
        (right.replace("| gauge | –", "| gauge | `z` (a word)"), 1),
    ] {
        assert_eq!(about(&page(&wrong), &known).len(), complaints, "{wrong}");
    }
}
