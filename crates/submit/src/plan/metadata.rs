//! Labels and annotations of settings, checked by Kubernetes' rules. Spark sends them unchecked, so only the API server
//! would refuse them.

use std::collections::BTreeMap;

use cloakroom_core::resource::{is_annotation_key, is_label_key, is_label_value};
use cloakroom_spark::{SettingError, SparkConf};

const KEYS: &str = "an optional DNS prefix and /, then at most 63 characters of letters, digits, - _ and ., \
                    beginning and ending with a letter or digit";
const VALUES: &str = "at most 63 characters of letters, digits, - _ and ., beginning and ending with a letter or \
                      digit, or nothing";

/// The labels that the settings with this prefix add, checked.
pub(super) fn checked_labels(
    conf: &SparkConf,
    prefix: &str,
) -> Result<BTreeMap<String, String>, SettingError> {
    let entries = conf.prefixed(prefix).map(|(name, value)| {
        check_label(conf, &format!("{prefix}{name}"), name, value)?;
        Ok((name.to_owned(), value.to_owned()))
    });
    entries.collect()
}

/// The annotations that the settings with this prefix add, checked. Their values may be any text.
pub(super) fn checked_annotations(
    conf: &SparkConf,
    prefix: &str,
) -> Result<BTreeMap<String, String>, SettingError> {
    let entries = conf.prefixed(prefix).map(|(name, value)| {
        if !is_annotation_key(name) {
            let problem = format!("what follows {prefix} must be the key of an annotation: {KEYS}");
            return Err(conf.refuse(&format!("{prefix}{name}"), problem));
        }
        Ok((name.to_owned(), value.to_owned()))
    });
    entries.collect()
}

pub(super) fn check_label(conf: &SparkConf, key: &str, name: &str, value: &str) -> Result<(), SettingError> {
    if !is_label_key(name) {
        let prefix = key.strip_suffix(name).unwrap_or(key);
        return Err(conf.refuse(key, format!("what follows {prefix} must be the key of a label: {KEYS}")));
    }
    if is_label_value(value) {
        Ok(())
    } else {
        Err(conf.refuse(key, format!("it must be the value of a label: {VALUES}")))
    }
}
