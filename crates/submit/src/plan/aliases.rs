//! Keys with other names: older ones of kubespark, and misspelt ones.

use cloakroom_spark::{Origin, SettingError, SparkConf, keys};

/// Sets today's keys from kubespark's, if they are not set, with a warning for each. Refuses unknown keys of this
/// program.
pub(super) fn apply(conf: &mut SparkConf) -> Result<Vec<String>, SettingError> {
    let own =
        conf.prefixed(keys::CLOAKROOM_PREFIX).map(|(rest, _)| format!("{}{rest}", keys::CLOAKROOM_PREFIX));
    if let Some(key) = own.into_iter().find(|key| keys::find(key).is_none()) {
        return Err(unknown(conf, &key));
    }
    let renamed = keys::entries().filter_map(|entry| Some((entry.older_name?, entry.name)));
    Ok(renamed.filter_map(|(old, new)| alias(conf, old, new)).collect())
}

/// A warning for each key that looks mistyped. Spark passes unknown keys on without a message, and the driver ignores
/// them.
pub(super) fn near_misses(conf: &SparkConf) -> Vec<String> {
    let mistyped = conf.iter().filter_map(|(key, _)| Some((key, keys::near_miss(key)?)));
    mistyped.map(|(key, meant)| format!("`{key}` has no effect here; is `{meant}` meant?")).collect()
}

fn alias(conf: &mut SparkConf, old: &str, new: &str) -> Option<String> {
    let value = conf.get(old)?.to_owned();
    if conf.contains(new) {
        return Some(format!("`{old}` is ignored: `{new}`, its current name, is set as well"));
    }
    let origin = conf.origin(old).cloned().unwrap_or(Origin::Derived);
    conf.set(new, value, origin);
    Some(format!("`{old}` is an old name: write `{new}`"))
}

fn unknown(conf: &SparkConf, key: &str) -> SettingError {
    let meant = keys::nearest_own(key).map(|name| format!("; is `{name}` meant?"));
    conf.refuse(key, format!("there is no such key{}", meant.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_key_counts_where_todays_is_not_set() {
        let mut conf = SparkConf::default();
        conf.set("spark.kubernetes.driver.docker.image", "old:1", Origin::Conf);
        conf.set("spark.kubernetes.docker.image.pullPolicy", "Always", Origin::Conf);
        conf.set(keys::CONTAINER_IMAGE_PULL_POLICY.name(), "Never", Origin::Conf);
        let warnings = apply(&mut conf).unwrap();
        assert_eq!(conf.get(&keys::DRIVER_CONTAINER_IMAGE), Some("old:1"));
        assert_eq!(conf.get(&keys::CONTAINER_IMAGE_PULL_POLICY), Some("Never"));
        assert_eq!(
            warnings,
            [
                "`spark.kubernetes.driver.docker.image` is an old name: write \
                 `spark.kubernetes.driver.container.image`",
                "`spark.kubernetes.docker.image.pullPolicy` is ignored: \
                 `spark.kubernetes.container.image.pullPolicy`, its current name, is set as well",
            ]
        );
    }

    #[test]
    fn a_misspelt_key_of_this_program_is_refused_with_the_nearest_one() {
        for (key, nearest) in [
            ("spark.kubernetes.cloakroom.sparkversion", keys::CLOAKROOM_SPARK_VERSION.name()),
            ("spark.kubernetes.cloakroom.exitcode", keys::CLOAKROOM_EXIT_CODE.name()),
        ] {
            let mut conf = SparkConf::default();
            conf.set(key, "x", Origin::Conf);
            let message = apply(&mut conf).unwrap_err().to_string();
            assert_eq!(message, format!("`{key}` is `x`: there is no such key; is `{nearest}` meant?"));
        }
    }
}
