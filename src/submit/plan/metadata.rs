//! Labels and annotations: Spark's own, and those that settings add.

use std::collections::BTreeMap;

use super::application::Application;
use crate::resource::{is_annotation_key, is_label_key, is_label_value};
use crate::spark::{SettingError, SparkConf, keys};

pub(super) const APP_ID_LABEL: &str = "spark-app-selector";
pub(super) const ROLE_LABEL: &str = "spark-role";
const APP_NAME_LABEL: &str = "spark-app-name";
const VERSION_LABEL: &str = "spark-version";
const RESERVED: [&str; 4] = [VERSION_LABEL, APP_ID_LABEL, APP_NAME_LABEL, ROLE_LABEL];

const KEYS: &str = "an optional DNS prefix and /, then at most 63 characters of letters, digits, - _ and ., \
                    beginning and ending with a letter or digit";
const VALUES: &str = "at most 63 characters of letters, digits, - _ and ., beginning and ending with a letter or \
                      digit, or nothing";

/// The driver pod's labels; the service selects by all of them.
pub(super) fn labels(application: &Application) -> Result<BTreeMap<String, String>, SettingError> {
    let conf = &application.conf;
    let names = &application.names;
    let mut labels = BTreeMap::new();
    for (name, value) in conf.prefixed(keys::DRIVER_LABELS.prefix()) {
        let key = keys::DRIVER_LABELS.of(&[name]);
        if RESERVED.contains(&name) {
            return Err(
                conf.refuse(&key, format!("the label {name} is set by Spark itself; choose another one"))
            );
        }
        let has_words = application.version.substitutes_in_labels();
        let value = if has_words { substituted(value, &names.app_id) } else { value.to_owned() };
        check_label(conf, &key, name, &value)?;
        labels.insert(name.to_owned(), value);
    }
    let own = [
        (VERSION_LABEL, application.version.to_string()),
        (APP_ID_LABEL, names.app_id.clone()),
        (APP_NAME_LABEL, names.app_name_label.clone()),
        (ROLE_LABEL, "driver".to_owned()),
    ];
    labels.extend(own.map(|(name, value)| (name.to_owned(), value)));
    Ok(labels)
}

/// The driver pod's annotations.
pub(super) fn annotations(application: &Application) -> Result<BTreeMap<String, String>, SettingError> {
    let app_id = &application.names.app_id;
    let annotations = checked_annotations(&application.conf, keys::DRIVER_ANNOTATIONS.prefix())?;
    Ok(annotations.into_iter().map(|(name, value)| (name, substituted(&value, app_id))).collect())
}

/// Labels by a prefix of keys, as Kubernetes takes them.
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

/// Annotations by a prefix of keys, as Kubernetes takes them.
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

fn check_label(conf: &SparkConf, key: &str, name: &str, value: &str) -> Result<(), SettingError> {
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

/// `Utils.substituteAppNExecIds` for a driver, which has no executor id.
fn substituted(value: &str, app_id: &str) -> String {
    value.replace("{{APP_ID}}", app_id).replace("{{EXECUTOR_ID}}", "")
}
