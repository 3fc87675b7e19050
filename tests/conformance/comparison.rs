//! Two outcomes side by side: call by call, object by object, field by field.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::api_server::Call;
use crate::outcome::Outcome;

/// One thing that is not the same: where, and what there is on either side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub at: String,
    pub spark: String,
    pub ours: String,
}

/// What a side says that has nothing there.
pub const ABSENT: &str = "absent";

impl Difference {
    fn new(at: impl Into<String>, spark: impl Into<String>, ours: impl Into<String>) -> Self {
        Self { at: at.into(), spark: spark.into(), ours: ours.into() }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n    spark: {}\n    ours:  {}", self.at, self.spark, self.ours)
    }
}

/// How to compare.
#[derive(Default)]
pub struct Rules<'a> {
    /// Lists without an order: the last name of their path.
    pub unordered: Option<&'a BTreeSet<String>>,
    /// Reads are what is compared too, not only what is written.
    pub reads: bool,
}

pub fn compare(spark: &Outcome, ours: &Outcome, rules: &Rules) -> Vec<Difference> {
    let mut found = Vec::new();
    if spark.is_refused() != ours.is_refused() {
        return vec![Difference::new("verdict", spark.verdict(), ours.verdict())];
    }
    if spark.exit != ours.exit {
        found.push(Difference::new("exit", spark.exit.to_string(), ours.exit.to_string()));
    }
    let uploads = |outcome: &Outcome| serde_json::to_value(&outcome.uploads).unwrap();
    values("uploads", &uploads(spark), &uploads(ours), rules, &mut found);
    let (spark, ours) = (relevant(spark, rules), relevant(ours, rules));
    for pair in align(&spark, &ours) {
        match pair {
            (Some(one), Some(other)) => calls(one, other, rules, &mut found),
            (Some(missing), None) => found.push(Difference::new(label(missing), "sent", ABSENT)),
            (None, Some(extra)) => found.push(Difference::new(label(extra), ABSENT, "sent")),
            (None, None) => {}
        }
    }
    found
}

/// The calls that are compared. While an application is waited for, any way to look at its pod will do: that it is
/// looked at is one call.
fn relevant(outcome: &Outcome, rules: &Rules) -> Vec<Call> {
    let mut relevant: Vec<Call> = Vec::new();
    let mut is_waiting = false;
    for call in &outcome.calls {
        if rules.reads || call.method != "GET" {
            relevant.push(call.clone());
        } else if !is_waiting && is_about_one_pod(call) {
            is_waiting = true;
            let mut wait = call.clone();
            (wait.method, wait.status, wait.websocket) = ("WAIT".to_owned(), 0, false);
            wait.query.clear();
            wait.path = wait.path.split_inclusive("/pods").next().unwrap_or_default().to_owned();
            relevant.push(wait);
        }
    }
    relevant
}

fn is_about_one_pod(call: &Call) -> bool {
    let selector = call.query.get("fieldSelector").is_some_and(|fields| fields.starts_with("metadata.name="));
    call.path.contains("/pods/") || call.path.ends_with("/pods") && selector
}

/// `PATCH services/spark-pi-<id-1>-driver-svc`.
pub fn label(call: &Call) -> String {
    let (collection, name) = target(call);
    let resource = collection.rsplit('/').next().unwrap_or_default();
    let slash = if name.is_empty() { "" } else { "/" };
    let dry = if call.query.contains_key("dryRun") { "?dryRun=All" } else { "" };
    format!("{} {resource}{slash}{name}{dry}", call.method)
}

/// The path of the collection, and the name in it.
fn target(call: &Call) -> (&str, &str) {
    let parts: Vec<_> = call.path.match_indices('/').map(|(at, _)| at).collect();
    let namespaced = call.path.find("/namespaces/");
    let is_named = match namespaced {
        Some(at) => parts.iter().filter(|slash| **slash > at).count() > 2,
        None => false,
    };
    match parts.last() {
        Some(last) if is_named => (&call.path[..*last], &call.path[last + 1..]),
        _ => (&call.path, ""),
    }
}

