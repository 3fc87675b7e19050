use serde_json::json;

use super::{PlanCase, of_kind};

#[tokio::test]
async fn secrets_and_volumes_of_every_type_are_mounted() {
    let volumes = "spark.kubernetes.driver.volumes.";
    let submission = PlanCase::new()
        .with("spark.kubernetes.driver.secrets.My.Secret", "/secret")
        .with(&format!("{volumes}hostPath.host.mount.path"), "/host")
        .with(&format!("{volumes}hostPath.host.mount.readOnly"), "true")
        .with(&format!("{volumes}hostPath.host.mount.subPath"), "sub")
        .with(&format!("{volumes}hostPath.host.options.path"), "/on/node")
        .with(&format!("{volumes}hostPath.host.options.type"), "Directory")
        .with(&format!("{volumes}emptyDir.empty.mount.path"), "/empty")
        .with(&format!("{volumes}emptyDir.empty.options.sizeLimit"), "1Gi")
        .with(&format!("{volumes}nfs.net.mount.path"), "/net")
        .with(&format!("{volumes}nfs.net.mount.subPathExpr"), "$(X)")
        .with(&format!("{volumes}nfs.net.options.server"), "nfs.example")
        .with(&format!("{volumes}nfs.net.options.path"), "/export")
        .submission()
        .await;
    let mount = |name: &str, path: &str, read_only: bool, sub: &str, expression: &str| json!({"name": name, "mountPath": path, "readOnly": read_only, "subPath": sub, "subPathExpr": expression});
    for (name, source, mounted) in [
        (
            "My.Secret-volume",
            json!({"secret": {"secretName": "My.Secret"}}),
            json!({"name": "My.Secret-volume", "mountPath": "/secret"}),
        ),
        (
            "host",
            json!({"hostPath": {"path": "/on/node", "type": "Directory"}}),
            mount("host", "/host", true, "sub", ""),
        ),
        (
            "empty",
            json!({"emptyDir": {"medium": "", "sizeLimit": "1Gi"}}),
            mount("empty", "/empty", false, "", ""),
        ),
        (
            "net",
            json!({"nfs": {"server": "nfs.example", "path": "/export"}}),
            mount("net", "/net", false, "", "$(X)"),
        ),
    ] {
        let mut volume = source;
        volume["name"] = json!(name);
        assert_eq!(submission.volume(name), (&volume, &mounted));
    }
}

#[tokio::test]
async fn a_claim_is_made_where_class_and_size_are_known() {
    let claim = "spark.kubernetes.driver.volumes.persistentVolumeClaim.data.";
    let case = PlanCase::new()
        .with(&format!("{claim}mount.path"), "/data")
        .with(&format!("{claim}options.claimName"), "pre-OnDemand-post")
        .with(&format!("{claim}label.team"), "a")
        .with(&format!("{claim}annotation.note"), "b c");
    let submission = case.submission().await;
    let prefix = submission.pod_name.strip_suffix("-driver").unwrap().to_owned();
    let name = format!("pre-{prefix}-driver-pvc-0-post");
    let source = json!({"name": "data", "persistentVolumeClaim": {"claimName": name, "readOnly": false}});
    assert_eq!(submission.volume("data").0, &source);
    assert!(submission.after_pod.iter().all(|object| object["kind"] != "PersistentVolumeClaim"));

    let case = case
        .with(&format!("{claim}options.storageClass"), "fast")
        .with(&format!("{claim}options.sizeLimit"), "10Gi");
    let mut expected = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "labels": {"spark-app-selector": submission.app_id, "team": "a"},
            "annotations": {"note": "b c"},
        },
        "spec": {
            "accessModes": ["ReadWriteOncePod"],
            "resources": {"requests": {"storage": "10Gi"}},
            "storageClassName": "fast",
        },
    });
    assert_eq!(of_kind(&case.submission().await, "PersistentVolumeClaim"), &expected);
    expected["spec"]["accessModes"] = json!(["ReadWriteOnce"]);
    let case = case.with("spark.kubernetes.legacy.useReadWriteOnceAccessMode", "true");
    assert_eq!(of_kind(&case.submission().await, "PersistentVolumeClaim"), &expected);

    let older = case.with("spark.kubernetes.cloakroom.sparkVersion", "3.5.9").submission().await;
    let older_claim = of_kind(&older, "PersistentVolumeClaim");
    assert_eq!(older_claim["spec"]["accessModes"], json!(["ReadWriteOnce"]));
    assert_eq!(older_claim["metadata"]["labels"], json!({"spark-app-selector": older.app_id}));
    assert!(older_claim["metadata"].get("annotations").is_none());
    assert!(older.volume("data").1.get("subPathExpr").is_none());
}

#[tokio::test]
async fn local_folders_come_from_volumes_the_machine_the_setting_or_chance() {
    let volume = "spark.kubernetes.driver.volumes.emptyDir.spark-local-dir-7.";
    let case =
        PlanCase::new().with("spark.local.dir", "/a,/b").with("spark.kubernetes.local.dirs.tmpfs", "true");
    let submission = case.submission().await;
    assert_eq!(submission.variable("SPARK_LOCAL_DIRS"), ["/a,/b"]);
    for (name, path) in [("spark-local-dir-1", "/a"), ("spark-local-dir-2", "/b")] {
        let expected = (
            json!({"name": name, "emptyDir": {"medium": "Memory"}}),
            json!({"name": name, "mountPath": path}),
        );
        assert_eq!(submission.volume(name), (&expected.0, &expected.1));
    }
    let case = case.with_variable("SPARK_LOCAL_DIRS", "/of/machine");
    assert_eq!(case.submission().await.variable("SPARK_LOCAL_DIRS"), ["/of/machine"]);
    let submission = case.with(&format!("{volume}mount.path"), "/mounted").submission().await;
    assert_eq!(submission.variable("SPARK_LOCAL_DIRS"), ["/mounted"]);
    assert_eq!(submission.pod["spec"]["volumes"].as_array().unwrap().len(), 2);
}
