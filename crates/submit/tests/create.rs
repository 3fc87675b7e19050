//! A submission is made in Spark's order with its owner references, and leaves nothing behind where that fails.

mod account;
mod refusals;

use std::sync::Arc;
use std::time::Duration;

use cloakroom_cluster::Timeouts;
use cloakroom_submit::Submission;
use cloakroom_submit::create::{CreateError, Undo};
use cloakroom_submit::follow::FollowIntervals;
use cloakroom_submit::inputs::Local;
use cloakroom_submit::run::{Ended, Run};
use cloakroom_submit::stage::NamedServer;
use cloakroom_testing::api_server::{Call, FakeApiServer, Fault, POD_GROUP, Verb};
use cloakroom_testing::cluster::{CLAIM, CONFIG_MAP, Kind, POD, SERVICE};
use cloakroom_testing::wait::{BOUND, until_true};
use serde_json::{Value, json};

use crate::kept::Kept;
use crate::submitter::{APP_ID, DRIVER, Submitter, claim, pod_group, submission};

const NAMESPACE: &str = "spark";

fn start() -> FakeApiServer {
    let server = FakeApiServer::start();
    for kind in [SERVICE, CLAIM, CONFIG_MAP, POD_GROUP] {
        server.define(kind);
    }
    server.add(cloakroom_testing::cluster::NAMESPACE, "", json!({"metadata": {"name": NAMESPACE}}));
    server
}

fn with_volcano() -> Submission {
    Submission { before_pod: vec![pod_group()], ..submission(NAMESPACE) }
}

/// `POST pods`, `PATCH configmaps/x`…: what was asked for, in order.
fn made(server: &FakeApiServer) -> Vec<String> {
    let short = |call: &Call| {
        let path = call.path.split_once(&format!("/namespaces/{NAMESPACE}/")).unwrap().1.to_owned();
        let verb = match (call.verb, call.parameter("dryRun")) {
            (Verb::Create, Some(_)) => "TRY",
            (Verb::Create, None) => "POST",
            (Verb::Patch, _) => "PATCH",
            (Verb::Delete, _) => "DELETE",
            _ => "GET",
        };
        format!("{verb} {path}")
    };
    server.calls().iter().map(short).collect()
}

async fn refused(server: &FakeApiServer, submission: &Submission) -> CreateError {
    Submitter::new(server).create(submission).await.unwrap_err()
}

fn removed(names: &[&str]) -> Undo {
    Undo::Removed(names.iter().map(|name| (*name).to_owned()).collect())
}

fn driver() -> String {
    format!("pod {DRIVER}")
}

#[tokio::test]
async fn everything_is_made_in_sparks_order_and_owned_by_the_pod() {
    let server = start();
    let submitter = Submitter::new(&server);
    let created = submitter.create(&with_volcano()).await.unwrap();
    let pod_group = format!("PATCH podgroups/{APP_ID}-podgroup");
    assert_eq!(
        made(&server),
        [
            "TRY pods",
            &pod_group,
            "POST pods",
            &pod_group,
            "PATCH services/my-app-driver-svc",
            "PATCH persistentvolumeclaims/my-app-driver-pvc-0",
            "PATCH configmaps/spark-drv-conf-map",
        ]
    );
    let pod = server.object(POD, NAMESPACE, DRIVER).unwrap();
    assert_eq!(pod["metadata"]["uid"], created.uid);
    let owner = json!([{
        "apiVersion": "v1", "kind": "Pod", "name": DRIVER, "uid": created.uid, "controller": true,
    }]);
    for (kind, name) in
        [(SERVICE, "my-app-driver-svc"), (CLAIM, "my-app-driver-pvc-0"), (CONFIG_MAP, "spark-drv-conf-map")]
    {
        let object = server.object(kind, NAMESPACE, name).unwrap();
        assert_eq!(object["metadata"]["ownerReferences"], owner, "{name}");
    }
    let calls = server.calls();
    assert_eq!(calls[1].body["metadata"]["ownerReferences"], Value::Null);
    assert_eq!((&calls[2].body, calls[2].content_type.as_str()), (&with_volcano().pod, "application/json"));
    assert_eq!(calls[3].body["metadata"]["ownerReferences"], owner);
    for patch in server.calls_to(Verb::Patch) {
        assert_eq!(patch.content_type, "application/apply-patch+yaml");
        assert_eq!(
            (patch.parameter("fieldManager"), patch.parameter("force")),
            (Some("fabric8"), Some("true"))
        );
    }
    assert_eq!(submitter.lines.all(), [""; 0]);
}

