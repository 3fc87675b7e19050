use cloakroom_spark::MainResource;
use serde_json::json;

use super::{PlanCase, of_kind};

#[tokio::test]
async fn labels_and_annotations_of_the_user_stand_beside_sparks() {
    let case = PlanCase::new()
        .with("spark.kubernetes.driver.label.team", "a-{{APP_ID}}")
        .with("spark.kubernetes.driver.annotation.example.com/x", "{{APP_ID}} {{EXECUTOR_ID}}!")
        .with("spark.kubernetes.driver.service.label.l", "v")
        .with("spark.kubernetes.driver.service.annotation.a", "any thing");
    let submission = case.submission().await;
    let team = format!("a-{}", submission.app_id);
    assert_eq!(submission.pod["metadata"]["labels"]["team"], team);
    assert_eq!(
        submission.pod["metadata"]["annotations"],
        json!({"example.com/x": format!("{} !", submission.app_id)})
    );
    let service = of_kind(&submission, "Service");
    assert_eq!(service["spec"]["selector"], submission.pod["metadata"]["labels"]);
    let labels = json!({"l": "v", "spark-app-selector": submission.app_id});
    assert_eq!(
        (&service["metadata"]["labels"], &service["metadata"]["annotations"]),
        (&labels, &json!({"a": "any thing"}))
    );

    let older = case.with("spark.kubernetes.cloakroom.sparkVersion", "3.5.9");
    let older = older
        .without("spark.kubernetes.driver.label.team")
        .with("spark.kubernetes.driver.label.team", "plain");
    assert_eq!(older.submission().await.pod["metadata"]["labels"]["team"], "plain");
}

#[tokio::test]
async fn variables_of_the_user_come_behind_sparks_own_first_two() {
    let submission = PlanCase::new()
        .with("spark.kubernetes.driverEnv.SPARK_USER", "mine")
        .with("spark.kubernetes.driverEnv.SPARK_LOCAL_DIRS", "/mine")
        .with("spark.kubernetes.driver.secretKeyRef.PASS", "secret:key")
        .submission()
        .await;
    let names: Vec<_> = submission.container()["env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    let expected = [
        "SPARK_USER",
        "SPARK_APPLICATION_ID",
        "SPARK_LOCAL_DIRS",
        "SPARK_USER",
        "SPARK_DRIVER_BIND_ADDRESS",
        "PASS",
        "SPARK_LOCAL_DIRS",
        "SPARK_CONF_DIR",
    ];
    assert_eq!(names, expected);
    assert_eq!(submission.variable("SPARK_USER"), ["root", "mine"]);
    let reference = json!({"name": "PASS", "valueFrom": {"secretKeyRef": {"name": "secret", "key": "key"}}});
    assert!(submission.container()["env"].as_array().unwrap().contains(&reference));
}

#[tokio::test]
async fn resources_ports_and_placement_follow_their_keys() {
    let submission = PlanCase::new()
        .with("spark.driver.cores", "2")
        .with("spark.kubernetes.driver.limit.cores", "3")
        .with("spark.driver.memory", "2g")
        .with("spark.driver.resource.gpu.amount", "2")
        .with("spark.driver.resource.gpu.vendor", "nvidia.com")
        .with("spark.driver.resource.fpga.amount", "0")
        .with("spark.driver.port", "1000")
        .with("spark.blockManager.port", "1001")
        .with("spark.ui.port", "1002")
        .with("spark.kubernetes.node.selector.disk", "hdd")
        .with("spark.kubernetes.node.selector.zone", "a")
        .with("spark.kubernetes.driver.node.selector.disk", "ssd")
        .with("spark.kubernetes.container.image.pullSecrets", "one, two,")
        .with("spark.kubernetes.scheduler.name", "common")
        .with("spark.kubernetes.driver.scheduler.name", "own")
        .with("spark.kubernetes.securityContext.allowPrivilegeEscalation", "true")
        .submission()
        .await;
    let resources = json!({
        "requests": {"cpu": "2", "memory": "2432Mi"},
        "limits": {"cpu": "3", "memory": "2432Mi", "nvidia.com/gpu": "2"},
    });
    let container = submission.container();
    assert_eq!(container["resources"], resources);
    assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], true);
    let ports: Vec<_> = container["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|port| port["containerPort"].as_u64().unwrap())
        .collect();
    assert_eq!(ports, [1000, 1001, 1002, 15_002]);
    // Spark reads `spark.blockManager.port` for the pod only, and not for the service and the properties.
    let service = &of_kind(&submission, "Service")["spec"];
    assert_eq!(service["ports"][1]["port"], 7079);
    assert_eq!(submission.properties()["spark.driver.blockManager.port"], "7079");
    let spec = &submission.pod["spec"];
    assert_eq!(spec["nodeSelector"], json!({"disk": "ssd", "zone": "a"}));
    assert_eq!(spec["imagePullSecrets"], json!([{"name": "one"}, {"name": "two"}]));
    assert_eq!(spec["schedulerName"], "own");
}

