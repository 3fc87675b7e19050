//! Details that are known from recordings of Spark.

use cloakroom_spark::MainResource;

use super::Bed;

const VERSION: &str = "spark.kubernetes.cloakroom.sparkVersion";

fn bed(version: &str) -> Bed {
    Bed::new().with(VERSION, version)
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
        let bed = |version| {
            settings
                .iter()
                .fold(bed(version), |bed, (key, value)| bed.with(&format!("{volumes}{key}"), value))
        };
        for version in ["3.5.9", "4.3.0"] {
            let message = bed(version).refusal().await;
            assert!(message.contains(volumes) && message.contains(named), "{version}: {message}");
        }
    }
    // Spark 3.5 ignores these.
    for settings in [
        &[("emptyDir.v.options.sizeLimit", "5")][..],
        &[("emptyDir.v.options.sizeLimit", "99999999999999999999")],
        &[("emptyDir.v.mount.subPath", "a"), ("emptyDir.v.mount.subPathExpr", "b")],
    ] {
        let bed = |version| {
            let bed = bed(version).with(&format!("{volumes}emptyDir.v.mount.path"), "/v");
            settings.iter().fold(bed, |bed, (key, value)| bed.with(&format!("{volumes}{key}"), value))
        };
        let message = bed("4.0.0").refusal().await;
        assert!(message.contains(settings[0].0.rsplit('.').next().unwrap()), "{message}");
        bed("3.5.9").submission().await;
    }
}

#[tokio::test]
async fn files_that_are_not_text_are_refused_from_spark_4_1_on_and_mended_before() {
    let keys = ["spark.kubernetes.kerberos.krb5.path", "spark.kubernetes.executor.podTemplateFile"];
    let beds = |version| {
        let folder = bed(version).with_file("h/store", b"a\xfe\xedb").with_variable("HADOOP_CONF_DIR", "h");
        let files = keys.map(|key| bed(version).with_file("f", b"a\xfe\xedb").with(key, "f"));
        [folder].into_iter().chain(files)
    };
    for bed in beds("4.1.0") {
        let message = bed.refusal().await;
        assert!(message.ends_with("must be UTF-8 text, and it is not"), "{message}");
    }
    for bed in beds("4.0.1") {
        let objects = serde_json::to_string(&bed.submission().await.after_pod).unwrap();
        assert!(objects.contains("\"a\u{fffd}\u{fffd}b\""), "{objects}");
    }
}

#[tokio::test]
async fn a_version_of_python_other_than_3_is_refused_where_spark_still_reads_it() {
    let key = "spark.kubernetes.pyspark.pythonVersion";
    let python = || MainResource::Python("local:///a.py".to_owned());
    let bed = |version, given| bed(version).with(key, given).with_resource(python());
    for given in ["2", ""] {
        let message = bed("4.0.1", given).refusal().await;
        assert!(message.starts_with(&format!("`{key}` is `{given}`: it must be 3")), "{message}");
        bed("4.1.0", given).submission().await;
    }
    bed("3.5.9", "3").submission().await;
    Bed::new().with(VERSION, "3.5.9").with(key, "2").submission().await;
}

#[tokio::test]
async fn settings_of_ivy_must_be_a_file_of_this_machine() {
    let key = "spark.jars.ivySettings";
    let bed = Bed::new().with_file("ivy.xml", "<ivysettings/>").with_file("folder/x", "");
    let path = format!("file://{}", bed.folder().join("ivy.xml").display());
    let bed = bed.with(key, &path);
    bed.submission().await;
    bed.with(key, "ivy.xml").submission().await;
    for (given, problem) in [
        ("nowhere.xml", "there is no such file on the submitting machine"),
        ("/", "and it is a folder"),
        ("http://h/ivy.xml", "it must be a path or a file: URI"),
        ("", "empty"),
    ] {
        let message = Bed::new().with(key, given).refusal().await;
        assert!(
            message.starts_with(&format!("`{key}` is `{given}`")) && message.contains(problem),
            "{message}"
        );
    }
}
