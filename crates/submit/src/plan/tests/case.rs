//! A builder of test applications, each with a folder of its own, and accessors for the planned objects.

use std::collections::BTreeMap;
use std::path::Path;

use cloakroom_spark::{MainResource, Origin, Properties, SparkConf, SubmitArguments};
use jiff::Timestamp;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::Value;
use tempfile::TempDir;

use crate::inputs::Local;
use crate::plan::{Asking, PlanError, Request, Submitter};
use crate::run::planned;
use crate::stage::NamedServer;
use crate::{Log, Randomness, Submission};

/// `SparkPi` in its simplest form. Tests add settings and files to it.
pub(super) struct PlanCase {
    folder: TempDir,
    pub arguments: SubmitArguments,
    variables: BTreeMap<String, String>,
}

impl PlanCase {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            arguments: SubmitArguments {
                conf: SparkConf::default(),
                resource: MainResource::Java(
                    "local:///opt/spark/examples/jars/spark-examples.jar".to_owned(),
                ),
                main_class: "org.apache.spark.examples.SparkPi".to_owned(),
                arguments: Vec::new(),
                proxy_user: None,
            },
            variables: BTreeMap::new(),
        }
        .with("spark.master", "k8s://http://127.0.0.1:8902")
        .with("spark.submit.deployMode", "cluster")
        .with("spark.app.name", "org.apache.spark.examples.SparkPi")
        .with("spark.jars", "local:///opt/spark/examples/jars/spark-examples.jar")
        .with("spark.kubernetes.container.image", "repo.example/spark:4")
    }

    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.arguments.conf.set(key, value, Origin::Conf);
        self
    }

    pub fn without(mut self, key: &str) -> Self {
        self.arguments.conf.remove(key);
        self
    }

    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    pub fn with_resource(mut self, resource: MainResource) -> Self {
        self.arguments.resource = resource;
        self
    }

    /// A jar is a zip file for all that is looked at, and then has the text.
    pub fn with_file(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        let beginning: &[u8] = if Path::new(name).extension().is_some_and(|ending| ending == "jar") {
            b"PK\x05\x06"
        } else {
            b""
        };
        self.with_bytes(name, [beginning, text.as_ref()].concat())
    }

    pub fn with_bytes(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
        self
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn request(&self) -> Request {
        let submitter = Submitter {
            system: BTreeMap::new(),
            variables: self.variables.clone(),
            user: Ok("root".to_owned()),
            working_folder: self.folder.path().to_owned(),
        };
        let asking = Asking::Allowed { attempts: None };
        Request { arguments: self.arguments.clone(), submitter, asking }
    }

    pub fn randomness() -> Randomness {
        let now = Timestamp::from_millisecond(1_795_223_152_157).unwrap();
        Randomness::new(now, &mut StdRng::seed_from_u64(7))
    }

    pub async fn plan(&self) -> Result<Submission, PlanError> {
        planned(&self.request(), &Local, &NamedServer::BY_ADDRESS, &Self::randomness(), &Log::new(|_| {}))
            .await
    }

    pub async fn submission(&self) -> Submission {
        self.plan().await.unwrap()
    }

    pub async fn refusal(&self) -> String {
        match self.plan().await {
            Ok(_) => panic!("it was not refused"),
            Err(error) => error.to_string(),
        }
    }
}

impl Submission {
    /// The Spark container.
    pub(super) fn container(&self) -> &Value {
        self.pod["spec"]["containers"].as_array().unwrap().last().unwrap()
    }

    /// All values of an environment variable. The last one counts.
    pub(super) fn variable(&self, name: &str) -> Vec<&Value> {
        let variables = self.container()["env"].as_array().unwrap().iter();
        variables.filter(|variable| variable["name"] == name).map(|variable| &variable["value"]).collect()
    }

    /// The volume of a name, and its mount.
    pub(super) fn volume(&self, name: &str) -> (&Value, &Value) {
        (named(&self.pod["spec"]["volumes"], name), named(&self.container()["volumeMounts"], name))
    }

    /// `spark.properties`, read back.
    pub(super) fn properties(&self) -> BTreeMap<String, String> {
        let map = self.after_pod.last().unwrap();
        let text = map["data"]["spark.properties"].as_str().unwrap();
        let properties = Properties::parse("spark.properties", text).unwrap();
        properties.iter().map(|property| (property.key.to_owned(), property.value.to_owned())).collect()
    }

    /// The kinds and names of all objects, in the order of their creation.
    pub(super) fn made(&self) -> Vec<String> {
        let prefix =
            self.pod["metadata"]["name"].as_str().unwrap().strip_suffix("-driver").unwrap_or_default();
        let objects = self.before_pod.iter().chain([&self.pod]).chain(&self.after_pod);
        objects
            .map(|object| {
                let name = object["metadata"]["name"].as_str().unwrap();
                let name = if prefix.is_empty() { name.to_owned() } else { name.replace(prefix, "<P>") };
                format!("{} {name}", object["kind"].as_str().unwrap())
            })
            .collect()
    }
}

fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let items = list.as_array().unwrap();
    items.iter().find(|item| item["name"] == name).unwrap_or_else(|| panic!("no {name} in {list}"))
}

/// The only object of a kind that is created after the pod.
pub(super) fn of_kind<'a>(submission: &'a Submission, kind: &str) -> &'a Value {
    submission.after_pod.iter().find(|object| object["kind"] == kind).unwrap()
}

/// The object whose name has this end.
pub(super) fn object<'a>(submission: &'a Submission, end: &str) -> &'a Value {
    let is_it = |object: &&Value| object["metadata"]["name"].as_str().unwrap().ends_with(end);
    submission.after_pod.iter().find(is_it).unwrap()
}
