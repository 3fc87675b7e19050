use cloakroom_spark::MainResource;

use super::PlanCase;

/// A refusal of a setting names its key, its value and what is allowed, in one line.
#[tokio::test]
async fn bad_settings_are_refused_with_their_key_and_value() {
    let volumes = "spark.kubernetes.driver.volumes.";
    for (settings, problem) in [
        (&[("spark.kubernetes.container.image", "")][..], "it must be the image of the driver"),
        (&[("spark.kubernetes.container.image.pullPolicy", "Sometimes")], "it must be one of Always, Never"),
        (&[("spark.kubernetes.driver.label.spark-role", "x")], "the label spark-role is set by Spark itself"),
        (&[("spark.kubernetes.driver.label.a b", "x")], "must be the key of a label"),
        (&[("spark.kubernetes.driver.label.a", "x y")], "it must be the value of a label"),
        (&[("spark.kubernetes.driver.annotation./a", "x")], "must be the key of an annotation"),
        (&[("spark.kubernetes.driver.service.label.a", "-")], "it must be the value of a label"),
        (&[("spark.kubernetes.driver.service.annotation. ", "-")], "must be the key of an annotation"),
        (&[("spark.kubernetes.namespace", "Bad_One")], "it must be the name of a namespace"),
        (&[("spark.kubernetes.driver.service.ipFamilies", "IPv9")], "`IPv6,IPv4`"),
        (&[("spark.kubernetes.driver.service.ipFamilyPolicy", "x")], "RequireDualStack"),
        (&[("spark.driver.bindAddress", "0.0.0.0")], "it cannot be set on Kubernetes"),
        (&[("spark.driver.port", "abc")], "a whole number from 0 to 65535"),
        (&[("spark.ui.port", "99999")], "a whole number from 0 to 65535"),
        (&[("spark.driver.resource.gpu.amount", "-1")], "a whole number from 0"),
        (&[("spark.kubernetes.local.dirs.tmpfs", "yes")], "true or false"),
        (&[("spark.kubernetes.configMap.maxSize", "1m")], "a whole number of bytes"),
        (&[("spark.kubernetes.report.interval", "5 parsecs")], "is not a unit"),
        (&[("spark.kubernetes.driver.pod.featureSteps", "no.such.Step")], "only a JVM can run"),
        (&[("spark.kubernetes.cloakroom.sparkVersion", "2.2.0")], "from 3.5.0 on"),
        (
            &[("spark.hadoop.hadoop.security.authentication", "kerberos")],
            "delegation tokens are not fetched here",
        ),
        (
            &[(&*format!("{volumes}cinder.c.mount.path"), "/c")],
            "volumes of the type cinder are not supported",
        ),
    ] {
        let (key, value) = settings[0];
        let message = PlanCase::new().with(key, value).refusal().await;
        let is = if value.is_empty() { "empty".to_owned() } else { format!("`{value}`") };
        let is_named = message.starts_with(&format!("`{key}` is {is}: "));
        assert!(is_named && message.contains(problem) && !message.contains('\n'), "{message}");
    }
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let volumes = "spark.kubernetes.driver.volumes.";
    let keys = [
        ("spark.driver.resource.gpu.vendor", "nvidia.com", "spark.driver.resource.gpu.amount"),
        ("spark.driver.resource.gpu.amount", "1", "spark.driver.resource.gpu.vendor"),
        ("spark.kerberos.keytab", "k", "spark.kerberos.principal"),
        ("spark.kerberos.principal", "p", "spark.kerberos.keytab"),
        ("spark.kubernetes.kerberos.tokenSecret.name", "n", "spark.kubernetes.kerberos.tokenSecret.itemKey"),
        (&*format!("{volumes}hostPath.v.options.path"), "/v", &*format!("{volumes}hostPath.v.mount.path")),
        (&*format!("{volumes}hostPath.v.mount.path"), "/v", &*format!("{volumes}hostPath.v.options.path")),
        (&*format!("{volumes}nfs.v.mount.path"), "/v", &*format!("{volumes}nfs.v.options.server")),
        (
            &*format!("{volumes}persistentVolumeClaim.v.mount.path"),
            "/v",
            &*format!("{volumes}persistentVolumeClaim.v.options.claimName"),
        ),
    ];
    for (key, value, missing) in keys {
        let message = PlanCase::new().with(key, value).refusal().await;
        assert!(message.starts_with(&format!("`{missing}` is not set: ")), "{message}");
    }
    let message = PlanCase::new().without("spark.kubernetes.container.image").refusal().await;
    assert!(
        message.starts_with("`spark.kubernetes.container.image` is not set: it must be the image"),
        "{message}"
    );
    let mistyped = PlanCase::new()
        .without("spark.kubernetes.container.image")
        .with("spark.kubernetes.conatiner.image", "repo.example/spark:4");
    let message = mistyped.refusal().await;
    let meant =
        "`spark.kubernetes.conatiner.image` is set, and has no effect: is `spark.kubernetes.container.image`";
    assert!(message.contains(meant), "{message}");
}

