//! Checks of settings that no step reads, or that spark-submit finds bad only after everything was created.

use std::time::Duration;

use super::memory;
use crate::resource::{is_dns_subdomain, is_quantity};
use crate::spark::{SettingError, SparkConf, TimeUnit, keys};
use crate::submit::{ExitCodeRule, FollowSettings};

pub(super) const APP_NAME: &str = "spark.app.name";
pub(super) const POD_NAME: &str = "spark.kubernetes.driver.pod.name";
pub(super) const DRIVER_CORES: &str = "spark.driver.cores";
pub(super) const REQUEST_CORES: &str = "spark.kubernetes.driver.request.cores";
pub(super) const LIMIT_CORES: &str = "spark.kubernetes.driver.limit.cores";
const EXECUTOR_MEMORY: &str = "spark.executor.memory";
const EXECUTOR_INSTANCES: &str = "spark.executor.instances";
const DYNAMIC_ALLOCATION: &str = "spark.dynamicAllocation.enabled";
const COUNTS: [&str; 3] = [DRIVER_CORES, "spark.executor.cores", EXECUTOR_INSTANCES];
const MILLISECONDS: [&str; 2] =
    ["spark.kubernetes.submission.requestTimeout", "spark.kubernetes.submission.connectionTimeout"];

/// What spark-submit checks before anything else, and what an API server would refuse anyway.
pub(super) fn check(conf: &SparkConf) -> Result<(), SettingError> {
    memory::positive(conf, EXECUTOR_MEMORY)?;
    // An application may begin with no executors if it gets them on demand.
    let on_demand = conf.get(DYNAMIC_ALLOCATION).is_some_and(|text| text.eq_ignore_ascii_case("true"));
    for key in COUNTS {
        let may_be_none = on_demand && key == EXECUTOR_INSTANCES;
        let least = i32::from(!may_be_none);
        let what = format!("a whole number of at least {least}");
        if conf.number::<i32>(key, &what)?.is_some_and(|count| count < least) {
            return Err(conf.refuse(key, format!("it must be {what}")));
        }
    }
    for key in MILLISECONDS {
        conf.number::<i32>(key, "a whole number of milliseconds")?;
    }
    conf.boolean("spark.kubernetes.trust.certificates")?;
    for key in [REQUEST_CORES, LIMIT_CORES] {
        check_cpu(conf, key)?;
    }
    check_pod_name(conf)
}

/// What does not help on Kubernetes, and harms.
pub(super) fn warning(conf: &SparkConf) -> Option<String> {
    const KEY: &str = "spark.shuffle.service.enabled";
    let is_wanted = conf.get(KEY).is_some_and(|text| text.trim().eq_ignore_ascii_case("true"));
    is_wanted.then(|| {
        format!(
            "`{KEY}` is true, and Kubernetes has no external shuffle service: executors that find none on their node \
             fail. Leave it out: with `{DYNAMIC_ALLOCATION}` Spark keeps executors for as long as their shuffle \
             files are needed (`spark.dynamicAllocation.shuffleTracking.enabled`)"
        )
    })
}

fn check_cpu(conf: &SparkConf, key: &str) -> Result<(), SettingError> {
    match conf.get(key) {
        Some(text) if !is_quantity(text) || text.starts_with('-') => {
            Err(conf
                .refuse(key, "it must be a quantity of CPUs as Kubernetes writes it, such as 2, 0.5 or 500m"))
        }
        _ => Ok(()),
    }
}

fn check_pod_name(conf: &SparkConf) -> Result<(), SettingError> {
    match conf.get(POD_NAME) {
        Some(name) if !is_dns_subdomain(name) => Err(conf.refuse(
            POD_NAME,
            "it must be the name of a pod: at most 253 characters of a-z, 0-9, - and ., beginning and ending \
             with a letter or digit",
        )),
        _ => Ok(()),
    }
}

