//! The end of a failed driver's log, and the reason that it has.

use super::*;

const FORBIDDEN: &str = "Message: Forbidden!Configured service account doesn't have access. Service account may have been revoked. \
                         pods is forbidden: User \"system:serviceaccount:spark:default\" cannot create resource \"pods\" in API \
                         group \"\" in the namespace \"spark\".";
const QUOTA: &str = "Message: pods \"x-exec-1\" is forbidden: exceeded quota: team, requested: pods=1, used: pods=4, limited: \
                     pods=4. Received status: Status(apiVersion=v1, code=403)";

/// What is said of a driver that wrote this and ended with a code.
async fn said(code: i32, log: Option<&str>) -> Vec<String> {
    let followed = Followed::start().await;
    if let Some(log) = log {
        followed.server.set_log(NAMESPACE, DRIVER, log);
    }
    followed.run();
    followed.finish(code, "Error");
    messages(&followed.outcome().await.1)
}

#[tokio::test]
async fn the_end_of_a_failed_drivers_log_is_shown_after_the_failure() {
    let log: String = (1..=30).map(|number| format!("line {number}\n")).collect();
    let lines = said(3, Some(&format!("{log}\tpod name: other-driver\nexit code: 0\n"))).await;
    let [.., failed, place, block] = &lines[..] else { panic!("{lines:#?}") };
    assert!(
        failed.contains("Application failed: its container spark-kubernetes-driver exited with code 3"),
        "{failed}"
    );
    assert!(place.contains("Its log is shown by “kubectl logs -n spark"), "{place}");
    let block: Vec<&str> = block.lines().collect();
    assert_eq!(block.len(), 21);
    assert_eq!(block[0], "ERROR LoggingPodStatusWatcherImpl: The last lines of its log:");
    assert_eq!(block[1], "\t | line 13");
    assert_eq!(block[19..], ["\t |     pod name other-driver", "\t | exit code 0"]);
}

#[tokio::test]
async fn a_log_that_cannot_be_read_is_passed_over() {
    let without = said(3, None).await;
    assert!(without.last().unwrap().contains("Its log is shown by"), "{without:#?}");
    for fault in [401, 403, 404, 500].map(Fault::Status).into_iter().chain([Fault::Cut, Fault::Hang]) {
        let followed = Followed::start().await;
        followed.server.set_log(NAMESPACE, DRIVER, "something\n");
        followed.run();
        followed.said("(phase: Running)", 1).await;
        followed.server.fail_with("tailLines", Verb::Get, fault);
        followed.finish(3, "Error");
        let lines = followed.outcome().await.1;
        assert!(lines.last().unwrap().contains("Its log is shown by"), "{fault:?}: {lines:#?}");
    }
}

#[tokio::test]
async fn nobody_who_stops_waiting_waits_for_a_log() {
    let followed = Followed::start().await;
    followed.run();
    followed.said("(phase: Running)", 1).await;
    followed.server.fail_with("tailLines", Verb::Get, Fault::Hang);
    followed.finish(3, "Error");
    followed.said("Its log is shown by", 1).await;
    let server = &followed.server;
    let is_asked = || server.calls().iter().any(|call| call.path.ends_with("/log"));
    until_true("the log is asked for", is_asked).await;
    followed.submitter.stop.cancel();
    let began = std::time::Instant::now();
    assert_eq!(followed.outcome().await.0, Outcome::Failed { exit_code: Some(3) });
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[tokio::test]
async fn the_end_of_a_log_is_found_behind_more_than_is_read_of_one() {
    let log: String = (0..2000).map(|number| format!("{number} {}\n", "x".repeat(2000))).collect();
    let lines = said(3, Some(&log)).await;
    let block = lines.last().unwrap();
    assert!(block.contains("\t | 1999 xxx") && block.lines().count() == 21, "{block}");
    assert!(block.lines().all(|line| line.chars().count() < 500), "{block}");
}

#[tokio::test]
async fn a_success_and_a_deletion_show_no_log() {
    let lines = said(0, Some("something\n")).await;
    assert!(!lines.iter().any(|line| line.contains("its log")), "{lines:#?}");
    let followed = Followed::start().await;
    followed.server.set_log(NAMESPACE, DRIVER, "something\n");
    followed.run();
    followed.said("(phase: Running)", 1).await;
    followed.server.delete_pod(NAMESPACE, DRIVER);
    let (_, lines) = followed.outcome().await;
    assert!(!lines.iter().any(|line| line.contains("last lines")), "{lines:#?}");
}

#[tokio::test]
async fn a_reason_that_the_log_has_is_the_last_line() {
    for (code, log, expected) in [
        (
            1,
            FORBIDDEN,
            "service account default may not create pods in namespace spark: set spark.kubernetes.",
        ),
        (
            11,
            QUOTA,
            "quota team has no room for its executors (requested: pods=1, used: pods=4, limited: pods=4): ask",
        ),
    ] {
        let lines = said(code, Some(&format!("{log}\n\tat x\n"))).await;
        let last = lines.last().unwrap();
        assert!(last.starts_with("ERROR LoggingPodStatusWatcherImpl: Its log says that"), "{last}");
        assert!(last.contains(expected), "{last}");
    }
    // It went on with the executors that it had, and failed of something else.
    let lines = said(1, Some(QUOTA)).await;
    assert!(lines.last().unwrap().contains("last lines"), "{lines:#?}");
    let lines = said(11, None).await;
    assert!(lines.last().unwrap().contains("“kubectl describe quota -n spark” shows"), "{lines:#?}");
}
