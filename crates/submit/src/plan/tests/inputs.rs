use cloakroom_spark::{MainResource, keys};
use serde_json::json;

use super::{PlanCase, object, of_kind};
use crate::FileCopy;
use crate::plan::{How, file_keys};

#[tokio::test]
async fn objects_are_made_in_sparks_order() {
    let claim = "spark.kubernetes.driver.volumes.persistentVolumeClaim.data.";
    let case = PlanCase::new()
        .with_file("hadoop/core-site.xml", "<configuration/>")
        .with_file("krb5.conf", "k")
        .with_file("k.keytab", "k")
        .with_file("e.yaml", "spec: {}\n")
        .with("spark.kubernetes.authenticate.driver.oauthToken", "t")
        .with(&format!("{claim}mount.path"), "/data")
        .with(&format!("{claim}options.claimName"), "OnDemand")
        .with(&format!("{claim}options.storageClass"), "fast")
        .with(&format!("{claim}options.sizeLimit"), "1Gi")
        .with("spark.kubernetes.kerberos.krb5.path", "krb5.conf")
        .with("spark.kerberos.keytab", "k.keytab")
        .with("spark.kerberos.principal", "me")
        .with("spark.kubernetes.executor.podTemplateFile", "e.yaml")
        .with_variable("HADOOP_CONF_DIR", "hadoop");
    let made = case.submission().await.made();
    let expected = [
        "Pod <P>-driver",
        "Secret <P>-kubernetes-credentials",
        "Service <P>-driver-svc",
        "NetworkPolicy <P>-policy",
        "PersistentVolumeClaim <P>-driver-pvc-0",
        "ConfigMap <P>-hadoop-config",
        "ConfigMap <P>-krb5-file",
        "Secret <P>-kerberos-keytab",
        "ConfigMap <P>-driver-podspec-conf-map",
    ];
    assert_eq!(made[..made.len() - 1], expected);
    assert!(made.last().unwrap().starts_with("ConfigMap spark-drv-"));
}

#[tokio::test]
async fn the_folder_of_hadoop_travels_whole() {
    let case = PlanCase::new()
        .with_file("h/core-site.xml", "<c/>")
        .with_file("h/.x", "")
        .with_file("h/sub/no", "")
        .with_variable("HADOOP_CONF_DIR", "h");
    let submission = case.submission().await;
    let map = object(&submission, "-hadoop-config");
    assert_eq!(
        (&map["data"], &map["immutable"]),
        (&json!({"core-site.xml": "<c/>", ".x": ""}), &json!(true))
    );
    let items = json!([{"key": ".x", "path": ".x"}, {"key": "core-site.xml", "path": "core-site.xml"}]);
    assert_eq!(submission.volume("hadoop-properties").0["configMap"]["items"], items);
    assert_eq!(submission.variable("HADOOP_CONF_DIR"), ["/opt/hadoop/conf"]);
    assert_eq!(
        map["metadata"]["name"],
        submission.properties()["spark.kubernetes.executor.hadoopConfigMapName"]
    );

    let missing = case.with_variable("HADOOP_CONF_DIR", "nowhere").submission().await;
    assert!(object(&missing, "-hadoop-config").get("data").is_none());
    assert!(
        missing.warnings[0].contains("HADOOP_CONF_DIR is `nowhere`, where no file is"),
        "{:?}",
        missing.warnings
    );
}

