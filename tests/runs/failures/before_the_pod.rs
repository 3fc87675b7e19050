//! Failures that come before the pod is there for good: nothing is left of anything.

use std::sync::Arc;

use cloakroom_testing::tls::signed_by_ca;
use libtest_mimic::Trial;
use serde_json::json;

use super::page::Block;
use super::running::Ended;
use super::tested::{SECRET_MARK, TestNamespace};
use super::{
    NO_ACCOUNT, NO_CONNECTION, NO_CONNECTION_LATER, NO_DISK, NO_RIGHT, NO_ROOM, NO_SERVER,
    NO_SERVER_APPLICATION, NO_TOKEN, NO_TRUST, QUOTA, QUOTA_LATER, TOO_LARGE, WRONG_TOKEN,
};
use crate::shared::{CLOAKROOM, SharedCluster};

const TOKEN_FILE: &str = "spark.kubernetes.cloakroom.uploadTokenFile";

pub fn trials(shared: &Arc<SharedCluster>) -> Vec<Trial> {
    vec![
        shared.trial("failures::jars_without_a_server_are_refused", no_server),
        shared.trial("failures::a_server_that_cannot_be_reached_is_said_before_anything_else", no_connection),
        shared.trial("failures::a_certificate_that_nobody_trusts_is_said", no_trust),
        shared.trial("failures::an_upload_that_is_too_large_is_refused", too_large),
        shared.trial("failures::an_upload_that_the_server_has_no_room_for_is_refused", no_room),
        shared.trial("failures::an_upload_without_the_right_token_is_refused", no_token),
        shared.trial("failures::an_upload_for_a_namespace_without_a_right_to_it_is_refused", no_right),
        shared.trial("failures::a_pod_over_the_quota_is_refused_before_anything_is_uploaded", quota),
        shared.trial("failures::a_service_account_that_does_not_exist_is_said_before_the_upload", no_account),
        shared.trial("failures::an_object_over_the_quota_takes_the_pod_and_the_upload_back", quota_later),
    ]
}

async fn refused(tested: &TestNamespace<'_>, ended: &Ended, block: Block) {
    assert_eq!(ended.code, 1, "{}", ended.told);
    tested.assert_no_secret_in(&ended.told).await;
    tested.assert_shown(block, &ended.told);
    tested.assert_nothing_is_left().await;
}

async fn no_server(shared: Arc<SharedCluster>) {
    let cluster = shared.cluster().await;
    let tested = TestNamespace::without_server(cluster, "failure-no-server").await;
    // The servers of these tests are no pods, so no other test needs the Service of the manifests.
    let deleted = cluster.plane.kubectl(&["delete", "service", "cloakroom", "--namespace", "cloakroom"]);
    assert!(deleted.status.success(), "{deleted:?}");
    let ended = tested.submitted(&[]).await;
    refused(&tested, &ended, NO_SERVER_APPLICATION).await;
    std::fs::create_dir(tested.path("lib")).unwrap();
    std::fs::write(tested.path("lib/dep.jar"), "a jar").unwrap();
    let arguments = ["--class", "org.example.Report", "--jars", "lib/dep.jar", "report.jar"];
    refused(&tested, &tested.submit(&[], &arguments).end().await, NO_SERVER).await;
}

async fn no_connection(shared: Arc<SharedCluster>) {
    let tested = TestNamespace::without_server(shared.cluster().await, "failure-no-connection").await;
    let time = ("spark.kubernetes.cloakroom.retryTimeout", "2s".to_owned());
    let image = ("spark.kubernetes.initContainer.image", CLOAKROOM.to_owned());
    for (settings, block) in [
        (vec![tested.staging(), time.clone()], NO_CONNECTION),
        (vec![tested.staging(), time, image], NO_CONNECTION_LATER),
    ] {
        let mut ended = tested.submitted(&settings).await;
        // The page shows the time that it takes without the setting.
        ended.told = ended.told.replace("up to 2s", "up to 30s").replace("for 2s", "for 30s");
        refused(&tested, &ended, block).await;
    }
}

async fn no_trust(shared: Arc<SharedCluster>) {
    let mut tested = TestNamespace::without_server(shared.cluster().await, "failure-no-trust").await;
    let pem = signed_by_ca(&tested.path(""), &["127.0.0.1"]);
    let file = |path: &std::path::Path| path.display().to_string();
    tested.serve("server", &["--tls-cert", &file(&pem.cert), "--tls-key", &file(&pem.key)]);
    let staging = (tested.staging().0, tested.server_url().replace("http:", "https:"));
    let mut ended = tested.submitted(std::slice::from_ref(&staging)).await;
    ended.told = ended.told.replace(&staging.1, "https://NODE:31000");
    refused(&tested, &ended, NO_TRUST).await;
}

