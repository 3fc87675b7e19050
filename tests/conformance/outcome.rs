//! What a run comes to, in normal form, and how it is kept.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api_server::Call;
use crate::machine::Run;
use crate::normal_form::NormalForm;
use crate::sets::{self, Set};

/// A run in normal form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub exit: i32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub uploads: BTreeMap<String, u64>,
    /// What was said, on stdout and stderr, without the prefixes of a log.
    pub said: Vec<String>,
    pub calls: Vec<Call>,
}

impl Outcome {
    pub fn new(run: Run, set: &Set) -> Self {
        let mut normal = NormalForm::new(run.literals, set.unordered.contains("localDirs"));
        let calls = run.calls.into_iter().map(|call| normal.call(call)).collect();
        let uploads = run.uploads.into_iter().map(|(path, size)| (normal.text(&path), size)).collect();
        let lines = run.stdout.lines().chain(run.stderr.lines());
        let said = lines.filter_map(|line| worth_keeping(line)).map(|line| normal.text(line)).collect();
        Self { exit: run.exit, uploads, said, calls }
    }

    /// Whether nothing came of it: no request, or only a trial of the pod, the question about its service account, and the
    /// look for the Service of a staging server.
    pub fn is_refused(&self) -> bool {
        let looks_for_a_service = |call: &Call| call.method == "GET" && call.path.contains("/services");
        let makes_nothing = |call: &Call| {
            call.query.contains_key("dryRun")
                || call.path.ends_with("/localsubjectaccessreviews")
                || looks_for_a_service(call)
        };
        self.calls.iter().all(makes_nothing)
    }

    /// For people.
    pub fn verdict(&self) -> String {
        let verdict = if self.is_refused() { "refused" } else { "accepted" };
        format!("{verdict}, exit code {}", self.exit)
    }
}

/// What the key of a set did when the real spark-submit was called with it and without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObservedEffect {
    /// The one is refused and the other is not, or they end differently.
    Verdict,
    /// Calls or objects are different.
    Objects,
    /// Only `spark.properties` is different.
    Properties,
    Nothing,
    /// There is no key to take away.
    None,
}

/// One recording of the real spark-submit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    pub effect: ObservedEffect,
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Recording {
    pub fn read(version: &str, set: &str) -> Option<Self> {
        let text = std::fs::read_to_string(path(version, set)).ok()?;
        Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{set} of {version}: {error}")))
    }

    pub fn write(&self, version: &str, set: &str) {
        let path = path(version, set);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut text = String::new();
        print(&serde_json::to_value(self).unwrap(), 0, &mut text);
        std::fs::write(path, text + "\n").unwrap();
    }
}

/// The recordings of one version.
pub fn folder(version: &str) -> PathBuf {
    sets::folder().join("recordings").join(version)
}

fn path(version: &str, set: &str) -> PathBuf {
    folder(version).join(format!("{set}.json"))
}

/// JSON for people: what fits into a line is in one, and comes first.
fn print(value: &Value, depth: usize, text: &mut String) {
    const WIDTH: usize = 110;
    let line = value.to_string();
    let fits = |line: &str, depth: usize| line.chars().count() + 2 * depth <= WIDTH;
    let mut parts: Vec<(String, &Value)> = match value {
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| (format!("{}: ", Value::from(name.as_str())), field)).collect()
        }
        Value::Array(items) => items.iter().map(|item| (String::new(), item)).collect(),
        _ => Vec::new(),
    };
    if parts.is_empty() || fits(&line, depth) && depth > 0 {
        text.push_str(&line);
        return;
    }
    if value.is_object() {
        parts.sort_by_key(|(name, part)| !fits(&format!("{name}{part}"), depth + 1));
    }
    text.push_str(&line[..1]);
    for (number, (name, part)) in parts.iter().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        text.push_str(&format!("{comma}\n{}{name}", "  ".repeat(depth + 1)));
        print(part, depth + 1, text);
    }
    text.push_str(&format!("\n{}{}", "  ".repeat(depth), &line[line.len() - 1..]));
}

/// A line without the time and the logger's prefix, if it says something about the submission.
fn worth_keeping(line: &str) -> Option<&str> {
    let said = without_time(line);
    let noise = said.starts_with("\tat ")
        || said.starts_with("\t... ")
        || said.starts_with("WARNING: Using incubator modules")
        || said.contains("ShutdownHookManager: ")
        || said.contains("NativeCodeLoader: ")
        // A busy machine.
        || said.contains("BlockedThreadChecker: ")
        || said.starts_with("io.vertx.core.VertxException: Thread blocked")
        || said.starts_with("Using Spark's default log4j profile")
        || said.contains("Auto-configuring K8S client");
    (!noise && !said.trim().is_empty()).then_some(said)
}

/// `26/11/21 01:13:00 INFO Client: …` without the first two words.
fn without_time(line: &str) -> &str {
    let is_time = line.len() > 18
        && line.bytes().zip(*b"00/00/00 00:00:00 ").all(|(byte, pattern)| match pattern {
            b'0' => byte.is_ascii_digit(),
            other => byte == other,
        });
    if is_time { &line[18..] } else { line }
}
