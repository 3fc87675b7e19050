use super::*;
use crate::keys::DRIVER_MEMORY_OVERHEAD as MEMORY;

fn conf(key: &str, value: &str, origin: Origin) -> SparkConf {
    let mut conf = SparkConf::default();
    conf.set(key, value, origin);
    conf
}

#[test]
fn a_bad_value_is_refused_with_its_option_its_key_and_what_is_allowed() {
    let conf = conf("spark.driver.memory", "lots", Origin::Option("--driver-memory"));
    let message = conf.read(&keys::DRIVER_MEMORY).unwrap_err().to_string();
    assert!(message.starts_with("--driver-memory (`spark.driver.memory`) is `lots`: "), "{message}");
    assert!(message.contains("such as 512m or 2g (units: b, k, m, g, t, p; from Spark 4.2 on"), "{message}");
}

#[test]
fn a_bad_value_of_a_file_is_refused_with_file_and_line() {
    let origin = Origin::File { file: "conf/spark-defaults.conf".to_owned(), line: 7 };
    let key = keys::TRUST_CERTIFICATES;
    let message = conf(&key, "maybe", origin).read(&key).unwrap_err().to_string();
    assert_eq!(
        message,
        format!("conf/spark-defaults.conf, line 7: `{key}` is `maybe`: it must be true or false")
    );
}

#[test]
fn a_bad_value_is_shown_on_one_line_and_fit_for_a_terminal() {
    let conf = conf("spark.driver.memory", "a\u{202e}b\u{2028}c\u{200b}d\ne\u{1b}", Origin::Conf);
    let refused = conf.refuse("spark.driver.memory", "x").to_string();
    assert_eq!(refused, "`spark.driver.memory` is `a\u{fffd}b c\u{fffd}d\\ne\u{fffd}`: x");
}

#[test]
fn the_value_of_a_secret_is_in_no_message_and_not_in_debug() {
    let key = "spark.kubernetes.authenticate.submission.oauthToken";
    let conf = conf(key, "hunter2", Origin::Conf);
    let message = conf.refuse(key, "it must not be there").to_string();
    assert!(!message.contains("hunter2"), "{message}");
    assert!(!format!("{conf:?}").contains("hunter2"));
}

#[test]
fn a_value_that_looks_like_a_secret_is_not_shown_either() {
    let key = "spark.driver.extraJavaOptions";
    let options = "-Dstore.Password=hunter2";
    assert_eq!(shown_redacted(key, options), format!("{key}=*********(redacted)"));
    assert_eq!(shown_redacted(key, "-Xss4m"), format!("{key}=-Xss4m"));
    let message = conf(key, options, Origin::Conf).refuse(key, "it must not be there").to_string();
    assert!(!message.contains("hunter2"), "{message}");
}

#[test]
fn user_information_in_urls_is_in_no_message_and_the_path_of_a_token_is() {
    let message = |key: &str, value: &str| conf(key, value, Origin::Conf).refuse(key, "no").to_string();
    for (value, shown) in [
        ("http://u:hunter2@h:1/x", "http://…@h:1/x"),
        ("http://u:hun/ter@2@h", "http://…@h"),
        ("hunter2:x@h", "…@h"),
        ("k8s://https://u:hunter2@h", "k8s://…@h"),
        ("http://h:1/x", "http://h:1/x"),
        ("repo.example:5000/x@sha256:1", "repo.example:5000/x@sha256:1"),
        ("somebody@EXAMPLE", "somebody@EXAMPLE"),
    ] {
        assert_eq!(message("spark.x", value), format!("`spark.x` is `{shown}`: no"));
    }
    let (uri, address) = ("spark.kubernetes.resourceStagingServer.uri", "http://u:hunter2@h");
    assert_eq!(shown_redacted(uri, address), format!("{uri}=http://…@h"));
    let file = "spark.kubernetes.cloakroom.uploadTokenFile";
    assert_eq!(message(file, "/etc/token"), format!("`{file}` is `/etc/token`: no"));
}

#[test]
fn keys_are_found_by_their_prefix_in_order() {
    let mut conf = SparkConf::default();
    for key in ["spark.a.z", "spark.a.b", "spark.b", "spark.a"] {
        conf.set(key, "1", Origin::Conf);
    }
    assert_eq!(conf.prefixed("spark.a.").map(|(rest, _)| rest).collect::<Vec<_>>(), ["b", "z"]);
}

#[test]
fn sizes_are_cut_to_whole_mebibytes_as_spark_does() {
    for (text, expected) in [("1g", 1024), ("1500000k", 1464), ("300", 300), ("1t", 1 << 20)] {
        assert_eq!(conf(&MEMORY, text, Origin::Conf).read(&MEMORY), Ok(Some(expected)), "{text}");
    }
}

#[test]
fn sizes_that_the_driver_would_refuse_are_refused_here() {
    for text in ["1Ei", "1bi", "1.5g", "-1", "", "5q", "2g\u{a0}", "\u{2003}2g"] {
        assert!(conf(&MEMORY, text, Origin::Conf).read(&MEMORY).is_err(), "{text}");
    }
}

#[test]
fn binary_units_are_read_from_spark_4_2_on() {
    let read = |version: &str, text: &str| {
        let mut conf = conf(&MEMORY, text, Origin::Conf);
        conf.set(&keys::CLOAKROOM_SPARK_VERSION, version, Origin::Conf);
        conf.read(&MEMORY).ok().flatten()
    };
    for text in ["2Gi", "2gib", "2048Mi", "2048MIB", " 2097152Ki\t"] {
        for (version, expected) in [("3.5.9", None), ("4.1.4", None), ("4.2.0", Some(2048))] {
            assert_eq!(read(version, text), expected, "{version}: {text}");
        }
    }
}

#[test]
fn a_flag_that_spark_does_not_trim_is_not_trimmed() {
    let (trimmed, bare) = (keys::SUBMIT_IN_DRIVER, &keys::DRIVER_VOLUMES.read_only);
    let flag = |text| conf("f", text, Origin::Conf);
    assert_eq!(flag(" TRUE\t").read_as("f", &trimmed), Ok(Some(true)));
    assert!(flag(" TRUE\t").read_as("f", bare).is_err());
    assert_eq!(flag("TRUE").read_as("f", bare), Ok(Some(true)));
    assert!(flag("true\u{a0}").read_as("f", &trimmed).is_err());
}
