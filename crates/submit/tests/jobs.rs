//! `--kill` and `--status`: the words, the calls and the failures.

use cloakroom_cluster::Timeouts;
use cloakroom_submit::jobs::{JobError, SubmissionId, kill, status};
use cloakroom_testing::api_server::{FakeApiServer, Fault, Verb};
use cloakroom_testing::cluster::{Cluster as _, POD};
use cloakroom_testing::scripted::{Answer, Scripted};
use cloakroom_testing::tls::server_config;
use cloakroom_testing::tls::signed_by_ca;
use serde_json::{Value, json};

use crate::submitter::Submitter;

const MASTER: &str = "k8s://https://kubernetes.example:6443";
const DRIVER: [(&str, &str); 2] = [("spark-role", "driver"), ("spark-app-selector", "spark-app1")];

fn start() -> FakeApiServer {
    let server = FakeApiServer::start();
    for name in ["other-driver", "spark-pi-aaa-driver", "spark-pi-bbb-driver"] {
        server.create_pod("default", name, &DRIVER);
    }
    server.create_pod("default", "spark-pi-aaa-exec-1", &[("spark-role", "executor")]);
    server.create_pod("ns1", "spark-pi-ns-driver", &DRIVER);
    server
}

fn id(text: &str) -> SubmissionId {
    SubmissionId::parse(text, "default").unwrap()
}

async fn killed(
    server: &FakeApiServer,
    text: &str,
    grace: Option<u64>,
) -> (Result<(), JobError>, Vec<String>) {
    let submitter = Submitter::new(server);
    let outcome = kill(&submitter.server, MASTER, &id(text), grace, &submitter.lines.log()).await;
    (outcome, submitter.lines.all())
}

async fn told(server: &FakeApiServer, text: &str) -> Vec<String> {
    let submitter = Submitter::new(server);
    status(&submitter.server, MASTER, &id(text), &submitter.lines.log()).await.unwrap();
    submitter.lines.all()
}

fn request(text: &str, grace: &str) -> String {
    format!("Submitting a request to kill submission {text} in {MASTER}. Grace period in secs: {grace}")
}

fn calls(server: &FakeApiServer) -> Vec<(Verb, String)> {
    server.calls().into_iter().map(|call| (call.verb, call.path)).collect()
}

fn path(namespace: &str, name: &str) -> String {
    format!("{}/{name}", POD.path(Some(namespace)))
}

#[tokio::test]
async fn one_driver_is_looked_at_and_then_deleted() {
    for (text, namespace, grace, said) in [
        ("default:spark-pi-aaa-driver", "default", None, "not set."),
        ("default:spark-pi-aaa-driver", "default", Some(7), "7"),
        // spark-submit fails without a namespace.
        ("spark-pi-aaa-driver", "default", None, "not set."),
        ("ns1:spark-pi-ns-driver", "ns1", None, "not set."),
    ] {
        let server = start();
        let (outcome, lines) = killed(&server, text, grace).await;
        assert_eq!(outcome, Ok(()));
        assert_eq!(lines, [request(text, said)]);
        let name = text.rsplit(':').next().unwrap();
        let path = path(namespace, name);
        assert_eq!(calls(&server), [(Verb::Get, path.clone()), (Verb::Delete, path)]);
        let mut options =
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
        if let Some(seconds) = grace {
            options["gracePeriodSeconds"] = seconds.into();
        }
        assert_eq!(server.calls_to(Verb::Delete)[0].body, options);
        assert!(server.object(POD, namespace, name).is_none());
    }
}

#[tokio::test]
async fn a_star_at_the_end_means_all_drivers_that_begin_so() {
    let server = start();
    let (outcome, lines) = killed(&server, "default:spark-pi*", None).await;
    assert_eq!(outcome, Ok(()));
    let expected = [
        &request("default:spark-pi*", "not set."),
        "Deleting driver pod: spark-pi-aaa-driver.",
        "Deleting driver pod: spark-pi-bbb-driver.",
    ];
    assert_eq!(lines, expected);
    assert_eq!(server.calls()[0].query, [("labelSelector".to_owned(), "spark-role=driver".to_owned())]);
    assert_eq!(server.everything_in("default"), ["Pod other-driver", "Pod spark-pi-aaa-exec-1"]);
    assert_eq!(server.everything_in("ns1"), ["Pod spark-pi-ns-driver"]);
}

#[tokio::test]
async fn what_is_not_there_is_said_and_is_no_failure() {
    for (text, said) in
        [("default:nope-driver", "Application not found."), ("default:zzz*", "No applications found.")]
    {
        let server = start();
        let (outcome, lines) = killed(&server, text, None).await;
        assert_eq!(outcome, Ok(()));
        assert_eq!(lines, [request(text, "not set."), said.to_owned()]);
        let lines = told(&server, text).await;
        assert_eq!(
            lines[0],
            format!("Submitting a request for the status of submission {text} in {MASTER}.")
        );
        assert_eq!(lines[1..], [said]);
        assert!(server.calls_to(Verb::Delete).is_empty());
    }
}

