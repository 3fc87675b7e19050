//! Keys that look like one that acts here, and are none: mistyped ones.

use strsim::damerau_levenshtein;

use super::{Entry, entries, is_placeholder, known, own};

/// So many letters may be wrong, missing, swapped or too many.
const LETTERS: usize = 2;

/// What was probably meant by a key that neither Spark nor this program knows; a family by its name.
#[must_use]
pub fn near_miss(key: &str) -> Option<&'static str> {
    if known::is_known(key) {
        return None;
    }
    let distances = entries().filter_map(|entry| Some((distance(entry, key)?, entry.name)));
    distances
        .filter(|(letters, _)| *letters <= LETTERS)
        .min_by_key(|(letters, _)| *letters)
        .map(|(_, name)| name)
}

/// The key of this program that is most like another one.
#[must_use]
pub fn nearest_own(key: &str) -> &'static str {
    let names = own::TABLE.entries.iter().map(|entry| entry.name);
    names.min_by_key(|name| damerau_levenshtein(name, key)).unwrap_or_default()
}

/// How many letters are different; `None` where the parts do not fit each other.
fn distance(entry: &Entry, key: &str) -> Option<usize> {
    if !entry.is_family() {
        return Some(damerau_levenshtein(entry.name, key));
    }
    let (mut own, mut given) = (entry.name.split('.').peekable(), key.split('.'));
    let mut letters = 0;
    while let Some(part) = own.next() {
        let other = given.next().filter(|other| !other.is_empty())?;
        if !is_placeholder(part) {
            letters += damerau_levenshtein(part, other);
        } else if own.peek().is_none() {
            return Some(letters);
        }
    }
    given.next().is_none().then_some(letters)
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
