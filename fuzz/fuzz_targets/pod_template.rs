//! Pod templates, made into a whole submission. The input is the YAML, after a NUL the name of the container, and after
//! another NUL a value to put into the YAML. So values change while the YAML stays valid.
#![no_main]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use cloakroom_fuzz::two;
use cloakroom_spark::{MainResource, Origin, SparkConf, SubmitArguments};
use cloakroom_submit::inputs::Local;
use cloakroom_submit::plan::{Asking, PlanError, Request, Submitter};
use cloakroom_submit::run;
use cloakroom_submit::stage::NamedServer;
use cloakroom_submit::{Log, Randomness, Submission};
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::runtime::{Builder, Runtime};

const JAR: &str = "local:///opt/spark/examples/jars/spark-examples.jar";

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().build().expect("a runtime"));

fuzz_target!(|text: &str| {
    let (template, rest) = two(text);
    let (container, change) = two(rest);
    let template = changed(template, change);
    let version = if text.len() % 2 == 0 { "4.3.0" } else { "3.5.9" };
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("driver.yaml"), template).expect("a file");
    match planned(folder.path(), container, version) {
        Ok(submission) => check(&submission),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

/// Replaces one value: the first character selects it, the others are the new value.
fn changed(template: &str, change: &str) -> String {
    let mut change = change.chars();
    let values: Vec<_> = template.match_indices(": ").map(|(at, _)| at + 2).collect();
    let (Some(which), false) = (change.next(), values.is_empty()) else { return template.to_owned() };
    let (before, value) = template.split_at(values[which as usize % values.len()]);
    let end = value.find(['\n', ',', '}', ']']).unwrap_or(value.len());
    format!("{before}{}{}", change.as_str(), &value[end..])
}

fn planned(folder: &Path, container: &str, version: &str) -> Result<Submission, PlanError> {
    let mut conf = SparkConf::default();
    let mut set = |key: &str, value: &str| conf.set(key, value, Origin::Conf);
    set("spark.master", "k8s://http://127.0.0.1:8902");
    set("spark.submit.deployMode", "cluster");
    set("spark.app.name", "pi");
    set("spark.jars", JAR);
    set("spark.kubernetes.container.image", "repo.example/spark:4");
    set("spark.kubernetes.driver.podTemplateFile", "driver.yaml");
    set("spark.kubernetes.cloakroom.sparkVersion", version);
    if !container.is_empty() {
        set("spark.kubernetes.driver.podTemplateContainerName", container);
    }
    let arguments = SubmitArguments {
        conf,
        resource: MainResource::Java(JAR.to_owned()),
        main_class: "org.apache.spark.examples.SparkPi".to_owned(),
        arguments: Vec::new(),
        proxy_user: None,
    };
    let submitter = Submitter {
        variables: BTreeMap::new(),
        system: BTreeMap::new(),
        user: Ok("root".to_owned()),
        working_folder: folder.to_owned(),
    };
    let now = Timestamp::from_millisecond(1_795_223_152_157).expect("a time");
    let randomness = Randomness::new(now, &mut StdRng::seed_from_u64(7));
    let request = Request { arguments, submitter, asking: Asking::Preview };
    RUNTIME.block_on(run::planned(&request, &Local, &NamedServer::BY_ADDRESS, &randomness, &Log::new(|_| {})))
}

/// The pod runs the application, whatever the template says.
fn check(submission: &Submission) {
    let pod = &submission.pod;
    assert_eq!((pod["kind"].as_str(), pod["apiVersion"].as_str()), (Some("Pod"), Some("v1")));
    assert_eq!(pod["metadata"]["name"].as_str(), Some(submission.pod_name.as_str()));
    assert_eq!(pod["metadata"]["labels"]["spark-role"], "driver");
    assert_eq!(pod["spec"]["restartPolicy"], "Never");
    let containers = pod["spec"]["containers"].as_array().expect("containers");
    let driver = containers.last().expect("a container");
    assert_eq!(driver["image"], "repo.example/spark:4");
    let args = driver["args"].as_array().expect("arguments");
    assert!(args.iter().any(|arg| arg == "org.apache.spark.examples.SparkPi"), "{args:?}");
    let printed = serde_json::to_string(pod).expect("JSON");
    assert_eq!(&serde_json::from_str::<serde_json::Value>(&printed).expect("JSON"), pod);
}
