//! The names of a submission's objects, by Spark's rules: from the application's name, the time and random bytes
//! (`KubernetesConf`, `KubernetesUtils.uniqueID`).

use jiff::Timestamp;

use crate::randomness::Randomness;

/// The longest label value, and the longest name of a service (a DNS label of RFC 1123).
const LONGEST_LABEL: usize = 63;

/// The label that says which application an object belongs to.
pub(super) const APP_ID_LABEL: &str = "spark-app-selector";

/// Names and ids that are unique to one submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Names {
    /// `spark-` and 32 hexadecimal digits.
    pub app_id: String,
    /// The beginning of the names of most objects.
    pub prefix: String,
    /// Value of the label `spark-app-name`.
    pub app_name_label: String,
    pub service: String,
    /// The `ConfigMap` that has `spark.properties`.
    pub config_map: String,
    /// The default folder for local data.
    pub local_dir: String,
}

impl Names {
    /// Makes the names of one submission. The second value is a warning about a name that is too long.
    pub fn new(app_name: &str, randomness: &Randomness) -> (Self, Option<String>) {
        // Spark draws each of these ids anew, so they differ within one submission.
        let [for_objects, for_service, for_config] = randomness.ids.map(|id| unique_id(randomness.now, id));
        let app_id = format!("spark-{}", randomness.app_id.simple());
        let prefix = resource_name_prefix(app_name, &for_objects);
        let (service, warning) = service_name(&prefix, &for_service);
        let config_map = format!("spark-drv-{for_config}-conf-map");
        let local_dir = format!("/var/data/spark-{}", randomness.local_dir);
        let app_name_label = app_name_label(app_name);
        (Self { app_id, prefix, app_name_label, service, config_map, local_dir }, warning)
    }

    /// The name of an object with this end, such as `driver` or `policy`.
    pub fn of(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.prefix)
    }
}

/// Three random bytes and the lower 40 bits of the time in milliseconds, in hexadecimal. Spark does not pad the time.
fn unique_id(now: Timestamp, [a, b, c]: [u8; 3]) -> String {
    format!("{a:02x}{b:02x}{c:02x}{:x}", now.as_millisecond() & 0xff_ffff_ffff)
}

/// Names of services must begin with a letter. So Spark replaces a leading digit by `x`, the id's too if the name is
/// empty.
fn resource_name_prefix(app_name: &str, unique_id: &str) -> String {
    let name = format!("{app_name}-{unique_id}");
    let prefix = with_single_dashes(trimmed(&name));
    let prefix = prefix.strip_prefix('-').unwrap_or(&prefix);
    match prefix.strip_prefix(|first: char| first.is_ascii_digit()) {
        Some(rest) => format!("x{rest}"),
        None => prefix.to_owned(),
    }
}

/// The name, cut to the length of a label. Spark then removes one dash at each end.
fn app_name_label(app_name: &str) -> String {
    let label: String = with_single_dashes(trimmed(app_name)).chars().take(LONGEST_LABEL).collect();
    let label = label.strip_prefix('-').unwrap_or(&label);
    label.strip_suffix('-').unwrap_or(label).to_owned()
}

/// Java's `String.trim`: it removes blanks and control characters, and no other kinds of white space.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c <= ' ')
}

/// The text in lower case, with one dash for each run of characters that no name may have.
fn with_single_dashes(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for c in text.to_lowercase().chars() {
        let c = if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' };
        if c != '-' || !name.ends_with('-') {
            name.push(c);
        }
    }
    name
}

/// The service's name. The driver's host name is part of it, so it has at most 63 characters. Spark falls back to a
/// name without the application's.
fn service_name(prefix: &str, unique_id: &str) -> (String, Option<String>) {
    let preferred = format!("{prefix}-driver-svc");
    if preferred.len() <= LONGEST_LABEL {
        return (preferred, None);
    }
    let shorter = format!("spark-{unique_id}-driver-svc");
    let warning = format!(
        "the driver's host name would preferably be {preferred}, but at most {LONGEST_LABEL} characters are \
         allowed: {shorter} is used instead; a shorter --name would do"
    );
    (shorter, Some(warning))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloakroom_core::resource::{is_dns_label, is_dns_subdomain, is_label_value};
    use proptest::prelude::*;
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    const ID: &str = "64d453a1fba36662";

    #[test]
    fn the_prefix_is_the_name_in_the_letters_that_kubernetes_knows() {
        for (name, prefix) in [
            ("My_App (Test) #1 — ü.v2!", "my-app-test-1-v2-64d453a1fba36662"),
            ("123-abc", "x23-abc-64d453a1fba36662"),
            ("___", "x4d453a1fba36662"),
            ("", "x4d453a1fba36662"),
            ("2024.01.02", "x024-01-02-64d453a1fba36662"),
            ("org.apache.spark.examples.SparkPi", "org-apache-spark-examples-sparkpi-64d453a1fba36662"),
        ] {
            assert_eq!(resource_name_prefix(name, ID), prefix, "{name}");
        }
    }

    #[test]
    fn the_label_is_cut_and_may_begin_with_a_digit() {
        let long = "a".repeat(100);
        for (name, label) in [
            ("123-abc", "123-abc"),
            ("___", ""),
            ("", ""),
            ("-x-", "x"),
            ("My_App (Test) #1 — ü.v2!", "my-app-test-1-v2"),
            (long.as_str(), &long[..63]),
        ] {
            assert_eq!(app_name_label(name), label, "{name}");
        }
    }

    #[test]
    fn a_service_whose_name_would_be_too_long_gets_a_short_one_and_a_warning() {
        let (service, warning) = service_name(&"a".repeat(52), ID);
        assert_eq!((service.len(), warning), (63, None));
        let (service, warning) = service_name(&"a".repeat(53), ID);
        assert_eq!(service, "spark-64d453a1fba36662-driver-svc");
        assert!(warning.unwrap().contains("63 characters"));
    }

    #[test]
    fn ids_have_the_time_in_them() {
        for (milliseconds, end) in [(0x1a1_fba3_6662, "a1fba36662"), (0x100_0000_0001, "1")] {
            let now = Timestamp::from_millisecond(milliseconds).unwrap();
            let id = unique_id(now, [1, 2, 3]);
            assert_eq!(&id[6..], end);
        }
        let now = Timestamp::from_millisecond(1_795_223_152_157).unwrap();
        let (names, _) = Names::new("a", &Randomness::new(now, &mut StdRng::seed_from_u64(1)));
        assert_eq!(names.app_id.len(), 38);
        assert!(names.local_dir.starts_with("/var/data/spark-") && names.local_dir.len() == 52);
    }

    proptest! {
        #[test]
        fn whatever_the_name_every_object_gets_one_that_kubernetes_takes(name in "\\PC{0,120}", seed: u64) {
            let now = Timestamp::from_millisecond(1_795_223_152_157).unwrap();
            let (names, _) = Names::new(&name, &Randomness::new(now, &mut StdRng::seed_from_u64(seed)));
            prop_assert!(is_label_value(&names.app_name_label), "{}", names.app_name_label);
            prop_assert!(is_dns_label(&names.service), "{}", names.service);
            prop_assert!(is_dns_subdomain(&names.of("driver")), "{}", names.prefix);
            prop_assert!(is_dns_subdomain(&names.config_map) && is_label_value(&names.app_id));
        }
    }
}
