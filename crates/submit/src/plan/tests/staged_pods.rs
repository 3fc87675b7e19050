//! Requirements of the init-container and of the staging server for pods and settings.

use super::PlanCase;

fn staged() -> PlanCase {
    PlanCase::new()
        .with("spark.kubernetes.resourceStagingServer.uri", "http://staging.example:31000/")
        .with("spark.kubernetes.initContainer.image", "repo.example/cloakroom:1")
}

#[tokio::test]
async fn an_address_of_this_machine_alone_is_refused_unless_pods_have_another() {
    let uri = "spark.kubernetes.resourceStagingServer.uri";
    let internal = "spark.kubernetes.resourceStagingServer.internal.uri";
    let case = || staged().with_file("a.jar", "").with("spark.jars", "a.jar");
    for address in ["http://127.0.0.1:10000", "http://localhost:10000", "http://[::1]:10000"] {
        let message = case().with(uri, address).refusal().await;
        let expected = format!(
            "`{uri}` is `{address}`: pods, which fetch from the server too, take it for themselves: set `{internal}` to the \
             address that they reach it at, such as http://SERVICE.NAMESPACE:10000"
        );
        assert_eq!(message, expected);
    }
    let message = case().with(uri, "https://localhost:10000").refusal().await;
    assert!(message.ends_with("https://SERVICE.NAMESPACE:10000"), "{message}");
    let local = || case().with(uri, "http://127.0.0.1:10000");
    let warnings = local().with(internal, "http://staging.example").submission().await.warnings;
    assert_eq!(warnings, [""; 0]);
    let [warning] = &local().with(internal, "http://127.0.0.1:10000").submission().await.warnings[..] else {
        panic!("not one warning");
    };
    assert!(warning.contains("which a pod takes for itself"), "{warning}");
    let nothing_staged = staged().with(uri, "http://127.0.0.1:10000").submission().await;
    assert_eq!(nothing_staged.warnings, [""; 0]);
}

#[tokio::test]
async fn a_pod_with_parts_of_the_init_container_is_refused_before_sending() {
    let case = || staged().with_file("a.jar", "").with("spark.jars", "a.jar");
    let executors = || case().with("spark.kubernetes.cloakroom.executorStaging", "init");
    let (driver, executor) =
        ("spark.kubernetes.driver.podTemplateFile", "spark.kubernetes.executor.podTemplateFile");
    for (template, what) in [
        ("spec: {initContainers: [{name: spark-init}]}", "a container spark-init already"),
        ("spec: {volumes: [{name: download-files, emptyDir: {}}]}", "a volume download-files already"),
        (
            "spec: {containers: [{name: c, volumeMounts: [{name: v, mountPath: /var/spark-data/spark-jars/}]}]}",
            "a volume mount at /var/spark-data/spark-jars already",
        ),
    ] {
        let message = case().with_file("t.yaml", template).with(driver, "t.yaml").refusal().await;
        assert!(message.contains("the pod of the driver has") && message.contains(what), "{message}");
        let message = executors().with_file("t.yaml", template).with(executor, "t.yaml").refusal().await;
        assert!(message.contains("the pod of the executors has") && message.contains(what), "{message}");
    }
    let volumes = "spark.kubernetes.executor.volumes.emptyDir";
    for (name, path, what) in [
        ("download-files", "/foo", "a volume download-files already"),
        ("q", "/var/spark-data/spark-jars", "a volume mount at /var/spark-data/spark-jars already"),
    ] {
        let message = executors().with(&format!("{volumes}.{name}.mount.path"), path).refusal().await;
        assert!(message.contains(what), "{message}");
    }
}

#[tokio::test]
async fn the_init_container_of_a_root_pod_runs_as_the_user_of_its_image() {
    let root = "spec: {securityContext: {runAsUser: 0}}";
    let case = staged().with_file("a.jar", "").with("spark.jars", "a.jar").with_file("t.yaml", root);
    let submission = case.with("spark.kubernetes.driver.podTemplateFile", "t.yaml").submission().await;
    assert_eq!(submission.pod["spec"]["initContainers"][0]["securityContext"]["runAsUser"], 65532);
}

#[tokio::test]
async fn a_refusal_names_the_file_of_a_token_and_hides_an_addresss_credentials() {
    let case = || staged().with_file("a.jar", "").with("spark.jars", "a.jar");
    let key = "spark.kubernetes.cloakroom.uploadTokenFile";
    for (name, content, problem) in [
        ("", "", "empty: name the file that the token is in, or leave it out"),
        (
            "my-token",
            "a\u{1}b",
            "`my-token`: this file holds no token: it must be one line of printable ASCII",
        ),
        ("my-token", "\n", "`my-token`: this file is empty: it must hold the token"),
        ("nothing", "", "`nothing`: there is no such file on the submitting machine"),
    ] {
        let message = case().with_file("my-token", content).with(key, name).refusal().await;
        assert_eq!(message, format!("`{key}` is {problem}"));
    }
    for key in
        ["spark.kubernetes.resourceStagingServer.uri", "spark.kubernetes.resourceStagingServer.internal.uri"]
    {
        let message = case().with(key, "http://me:hunter2@h:1/").refusal().await;
        assert!(
            message.starts_with(&format!("`{key}` is `http://…@h:1/`: http://h:1/ has a user")),
            "{message}"
        );
    }
}
