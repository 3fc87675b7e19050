//! Details that are known from recordings of Spark.

use cloakroom_spark::MainResource;

use super::PlanCase;

const VERSION: &str = "spark.kubernetes.cloakroom.sparkVersion";

fn case(version: &str) -> PlanCase {
    PlanCase::new().with(VERSION, version)
}

#[tokio::test]
async fn volumes_of_executors_are_verified_before_anything_is_made() {
    let volumes = "spark.kubernetes.executor.volumes.";
    for (settings, named) in [
        (&[("hostPath.v.mount.path", "/v")][..], "hostPath.v.options.path` is not set"),
        (&[("hostPath.v.options.path", "/v")], "hostPath.v.mount.path` is not set"),
        (&[("cinder.v.mount.path", "/v")], "volumes of the type cinder are not supported"),
        (&[("nfs.v.mount.path", "/v"), ("nfs.v.options.path", "/v")], "nfs.v.options.server` is not set"),
        (&[("persistentVolumeClaim.v.mount.path", "/v")], "options.claimName` is not set"),
        (&[("emptyDir.v.mount.path", "/v"), ("emptyDir.v.mount.readOnly", "x")], "must be true or false"),
        (&[("emptyDir.v.mount.path", "/v"), ("emptyDir.v.mount.readOnly", " true")], "must be true or false"),
        (&[("emptyDir.v.mount.path", "/v"), ("emptyDir.w.mount.path", "/v")], "is the same"),
        (&[("emptyDir.v.mount.path", "/v"), ("emptyDir.v.options.sizeLimit", "lots")], "it must be a size"),
    ] {
        let case = |version| {
            settings
                .iter()
                .fold(case(version), |case, (key, value)| case.with(&format!("{volumes}{key}"), value))
        };
        for version in ["3.5.9", "4.3.0"] {
            let message = case(version).refusal().await;
            assert!(message.contains(volumes) && message.contains(named), "{version}: {message}");
        }
    }
    // Spark 3.5 ignores these.
    for settings in [
        &[("emptyDir.v.options.sizeLimit", "5")][..],
        &[("emptyDir.v.options.sizeLimit", "99999999999999999999")],
        &[("emptyDir.v.mount.subPath", "a"), ("emptyDir.v.mount.subPathExpr", "b")],
    ] {
        let case = |version| {
            let case = case(version).with(&format!("{volumes}emptyDir.v.mount.path"), "/v");
            settings.iter().fold(case, |case, (key, value)| case.with(&format!("{volumes}{key}"), value))
        };
        let message = case("4.0.0").refusal().await;
        assert!(message.contains(settings[0].0.rsplit('.').next().unwrap()), "{message}");
        case("3.5.9").submission().await;
    }
}

#[tokio::test]
async fn files_that_are_not_text_are_refused_from_spark_4_1_and_mended_before() {
    let keys = ["spark.kubernetes.kerberos.krb5.path", "spark.kubernetes.executor.podTemplateFile"];
    let beds = |version| {
        let folder = case(version).with_file("h/store", b"a\xfe\xedb").with_variable("HADOOP_CONF_DIR", "h");
        let files = keys.map(|key| case(version).with_file("f", b"a\xfe\xedb").with(key, "f"));
        [folder].into_iter().chain(files)
    };
    for case in beds("4.1.0") {
        let message = case.refusal().await;
        assert!(message.ends_with("must be UTF-8 text, and it is not"), "{message}");
    }
    for case in beds("4.0.1") {
        let objects = serde_json::to_string(&case.submission().await.after_pod).unwrap();
        assert!(objects.contains("\"a\u{fffd}\u{fffd}b\""), "{objects}");
    }
}

#[tokio::test]
async fn a_python_version_other_than_3_is_refused_where_spark_still_reads_it() {
    let key = "spark.kubernetes.pyspark.pythonVersion";
    let python = || MainResource::Python("local:///a.py".to_owned());
    let case = |version, given| case(version).with(key, given).with_resource(python());
    for (given, is) in [("2", "`2`"), ("", "empty")] {
        let message = case("4.0.1", given).refusal().await;
        assert!(message.starts_with(&format!("`{key}` is {is}: it must be 3")), "{message}");
        case("4.1.0", given).submission().await;
    }
    case("3.5.9", "3").submission().await;
    PlanCase::new().with(VERSION, "3.5.9").with(key, "2").submission().await;
}

#[tokio::test]
async fn settings_of_ivy_must_be_a_file_of_this_machine() {
    let key = "spark.jars.ivySettings";
    let case = PlanCase::new().with_file("ivy.xml", "<ivysettings/>").with_file("folder/x", "");
    let path = format!("file://{}", case.folder().join("ivy.xml").display());
    let case = case.with(key, &path);
    case.submission().await;
    case.with(key, "ivy.xml").submission().await;
    for (given, problem) in [
        ("nowhere.xml", "there is no such file on the submitting machine"),
        ("/", "and it is a folder"),
        ("http://h/ivy.xml", "it must be a path or a file: URI"),
    ] {
        let message = PlanCase::new().with(key, given).refusal().await;
        assert!(
            message.starts_with(&format!("`{key}` is `{given}`")) && message.contains(problem),
            "{message}"
        );
    }
    let empty = PlanCase::new().with(key, "").refusal().await;
    assert!(empty.starts_with(&format!("`{key}` is empty: ")), "{empty}");
}
