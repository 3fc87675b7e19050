//! Executors that end, are removed or are lost while an application is followed.

use super::*;

#[tokio::test]
async fn executors_that_are_lost_are_told_once_each() {
    let followed = Followed::with(hurried(), looked_at(30, 30_000), |_| {}).await;
    followed.run();
    let (killed, deleted) = (followed.executor(1), followed.executor(2));
    let is_watched =
        || followed.server.calls_to(Verb::List).iter().any(|call| call.parameter("labelSelector").is_some());
    until_true("executors are looked at", is_watched).await;
    followed.server.set_status(NAMESPACE, &killed, &ended("spark-kubernetes-executor", 137, "OOMKilled"));
    followed.said("Executor 1 (pod my-app-exec-1) was lost: it exited with code 137", 1).await;
    followed.server.delete_pod(NAMESPACE, &deleted);
    followed.said("Executor 2 (pod my-app-exec-2) was removed: its pod was deleted", 1).await;
    let looks = || followed.server.calls_to(Verb::List).len();
    let before = looks();
    until_true("executors are looked at again", || looks() > before + 3).await;
    followed.finish(0, "Completed");
    let (outcome, lines) = followed.outcome().await;
    assert_eq!(outcome, Outcome::Succeeded);
    let lost = lines.iter().filter(|line| line.contains("was lost")).count();
    assert_eq!(lost, 1, "{lines:#?}");
    let codes = lines.iter().filter(|line| line.contains("137") && line.contains("xit code: "));
    assert_eq!(codes.count(), 0, "Airflow would take it for the driver's");
}

#[tokio::test]
async fn an_executor_whose_deletion_was_not_heard_of_is_missing_after_a_while() {
    let followed = Followed::with(hurried(), looked_at(30, 200), |_| {}).await;
    followed.run();
    let missing = followed.executor(7);
    let looks = || followed.server.calls_to(Verb::List).len();
    until_true("executors are looked at", || looks() > 2).await;
    followed.server.silence_watches();
    followed.server.delete_pod(NAMESPACE, &missing);
    followed.said("Executor 7 (pod my-app-exec-7) was lost: it has been missing from the cluster", 1).await;
    followed.submitter.stop.cancel();
    let (_, lines) = followed.outcome().await;
    assert_eq!(lines.iter().filter(|line| line.contains("was lost")).count(), 1, "{lines:#?}");
}

#[tokio::test]
async fn executors_that_may_not_be_listed_do_not_stand_in_the_way() {
    let followed = Followed::with(hurried(), quick(), |server| {
        server.fail_with("labelSelector", Verb::List, Fault::Status(403));
    })
    .await;
    followed.run();
    followed.said("Executor pods cannot be followed: the API server does not allow it (403", 1).await;
    followed.finish(0, "Completed");
    assert_eq!(followed.outcome().await.0, Outcome::Succeeded);
}
