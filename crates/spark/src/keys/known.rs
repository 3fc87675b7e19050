//! Every key that Spark declares, whether it acts here or not.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::find;

/// Each key with its default: `=KEY` for that of another one.
static OF_SPARK: LazyLock<BTreeMap<&'static str, Option<&'static str>>> = LazyLock::new(|| {
    let lines = include_str!("of_spark.tsv").lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.split_once('\t').map_or((line, None), |(key, default)| (key, Some(default))))
        .collect()
});

/// Whether Spark declares a key, or it is in the registry.
pub(super) fn is_known(key: &str) -> bool {
    let is_in_family = || key.match_indices('.').any(|(dot, _)| OF_SPARK.contains_key(&key[..=dot]));
    find(key).is_some() || OF_SPARK.contains_key(key) || is_in_family()
}

/// Every name that Spark declares.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    OF_SPARK.keys().copied()
}

/// The default that Spark declares for a key. `Err` has the key whose value is the default.
#[must_use]
pub fn default_of_spark(key: &str) -> Option<Result<&'static str, &'static str>> {
    let default = OF_SPARK.get(key).copied().flatten()?;
    Some(default.strip_prefix('=').map_or(Ok(default), Err))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{self, Entry, entries};

    /// Defaults that differ by the language, or that Spark itself replaces on Kubernetes.
    const OTHERWISE: [&str; 4] = [
        keys::MEMORY_OVERHEAD_FACTOR.name(),
        keys::DRIVER_MEMORY_OVERHEAD_FACTOR.name(),
        keys::DEPLOY_MODE.name(),
        keys::EXECUTOR_INSTANCES.name(),
    ];

    #[test]
    fn the_registry_says_what_spark_declares() {
        // What the driver is told counts whatever Spark's default is.
        let told = keys::told::TABLE.entries;
        let is_setting = |entry: &&Entry| !entry.is_family() && !told.contains(entry);
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