/// Pairs in order, so that as much as possible has a partner: the same method on the same collection, better with the
/// same name.
fn align<'a>(spark: &'a [Call], ours: &'a [Call]) -> Vec<(Option<&'a Call>, Option<&'a Call>)> {
    let mut best = vec![vec![0; ours.len() + 1]; spark.len() + 1];
    for i in (0..spark.len()).rev() {
        for j in (0..ours.len()).rev() {
            let paired = likeness(&spark[i], &ours[j]).map_or(0, |likeness| likeness + best[i + 1][j + 1]);
            best[i][j] = paired.max(best[i + 1][j]).max(best[i][j + 1]);
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut pairs = Vec::new();
    while i < spark.len() || j < ours.len() {
        if i < spark.len() && j < ours.len() {
            let paired = likeness(&spark[i], &ours[j]).map(|likeness| likeness + best[i + 1][j + 1]);
            if paired == Some(best[i][j]) {
                pairs.push((Some(&spark[i]), Some(&ours[j])));
                (i, j) = (i + 1, j + 1);
                continue;
            }
        }
        if j == ours.len() || i < spark.len() && best[i + 1][j] >= best[i][j + 1] {
            pairs.push((Some(&spark[i]), None));
            i += 1;
        } else {
            pairs.push((None, Some(&ours[j])));
            j += 1;
        }
    }
    pairs
}

fn likeness(one: &Call, other: &Call) -> Option<u32> {
    let same_dry_run = one.query.contains_key("dryRun") == other.query.contains_key("dryRun");
    if one.method != other.method || target(one).0 != target(other).0 || !same_dry_run {
        return None;
    }
    Some(if one.path == other.path { 3 } else { 2 })
}

fn calls(spark: &Call, ours: &Call, rules: &Rules, found: &mut Vec<Difference>) {
    let at = label(spark);
    let mut field = |name: &str, one: Value, other: Value| {
        values(&format!("{at}: {name}"), &one, &other, rules, found);
    };
    let json = |value: &dyn Fn(&Call) -> Value| (value(spark), value(ours));
    for (name, (one, other)) in [
        ("path", json(&|call| call.path.clone().into())),
        ("query", json(&|call| serde_json::to_value(&call.query).unwrap())),
        ("content type", json(&|call| call.content_type.clone().into())),
        ("authorization", json(&|call| call.authorization.clone().into())),
        ("impersonation", json(&|call| call.impersonation.clone().into())),
        ("status", json(&|call| call.status.into())),
        ("body", json(&|call| call.body.clone())),
    ] {
        field(name, one, other);
    }
}

fn values(at: &str, spark: &Value, ours: &Value, rules: &Rules, found: &mut Vec<Difference>) {
    match (spark, ours) {
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<_> = one.keys().chain(other.keys()).collect();
            for name in names {
                let at = format!("{at}.{name}");
                match (one.get(name), other.get(name)) {
                    (Some(one), Some(other)) => values(&at, one, other, rules, found),
                    (one, other) => found.push(Difference::new(at, shown(one), shown(other))),
                }
            }
        }
        (Value::Array(one), Value::Array(other)) => lists(at, one, other, rules, found),
        _ if spark == ours => {}
        _ => found.push(Difference::new(at, shown(Some(spark)), shown(Some(ours)))),
    }
}

/// Items with names are compared by name, and then their order; others by their place.
fn lists(at: &str, spark: &[Value], ours: &[Value], rules: &Rules, found: &mut Vec<Difference>) {
    let list = at.rsplit('.').next().unwrap_or_default();
    let has_order = !rules.unordered.is_some_and(|unordered| unordered.contains(list));
    let (Some(spark_names), Some(our_names)) = (names(spark), names(ours)) else {
        let (spark, ours) =
            if has_order { (spark.to_vec(), ours.to_vec()) } else { (sorted(spark), sorted(ours)) };
        for place in 0..spark.len().max(ours.len()) {
            let at = format!("{at}[{place}]");
            match (spark.get(place), ours.get(place)) {
                (Some(one), Some(other)) => values(&at, one, other, rules, found),
                (one, other) => found.push(Difference::new(at, shown(one), shown(other))),
            }
        }
        return;
    };
    for (name, one) in spark_names.iter().zip(spark) {
        let at = format!("{at}[{name}]");
        match our_names.iter().position(|other| other == name) {
            Some(place) => values(&at, one, &ours[place], rules, found),
            None => found.push(Difference::new(at, shown(Some(one)), ABSENT)),
        }
    }
    for (name, other) in our_names.iter().zip(ours).filter(|(name, _)| !spark_names.contains(name)) {
        found.push(Difference::new(format!("{at}[{name}]"), ABSENT, shown(Some(other))));
    }
    let common = |names: &[&str], others: &[&str]| {
        names.iter().filter(|name| others.contains(name)).copied().collect::<Vec<_>>().join(", ")
    };
    let orders = (common(&spark_names, &our_names), common(&our_names, &spark_names));
    if has_order && orders.0 != orders.1 {
        found.push(Difference::new(format!("{at}: order"), orders.0, orders.1));
    }
}

fn sorted(items: &[Value]) -> Vec<Value> {
    let mut items = items.to_vec();
    items.sort_by_key(Value::to_string);
    items
}

/// The names of the items, if every one has its own.
fn names(items: &[Value]) -> Option<Vec<&str>> {
    let names: Option<Vec<_>> = items.iter().map(|item| item.get("name").and_then(Value::as_str)).collect();
    let names = names?;
    let different: BTreeSet<_> = names.iter().collect();
    (different.len() == names.len()).then_some(names)
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), Value::to_string)
}
