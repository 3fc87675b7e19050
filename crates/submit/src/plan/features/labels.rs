//! The driver pod's labels and annotations: Spark's own, and those that settings add.

use std::collections::BTreeMap;

use super::Context;
use crate::plan::metadata::{check_label, checked_annotations};
use crate::plan::names::APP_ID_LABEL;
use cloakroom_spark::{SettingError, keys};

pub(super) const ROLE_LABEL: &str = "spark-role";
const APP_NAME_LABEL: &str = "spark-app-name";
const VERSION_LABEL: &str = "spark-version";
const RESERVED: [&str; 4] = [VERSION_LABEL, APP_ID_LABEL, APP_NAME_LABEL, ROLE_LABEL];

/// The driver pod's labels, without those of a template. The driver's service selects by all of them, as in Spark.
pub(super) fn labels(context: &Context) -> Result<BTreeMap<String, String>, SettingError> {
    let conf = &context.conf;
    let names = &context.names;
    let mut labels = BTreeMap::new();
    for (name, value) in conf.prefixed(keys::DRIVER_LABELS.prefix()) {
        let key = keys::DRIVER_LABELS.of(&[name]);
        if RESERVED.contains(&name) {
            return Err(
                conf.refuse(&key, format!("the label {name} is set by Spark itself; choose another one"))
            );
        }
        // Spark 3.5 fills in placeholders in annotations only.
        let has_words = context.version.substitutes_in_labels();
        let value = if has_words { substituted(value, &names.app_id) } else { value.to_owned() };
        check_label(conf, &key, name, &value)?;
        labels.insert(name.to_owned(), value);
    }
    let own = [
        (VERSION_LABEL, context.version.to_string()),
        (APP_ID_LABEL, names.app_id.clone()),
        (APP_NAME_LABEL, names.app_name_label.clone()),
        (ROLE_LABEL, "driver".to_owned()),
    ];
    labels.extend(own.map(|(name, value)| (name.to_owned(), value)));
    Ok(labels)
}

/// The driver pod's annotations from settings, with placeholders filled in.
pub(super) fn annotations(context: &Context) -> Result<BTreeMap<String, String>, SettingError> {
    let app_id = &context.names.app_id;
    let annotations = checked_annotations(&context.conf, keys::DRIVER_ANNOTATIONS.prefix())?;
    Ok(annotations.into_iter().map(|(name, value)| (name, substituted(&value, app_id))).collect())
}

/// `Utils.substituteAppNExecIds` for a driver. It has no executor id, so that placeholder becomes empty.
fn substituted(value: &str, app_id: &str) -> String {
    value.replace("{{APP_ID}}", app_id).replace("{{EXECUTOR_ID}}", "")
}
