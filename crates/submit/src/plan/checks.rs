//! Checks of settings that no step reads, and of settings that spark-submit checks only after everything was created.

use std::time::Duration;

use crate::{ExitCodeRule, FollowSettings};
use cloakroom_spark::arguments::check_amounts;
use cloakroom_spark::{SettingError, SparkConf, keys};

/// Checks that spark-submit makes first, and quantities and names that every API server refuses.
pub(super) fn check(conf: &SparkConf) -> Result<(), SettingError> {
    check_amounts(conf)?;
    conf.read(&keys::CONNECTION_TIMEOUT)?;
    conf.read(&keys::REQUEST_TIMEOUT)?;
    conf.read(&keys::TRUST_CERTIFICATES)?;
    conf.read(&keys::DRIVER_REQUEST_CORES)?;
    conf.read(&keys::DRIVER_LIMIT_CORES)?;
    conf.read(&keys::DRIVER_POD_NAME)?;
    for image in [
        keys::CONTAINER_IMAGE,
        keys::DRIVER_CONTAINER_IMAGE,
        keys::EXECUTOR_CONTAINER_IMAGE,
        keys::INIT_CONTAINER_IMAGE,
    ] {
        conf.read(&image)?;
    }
    Ok(())
}

/// Warnings about settings with which an application is likely to fail in its pods.
pub(super) fn warnings(conf: &SparkConf) -> impl Iterator<Item = String> {
    unit_of_no_jvm(conf).into_iter().chain(small_heap(conf)).chain(shuffle_service(conf))
}

/// Spark reads more units than the JVM, to which the driver passes the text on (`-Xmx512mb`).
fn unit_of_no_jvm(conf: &SparkConf) -> Option<String> {
    let key = keys::DRIVER_MEMORY;
    conf.read(&key).ok()??;
    let text = conf.get(&key)?.trim();
    let number = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let unit = &text[number.len()..];
    let is_of_jvm = unit.len() == 1 && "kmgtKMGT".contains(unit);
    (!is_of_jvm).then(|| {
        format!(
            "`{key}` is {text}: the driver's JVM does not start with this unit, because it reads only k, m, g and t: write \
             512m, for example"
        )
    })
}

/// The JVM keeps a part of the heap for itself, how much depends on its collector, and Spark wants 450 MiB of the rest
/// (`UnifiedMemoryManager`).
fn small_heap(conf: &SparkConf) -> Option<String> {
    const ENOUGH_MEBIBYTES: u64 = 512;
    let key = keys::DRIVER_MEMORY;
    conf.read(&key).ok()?.filter(|heap| *heap < ENOUGH_MEBIBYTES)?;
    let heap = conf.get(&key)?.trim();
    Some(format!(
        "`{key}` is {heap}: a driver ends at once if Spark finds less than 450 MiB in it, and the JVM needs a part for \
         itself: give it {ENOUGH_MEBIBYTES}m or more"
    ))
}

/// The external shuffle service makes executors fail on Kubernetes.
fn shuffle_service(conf: &SparkConf) -> Option<String> {
    let key = keys::SHUFFLE_SERVICE;
    let is_wanted = conf.get(&key).is_some_and(|text| text.trim().eq_ignore_ascii_case("true"));
    is_wanted.then(|| {
        format!(
            "`{key}` is true, and Kubernetes has no external shuffle service: executors that find none on their node \
             fail. Leave it out: with `{}` Spark keeps executors for as long as their shuffle files are needed \
             (`{}`)",
            keys::DYNAMIC_ALLOCATION,
            keys::SHUFFLE_TRACKING
        )
    })
}

