//! Applications whose dependencies were staged: a pod template brings the init-container, so that the stock spark-submit can
//! do it as well.

use std::path::Path;
use std::sync::Arc;

use cloakroom::protocol::v1::Ticket;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::jobs::Job;
use crate::stage::{CLOAKROOM, Stage, VERSIONS};
use crate::submission::{DRIVER, Submission, Submitter};
use crate::support::cluster::{Api, Cluster as _};
use crate::support::process::{command, stderr};
use crate::support::wait::until;

/// Where the init-container puts jars and files.
const FOLDERS: [(&str, &str); 2] =
    [("jars", "/var/spark-data/spark-jars"), ("files", "/var/spark-data/spark-files")];

/// The label, and its value, by which the server knows the driver.
const OWNER: (&str, &str) = ("cloakroom.test/application", "staged");

pub fn trials(stage: &Arc<Stage>) -> Vec<Trial> {
    [(Submitter::SparkSubmit, Job::Java), (Submitter::Cloakroom, Job::Python)]
        .into_iter()
        .map(|(submitter, job)| {
            let name = format!("staged::{}_a_{}_job_finds_what_was_staged", submitter.name(), job.name());
            stage.trial_with(&name, job, move |stage| run(stage, submitter, job))
        })
        .collect()
}

/// Everything is staged that the driver may have as `local:`, which takes Spark 4; archives may not.
async fn run(stage: Arc<Stage>, submitter: Submitter, job: Job) {
    let world = stage.world().await;
    let version = VERSIONS[0];
    let namespace = format!("staged-{}", job.name());
    let api = world.namespace(&namespace).await;
    let desk = Desk::open_through(&world.plane, world.plane.address(), &[]);
    let sources = world.jobs(version);
    let jars: &[&str] = if matches!(job, Job::Java) { &["words.jar", "greeting.jar"] } else { &[] };
    let files: &[&str] = if matches!(job, Job::Java) {
        &["words.txt"]
    } else {
        &["main.py", "one_module.py", "zipped.zip", "words.txt"]
    };
    let mut tickets = Vec::new();
    for (what, names) in [("Jars", jars), ("Files", files)] {
        if !names.is_empty() {
            tickets.push((what, hand_in(&desk, &namespace, &sources, names)));
        }
    }
    show(&api, &namespace, &desk, &tickets).await;
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("driver.yaml");
    std::fs::write(&template, template_text()).unwrap();
    let settings = vec![
        ("spark.kubernetes.driver.podTemplateFile", template.display().to_string()),
        ("spark.kubernetes.driver.label.cloakroom.test/application", OWNER.1.to_owned()),
    ];
    let place = |file: &str| {
        let staged =
            |names: &[&str], folder: &str| names.contains(&file).then(|| format!("local://{folder}/{file}"));
        let staged = staged(jars, FOLDERS[0].1).or_else(|| staged(files, FOLDERS[1].1));
        staged.unwrap_or_else(|| sources.join(file).display().to_string())
    };
    let submission = Submission { submitter, version, job, namespace, settings };
    submission.runs_to_its_end(world, place).await;
    goes_with_its_driver(&api, &submission, &desk, &tickets).await;
}

/// As somebody does who has the files.
fn hand_in(desk: &Desk, namespace: &str, folder: &Path, names: &[&str]) -> Ticket {
    let owner = format!("{}={}", OWNER.0, OWNER.1);
    let mut command = command();
    command.args(["stage", "--server", &desk.server.url(""), "--namespace", namespace, "--label", &owner]);
    let output = command.args(names.iter().map(|name| folder.join(name))).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The original's config map and secret.
async fn show(api: &Api, namespace: &str, desk: &Desk, tickets: &[(&str, Ticket)]) {
    let mut settings = format!("spark.kubernetes.resourceStagingServer.uri={}\n", desk.server.url(""));
    let mut secrets = json!({});
    for (what, ticket) in tickets {
        let key = format!("downloadSubmitted{what}Secret");
        let prefix = format!("spark.kubernetes.initcontainer.download{what}");
        settings += &format!("{prefix}ResourceIdentifier={}\n", ticket.resource_id);
        settings += &format!("{prefix}SecretLocation=/mnt/secrets/spark-init/{key}\n");
        secrets[key] = ticket.resource_secret.as_str().into();
    }
    let map = json!({"metadata": {"name": "init"}, "data": {"download-submitted-files": settings}});
    let secret = json!({"metadata": {"name": "init"}, "stringData": secrets});
    for (plural, object) in [("configmaps", map), ("secrets", secret)] {
        let (status, answer) = api.post(&format!("/api/v1/namespaces/{namespace}/{plural}"), &object).await;
        assert_eq!(status, 201, "{answer}");
    }
}

/// A pod template with the original's init-container; JSON is YAML.
fn template_text() -> String {
    let mounts = FOLDERS.map(|(name, path)| json!({"name": name, "mountPath": path}));
    let [jars, files] = mounts.clone();
    let properties = json!([{"key": "download-submitted-files", "path": "spark-init.properties"}]);
    let init = json!({
        "name": "spark-init",
        "image": CLOAKROOM,
        "args": ["/etc/spark-init/spark-init.properties"],
        "securityContext": {"runAsNonRoot": true, "readOnlyRootFilesystem": true},
        "volumeMounts": [
            jars,
            files,
            {"name": "spark-init-properties", "mountPath": "/etc/spark-init"},
            {"name": "spark-init-secret", "mountPath": "/mnt/secrets/spark-init"},
        ],
    });
    let template: Value = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {
            "initContainers": [init],
            "containers": [{"name": "spark-kubernetes-driver", "volumeMounts": mounts}],
            "volumes": [
                {"name": "jars", "emptyDir": {}},
                {"name": "files", "emptyDir": {}},
                {"name": "spark-init-properties", "configMap": {"name": "init", "items": properties}},
                {"name": "spark-init-secret", "secret": {"secretName": "init"}},
            ],
        },
    });
    template.to_string()
}

/// What was staged is kept for the finished driver, and not longer than that is there.
pub async fn goes_with_its_driver(
    api: &Api,
    submission: &Submission,
    desk: &Desk,
    tickets: &[(&str, Ticket)],
) {
    for (_, ticket) in tickets {
        desk.until_kept_because(ticket, "owner-finished").await;
    }
    let driver = format!("{}/{DRIVER}", submission.pods());
    api.delete(&driver).await;
    until("the driver is gone", async || api.get(&driver).await.0 == 404).await;
    for (_, ticket) in tickets {
        assert_eq!(desk.goes(ticket).await.reason, "orphaned");
    }
}