#[tokio::test]
async fn the_state_of_each_driver_is_told() {
    let server = start();
    let container: Value = json!({
        "name": "spark-kubernetes-driver", "image": "img:1", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": 1, "reason": "Error"}},
    });
    let failed = json!({"phase": "Failed", "containerStatuses": [container]});
    server.set_status("default", "spark-pi-bbb-driver", &failed);
    let lines = told(&server, "default:spark-pi-bbb-driver").await;
    let start = "Application status (driver): \n\t pod name: spark-pi-bbb-driver\n\t namespace: default\n\t labels: \
                 spark-app-selector -> spark-app1, spark-role -> driver\n\t pod uid: ";
    assert!(lines[1].starts_with(start), "{lines:#?}");
    let end = "\n\t phase: Failed\n\t container status: \n\t\t container name: spark-kubernetes-driver\n\t\t container \
               image: img:1\n\t\t container state: terminated\n\t\t container started at: N/A\n\t\t container finished at: \
               N/A\n\t\t exit code: 1\n\t\t termination reason: Error";
    assert!(lines[1].ends_with(end), "{lines:#?}");
    assert_eq!(told(&server, "default:spark-pi*").await.len(), 3);
}

#[tokio::test]
async fn refusals_name_the_verb_and_the_namespace() {
    let server = start();
    server.know_token("of-ann", "ann", &[]);
    let ann = Submitter::with(&server, "of-ann", Timeouts::default());
    let log = ann.lines.log();
    let looking = status(&ann.server, MASTER, &id("default:x"), &log).await.unwrap_err().to_string();
    let listing = kill(&ann.server, MASTER, &id("default:*"), None, &log).await.unwrap_err().to_string();
    let may_look = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]);
    server.grant_rules("ann", None, may_look);
    let one =
        kill(&ann.server, MASTER, &id("spark-pi-aaa-driver"), None, &log).await.unwrap_err().to_string();
    let all = kill(&ann.server, MASTER, &id("default:*"), None, &log).await.unwrap_err().to_string();
    let address = server.address();
    server.stop();
    let away = status(&ann.server, MASTER, &id("default:x"), &log).await.unwrap_err().to_string();
    for (said, parts) in [
        (
            looking,
            vec![
                "cannot look for x in namespace default: the API server does not allow it (403",
                "can-i get pods",
            ],
        ),
        (
            listing,
            vec![
                "cannot look for * in namespace default: ",
                "User \"ann\" cannot list",
                "can-i list pods -n default",
            ],
        ),
        (
            one,
            vec![
                "cannot delete pod spark-pi-aaa-driver in namespace default: ",
                "can-i delete pods -n default",
            ],
        ),
        (
            all,
            vec![
                "3 of 3 driver pods could not be deleted: cannot delete pod other-driver",
                "; cannot delete pod spark-pi",
            ],
        ),
        (away, vec!["cannot be reached", "check --master and the network"]),
    ] {
        for part in parts {
            assert!(said.contains(part), "{part} is not in {said}");
        }
    }
    assert_ne!(address.port(), 0);
}

#[tokio::test]
async fn what_is_no_api_server_and_what_is_not_trusted_have_their_own_words() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [shown, trusted] = folders.each_ref().map(|folder| signed_by_ca(folder.path(), &["127.0.0.1"]));
    let proxy =
        Scripted::start(|_, _| Answer::new(302, "").header("location", "https://sso.example/x").into()).await;
    let stranger =
        Scripted::start_tls(server_config(&shown, None), |_, _| Answer::new(200, "{}").into()).await;
    for (server, ca, words) in [
        (&proxy, None, "what answers is no API server (302, it redirects to sso.example): check --master"),
        (&stranger, Some(&*trusted.ca), "spark.kubernetes.authenticate.submission.caCertFile"),
    ] {
        let address = server.url().split_once("://").unwrap().1.parse().unwrap();
        let submitter = Submitter::at(address, ca, "x", Timeouts::default());
        let said = status(&submitter.server, MASTER, &id("default:x"), &submitter.lines.log()).await;
        let said = said.unwrap_err().to_string();
        assert!(said.contains(words), "{words} is not in {said}");
    }
}

#[tokio::test]
async fn a_failure_that_may_pass_is_tried_again_and_the_others_are_deleted() {
    let server = start();
    server.fail_some(POD, Verb::List, 0, 2, Fault::Status(503));
    server.fail_some(POD, Verb::Delete, 0, 1, Fault::Status(422));
    let (outcome, _) = killed(&server, "default:*", None).await;
    let said = outcome.unwrap_err().to_string();
    assert!(
        said.starts_with("1 of 3 driver pods could not be deleted: cannot delete pod other-driver"),
        "{said}"
    );
    assert_eq!(server.everything_in("default"), ["Pod other-driver", "Pod spark-pi-aaa-exec-1"]);
}