#[tokio::test]
async fn nothing_is_created_where_the_dry_run_is_refused() {
    for code in [401, 403, 409, 422] {
        let server = start();
        server.fail_with("dryRun", Verb::Create, Fault::Status(code));
        let error = refused(&server, &with_volcano()).await;
        assert_eq!(error.undo, Undo::Nothing, "{error}");
        assert_eq!(server.everything_in(NAMESPACE), [""; 0]);
        assert_eq!(server.calls_to(Verb::Create).len(), 1, "{code} is not tried again");
    }
}

#[tokio::test]
async fn webhooks_that_know_no_dry_run_do_not_stand_in_the_way() {
    let server = start();
    let submitter = Submitter::new(&server);
    server.fail_with("dryRun", Verb::Create, Fault::NoDryRun);
    submitter.create(&submission(NAMESPACE)).await.unwrap();
    let warned = submitter.lines.all();
    assert_eq!(warned.len(), 1);
    assert!(
        warned[0].contains(" WARN Client: The pod could not be tried before it is created:"),
        "{warned:?}"
    );
}

// Invariant: bundles of a submission that fails or is stopped are released.
/// Where a step is refused for good, everything before it goes, and nothing else is touched.
#[tokio::test]
async fn a_failure_after_each_step_leaves_nothing_behind() {
    let group = format!("pod group {APP_ID}-podgroup");
    let all = [driver(), group.clone()];
    let all = [all[0].as_str(), all[1].as_str()];
    let steps: [(Kind, Verb, usize, Undo); 6] = [
        (POD_GROUP, Verb::Patch, 0, Undo::Nothing),
        (POD, Verb::Create, 1, removed(&[&group])),
        (POD_GROUP, Verb::Patch, 1, removed(&all)),
        (SERVICE, Verb::Patch, 0, removed(&all)),
        (CLAIM, Verb::Patch, 0, removed(&all)),
        (CONFIG_MAP, Verb::Patch, 0, removed(&all)),
    ];
    for (kind, verb, skip, undo) in steps {
        for fault in [Fault::Status(403), Fault::Status(422), Fault::Status(500)] {
            let server = start();
            server.add(CONFIG_MAP, NAMESPACE, json!({"metadata": {"name": "somebody-elses"}}));
            server.create_pod(NAMESPACE, "somebody-elses-driver", &[("spark-app-selector", "spark-other")]);
            server.fail_some(kind, verb, skip, usize::MAX, fault);
            let error = refused(&server, &with_volcano()).await;
            assert_eq!(error.undo, undo, "{error}");
            assert_eq!(
                server.everything_in(NAMESPACE),
                ["Pod somebody-elses-driver", "ConfigMap somebody-elses"],
                "{} {fault:?}: {error}",
                kind.kind
            );
        }
    }
}

#[tokio::test]
async fn what_may_pass_is_tried_three_times_more() {
    for fault in [Fault::Status(500), Fault::Status(503), Fault::TooManyRequests(Duration::ZERO)] {
        let server = start();
        server.fail_some(CONFIG_MAP, Verb::Patch, 0, 3, fault);
        Submitter::new(&server).create(&submission(NAMESPACE)).await.unwrap();
        let server = start();
        server.fail_some(CONFIG_MAP, Verb::Patch, 0, 4, fault);
        assert_eq!(refused(&server, &submission(NAMESPACE)).await.undo, removed(&[&driver()]));
        assert_eq!(made(&server).iter().filter(|call| call.starts_with("PATCH configmaps/")).count(), 4);
    }
}

