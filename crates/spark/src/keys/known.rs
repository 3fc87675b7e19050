//! Every key that Spark declares, even if it has no effect here.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::find;

/// Spark's keys with their defaults. The default `=KEY` means that of another key.
static OF_SPARK: LazyLock<BTreeMap<&'static str, Option<&'static str>>> = LazyLock::new(|| {
    let lines = include_str!("of_spark.tsv").lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.split_once('\t').map_or((line, None), |(key, default)| (key, Some(default))))
        .collect()
});

/// Whether Spark declares a key, or the registry has it.
pub(super) fn is_known(key: &str) -> bool {
    let is_in_family = || key.match_indices('.').any(|(dot, _)| OF_SPARK.contains_key(&key[..=dot]));
    find(key).is_some() || OF_SPARK.contains_key(key) || is_in_family()
}

/// Every name that Spark declares.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    OF_SPARK.keys().copied()
}

/// The default that Spark declares for a key; `None` if it declares none. `Err` has the key whose value is the default.
pub fn default_of_spark(key: &str) -> Option<Result<&'static str, &'static str>> {
    let default = OF_SPARK.get(key).copied().flatten()?;
    Some(default.strip_prefix('=').map_or(Ok(default), Err))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{self, Entry, entries};

    /// Keys whose default depends on the language, or is replaced by Spark on Kubernetes.
    const OTHERWISE: [&str; 4] = [
        keys::MEMORY_OVERHEAD_FACTOR.name(),
        keys::DRIVER_MEMORY_OVERHEAD_FACTOR.name(),
        keys::DEPLOY_MODE.name(),
        keys::EXECUTOR_INSTANCES.name(),
    ];

    #[test]
    fn the_registry_says_what_spark_declares() {
        // Keys that are always set for the driver have no default, whatever Spark declares.
        let always_set = keys::driver::ALWAYS_SET.entries;
        let is_setting = |entry: &&Entry| !entry.is_family() && !always_set.contains(entry);
        for entry in entries().filter(is_setting) {
            let Some(Ok(declared)) = default_of_spark(entry.name) else { continue };
            let is_other = OTHERWISE.contains(&entry.name);
            let said = entry.default.unwrap_or_default();
            assert!(
                is_other || said == declared || declared == "0",
                "{}: {said} and not {declared}",
                entry.name
            );
        }
    }
}