#[tokio::test]
async fn a_template_is_kept_and_spark_adds_behind_it() {
    let template = "metadata: {labels: {mine: x, spark-role: y}, name: gone, namespace: gone, annotations: {a: b}}\n\
                    spec:\n  restartPolicy: Always\n  priorityClassName: high\n  unknown: {a: 1}\n  \
                    imagePullSecrets: [{name: first}]\n  volumes: [{name: v, emptyDir: {}}]\n  containers:\n  \
                    - name: spark\n    image: gone\n    command: [/x]\n    args: [first]\n    \
                    env: [{name: SPARK_USER, value: t}]\n    ports: [{containerPort: 1}]\n    \
                    resources: {limits: {memory: 1Gi, cpu: 9}}\n    volumeMounts: [{name: v, mountPath: /v}]\n  \
                    - name: sidecar\n    image: kept\n";
    let submission = PlanCase::new()
        .with_file("t.yaml", template)
        .with("spark.kubernetes.driver.podTemplateFile", "t.yaml")
        .with("spark.kubernetes.container.image.pullSecrets", "second")
        .submission()
        .await;
    let metadata = &submission.pod["metadata"];
    assert_eq!(
        (&metadata["labels"]["mine"], &metadata["labels"]["spark-role"]),
        (&json!("x"), &json!("driver"))
    );
    assert_eq!(
        (metadata["name"].as_str(), &metadata["annotations"]),
        (Some(&*submission.pod_name), &json!({"a": "b"}))
    );
    assert_eq!(metadata["namespace"], "default");
    // Labels of the template are not in the service's selector.
    assert!(of_kind(&submission, "Service")["spec"]["selector"].get("mine").is_none());
    let spec = &submission.pod["spec"];
    assert_eq!(
        (&spec["restartPolicy"], &spec["priorityClassName"], &spec["unknown"]),
        (&json!("Never"), &json!("high"), &json!({"a": 1}))
    );
    assert_eq!(spec["imagePullSecrets"], json!([{"name": "first"}, {"name": "second"}]));
    assert_eq!(
        (&spec["containers"][0], spec["volumes"][0]["name"].as_str()),
        (&json!({"name": "sidecar", "image": "kept"}), Some("v"))
    );
    let container = submission.container();
    assert_eq!(
        (&container["name"], &container["image"], &container["command"]),
        (&json!("spark"), &json!("repo.example/spark:4"), &json!(["/x"]))
    );
    assert_eq!((&container["args"][0], &container["args"][1]), (&json!("first"), &json!("driver")));
    assert_eq!(submission.variable("SPARK_USER"), ["t", "root"]);
    assert_eq!(container["resources"]["limits"], json!({"memory": "1408Mi", "cpu": "9"}));
    assert_eq!(
        (&container["ports"][0]["containerPort"], &container["volumeMounts"][0]["name"]),
        (&json!(1), &json!("v"))
    );
}

