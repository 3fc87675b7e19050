//! Finds mistyped keys: unknown ones that are near to a known one.

use cloakroom_core::suggestions::nearest;

use super::{Entry, entries, is_placeholder, known, own};

/// The longest key in bytes that is looked at. No key is nearly as long.
const LONGEST: usize = 200;

/// The probably intended key, if neither Spark nor this program knows `key`. A family has its name.
pub fn near_miss(key: &str) -> Option<&'static str> {
    if key.len() > LONGEST || known::is_known(key) {
        return None;
    }
    let members = entries().map(|entry| Candidate { name: entry.name, text: member(entry, key) });
    let of_spark = known::names().map(|name| Candidate { name, text: name.to_owned() });
    nearest(key, members.chain(of_spark)).map(|candidate| candidate.name)
}

/// The probably intended one of cloakroom's own keys.
pub fn nearest_own(key: &str) -> Option<&'static str> {
    nearest(key, own::TABLE.entries.iter().map(|entry| entry.name))
}

struct Candidate {
    name: &'static str,
    text: String,
}

impl AsRef<str> for Candidate {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

/// The entry's name with the parts of `key` in place of its own parts in capitals. The last one takes the rest.
fn member(entry: &Entry, key: &str) -> String {
    let count = entry.name.split('.').count();
    let mut given = key.splitn(count, '.');
    let parts = entry.name.split('.').map(|part| match given.next() {
        Some(other) if is_placeholder(part) => other,
        _ => part,
    });
    parts.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_keys_are_told_from_others() {
        for (typed, meant) in [
            ("spark.kubernetes.resourceStagingServer.url", "spark.kubernetes.resourceStagingServer.uri"),
            ("spark.kubernetes.conatiner.image", "spark.kubernetes.container.image"),
            ("spark.kubernetes.container.image.pullSecret", "spark.kubernetes.container.image.pullSecrets"),
            ("spark.kubernetes.driver.lable.team", "spark.kubernetes.driver.label.KEY"),
            ("spark.kubernetes.driver.labels.example.com/team", "spark.kubernetes.driver.label.KEY"),
            (
                "spark.kubernetes.driver.volumes.nfs.data.mount.pth",
                "spark.kubernetes.driver.volumes.TYPE.NAME.mount.path",
            ),
            ("spark.Executor.memory", "spark.executor.memory"),
            ("spark.executor.extraJavaOption", "spark.executor.extraJavaOptions"),
        ] {
            assert_eq!(near_miss(typed), Some(meant), "{typed}");
        }
    }

    #[test]
    fn keys_of_spark_and_of_others_are_none() {
        for key in [
            "spark.kubernetes.driver.label.lable",
            "spark.driver.memory",
            "spark.kubernetes.executor.label.team",
            "spark.jars.ivy",
            "spark.yarn.keytab",
            "spark.sql.shuffle.partitions",
            "spark.hadoop.fs.s3a.endpoint",
            "spark.files.overwrite",
            "spark.example.of.somebody",
            "spark.kubernetes.driver.annotation.x.y/z",
        ] {
            assert_eq!(near_miss(key), None, "{key}");
        }
    }
}
