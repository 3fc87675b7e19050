//! What `stage --for` and `submit` hand to the init-container of a driver, whose image may have another version.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_testing::api_server::{FakeApiServer, NETWORK_POLICY, SECRET};
use cloakroom_testing::cluster::{Account, CONFIG_MAP, Cluster as _, Kind, NAMESPACE, POD, SERVICE};
use cloakroom_testing::process::{Cloakroom, stderr};
use serde_json::{Value, json};

use super::{Age, New, Old, TwoVersions};

const IMAGE: &str = "repo.example/cloakroom:1";

/// Where pods have what this test has in a folder.
const PLACES: [(&str, &str); 4] = [
    ("/var/spark-data", "data"),
    ("/etc/spark-init", "init"),
    ("/etc/spark-conf", "conf"),
    ("/mnt/secrets/spark-init", "secrets"),
];

/// What an init-container is given.
struct HandedOver {
    arguments: Vec<String>,
    properties: String,
    secrets: BTreeMap<String, Vec<u8>>,
}

impl HandedOver {
    fn new(pod: &Value, config_map: &Value, secret: &Value) -> Self {
        let container = &pod["spec"]["initContainers"][0];
        assert_eq!(container["image"], IMAGE);
        let arguments = container["args"].as_array().unwrap();
        let secrets = secret["data"].as_object().unwrap().iter();
        Self {
            arguments: arguments.iter().map(|argument| argument.as_str().unwrap().to_owned()).collect(),
            properties: config_map["data"]["download-submitted-files"].as_str().unwrap().to_owned(),
            secrets: secrets
                .map(|(key, value)| (key.clone(), STANDARD.decode(value.as_str().unwrap()).unwrap()))
                .collect(),
        }
    }

    /// Does what the kubelet does, with `pod` as the pod's root.
    fn run(&self, age: Age, pod: &Path) -> Output {
        let here = |text: &str| {
            PLACES.iter().fold(text.to_owned(), |text, (there, here)| {
                text.replace(there, pod.join(here).to_str().unwrap())
            })
        };
        for (_, folder) in PLACES {
            std::fs::create_dir_all(pod.join(folder)).unwrap();
        }
        for (key, secret) in &self.secrets {
            std::fs::write(pod.join("secrets").join(key), secret).unwrap();
        }
        std::fs::write(pod.join("init/spark-init.properties"), here(&self.properties)).unwrap();
        let of_driver = "spark.jars=local:///var/spark-data/spark-jars/dep.jar\nspark.executor.instances=2\n";
        std::fs::write(pod.join("conf/spark.properties"), here(of_driver)).unwrap();
        std::fs::create_dir_all(pod.join("data/spark-conf")).unwrap();
        age.command().args(self.arguments.iter().map(|argument| here(argument))).output().unwrap()
    }
}

/// Every mixture of the three but the two that are none.
fn mixtures() -> impl Iterator<Item = (Age, Age, Age)> {
    let both = [Old, New];
    let all = both.into_iter().flat_map(move |client| {
        both.into_iter().flat_map(move |server| both.map(|container| (client, server, container)))
    });
    all.filter(|(client, server, container)| client != server || server != container)
}

fn each(hand_over: impl Fn(&TwoVersions, Age, &Cloakroom) -> HandedOver) {
    for (client, server, container) in mixtures() {
        let versions = TwoVersions::new();
        let running = versions.serve(server, &["--fetch-image", IMAGE]);
        let handed_over = hand_over(&versions, client, &running);
        let pod = versions.path("pod");
        let fetched = handed_over.run(container, &pod);
        let mixture = format!("client {client:?}, server {server:?}, init-container {container:?}");
        assert!(fetched.status.success(), "{mixture}: {}", stderr(&fetched));
        for (file, text) in [("spark-jars/dep.jar", "a dependency"), ("spark-files/data.txt", "data")] {
            let got = std::fs::read_to_string(pod.join("data").join(file)).unwrap();
            assert_eq!(got, text, "{mixture}");
        }
        if handed_over.arguments.iter().any(|argument| argument == "--spark-properties-to") {
            let properties = std::fs::read_to_string(pod.join("data/spark-conf/spark.properties")).unwrap();
            let properties = properties.replace('\\', "");
            let is_served = properties.lines().any(|line| line.starts_with("spark.jars=file:///"));
            assert!(
                is_served && properties.contains("spark.executor.instances=2"),
                "{mixture}: {properties}"
            );
        }
    }
}

pub(super) fn an_init_container_of_any_version_fetches_what_stage_handed_over() {
    each(|versions, client, server| {
        let (url, folder) = (server.url(""), versions.text("templates"));
        std::fs::create_dir(&folder).unwrap();
        let internal = format!("spark.kubernetes.resourceStagingServer.internal.uri={url}");
        let args = ["stage", "--for", "spark-submit", "--dry-run", "--server", &url, "--conf", &internal];
        let args = [&args[..], &["--namespace", "demo"]].concat();
        let (dep, data) = (versions.text("dep.jar"), versions.text("data.txt"));
        let output =
            client.run(&[&args[..], &["--templates-to", &folder, "--files", &data, "--jars", &dep]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let printed = String::from_utf8(output.stdout).unwrap();
        let objects: Vec<Value> = serde_saphyr::from_multiple(&printed).unwrap();
        let template = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
        let pod: Value = serde_saphyr::from_str(&std::fs::read_to_string(template).unwrap()).unwrap();
        let of = |kind: &str| objects.iter().find(|object| object["kind"] == kind).unwrap();
        HandedOver::new(&pod, of("ConfigMap"), of("Secret"))
    });
}

pub(super) fn an_init_container_of_any_version_fetches_what_submit_handed_over() {
    each(|versions, client, server| {
        let api_server = FakeApiServer::start();
        for kind in [SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY] {
            api_server.define(kind);
        }
        api_server.add(NAMESPACE, "", json!({"metadata": {"name": "default"}}));
        std::fs::write(versions.path("cluster-token"), api_server.token(Account::Admin)).unwrap();
        let master = format!("k8s://http://{}", api_server.address());
        let mut submit = client.command();
        submit.args([
            "submit",
            "--master",
            &master,
            "--deploy-mode",
            "cluster",
            "--class",
            "org.example.App",
        ]);
        for (key, value) in [
            ("container.image", "repo.example/spark:4"),
            ("driver.pod.name", "app-driver"),
            ("submission.waitAppCompletion", "false"),
            ("authenticate.submission.oauthTokenFile", &versions.text("cluster-token")),
            ("resourceStagingServer.uri", &server.url("")),
            ("resourceStagingServer.internal.uri", &server.url("")),
        ] {
            submit.args(["--conf", &format!("spark.kubernetes.{key}={value}")]);
        }
        submit
            .args(["--files", &versions.text("data.txt"), &versions.text("dep.jar")])
            .env("HOME", versions.path(""));
        let output = submit.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let of = |kind: Kind, end: &str| {
            let everything = api_server.everything_in("default");
            let name = everything.iter().find(|name| name.starts_with(kind.kind) && name.ends_with(end));
            api_server.object(kind, "default", name.unwrap().split_once(' ').unwrap().1).unwrap()
        };
        HandedOver::new(&of(POD, "-driver"), &of(CONFIG_MAP, "-init-config"), &of(SECRET, "-init-secret"))
    });
}