#[tokio::test]
async fn images_that_no_node_can_pull_are_refused() {
    for key in
        ["container.image", "driver.container.image", "executor.container.image", "initContainer.image"]
    {
        let key = format!("spark.kubernetes.{key}");
        for (image, why) in
            [("${REGISTRY}/x", "a variable that was not filled in?"), ("apache/Spark", "capital")]
        {
            let message = PlanCase::new().with(&key, image).refusal().await;
            assert!(message.starts_with(&format!("`{key}` is `{image}`: no node")), "{message}");
            assert!(message.contains(why), "{message}");
        }
    }
}

#[tokio::test]
async fn what_excludes_each_other_is_refused() {
    let volumes = "spark.kubernetes.driver.volumes.";
    let case = PlanCase::new()
        .with(&format!("{volumes}hostPath.a.mount.path"), "/x")
        .with(&format!("{volumes}hostPath.a.options.path"), "/a")
        .with(&format!("{volumes}emptyDir.b.mount.path"), "/x");
    let message = case.refusal().await;
    assert!(message.contains("hostPath.a.mount.path` is `/x`: `spark.kubernetes.driver.volumes.emptyDir.b.mount.path` is the same"), "{message}");
    let case = PlanCase::new()
        .with(&format!("{volumes}emptyDir.b.mount.path"), "/x")
        .with(&format!("{volumes}emptyDir.b.mount.subPath"), "a")
        .with(&format!("{volumes}emptyDir.b.mount.subPathExpr"), "b");
    assert!(case.refusal().await.contains("emptyDir.b.mount.subPath` is set as well"));
    let case = PlanCase::new()
        .with("spark.kubernetes.kerberos.krb5.path", "a")
        .with("spark.kubernetes.kerberos.krb5.configMapName", "b");
    assert!(case.refusal().await.contains("krb5.configMapName` is set as well"));
    let case = PlanCase::new()
        .with("spark.kubernetes.hadoop.configMapName", "a")
        .with_variable("HADOOP_CONF_DIR", "h");
    assert!(case.refusal().await.contains("the environment variable HADOOP_CONF_DIR is set as well"));
}

#[tokio::test]
async fn files_that_are_not_there_or_not_what_they_should_be_are_refused() {
    for key in [
        "spark.kubernetes.driver.podTemplateFile",
        "spark.kubernetes.executor.podTemplateFile",
        "spark.kubernetes.kerberos.krb5.path",
        "spark.kubernetes.authenticate.driver.caCertFile",
    ] {
        let message = PlanCase::new().with(key, "nowhere").refusal().await;
        assert_eq!(message, format!("`{key}` is `nowhere`: there is no such file on the submitting machine"));
    }
    let key = "spark.kubernetes.driver.podTemplateFile";
    let message = PlanCase::new().with(key, "s3a://b/t").refusal().await;
    assert!(message.starts_with(&format!("`{key}`: s3a://b/t: only paths, file:")), "{message}");
    let message = PlanCase::new().with_file("t", "kind: Job\nspec: {}").with(key, "t").refusal().await;
    assert!(message.contains("it must have `kind: Pod`"), "{message}");
    let name = "spark.kubernetes.driver.podTemplateContainerName";
    let message = PlanCase::new().with_file("t", "spec: {}").with(key, "t").with(name, "x").refusal().await;
    assert!(
        message.starts_with(&format!("`{name}` is `x`: the pod template has no such container")),
        "{message}"
    );
    let kerberos = "<property><name>hadoop.security.authentication</name><value>kerberos</value></property>";
    let message = PlanCase::new()
        .with_file("h/core-site.xml", kerberos)
        .with_variable("HADOOP_CONF_DIR", "h")
        .refusal()
        .await;
    assert!(
        message.starts_with("core-site.xml in HADOOP_CONF_DIR asks for Kerberos: delegation"),
        "{message}"
    );
}

