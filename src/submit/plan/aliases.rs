//! Keys with other names: the original's older ones, and misspelt ones of this program.

use crate::spark::{Origin, SettingError, SparkConf, keys};

/// What may follow `spark.kubernetes.cloakroom.`.
const OWN: [&str; 7] = [
    keys::CLOAKROOM_SPARK_VERSION,
    keys::CLOAKROOM_EXIT_CODE,
    keys::CLOAKROOM_EXECUTOR_STAGING,
    keys::CLOAKROOM_FETCH_REMOTE,
    keys::CLOAKROOM_UPLOAD_TOKEN_FILE,
    keys::CLOAKROOM_RETRY_TIMEOUT,
    keys::CLOAKROOM_SPARK_SUBMIT,
];

/// Sets today's keys from the original's where nobody set them, and refuses unknown keys of this program.
/// Gives a warning for each older key.
pub(super) fn apply(conf: &mut SparkConf) -> Result<Vec<String>, SettingError> {
    for (rest, _) in conf.prefixed(keys::CLOAKROOM_PREFIX) {
        let key = format!("{}{rest}", keys::CLOAKROOM_PREFIX);
        if !OWN.contains(&key.as_str()) {
            return Err(unknown(conf, &key));
        }
    }
    Ok(keys::RENAMED.iter().filter_map(|(old, new)| alias(conf, old, new)).collect())
}

fn alias(conf: &mut SparkConf, old: &str, new: &str) -> Option<String> {
    let value = conf.get(old)?.to_owned();
    if conf.contains(new) {
        return Some(format!("`{old}` is ignored: `{new}`, its name of today, is set as well"));
    }
    let origin = conf.origin(old).cloned().unwrap_or(Origin::Derived);
    conf.set(new, value, origin);
    Some(format!("`{old}` is an old name: write `{new}`"))
}

fn unknown(conf: &SparkConf, key: &str) -> SettingError {
    let nearest = OWN.iter().min_by_key(|own| distance(own, key)).copied().unwrap_or_default();
    conf.refuse(key, format!("there is no such key; is `{nearest}` meant?"))
}

/// Levenshtein's distance, row by row.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_key_counts_where_todays_is_not_set() {
        let mut conf = SparkConf::default();
        conf.set(keys::OLD_DRIVER_IMAGE, "old:1", Origin::Conf);
        conf.set(keys::OLD_IMAGE_PULL_POLICY, "Always", Origin::Conf);
        conf.set(keys::CONTAINER_IMAGE_PULL_POLICY, "Never", Origin::Conf);
        let warnings = apply(&mut conf).unwrap();
        assert_eq!(conf.get(keys::DRIVER_CONTAINER_IMAGE), Some("old:1"));
        assert_eq!(conf.get(keys::CONTAINER_IMAGE_PULL_POLICY), Some("Never"));
        assert_eq!(
            warnings,
            [
                "`spark.kubernetes.driver.docker.image` is an old name: write \
                 `spark.kubernetes.driver.container.image`",
                "`spark.kubernetes.docker.image.pullPolicy` is ignored: \
                 `spark.kubernetes.container.image.pullPolicy`, its name of today, is set as well",
            ]
        );
    }

    #[test]
    fn a_misspelt_key_of_this_program_is_refused_with_the_nearest_one() {
        for (key, nearest) in [
            ("spark.kubernetes.cloakroom.sparkversion", keys::CLOAKROOM_SPARK_VERSION),
            ("spark.kubernetes.cloakroom.exitcode", keys::CLOAKROOM_EXIT_CODE),
        ] {
            let mut conf = SparkConf::default();
            conf.set(key, "x", Origin::Conf);
            let message = apply(&mut conf).unwrap_err().to_string();
            assert_eq!(message, format!("`{key}` is `x`: there is no such key; is `{nearest}` meant?"));
        }
    }
}