#[tokio::test]
async fn an_api_server_that_asks_to_wait_is_waited_for() {
    let server = start();
    server.fail_some(CONFIG_MAP, Verb::Patch, 0, 1, Fault::TooManyRequests(Duration::from_secs(1)));
    let began = std::time::Instant::now();
    Submitter::new(&server).create(&submission(NAMESPACE)).await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_pod_whose_answer_was_lost_is_recognised() {
    let server = start();
    let submitter = Submitter::new(&server);
    server.fail_some(POD, Verb::Create, 1, 1, Fault::LostAnswer);
    let created = submitter.create(&submission(NAMESPACE)).await.unwrap();
    assert_eq!(server.object(POD, NAMESPACE, DRIVER).unwrap()["metadata"]["uid"], created.uid);
    assert!(server.object(CONFIG_MAP, NAMESPACE, "spark-drv-conf-map").is_some());
    assert_eq!(submitter.lines.with("going on with it").len(), 1);
}

#[tokio::test]
async fn a_pod_whose_answer_was_lost_is_deleted_where_the_rest_fails() {
    let server = start();
    server.fail_some(POD, Verb::Create, 1, 1, Fault::LostAnswer);
    server.fail_for(SERVICE, Verb::Patch, Fault::Status(403));
    assert_eq!(refused(&server, &submission(NAMESPACE)).await.undo, removed(&[&driver()]));
    assert_eq!(server.everything_in(NAMESPACE), [""; 0]);
}

#[tokio::test]
async fn a_pod_that_nobody_can_see_is_said_to_be_there_perhaps() {
    let server = start();
    server.fail_some(POD, Verb::Create, 1, usize::MAX, Fault::LostAnswer);
    server.fail_for(POD, Verb::Get, Fault::Status(503));
    let timeouts = Timeouts { call: Duration::from_secs(2), ..Timeouts::default() };
    let submitter = Submitter::with(&server, "admin-token", timeouts);
    let error = submitter.create(&submission(NAMESPACE)).await.unwrap_err().to_string();
    assert!(
        error.ends_with(&format!(
            "(still there: perhaps the pod, whose creation had no answer: remove it with “kubectl delete pod -n {NAMESPACE} \
             -l spark-app-selector={APP_ID}”)"
        )),
        "{error}"
    );
}

/// Two submissions with one `spark.kubernetes.driver.pod.name`.
#[tokio::test]
async fn the_pod_of_somebody_else_is_neither_taken_nor_deleted() {
    for dry_run_knows in [true, false] {
        let server = start();
        if !dry_run_knows {
            server.fail_with("dryRun", Verb::Create, Fault::NoDryRun);
        }
        server.create_pod(NAMESPACE, DRIVER, &[("spark-app-selector", "spark-other")]);
        let error = refused(&server, &submission(NAMESPACE)).await;
        assert_eq!(error.undo, Undo::Nothing);
        let said = error.to_string();
        assert!(
            said.starts_with(&format!(
                "the pod {DRIVER} exists already in namespace {NAMESPACE}, and belongs to application spark-other (code=409)"
            )),
            "{said}"
        );
        assert_eq!(server.everything_in(NAMESPACE), [format!("Pod {DRIVER}")]);
        assert_eq!(server.calls_to(Verb::Delete).len(), 0);
    }
}

/// As a quota answers that another pod has changed meanwhile. The Spark Operator would believe that its driver runs.
#[tokio::test]
async fn a_conflict_without_a_pod_is_not_told_as_a_pod_that_exists() {
    for dry_run_knows in [true, false] {
        let server = start();
        if dry_run_knows {
            server.fail_with("dryRun", Verb::Create, Fault::Status(409));
        } else {
            server.fail_some(POD, Verb::Create, 1, usize::MAX, Fault::Status(409));
        }
        let said = refused(&server, &submission(NAMESPACE)).await.to_string();
        assert!(said.starts_with(&format!("the API server does not accept pod {DRIVER}")), "{said}");
        assert!(said.contains("409") && !said.contains("code=409"), "{said}");
        assert_eq!(server.everything_in(NAMESPACE), [""; 0]);
    }
}

#[tokio::test]
async fn a_pod_that_took_the_name_meanwhile_is_not_deleted() {
    let server = start();
    server.fail_for(CONFIG_MAP, Verb::Patch, Fault::Hang);
    let submitter = Submitter::with(
        &server,
        "admin-token",
        Timeouts { call: Duration::from_secs(1), ..Timeouts::default() },
    );
    let planned = submission(NAMESPACE);
    let creating = submitter.create(&planned);
    let replacing = async {
        until_true("the config map is asked for", || {
            made(&server).iter().any(|call| call.starts_with("PATCH configmaps"))
        })
        .await;
        server.delete_pod(NAMESPACE, DRIVER);
        server.create_pod(NAMESPACE, DRIVER, &[("spark-app-selector", "spark-other")]);
    };
    let (error, ()) = tokio::join!(creating, replacing);
    assert!(error.is_err());
    assert_eq!(server.everything_in(NAMESPACE), [format!("Pod {DRIVER}")]);
    let owner = server.object(POD, NAMESPACE, DRIVER).unwrap();
    assert_eq!(owner["metadata"]["labels"]["spark-app-selector"], "spark-other");
}

#[tokio::test]
async fn a_claim_that_existed_before_does_not_go_with_the_pod() {
    let server = start();
    server.add(CLAIM, NAMESPACE, claim("my-app-driver-pvc-0"));
    server.fail_for(CONFIG_MAP, Verb::Patch, Fault::Status(403));
    let submitter = Submitter::new(&server);
    let error = submitter.create(&submission(NAMESPACE)).await.unwrap_err();
    assert_eq!(error.undo, removed(&[&driver()]));
    assert_eq!(server.everything_in(NAMESPACE), ["PersistentVolumeClaim my-app-driver-pvc-0"]);
    let kept = server.object(CLAIM, NAMESPACE, "my-app-driver-pvc-0").unwrap();
    assert_eq!(kept["metadata"]["ownerReferences"], Value::Null);
    let warned = submitter
        .lines
        .with("The persistent volume claim my-app-driver-pvc-0 in namespace spark existed already");
    assert_eq!(warned.len(), 1);
}

#[tokio::test]
async fn a_pod_group_that_existed_before_stays() {
    let server = start();
    let mut group = pod_group();
    group["metadata"]["name"] = "shared".into();
    let planned = Submission { before_pod: vec![group.clone()], ..submission(NAMESPACE) };
    server.add(POD_GROUP, NAMESPACE, group);
    server.fail_for(CONFIG_MAP, Verb::Patch, Fault::Status(403));
    assert_eq!(refused(&server, &planned).await.undo, removed(&[&driver()]));
    assert_eq!(server.everything_in(NAMESPACE), ["PodGroup shared"]);
}

#[tokio::test]
async fn an_undo_that_fails_says_what_is_left_and_how_to_remove_it() {
    let server = start();
    server.fail_for(CONFIG_MAP, Verb::Patch, Fault::Status(403));
    server.fail(Verb::Delete, Fault::Status(403));
    let said = refused(&server, &with_volcano()).await.to_string();
    for part in [
        format!("(still there: pod {DRIVER}, and what it owns ("),
        format!("remove it with “kubectl delete pod -n {NAMESPACE} -l spark-app-selector={APP_ID}”"),
        format!("kubectl delete podgroups.scheduling.volcano.sh -n {NAMESPACE} {APP_ID}-podgroup”"),
    ] {
        assert!(said.contains(&part), "{part} is not in {said}");
    }
}

#[tokio::test]
async fn whoever_stops_it_in_the_middle_finds_nothing() {
    let server = start();
    server.fail_some(CONFIG_MAP, Verb::Patch, 0, 3, Fault::Status(503));
    let submitter = Submitter::new(&server);
    let planned = with_volcano();
    let stopping = async {
        until_true("the config map is asked for", || {
            made(&server).iter().any(|call| call.starts_with("PATCH configmaps"))
        })
        .await;
        submitter.stop.cancel();
    };
    let (error, ()) = tokio::join!(submitter.create(&planned), stopping);
    let error = error.unwrap_err();
    assert!(error.is_stopped(), "{error}");
    assert_eq!(server.everything_in(NAMESPACE), [""; 0]);
    let error = submitter.create(&planned).await.unwrap_err();
    assert_eq!((error.is_stopped(), error.undo), (true, Undo::Nothing));
}

/// Nothing can have been made yet: there is nothing to wait for.
#[tokio::test]
async fn whoever_stops_it_while_the_pod_is_tried_does_not_wait_for_an_answer() {
    let server = start();
    server.fail_with("dryRun", Verb::Create, Fault::Hang);
    let timeouts = Timeouts { call: BOUND * 100, ..Timeouts::default() };
    let submitter = Submitter::with(&server, "admin-token", timeouts);
    let stopping = async {
        until_true("the pod is tried", || made(&server) == ["TRY pods"]).await;
        submitter.stop.cancel();
    };
    let planned = submission(NAMESPACE);
    let stopped = async { tokio::join!(submitter.create(&planned), stopping).0.unwrap_err() };
    let error = tokio::time::timeout(BOUND, stopped).await.unwrap();
    assert_eq!((error.is_stopped(), &error.undo), (true, &Undo::Nothing), "{error}");
    assert_eq!(submitter.lines.all(), [""; 0]);
}

#[tokio::test]
async fn whoever_stops_it_is_told_at_once_that_it_is_taken_back() {
    let server = start();
    server.fail_some(CONFIG_MAP, Verb::Patch, 0, 1, Fault::Hang);
    let timeouts = Timeouts { call: Duration::from_secs(3), ..Timeouts::default() };
    let submitter = Submitter::with(&server, "admin-token", timeouts);
    let (kept, stopping) = (Arc::new(Kept::default()), json!({"event": "stopping", "under_way": "objects"}));
    let stop_it = async {
        until_true("the config map is asked for", || {
            made(&server).iter().any(|call| call.starts_with("PATCH configmaps"))
        })
        .await;
        submitter.stop.cancel();
        until_true("it is said", || !kept.called("stopping").is_empty()).await;
        assert_eq!(server.calls_to(Verb::Delete).len(), 0, "said before the call that hangs has ended");
    };
    let (planned, log) = (submission(NAMESPACE), kept.log());
    let (cluster, stop) = (&submitter.server, &submitter.stop);
    let run = Run {
        server: cluster,
        inputs: &Local,
        stager: &NamedServer::BY_ADDRESS,
        log: &log,
        stop,
        intervals: FollowIntervals::default(),
    };
    let (error, ()) = tokio::join!(run.create(&planned), stop_it);
    assert!(error.unwrap_err().is_stopped());
    assert_eq!(server.everything_in(NAMESPACE), [""; 0]);
    assert_eq!(kept.all(), [stopping]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_use_case_runs_on_another_thread_and_tells_events_as_data() {
    let server = start();
    let kept = Arc::new(Kept::default());
    let (submitter, log) = (Submitter::new(&server), kept.log());
    let mut planned = submission(NAMESPACE);
    planned.follow.wait = false;
    let ended = tokio::spawn(async move {
        let (server, stop) = (&submitter.server, &submitter.stop);
        let run = Run {
            server,
            inputs: &Local,
            stager: &NamedServer::BY_ADDRESS,
            log: &log,
            stop,
            intervals: FollowIntervals::default(),
        };
        run.run(&planned).await.unwrap()
    });
    assert_eq!(ended.await.unwrap(), Ended::Deployed);
    assert_eq!(made(&server)[..2], ["TRY pods", "POST pods"]);
    let events = kept.all();
    let deployed = events.last().unwrap();
    assert_eq!((&deployed["event"], &deployed["level"]), (&json!("said"), &json!("info")));
    assert!(deployed["message"].as_str().unwrap().contains(DRIVER), "{deployed}");
}