#[tokio::test]
async fn local_files_need_a_place_to_go_and_have_to_exist() {
    let case = PlanCase::new().with_file("a.jar", "").with_file("folder/b", "");
    let jars = PlanCase::new().with_file("a.jar", "").with("spark.jars", "a.jar");
    let message = jars.refusal().await;
    assert!(
        message.starts_with("spark.jars: a.jar is on this machine, where no pod can reach it"),
        "{message}"
    );
    // spark-submit adds the application's own jar to `spark.jars`.
    let place = format!("{}/a.jar", case.folder().display());
    let application = case.with_resource(MainResource::Java("a.jar".to_owned())).with("spark.jars", &place);
    let message = application.refusal().await;
    assert!(message.starts_with("the application: a.jar is on this machine"), "{message}");
    for way_out in ["local:///…", "http(s) URL", "spark.kubernetes.file.upload.path"] {
        assert!(message.contains(way_out), "{message}");
    }
    let with_path =
        || PlanCase::new().with("spark.kubernetes.file.upload.path", "/shared").with_file("folder/b", "");
    for (key, value, problem) in [
        ("spark.files", "no.txt", "spark.files: no.txt does not exist on this machine"),
        ("spark.files", "no*.txt", "spark.files: no*.txt matches no file of this machine"),
        (
            "spark.archives",
            "folder",
            "spark.archives: folder is a folder; name the files in it, or pack it (“cloakroom stage FOLDER” is for",
        ),
        (
            "spark.jars",
            "hdfs://nn/a*.jar",
            "`spark.jars`: hdfs://nn/a*.jar: patterns are expanded on this machine only",
        ),
        (
            "spark.kubernetes.file.upload.path",
            "s3a://k:s@bucket/x",
            "`spark.kubernetes.file.upload.path`: s3a://bucket/x: it must be a folder",
        ),
    ] {
        let message =
            with_path().with_file("a.jar", "").with("spark.jars", "a.jar").with(key, value).refusal().await;
        assert!(message.starts_with(problem), "{message}");
    }
    for resource in
        [MainResource::Python("no.py".to_owned()), MainResource::Java("file:///no.jar".to_owned())]
    {
        let message = with_path().with_resource(resource).refusal().await;
        assert!(message.starts_with("the application: ") && message.contains("does not exist"), "{message}");
    }
    let remote = with_path()
        .with("spark.kubernetes.file.upload.path", "s3a://unused/path")
        .with("spark.jars", "hdfs://nn/a.jar,s3a://b/c.jar")
        .submission()
        .await;
    assert_eq!(remote.properties()["spark.jars"], "hdfs://nn/a.jar,s3a://b/c.jar");
}

#[tokio::test]
async fn a_name_that_no_object_can_have_is_refused() {
    let message = PlanCase::new().with("spark.app.name", &"n".repeat(240)).refusal().await;
    assert!(message.contains("at most 253 are allowed: choose a shorter --name"), "{message}");
}

#[tokio::test]
async fn references_to_secrets_have_two_parts() {
    let key = "spark.kubernetes.driver.secretKeyRef.A";
    for reference in ["name", "name:", "a:b:c"] {
        let message = PlanCase::new().with(key, reference).refusal().await;
        assert!(message.starts_with(&format!("`{key}` is ")) && message.ends_with("`name:key`"), "{message}");
    }
    PlanCase::new().with(key, "name:key:").submission().await;
}

#[tokio::test]
async fn secrets_are_in_no_message() {
    let key = "spark.kubernetes.driver.label.my-password-token";
    let message = PlanCase::new().with(key, "hush hush").refusal().await;
    assert!(message.contains(key) && !message.contains("hush"), "{message}");
}
