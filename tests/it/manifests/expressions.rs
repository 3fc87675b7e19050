//! As much of PromQL as says which metrics and labels an expression uses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Names of metrics, with their labels.
pub type Metrics = BTreeMap<String, BTreeSet<String>>;

/// How the names of metrics begin.
const PREFIXES: [&str; 2] = ["cloakroom_", "process_"];

/// Labels that come from the scrape and from histograms, not from the server.
const OF_THE_TARGET: [&str; 4] = ["namespace", "pod", "job", "le"];

/// The metrics of the table under “Metrics” in docs/reference/metrics-and-logs.md, with their labels: each is the first word in code of
/// a part of the third column.
pub fn documented_metrics() -> Metrics {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/metrics-and-logs.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, chapter) = page.split_once("\n## Metrics\n").unwrap();
    let chapter = chapter.split("\n## ").next().unwrap();
    let is_row = |line: &&str| PREFIXES.iter().any(|prefix| line.starts_with(&format!("| `{prefix}")));
    let rows = chapter.lines().filter(is_row);
    let mut documented: Metrics = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let labels = cells[3].split(';').filter_map(|part| part.split('`').nth(1));
            (cells[1].trim_matches('`').to_owned(), labels.map(str::to_owned).collect())
        })
        .collect();
    assert!(documented.len() > 10, "the table under “Metrics” is read wrong");
    // Not cloakroom's own: Prometheus makes it for every target.
    documented.insert("up".to_owned(), BTreeSet::new());
    documented
}

/// What is wrong with an expression.
pub fn complaints(expression: &str, known: &Metrics) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut labels: BTreeSet<&str> = OF_THE_TARGET.into();
    for (name, matchers) in metrics(expression) {
        let Some(of_metric) = known.get(name).or_else(|| known.get(without_suffix(name))) else {
            complaints.push(format!("there is no metric {name}: {expression}"));
            continue;
        };
        labels.extend(of_metric.iter().map(String::as_str));
        let unknown = matched(matchers)
            .filter(|label| !of_metric.contains(*label) && !OF_THE_TARGET.contains(label))
            .map(|label| format!("{name} has no label {label}: {expression}"));
        complaints.extend(unknown);
    }
    let grouped =
        expression.split("by (").skip(1).flat_map(|rest| rest.split(')').next().unwrap().split(','));
    let unknown = grouped.map(str::trim).filter(|label| !labels.contains(label));
    complaints.extend(unknown.map(|label| format!("nothing here has a label {label}: {expression}")));
    complaints
}

/// Every metric of the expression, with what stands between the braces behind it.
fn metrics(expression: &str) -> Vec<(&str, &str)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = PREFIXES.iter().chain(&["up{"]).flat_map(|begin| expression.match_indices(begin));
    let starts = starts.map(|(start, _)| start).filter(|start| !expression[..*start].ends_with(is_name));
    starts
        .map(|start| {
            let rest = &expression[start..];
            let (name, behind) = rest.split_at(rest.find(|c| !is_name(c)).unwrap_or(rest.len()));
            let matchers = behind.strip_prefix('{').and_then(|text| text.split('}').next());
            (name, matchers.unwrap_or_default())
        })
        .collect()
}

/// The labels of `a="x",b=~"y|z"`; commas do not occur in values here.
fn matched(matchers: &str) -> impl Iterator<Item = &str> {
    let parts = matchers.split(',').filter(|part| !part.is_empty());
    parts.map(|part| part.split(['=', '!']).next().unwrap_or_default().trim())
}

fn without_suffix(name: &str) -> &str {
    ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

#[test]
fn planted_mistakes_in_expressions_are_found() {
    let known = documented_metrics();
    for good in [
        "sum by (outcome) (rate(cloakroom_uploads_total{namespace=~\"a\"}[5m]))",
        "histogram_quantile(0.9, sum by (le) (cloakroom_sweep_duration_seconds_bucket))",
        "up{job=\"cloakroom\"} == 0",
        "rate(process_cpu_seconds_total{job=\"cloakroom\"}[5m])",
    ] {
        assert_eq!(complaints(good, &known), Vec::<String>::new());
    }
    for bad in [
        "rate(cloakroom_upload_total[5m])",
        "cloakroom_uploads_total{result=\"stored\"}",
        "sum by (reason) (cloakroom_uploads_total)",
        "cloakroom_sweeps{outcome=\"failed\"}",
        "rate(process_cpu_seconds{job=\"cloakroom\"}[5m])",
    ] {
        assert_eq!(complaints(bad, &known).len(), 1, "{bad}");
    }
}