/// How to wait for the application. Spark reads these settings after everything was created, so a bad one leaves the
/// pod behind. Here they are read before.
pub(super) fn follow_settings(conf: &SparkConf) -> Result<FollowSettings, SettingError> {
    let mut settings = FollowSettings {
        wait: conf.read(&keys::WAIT_APP_COMPLETION)?.unwrap_or(true),
        report_interval: Duration::from_secs(1),
        executor_poll_interval: Duration::from_secs(30),
        missing_pod_detect_delta: Duration::from_secs(30),
        exit_code: match conf.read(&keys::CLOAKROOM_EXIT_CODE)? {
            Some("spark") => ExitCodeRule::Spark,
            _ => ExitCodeRule::Application,
        },
    };
    // Like Spark, this ignores the intervals if the submission does not wait.
    if settings.wait {
        let FollowSettings { report_interval, executor_poll_interval, missing_pod_detect_delta, .. } =
            &mut settings;
        for (interval, key) in [
            (report_interval, &keys::REPORT_INTERVAL),
            (executor_poll_interval, &keys::EXECUTOR_POLLING_INTERVAL),
            (missing_pod_detect_delta, &keys::MISSING_POD_DETECT_DELTA),
        ] {
            *interval = conf.read(key)?.unwrap_or(*interval);
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloakroom_spark::Origin;

    fn conf(key: &str, value: &str) -> SparkConf {
        let mut conf = SparkConf::default();
        conf.set(key, value, Origin::Conf);
        conf
    }

    #[test]
    fn a_shuffle_service_is_warned_of_where_it_is_wanted() {
        const KEY: &str = keys::SHUFFLE_SERVICE.name();
        for (value, is_warned_of) in [("true", true), ("True", true), ("false", false), ("", false)] {
            let warning = warnings(&conf(KEY, value)).next();
            assert_eq!(warning.is_some(), is_warned_of, "{value}");
            assert!(warning.is_none_or(|text| text.contains("Leave it out")), "{value}");
        }
        assert_eq!(warnings(&SparkConf::default()).next(), None);
    }

    #[test]
    fn a_unit_that_the_jvm_does_not_read_is_warned_of() {
        for (value, is_warned_of) in [
            ("1024mb", true),
            ("1GiB", true),
            ("1Gi", true),
            ("1p", true),
            ("1073741824b", true),
            ("1g", false),
            (" 2G ", false),
        ] {
            let warning = warnings(&conf(&keys::DRIVER_MEMORY, value)).next();
            assert_eq!(
                warning.is_some_and(|text| text.contains("only k, m, g and t")),
                is_warned_of,
                "{value}"
            );
        }
    }

    #[test]
    fn a_heap_in_which_spark_may_not_start_is_warned_of() {
        for (value, is_warned_of) in [("450m", true), ("511m", true), ("512m", false), ("1g", false)] {
            let warning = warnings(&conf(&keys::DRIVER_MEMORY, value)).next();
            assert_eq!(warning.is_some_and(|text| text.contains("512m or more")), is_warned_of, "{value}");
        }
    }

    #[test]
    fn bad_values_are_refused_with_key_value_and_what_is_allowed() {
        for (key, value, allowed) in [
            (keys::EXECUTOR_MEMORY.name(), "5q", "a whole number with a unit"),
            (keys::EXECUTOR_MEMORY.name(), "0", "more than zero"),
            (keys::DRIVER_CORES.name(), "zwei", "a whole number from 1"),
            (keys::DRIVER_CORES.name(), "-1", "a whole number from 1"),
            ("spark.executor.cores", "0", "a whole number from 1"),
            ("spark.executor.instances", "0", "a whole number from 1"),
            ("spark.kubernetes.submission.requestTimeout", "abc", "a whole number of milliseconds"),
            ("spark.kubernetes.trust.certificates", "yes", "true or false"),
            (keys::DRIVER_REQUEST_CORES.name(), "two", "a quantity of CPUs"),
            (keys::DRIVER_LIMIT_CORES.name(), "-1", "a quantity of CPUs"),
            (keys::DRIVER_POD_NAME.name(), "My_Pod", "the name of a pod"),
            (keys::DRIVER_POD_NAME.name(), "", "the name of a pod"),
        ] {
            let message = check(&conf(key, value)).unwrap_err().to_string();
            let is = if value.is_empty() { "empty".to_owned() } else { format!("`{value}`") };
            assert!(message.starts_with(&format!("`{key}` is {is}: it must be")), "{message}");
            assert!(message.contains(allowed), "{message}");
        }
    }

    #[test]
    fn good_values_pass() {
        for (key, value) in [
            (keys::DRIVER_REQUEST_CORES.name(), "500m"),
            (keys::DRIVER_LIMIT_CORES.name(), "2"),
            (keys::DRIVER_POD_NAME.name(), "my.pod-1"),
            ("spark.executor.instances", "5"),
        ] {
            check(&conf(key, value)).unwrap();
        }
    }

    #[test]
    fn with_dynamic_allocation_an_application_may_begin_without_executors() {
        let mut conf = conf(keys::EXECUTOR_INSTANCES.name(), "0");
        conf.set(&keys::DYNAMIC_ALLOCATION, "True", Origin::Conf);
        check(&conf).unwrap();
        conf.set(&keys::EXECUTOR_INSTANCES, "-1", Origin::Conf);
        assert!(check(&conf).unwrap_err().to_string().ends_with("from 0 to 2147483647"));
    }

    #[test]
    fn how_to_wait_has_sparks_defaults() {
        let settings = follow_settings(&SparkConf::default()).unwrap();
        let expected = FollowSettings {
            wait: true,
            report_interval: Duration::from_secs(1),
            executor_poll_interval: Duration::from_secs(30),
            missing_pod_detect_delta: Duration::from_secs(30),
            exit_code: ExitCodeRule::Application,
        };
        assert_eq!(settings, expected);
        let spark = follow_settings(&conf(keys::CLOAKROOM_EXIT_CODE.name(), "spark")).unwrap();
        assert_eq!(spark.exit_code, ExitCodeRule::Spark);
    }

    #[test]
    fn intervals_do_not_matter_when_nothing_is_waited_for() {
        let mut conf = conf("spark.kubernetes.report.interval", "5 parsecs");
        conf.set("spark.kubernetes.submission.waitAppCompletion", "false", Origin::Conf);
        assert!(!follow_settings(&conf).unwrap().wait);
    }

    #[test]
    fn what_spark_finds_too_late_is_found_at_once() {
        for (key, value) in [
            ("spark.kubernetes.submission.waitAppCompletion", "maybe"),
            ("spark.kubernetes.report.interval", "5 parsecs"),
            ("spark.kubernetes.report.interval", "0"),
            ("spark.kubernetes.executor.apiPollingInterval", "-1s"),
            ("spark.kubernetes.executor.missingPodDetectDelta", "x"),
            (keys::CLOAKROOM_EXIT_CODE.name(), "0"),
        ] {
            assert_eq!(follow_settings(&conf(key, value)).unwrap_err().key(), key);
        }
    }
}
