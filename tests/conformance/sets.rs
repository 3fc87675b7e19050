//! The argument sets: what spark-submit is called with, for which key, and in what surroundings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The versions of Spark that sets are recorded with.
pub const VERSIONS: [&str; 2] = ["4.3.0", "3.5.9"];

/// What every set begins with unless it says otherwise.
const BASE: [&str; 10] = [
    "--master",
    "{master}",
    "--deploy-mode",
    "cluster",
    "--class",
    "org.apache.spark.examples.SparkPi",
    "--conf",
    "spark.kubernetes.container.image=repo.example/spark:4",
    "--conf",
    "spark.kubernetes.submission.waitAppCompletion=false",
];

/// What every set ends with unless it says otherwise.
const APPLICATION: &str = "local:///opt/spark/examples/jars/spark-examples.jar";

/// One call of spark-submit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    pub name: String,
    /// The key or the option that the set is there for.
    pub covers: String,
    /// The versions of Spark that it is for; none: all.
    #[serde(default)]
    spark: Vec<String>,
    base: Option<Vec<String>>,
    /// The application is waited for.
    #[serde(default)]
    waits: bool,
    /// Arguments and properties that stay when the key is taken away.
    #[serde(default)]
    also: Vec<String>,
    #[serde(default, rename = "alsoConf")]
    also_conf: BTreeMap<String, String>,
    /// The arguments and properties that bring the key.
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    conf: BTreeMap<String, String>,
    /// The application and its arguments.
    app: Option<Vec<String>>,
    /// Environment variables; `null` takes one away that every set has.
    #[serde(default)]
    env: BTreeMap<String, Option<String>>,
    #[serde(default)]
    files: BTreeMap<String, Content>,
    without: Option<Without>,
    /// The set is not about a key: there is nothing to take away.
    #[serde(default)]
    whole: bool,
    #[serde(default)]
    pub faults: Vec<Fault>,
    #[serde(default)]
    pub life: Life,
    /// What the key does; by version where they differ.
    #[serde(default)]
    effect: Declared,
    /// Lists whose order is that of a hash map in Spark.
    #[serde(default)]
    pub unordered: BTreeSet<String>,
    /// What must not be found in the output.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// Recorded anew in every CI run.
    #[serde(default)]
    pub live: bool,
}

/// How the key of a set is taken away, where leaving out its `args` is not it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Without {
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    conf: BTreeMap<String, String>,
    app: Option<Vec<String>>,
    base: Option<Vec<String>>,
    #[serde(default)]
    env: BTreeSet<String>,
    #[serde(default)]
    files: BTreeSet<String>,
    /// What other files say instead.
    #[serde(default)]
    instead: BTreeMap<String, Content>,
}

/// What is in a file; placeholders are filled in in text.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Content {
    Text(String),
    Base64 {
        base64: String,
    },
    /// That many bytes.
    Size {
        size: usize,
    },
}

/// A request that is refused.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    pub method: String,
    pub resource: String,
    pub status: u16,
    /// How many times; none: always.
    pub times: Option<usize>,
}

/// How the driver pod ends.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Life {
    #[serde(default)]
    pub exit_code: i32,
    pub reason: Option<String>,
    /// It is deleted while it runs.
    #[serde(default)]
    pub deleted: bool,
}

/// What a key does to what is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Objects, calls or the verdict are different.
    #[default]
    Acts,
    /// Only `spark.properties` is different.
    Properties,
    /// Nothing is different.
    Nothing,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Declared {
    Always(Effect),
    ByVersion(BTreeMap<String, Effect>),
}

impl Default for Declared {
    fn default() -> Self {
        Self::Always(Effect::default())
    }
}

/// Everything of a set that a run needs.
#[derive(Debug, Clone)]
pub struct Call {
    pub arguments: Vec<String>,
    pub environment: BTreeMap<String, Option<String>>,
    pub files: BTreeMap<String, Content>,
    pub faults: Vec<Fault>,
    pub life: Life,
}

impl Set {
    pub fn is_for(&self, version: &str) -> bool {
        self.spark.is_empty() || self.spark.iter().any(|known| known == version)
    }

    pub fn effect(&self, version: &str) -> Effect {
        match &self.effect {
            Declared::Always(effect) => *effect,
            Declared::ByVersion(effects) => effects.get(version).copied().unwrap_or_default(),
        }
    }

    /// Whether it asks about applications or kills them.
    pub fn is_about_submissions(&self) -> bool {
        self.args.iter().any(|argument| argument == "--kill" || argument == "--status")
    }

    /// The call with the key.
    pub fn call(&self) -> Call {
        let arguments = self.arguments(self.base.as_ref(), &self.conf, &self.args, self.app.as_ref());
        self.surroundings(arguments, self.env.clone(), self.files.clone())
    }

    /// The call without the key, where there is one.
    pub fn without_key(&self) -> Option<Call> {
        if self.whole {
            return None;
        }
        let without = self.without.clone().unwrap_or_default();
        let base = without.base.as_ref().or(self.base.as_ref());
        let app = without.app.as_ref().or(self.app.as_ref());
        let arguments = self.arguments(base, &without.conf, &without.args, app);
        let mut environment = self.env.clone();
        environment.retain(|name, _| !without.env.contains(name));
        let mut files = self.files.clone();
        files.retain(|path, _| !without.files.contains(path));
        files.extend(without.instead);
        Some(self.surroundings(arguments, environment, files))
    }

    fn arguments(
        &self,
        base: Option<&Vec<String>>,
        conf: &BTreeMap<String, String>,
        args: &[String],
        app: Option<&Vec<String>>,
    ) -> Vec<String> {
        let whole_base = if self.waits { &BASE[..BASE.len() - 2] } else { &BASE[..] };
        let base = base.cloned().unwrap_or_else(|| whole_base.iter().map(|&part| part.to_owned()).collect());
        let app = app.cloned().unwrap_or_else(|| vec![APPLICATION.to_owned()]);
        [base, flags(&self.also_conf), self.also.clone(), flags(conf), args.to_vec(), app].concat()
    }

    fn surroundings(
        &self,
        arguments: Vec<String>,
        environment: BTreeMap<String, Option<String>>,
        files: BTreeMap<String, Content>,
    ) -> Call {
        Call { arguments, environment, files, faults: self.faults.clone(), life: self.life.clone() }
    }

    fn mistake(&self) -> Option<&'static str> {
        let is_plain = self.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !is_plain || self.name.is_empty() {
            Some("a name has lower-case letters, digits and dashes")
        } else if !self.whole && self.args.is_empty() && self.conf.is_empty() && self.without.is_none() {
            Some("how is its key taken away?")
        } else if self.spark.iter().any(|version| !VERSIONS.contains(&version.as_str())) {
            Some("no such version is recorded")
        } else {
            None
        }
    }
}

fn flags(conf: &BTreeMap<String, String>) -> Vec<String> {
    conf.iter().flat_map(|(key, value)| ["--conf".to_owned(), format!("{key}={value}")]).collect()
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")
}

/// All sets, by name.
pub fn all() -> Vec<Set> {
    let mut sets: Vec<Set> = Vec::new();
    for entry in std::fs::read_dir(folder().join("sets")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let read: Vec<Set> =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        sets.extend(read);
    }
    sets.sort_by(|one, other| one.name.cmp(&other.name));
    for set in &sets {
        assert_eq!(set.mistake(), None, "{}", set.name);
    }
    for two in sets.windows(2) {
        assert_ne!(two[0].name, two[1].name, "two sets have the same name");
    }
    sets
}