#[tokio::test]
async fn the_named_container_becomes_the_last_one_and_keeps_its_name() {
    let submission = PlanCase::new()
        .with_file("t.json", r#"{"kind": "Pod", "spec": {"containers": [{"name": "a"}, {"name": "b"}]}}"#)
        .with("spark.kubernetes.driver.podTemplateFile", "t.json")
        .with("spark.kubernetes.driver.podTemplateContainerName", "a")
        .submission()
        .await;
    let names: Vec<_> = submission.pod["spec"]["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["b", "a"]);
}

#[tokio::test]
async fn python_and_r_have_their_own_runners_variables_and_overhead() {
    let mut case = PlanCase::new()
        .with_resource(MainResource::Python("local:///a.py".to_owned()))
        .with("spark.driver.memory", "4g")
        .with("spark.pyspark.driver.python", "python3.12")
        .with_variable("PYSPARK_PYTHON", "of-this-machine")
        .with_variable("PYSPARK_DRIVER_PYTHON", "loses");
    case.arguments.main_class = "org.apache.spark.deploy.PythonRunner".to_owned();
    case.arguments.arguments = vec![String::new(), "$(X) a\nb".to_owned()];
    case.arguments.proxy_user = Some("other".to_owned());
    let submission = case.submission().await;
    let expected = json!([
        "driver",
        "--proxy-user",
        "other",
        "--properties-file",
        "/opt/spark/conf/spark.properties",
        "--class",
        "org.apache.spark.deploy.PythonRunner",
        "local:///a.py",
        "",
        "$(X) a\nb",
    ]);
    assert_eq!(submission.container()["args"], expected);
    assert_eq!(submission.container()["resources"]["requests"]["memory"], "5734Mi");
    assert_eq!(
        (submission.variable("PYSPARK_PYTHON"), submission.variable("PYSPARK_DRIVER_PYTHON")),
        (vec![&json!("of-this-machine")], vec![&json!("python3.12")])
    );
    assert_eq!(submission.variable("SPARK_USER"), ["other"]);
    let properties = submission.properties();
    assert_eq!(
        (
            &*properties["spark.kubernetes.resource.type"],
            &*properties["spark.kubernetes.memoryOverheadFactor"]
        ),
        ("python", "0.4")
    );
    let case = case.without("spark.pyspark.driver.python");
    let of_machine = case.submission().await;
    assert_eq!(of_machine.variable("PYSPARK_DRIVER_PYTHON"), ["loses"]);
    let case = case.with("spark.pyspark.python", "of-both");
    let both = case.submission().await;
    assert_eq!(both.variable("PYSPARK_DRIVER_PYTHON"), both.variable("PYSPARK_PYTHON"));
    let r = case.with_resource(MainResource::R("local:///a.R".to_owned())).submission().await;
    assert_eq!(r.properties()["spark.kubernetes.resource.type"], "r");
    assert!(r.variable("PYSPARK_PYTHON").is_empty());
}

#[tokio::test]
async fn a_service_of_two_families_and_a_name_that_is_too_long_for_one() {
    let case = PlanCase::new()
        .with("spark.kubernetes.driver.service.ipFamilyPolicy", "RequireDualStack")
        .with("spark.kubernetes.driver.service.ipFamilies", "IPv6,IPv4")
        .with("spark.kubernetes.driver.service.publishNotReadyAddresses", "true")
        .with("spark.kubernetes.namespace", "team-a")
        .with("spark.app.name", &"long".repeat(25));
    let submission = case.submission().await;
    let service = of_kind(&submission, "Service");
    assert_eq!(service["spec"]["ipFamilies"], json!(["IPv6", "IPv4"]));
    assert_eq!(
        (&service["spec"]["ipFamilyPolicy"], &service["spec"]["publishNotReadyAddresses"]),
        (&json!("RequireDualStack"), &json!(true))
    );
    let name = service["metadata"]["name"].as_str().unwrap();
    assert!(name.len() == 33 && name.starts_with("spark-") && name.ends_with("-driver-svc"), "{name}");
    assert_eq!(submission.properties()["spark.driver.host"], format!("{name}.team-a.svc"));
    assert_eq!(submission.pod_name.len(), 124);
    assert!(submission.warnings[0].contains(name), "{:?}", submission.warnings);
    assert_eq!(submission.namespace, "team-a");
    assert_eq!(of_kind(&submission, "ConfigMap")["data"]["spark.kubernetes.namespace"], "team-a");
}

#[tokio::test]
async fn steps_can_be_left_out_from_4_1_on() {
    let service = "org.apache.spark.deploy.k8s.features.DriverServiceFeatureStep";
    let case = PlanCase::new().with("spark.kubernetes.driver.pod.excludedFeatureSteps", service);
    let submission = case.submission().await;
    assert_eq!(submission.made().len(), 3);
    assert!(!submission.properties().contains_key("spark.driver.host"));
    let older = case.with("spark.kubernetes.cloakroom.sparkVersion", "3.5.9").submission().await;
    assert!(older.properties().contains_key("spark.driver.host"));
}

#[tokio::test]
async fn volcano_gets_its_pod_group_before_the_pod() {
    let class = "org.apache.spark.deploy.k8s.features.VolcanoFeatureStep";
    let case = PlanCase::new().with("spark.kubernetes.driver.pod.featureSteps", class);
    let submission = case.submission().await;
    let name = format!("{}-podgroup", submission.app_id);
    let group = json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {},
    });
    assert_eq!(submission.before_pod, [group]);
    assert_eq!(submission.pod["metadata"]["annotations"], json!({"scheduling.k8s.io/group-name": name}));

    let with_template = case
        .with_file(
            "g.yaml",
            "kind: PodGroup\nmetadata: {labels: {a: b}, name: x}\nspec: {minMember: 3, queue: q}\n",
        )
        .with("spark.kubernetes.scheduler.volcano.podGroupTemplateFile", "g.yaml")
        .submission()
        .await;
    assert_eq!(with_template.before_pod[0]["spec"], json!({"minMember": 3, "queue": "q"}));
    assert_eq!(
        with_template.before_pod[0]["metadata"],
        json!({"labels": {"a": "b"}, "name": name, "namespace": "default"})
    );
}