/// How the submission is waited for.
pub(super) fn follow_settings(conf: &SparkConf) -> Result<FollowSettings, SettingError> {
    let mut settings = FollowSettings {
        wait: conf.boolean("spark.kubernetes.submission.waitAppCompletion")?.unwrap_or(true),
        report_interval: Duration::from_secs(1),
        executor_poll_interval: Duration::from_secs(30),
        missing_pod_detect_delta: Duration::from_secs(30),
        exit_code: exit_code(conf)?,
    };
    // Like Spark: nobody asks for intervals when nothing is waited for.
    if settings.wait {
        interval(conf, "spark.kubernetes.report.interval", &mut settings.report_interval)?;
        interval(conf, "spark.kubernetes.executor.apiPollingInterval", &mut settings.executor_poll_interval)?;
        let delta = &mut settings.missing_pod_detect_delta;
        interval(conf, "spark.kubernetes.executor.missingPodDetectDelta", delta)?;
    }
    Ok(settings)
}

fn exit_code(conf: &SparkConf) -> Result<ExitCodeRule, SettingError> {
    Ok(match conf.one_of(keys::CLOAKROOM_EXIT_CODE, &["application", "spark"])? {
        Some("spark") => ExitCodeRule::Spark,
        _ => ExitCodeRule::Application,
    })
}

/// Puts what is set in the place of the default.
fn interval(conf: &SparkConf, key: &str, interval: &mut Duration) -> Result<(), SettingError> {
    match conf.duration(key, TimeUnit::Milliseconds)? {
        Some(Duration::ZERO) => {
            return Err(conf.refuse(key, "it must be longer than nothing, such as 1s or 500ms"));
        }
        Some(given) => *interval = given,
        None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spark::Origin;

    fn conf(key: &str, value: &str) -> SparkConf {
        let mut conf = SparkConf::default();
        conf.set(key, value, Origin::Conf);
        conf
    }

    #[test]
    fn a_shuffle_service_is_warned_of_where_it_is_wanted() {
        const KEY: &str = "spark.shuffle.service.enabled";
        for (value, is_warned_of) in [("true", true), ("True", true), ("false", false), ("", false)] {
            let warning = warning(&conf(KEY, value));
            assert_eq!(warning.is_some(), is_warned_of, "{value}");
            assert!(warning.is_none_or(|text| text.contains("Leave it out")), "{value}");
        }
        assert_eq!(warning(&SparkConf::default()), None);
    }

    #[test]
    fn bad_values_are_refused_with_key_value_and_what_is_allowed() {
        for (key, value, allowed) in [
            (EXECUTOR_MEMORY, "5q", "a whole number with a unit"),
            (EXECUTOR_MEMORY, "0", "more than nothing"),
            (DRIVER_CORES, "zwei", "a whole number of at least 1"),
            (DRIVER_CORES, "-1", "a whole number of at least 1"),
            ("spark.executor.cores", "0", "a whole number of at least 1"),
            ("spark.executor.instances", "0", "a whole number of at least 1"),
            ("spark.kubernetes.submission.requestTimeout", "abc", "a whole number of milliseconds"),
            ("spark.kubernetes.trust.certificates", "yes", "true or false"),
            (REQUEST_CORES, "two", "a quantity of CPUs"),
            (LIMIT_CORES, "-1", "a quantity of CPUs"),
            (POD_NAME, "My_Pod", "the name of a pod"),
            (POD_NAME, "", "the name of a pod"),
        ] {
            let message = check(&conf(key, value)).unwrap_err().to_string();
            assert!(message.starts_with(&format!("`{key}` is `{value}`: it must be")), "{message}");
            assert!(message.contains(allowed), "{message}");
        }
    }

    #[test]
    fn good_values_pass() {
        for (key, value) in [
            (REQUEST_CORES, "500m"),
            (LIMIT_CORES, "2"),
            (POD_NAME, "my.pod-1"),
            ("spark.executor.instances", "5"),
        ] {
            check(&conf(key, value)).unwrap();
        }
    }

    #[test]
    fn with_dynamic_allocation_an_application_may_begin_without_executors() {
        let mut conf = conf(EXECUTOR_INSTANCES, "0");
        conf.set(DYNAMIC_ALLOCATION, "True", Origin::Conf);
        check(&conf).unwrap();
        conf.set(EXECUTOR_INSTANCES, "-1", Origin::Conf);
        assert!(check(&conf).unwrap_err().to_string().ends_with("at least 0"));
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
        let spark = follow_settings(&conf(keys::CLOAKROOM_EXIT_CODE, "spark")).unwrap();
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
            (keys::CLOAKROOM_EXIT_CODE, "0"),
        ] {
            assert_eq!(follow_settings(&conf(key, value)).unwrap_err().key(), key);
        }
    }
}