/// The working folder of a laptop has keys and `.env` files.
#[tokio::test]
async fn an_empty_path_is_never_the_working_folder() {
    let case = || PlanCase::new().with_file(".env", "PASSWORD");
    let empty = case().with_variable("HADOOP_CONF_DIR", "").submission().await;
    assert!(object(&empty, "-hadoop-config").get("data").is_none());
    assert!(empty.warnings[0].contains("HADOOP_CONF_DIR is empty"), "{:?}", empty.warnings);
    let read = |how: How| matches!(how, How::Path | How::Source);
    let keys = file_keys()
        .filter(|key| read(key.how) && key.name != keys::CLOAKROOM_UPLOAD_TOKEN_FILE.name())
        .map(|key| key.name);
    for key in keys {
        let case = case().with(&keys::EXTRA_STEPS, "org.apache.spark.deploy.k8s.features.VolcanoFeatureStep");
        let case = if key == keys::KEYTAB.name() { case.with(&keys::PRINCIPAL, "u@R") } else { case };
        let message = case.with(key, "").refusal().await;
        assert!(message.starts_with(&format!("`{key}` is empty: ")), "{message}");
    }
}

#[tokio::test]
async fn the_executors_template_travels_as_it_was_read_here() {
    const KEY: &str = "spark.kubernetes.executor.podTemplateFile";
    let case = |text: &str| PlanCase::new().with(KEY, "e.yaml").with_file("e.yaml", text);
    let sent = async |text: &str| {
        let submission = case(text).submission().await;
        object(&submission, "-driver-podspec-conf-map")["data"]["podspec-configmap-key"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    // The driver's reader keeps `<<` as a field, and refuses `containers: null`.
    let merged = "# mine\nbase: &base {tolerations: [{key: gpu}], priority: 010}\n\
                  spec:\n  <<: *base\n  containers: [{name: e, resources: {limits: {cpu: 2}}}]\n";
    let plain: serde_json::Value = serde_json::from_str(&sent(merged).await).unwrap();
    assert_eq!(plain["spec"]["tolerations"], json!([{"key": "gpu"}]));
    assert_eq!(plain["spec"]["containers"][0]["resources"]["limits"]["cpu"], "2");
    let empty: serde_json::Value = serde_json::from_str(&sent("spec: {containers: null}").await).unwrap();
    assert_eq!(empty, json!({"spec": {}}));
    // It refuses trailing commas and comments in JSON, and so does the reader here.
    for json in [r#"{"spec": {"containers": [{"name": "e"},]}}"#, r#"{/* mine */"spec": {}}"#] {
        assert_eq!(sent(json).await, json);
        let warnings = case(json).submission().await.warnings;
        assert!(warnings.iter().any(|text| text.contains("the driver may refuse it")), "{warnings:?}");
    }

    let submission = case("spec: {containers: [{name: e}]}").submission().await;
    let (volume, mount) = submission.volume("pod-template-volume");
    assert_eq!(
        volume["configMap"]["items"],
        json!([{"key": "podspec-configmap-key", "path": "pod-spec-template.yml"}])
    );
    assert_eq!(mount["mountPath"], "/opt/spark/pod-template");
    assert_eq!(submission.properties()[KEY], "/opt/spark/pod-template/pod-spec-template.yml");
    assert!(submission.warnings.is_empty());
    let odd = case("no pod").submission().await;
    assert!(odd.warnings[0].contains(KEY), "{:?}", odd.warnings);
    assert_eq!(object(&odd, "-driver-podspec-conf-map")["data"]["podspec-configmap-key"], "no pod");
}

#[tokio::test]
async fn the_folder_of_spark_travels_beside_the_properties() {
    let submission = PlanCase::new()
        .with_file("home/conf/log4j2.properties", "x")
        .with_file("home/conf/spark-defaults.conf", "spark.x y")
        .with_variable("SPARK_HOME", "home")
        .submission()
        .await;
    let map = of_kind(&submission, "ConfigMap");
    assert_eq!(map["data"]["log4j2.properties"], "x");
    let item = |file: &str| json!({"key": file, "mode": 420, "path": file});
    let items = json!([item("log4j2.properties"), item("spark.properties")]);
    assert_eq!(submission.volume("spark-conf-volume-driver").0["configMap"]["items"], items);
}

#[tokio::test]
async fn local_files_are_to_be_copied_and_come_first() {
    let case = PlanCase::new()
        .with_file("a.jar", "")
        .with_file("b.jar", "")
        .with_file("d.zip", "")
        .with_file("app.jar", "")
        .with_file("c.txt", "");
    let at = |name: &str| format!("file://{}/{name}", case.folder().display());
    let (jars, app) = (format!("local:///x.jar,{},{}", at("[ab].jar"), at("app.jar")), at("app.jar"));
    let (files, archives) = (format!("{}#lost,http://h/y?z=*", at("c.txt")), format!("{}#kept", at("d.zip")));
    let shared = case.folder().join("shared");
    let case = case
        .with("spark.jars", &jars)
        .with("spark.files", &files)
        .with("spark.archives", &archives)
        .with_resource(MainResource::Java(app))
        .with("spark.kubernetes.file.upload.path", &format!("file://{}", shared.display()));
    let submission = case.submission().await;
    let names: Vec<_> =
        submission.uploads.iter().map(|it| it.from.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["a.jar", "b.jar", "app.jar", "c.txt", "d.zip"]);
    let uri = |upload: &FileCopy, slashes: &str| format!("file:{slashes}{}", upload.to.display());
    let uploads = &submission.uploads;
    let properties = submission.properties();
    let jars: Vec<_> =
        uploads[..3].iter().map(|upload| uri(upload, "//")).chain(["local:///x.jar".to_owned()]).collect();
    assert_eq!(properties["spark.jars"], jars.join(","));
    assert_eq!(properties["spark.files"], format!("{},http://h/y?z=*", uri(&uploads[3], "//")));
    assert_eq!(properties["spark.archives"], format!("{}#kept", uri(&uploads[4], "")));
    assert_eq!(submission.container()["args"].as_array().unwrap().last().unwrap(), "spark-internal");
    assert!(!shared.exists(), "planning copies nothing");

    let script =
        case.with_file("s.py", "").with_resource(MainResource::Python("s.py".to_owned())).submission().await;
    let copy = script.uploads.last().unwrap();
    assert_eq!(script.container()["args"].as_array().unwrap().last().unwrap(), &uri(copy, "//"));
}

#[tokio::test]
async fn old_keys_count() {
    let submission = PlanCase::new()
        .without("spark.kubernetes.container.image")
        .with("spark.kubernetes.driver.docker.image", "old:1")
        .with("spark.kubernetes.driver.memoryOverhead", "1g")
        .submission()
        .await;
    assert_eq!(submission.container()["image"], "old:1");
    assert_eq!(submission.container()["resources"]["limits"]["memory"], "2048Mi");
    assert_eq!(submission.warnings.len(), 2, "{:?}", submission.warnings);
}

#[tokio::test]
async fn a_jar_in_which_no_class_can_be_is_warned_of() {
    let case = PlanCase::new()
        .with("spark.kubernetes.resourceStagingServer.uri", "http://staging.example:31000/")
        .with("spark.kubernetes.initContainer.image", "repo.example/cloakroom:1")
        .with_bytes("empty.jar", "")
        .with_bytes("page.jar", "<html>404")
        .with_bytes("good.jar", b"#!/bin/sh\nPK\x05\x06")
        .with_file("data.bin", "")
        .with("spark.jars", "empty.jar,page.jar,good.jar,page.jar#again")
        .with("spark.files", "data.bin");
    let warnings = case.submission().await.warnings;
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("empty.jar is no jar, because it is empty"), "{warnings:?}");
    assert!(warnings[1].contains("page.jar is no jar, because it is no zip file"), "{warnings:?}");
}

#[tokio::test]
async fn a_path_of_the_image_that_is_not_here_is_recognised() {
    let message = PlanCase::new().with("spark.jars", "/opt/spark/examples/jars/x.jar").refusal().await;
    assert!(
        message.ends_with("if it is in the image, write local:///opt/spark/examples/jars/x.jar"),
        "{message}"
    );
}
