use serde_json::json;

use super::{PlanCase, object};

const DRIVER: &str = "spark.kubernetes.authenticate.driver.";

#[tokio::test]
async fn a_service_account_is_set_under_both_of_its_names() {
    let submission = PlanCase::new().with(&format!("{DRIVER}serviceAccountName"), "spark").submission().await;
    let spec = &submission.pod["spec"];
    assert_eq!((&spec["serviceAccountName"], &spec["serviceAccount"]), (&json!("spark"), &json!("spark")));
}

#[tokio::test]
async fn a_drivers_account_is_from_the_setting_the_template_or_the_default() {
    let named = format!("{DRIVER}serviceAccountName");
    let template = |case: PlanCase| {
        case.with_file("pod.yaml", "spec: {serviceAccountName: of-template}")
            .with("spark.kubernetes.driver.podTemplateFile", "pod.yaml")
    };
    let credentials =
        |key: &str| PlanCase::new().with_file("file", "x").with(&format!("{DRIVER}{key}"), "file");
    for (case, expected) in [
        (PlanCase::new(), Some("default")),
        (template(PlanCase::new()), Some("of-template")),
        (template(PlanCase::new()).with(&named, "spark"), Some("spark")),
        // A CA is no credential of the driver, but Spark leaves the account out all the same.
        (credentials("caCertFile").with(&named, "spark"), Some("default")),
        (credentials("oauthToken"), None),
        (credentials("clientCertFile"), None),
        (credentials("mounted.oauthTokenFile").with(&named, "spark"), None),
    ] {
        assert_eq!(case.submission().await.driver_account.as_deref(), expected);
    }
}

#[tokio::test]
async fn credentials_travel_in_a_secret_and_tokens_in_no_properties() {
    let submission = PlanCase::new()
        .with_file("ca.pem", "certificate")
        .with(&format!("{DRIVER}oauthToken"), "hush")
        .with("spark.kubernetes.authenticate.submission.oauthToken", "hush")
        .with(&format!("{DRIVER}caCertFile"), "ca.pem")
        .with(&format!("{DRIVER}serviceAccountName"), "spark")
        .submission()
        .await;
    let secret = &submission.after_pod[0];
    assert!(secret["metadata"]["name"].as_str().unwrap().ends_with("-kubernetes-credentials"));
    assert_eq!(secret["data"], json!({"oauth-token": "aHVzaA==", "ca-cert": "Y2VydGlmaWNhdGU="}));
    assert_eq!((&secret["immutable"], secret.get("type")), (&json!(true), None));
    let (volume, mount) = submission.volume("kubernetes-credentials");
    assert_eq!(volume["secret"]["secretName"], secret["metadata"]["name"]);
    assert_eq!(mount["mountPath"], "/mnt/secrets/spark-kubernetes-credentials");
    let properties = submission.properties();
    let folder = "/mnt/secrets/spark-kubernetes-credentials";
    for (key, value) in [
        ("driver.oauthToken", "<present_but_redacted>"),
        ("submission.oauthToken", "<present_but_redacted>"),
        ("driver.mounted.oauthTokenFile", &*format!("{folder}/oauth-token")),
        ("driver.mounted.caCertFile", &*format!("{folder}/ca-cert")),
        ("driver.caCertFile", "ca.pem"),
    ] {
        assert_eq!(properties[&format!("spark.kubernetes.authenticate.{key}")], value);
    }
    assert!(submission.pod["spec"].get("serviceAccountName").is_none());
    assert!(
        submission.warnings[0].contains("serviceAccountName` has no effect"),
        "{:?}",
        submission.warnings
    );
    assert!(
        !submission.pod.to_string().contains("hush")
            && !submission.after_pod[1..].iter().any(|it| it.to_string().contains("hush"))
    );
}

#[tokio::test]
async fn kerberos_brings_its_files_along() {
    let case = PlanCase::new()
        .with_file("etc/my.conf", "[libdefaults]")
        .with_file("k.keytab", [0xff, 0x00])
        .with("spark.kubernetes.kerberos.krb5.path", "etc/my.conf")
        .with("spark.kerberos.keytab", "k.keytab")
        .with("spark.kerberos.principal", "me@EXAMPLE");
    let submission = case.submission().await;
    assert_eq!(object(&submission, "-krb5-file")["data"], json!({"my.conf": "[libdefaults]"}));
    let (volume, mount) = submission.volume("krb5-file");
    assert_eq!(volume["configMap"]["items"], json!([{"key": "my.conf", "path": "my.conf"}]));
    assert_eq!(mount, &json!({"name": "krb5-file", "mountPath": "/etc/krb5.conf", "subPath": "krb5.conf"}));
    assert_eq!(object(&submission, "-kerberos-keytab")["data"], json!({"k.keytab": "/wA="}));
    assert_eq!(submission.properties()["spark.kerberos.keytab"], "/mnt/secrets/kerberos-keytab/k.keytab");
    assert_eq!(submission.properties()["spark.kubernetes.kerberos.krb5.path"], "etc/my.conf");

    let in_image = case.with("spark.kerberos.keytab", "local:///k.keytab").submission().await;
    assert_eq!(in_image.properties()["spark.kerberos.keytab"], "local:///k.keytab");
    assert!(in_image.made().iter().all(|it| !it.contains("keytab")));
}

#[tokio::test]
async fn tokens_and_krb5_that_are_in_the_cluster_are_only_mounted() {
    let submission = PlanCase::new()
        .with("spark.kubernetes.kerberos.krb5.configMapName", "krb5")
        .with("spark.kubernetes.kerberos.tokenSecret.name", "tokens")
        .with("spark.kubernetes.kerberos.tokenSecret.itemKey", "dt")
        .with("spark.kubernetes.hadoop.configMapName", "hadoop")
        .submission()
        .await;
    assert_eq!(submission.made().len(), 4);
    assert_eq!(submission.volume("krb5-file").0["configMap"], json!({"name": "krb5"}));
    assert_eq!(submission.volume("hadoop-secret").0["secret"], json!({"secretName": "tokens"}));
    assert_eq!(submission.variable("HADOOP_TOKEN_FILE_LOCATION"), ["/mnt/secrets/hadoop-credentials/dt"]);
    assert_eq!(submission.volume("hadoop-properties").0["configMap"], json!({"name": "hadoop"}));
    assert_eq!(submission.properties()["spark.kubernetes.executor.hadoopConfigMapName"], "hadoop");
}

#[tokio::test]
async fn a_proxy_user_is_whole_from_spark_4_3_and_short_or_spark_user_before() {
    let case = |version: &str, user: Option<&str>| {
        let mut case = PlanCase::new().with("spark.kubernetes.cloakroom.sparkVersion", version);
        case.arguments.proxy_user = Some("a/b@R".to_owned());
        match user {
            Some(user) => case.with_variable("SPARK_USER", user),
            None => case,
        }
    };
    for (version, of_machine, expected) in [
        ("4.3.0", None, "a/b@R"),
        ("4.3.0", Some("other"), "a/b@R"),
        ("3.5.9", None, "a"),
        ("4.1.4", None, "a"),
        ("3.5.9", Some("other"), "other"),
    ] {
        let submission = case(version, of_machine).submission().await;
        assert_eq!(submission.variable("SPARK_USER"), [expected], "{version} {of_machine:?}");
    }
    let mut malformed = PlanCase::new();
    malformed.arguments.proxy_user = Some("a@".to_owned());
    assert!(malformed.refusal().await.starts_with("--proxy-user is `a@`, which is not the name of a user"));
}