async fn too_large(shared: Arc<SharedCluster>) {
    let mut tested = TestNamespace::without_server(shared.cluster().await, "failure-too-large").await;
    tested.serve("server", &["--max-resource-size", "1MiB"]);
    refused(&tested, &tested.submitted(&[tested.staging()]).await, TOO_LARGE).await;
}

async fn no_room(shared: Arc<SharedCluster>) {
    let mut tested = TestNamespace::without_server(shared.cluster().await, "failure-no-room").await;
    for (flags, block) in
        [(["--max-total-size", "1MiB"], NO_ROOM), (["--min-free-space", "1024TiB"], NO_DISK)]
    {
        tested.serve("server", &flags);
        refused(&tested, &tested.submitted(&[tested.staging()]).await, block).await;
        tested.kill_server();
    }
}

async fn no_token(shared: Arc<SharedCluster>) {
    let mut tested = TestNamespace::without_server(shared.cluster().await, "failure-no-token").await;
    let wanted = tested.path("wanted").display().to_string();
    std::fs::write(&wanted, format!("{SECRET_MARK}-the-right-one\n")).unwrap();
    std::fs::write(tested.path("upload-token"), format!("{SECRET_MARK}-another-one\n")).unwrap();
    tested.serve("server", &["--upload-auth", "token", "--upload-token-file", &wanted]);
    refused(&tested, &tested.submitted(&[tested.staging()]).await, NO_TOKEN).await;
    let token = (TOKEN_FILE, "upload-token".to_owned());
    refused(&tested, &tested.submitted(&[tested.staging(), token]).await, WRONG_TOKEN).await;
}

/// The server asks the API server about the token of an account that may do nothing here.
async fn no_right(shared: Arc<SharedCluster>) {
    let cluster = shared.cluster().await;
    let mut tested = TestNamespace::without_server(cluster, "failure-no-right").await;
    let token = cluster.plane.token_for(tested.namespace, "default", "cloakroom.cloakroom").await;
    std::fs::write(tested.path("upload-token"), &token).unwrap();
    tested.serve("server", &["--upload-auth", "kubernetes"]);
    let shown = (TOKEN_FILE, "upload-token".to_owned());
    let ended = tested.submitted(&[tested.staging(), shown]).await;
    assert!(!ended.told.contains(&token), "{}", ended.told);
    refused(&tested, &ended, NO_RIGHT).await;
}

/// What the quota's controller would do.
pub async fn limit(tested: &TestNamespace<'_>, what: &str, hard: &str, used: &str) {
    let quota = json!({"metadata": {"name": "team"}, "spec": {"hard": {what: hard}}});
    let (status, answer) = tested.api.post(&tested.object("resourcequotas", ""), &quota).await;
    assert_eq!(status, 201, "{answer}");
    let counted = json!({"status": {"hard": {what: hard}, "used": {what: used}}});
    let (status, answer) = tested.api.merge(&tested.object("resourcequotas", "team/status"), &counted).await;
    assert_eq!(status, 200, "{answer}");
}

async fn quota(shared: Arc<SharedCluster>) {
    let tested = TestNamespace::new(shared.cluster().await, "failure-many-cores").await;
    limit(&tested, "requests.memory", "2Gi", "1536Mi").await;
    let ended = tested.submitted(&[tested.staging()]).await;
    assert!(!ended.told.contains("Staged the jars"), "{}", ended.told);
    refused(&tested, &ended, QUOTA).await;
}

async fn no_account(shared: Arc<SharedCluster>) {
    let tested = TestNamespace::new(shared.cluster().await, "failure-no-account").await;
    let account = ("spark.kubernetes.authenticate.driver.serviceAccountName", "runner".to_owned());
    refused(&tested, &tested.submitted(&[tested.staging(), account]).await, NO_ACCOUNT).await;
}

async fn quota_later(shared: Arc<SharedCluster>) {
    let tested = TestNamespace::new(shared.cluster().await, "failure-many-maps").await;
    limit(&tested, "configmaps", "10", "10").await;
    let ended = tested.submitted(&[tested.staging()]).await;
    assert!(ended.told.contains("Staged the jars"), "{}", ended.told);
    refused(&tested, &ended, QUOTA_LATER).await;
}
