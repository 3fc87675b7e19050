use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{PlanCase, of_kind};
use crate::Submission;

/// The drawn values, each with its placeholder in the texts below.
fn randomness(submission: &Submission) -> BTreeMap<&'static str, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let prefix = submission.pod_name.strip_suffix("-driver").unwrap().to_owned();
    BTreeMap::from([
        ("APPID", submission.app_id.clone()),
        ("PREFIX", prefix),
        ("LOCALDIR", text(submission.variable("SPARK_LOCAL_DIRS")[0])),
        ("CONFIGMAP", text(&of_kind(submission, "ConfigMap")["metadata"]["name"])),
    ])
}

fn normalised(submission: &Submission, value: &Value) -> Value {
    let mut text = value.to_string();
    for (word, name) in randomness(submission) {
        text = text.replace(&name, word);
    }
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn the_default_driver_pod_is_sparks() {
    let submission = PlanCase::new().submission().await;
    let variable = |name: &str, value: &str| json!({"name": name, "value": value});
    let port = |name: &str, port: u16| json!({"name": name, "containerPort": port, "protocol": "TCP"});
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "labels": {
                "spark-version": "4.3.0",
                "spark-app-selector": "APPID",
                "spark-app-name": "org-apache-spark-examples-sparkpi",
                "spark-role": "driver",
            },
            "name": "PREFIX-driver",
        },
        "spec": {
            "containers": [{
                "args": [
                    "driver", "--properties-file", "/opt/spark/conf/spark.properties", "--class",
                    "org.apache.spark.examples.SparkPi", "local:///opt/spark/examples/jars/spark-examples.jar",
                ],
                "env": [
                    variable("SPARK_USER", "root"),
                    variable("SPARK_APPLICATION_ID", "APPID"),
                    {
                        "name": "SPARK_DRIVER_BIND_ADDRESS",
                        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}},
                    },
                    variable("SPARK_LOCAL_DIRS", "LOCALDIR"),
                    variable("SPARK_CONF_DIR", "/opt/spark/conf"),
                ],
                "image": "repo.example/spark:4",
                "imagePullPolicy": "IfNotPresent",
                "name": "spark-kubernetes-driver",
                "ports": [
                    port("driver-rpc-port", 7078), port("blockmanager", 7079), port("spark-ui", 4040),
                    port("spark-connect", 15002),
                ],
                "resources": {"limits": {"memory": "1408Mi"}, "requests": {"cpu": "1", "memory": "1408Mi"}},
                "securityContext": {"allowPrivilegeEscalation": false},
                "volumeMounts": [
                    {"mountPath": "LOCALDIR", "name": "spark-local-dir-1"},
                    {"mountPath": "/opt/spark/conf", "name": "spark-conf-volume-driver"},
                ],
            }],
            "restartPolicy": "Never",
            "volumes": [
                {"emptyDir": {}, "name": "spark-local-dir-1"},
                {
                    "configMap": {
                        "items": [{"key": "spark.properties", "mode": 420, "path": "spark.properties"}],
                        "name": "CONFIGMAP",
                    },
                    "name": "spark-conf-volume-driver",
                },
            ],
        },
    });
    assert_eq!(normalised(&submission, &submission.pod), expected);
}

#[tokio::test]
async fn the_default_service_and_network_policy_are_sparks() {
    let submission = PlanCase::new().submission().await;
    let port = |name: &str, port: u16| json!({"name": name, "port": port, "targetPort": port});
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"labels": {"spark-app-selector": "APPID"}, "name": "PREFIX-driver-svc"},
        "spec": {
            "clusterIP": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [
                port("driver-rpc-port", 7078), port("blockmanager", 7079), port("spark-ui", 4040),
                {"appProtocol": "grpc", "name": "spark-connect", "port": 15002, "targetPort": 15002},
            ],
            "publishNotReadyAddresses": false,
            "selector": {
                "spark-version": "4.3.0",
                "spark-app-selector": "APPID",
                "spark-app-name": "org-apache-spark-examples-sparkpi",
                "spark-role": "driver",
            },
        },
    });
    assert_eq!(normalised(&submission, of_kind(&submission, "Service")), service);
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "labels": {"spark-app-selector": "APPID"},
            "name": "PREFIX-policy",
            "namespace": "default",
        },
        "spec": {
            "ingress": [{"from": [{"podSelector": {"matchLabels": {"spark-app-selector": "APPID"}}}]}],
            "podSelector": {"matchLabels": {"spark-role": "executor", "spark-app-selector": "APPID"}},
        },
    });
    assert_eq!(normalised(&submission, of_kind(&submission, "NetworkPolicy")), policy);
}

#[tokio::test]
async fn the_default_properties_are_sparks() {
    let submission = PlanCase::new().submission().await;
    let map = of_kind(&submission, "ConfigMap");
    assert_eq!((&map["immutable"], &map["metadata"]["namespace"]), (&json!(true), &json!("default")));
    assert_eq!(map["data"]["spark.kubernetes.namespace"], "default");
    assert_eq!(
        submission.made(),
        [
            "Pod <P>-driver",
            "Service <P>-driver-svc",
            "NetworkPolicy <P>-policy",
            &format!("ConfigMap {}", map["metadata"]["name"].as_str().unwrap())
        ]
    );
    let properties = normalised(&submission, &json!(submission.properties()));
    let expected = json!({
        "spark.app.id": "APPID",
        "spark.app.name": "org.apache.spark.examples.SparkPi",
        "spark.app.submitTime": "1795223152157",
        "spark.driver.blockManager.port": "7079",
        "spark.driver.host": "PREFIX-driver-svc.default.svc",
        "spark.driver.port": "7078",
        "spark.jars": "local:///opt/spark/examples/jars/spark-examples.jar",
        "spark.kubernetes.container.image": "repo.example/spark:4",
        "spark.kubernetes.driver.pod.name": "PREFIX-driver",
        "spark.kubernetes.memoryOverheadFactor": "0.1",
        "spark.kubernetes.resource.type": "java",
        "spark.kubernetes.submitInDriver": "true",
        "spark.master": "k8s://http://127.0.0.1:8902",
        "spark.submit.deployMode": "cluster",
        "spark.submit.pyFiles": "",
    });
    assert_eq!(properties, expected);
}

/// The observed differences between Spark 3.5, 4.1 and 4.3.
#[tokio::test]
async fn older_lines_of_spark_have_older_shapes() {
    for (version, ports, has_protocol, has_policy) in
        [("3.5.9", 3, false, false), ("4.1.4", 4, false, false), ("4.3.0", 4, true, true)]
    {
        let case = PlanCase::new().with("spark.kubernetes.cloakroom.sparkVersion", version);
        let submission = case.submission().await;
        assert_eq!(submission.pod["metadata"]["labels"]["spark-version"], version);
        assert_eq!(submission.container()["ports"].as_array().unwrap().len(), ports, "{version}");
        assert_eq!(submission.container().get("securityContext").is_some(), has_policy, "{version}");
        let service = &of_kind(&submission, "Service")["spec"];
        assert_eq!(service["ports"].as_array().unwrap().len(), ports, "{version}");
        assert_eq!(service.to_string().contains("grpc"), has_protocol, "{version}");
        assert_eq!(service.get("publishNotReadyAddresses").is_some(), has_policy, "{version}");
        assert_eq!(submission.made().len(), if has_policy { 4 } else { 3 }, "{version}");
        assert!(!submission.properties().keys().any(|key| key.contains("cloakroom")), "{version}");
    }
}
