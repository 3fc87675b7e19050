//! Finds mistyped keys: unknown ones that are similar to a known one.

use strsim::damerau_levenshtein;

use super::{entries, is_placeholder, known, own};

/// How many letters of a mistyped key may be wrong, missing, swapped or superfluous.
const LETTERS: usize = 2;

/// The probably intended key, if neither Spark nor this program knows `key`. A family has its name or its prefix.
#[must_use]
pub fn near_miss(key: &str) -> Option<&'static str> {
    if known::is_known(key) {
        return None;
    }
    by_last_part(key).or_else(|| by_prefix(key)).or_else(|| by_letters(key)).or_else(|| by_beginning(key))
}

/// The probably intended key, if `key` lacks `spark.` at its beginning.
#[must_use]
pub fn without_prefix(key: &str) -> Option<&'static str> {
    let candidates = ["spark.", "spark.kubernetes."].map(|prefix| format!("{prefix}{key}"));
    let known = candidates.iter().find_map(|key| entries().find(|entry| entry.is_of(key)));
    let is_long = key.contains('.') && key.len() > LETTERS * 4;
    known
        .map(|entry| entry.name)
        .or_else(|| candidates.iter().filter(|_| is_long).find_map(|key| by_letters(key)))
}

/// Finds `spark.submit.pyFiles` for `spark.pyfiles`: the middle part is missing, and only one key has the last part.
fn by_last_part(key: &str) -> Option<&'static str> {
    let given = key.strip_prefix(super::PREFIX).filter(|rest| !rest.contains('.'))?.to_lowercase();
    let mut alike = entries().map(|entry| entry.name).filter(|name| {
        let mut parts = name.split('.').skip(1);
        let last = parts.nth(1).filter(|_| parts.next().is_none());
        last.is_some_and(|last| damerau_levenshtein(&last.to_lowercase(), &given) <= 1)
    });
    alike.next().filter(|_| given.len() > LETTERS * 2 && alike.next().is_none())
}

/// Finds `spark.kubernetes.driverEnv.NAME` for `spark.kubernetes.driver.env.X` and `spark.kubernetes.driverEnv`.
fn by_prefix(key: &str) -> Option<&'static str> {
    let squashed = |text: &str| text.replace('.', "").to_lowercase();
    let ends = key.match_indices('.').map(|(at, _)| at).chain([key.len()]);
    let beginnings: Vec<String> = ends.map(|end| squashed(&key[..end])).collect();
    let families = entries().filter(|entry| entry.is_family());
    families.map(|entry| entry.name).find(|name| {
        let is_single = name.split('.').filter(|part| is_placeholder(part)).count() == 1;
        let prefix = name.rsplit_once('.').map(|(prefix, _)| squashed(prefix));
        is_single && prefix.is_some_and(|prefix| beginnings.contains(&prefix))
    })
}

/// Finds a key that differs in a few letters.
fn by_letters(key: &str) -> Option<&'static str> {
    let own = entries().filter_map(|entry| Some((distance(entry.name, key)?, entry.name)));
    let all = own.chain(known::names().filter_map(|name| Some((distance(name, key)?, name))));
    all.filter(|(letters, _)| *letters <= LETTERS).min_by_key(|(letters, _)| *letters).map(|(_, name)| name)
}

/// Finds `spark.kubernetes.driver.podTemplateFile` for `spark.kubernetes.driver.podTemplate`.
fn by_beginning(key: &str) -> Option<&'static str> {
    let is_longer = |name: &str| {
        let rest = name.strip_prefix(key);
        rest.is_some_and(|rest| {
            rest.starts_with(|first: char| first.is_ascii_uppercase()) && !rest.contains('.')
        })
    };
    entries().map(|entry| entry.name).filter(|name| is_longer(name)).min_by_key(|name| name.len())
}

/// The most similar one of cloakroom's own keys.
#[must_use]
pub fn nearest_own(key: &str) -> &'static str {
    let names = own::TABLE.entries.iter().map(|entry| entry.name);
    names.min_by_key(|name| damerau_levenshtein(name, key)).unwrap_or_default()
}

/// How many letters differ; `None` if the parts of the keys do not match. A part in capitals matches any text, and so
/// does the rest after a dot at the end.
fn distance(name: &str, key: &str) -> Option<usize> {
    if !name.split('.').any(is_any_text) {
        return Some(damerau_levenshtein(name, key));
    }
    let (mut own, mut given) = (name.split('.').peekable(), key.split('.'));
    let mut letters = 0;
    while let Some(part) = own.next() {
        let other = given.next().filter(|other| !other.is_empty())?;
        if !is_any_text(part) {
            letters += damerau_levenshtein(part, other);
        } else if own.peek().is_none() {
            return Some(letters);
        }
    }
    given.next().is_none().then_some(letters)
}

fn is_any_text(part: &str) -> bool {
    part.is_empty() || is_placeholder(part)
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
            ("spark.pyfiles", "spark.submit.pyFiles"),
            ("spark.package", "spark.jars.packages"),
            ("spark.kubernetes.executor.lable.team", "spark.kubernetes.executor.label."),
            ("spark.kubernetes.executor.anotation.team", "spark.kubernetes.executor.annotation."),
            ("spark.kubernetes.executor.secret.name", "spark.kubernetes.executor.secrets."),
            ("spark.executor.extraJavaOption", "spark.executor.extraJavaOptions"),
            ("spark.kubernetes.driver.podTemplate", "spark.kubernetes.driver.podTemplateFile"),
            ("spark.kubernetes.driver.env.X", "spark.kubernetes.driverEnv.NAME"),
            ("spark.kubernetes.driverEnv", "spark.kubernetes.driverEnv.NAME"),
        ] {
            assert_eq!(near_miss(typed), Some(meant), "{typed}");
        }
    }

    #[test]
    fn keys_without_spark_in_front_are_recognised() {
        for (typed, meant) in [
            ("conatiner.image", Some("spark.kubernetes.container.image")),
            ("resourceStagingServer.url", Some("spark.kubernetes.resourceStagingServer.uri")),
            ("executor.memory", Some("spark.executor.memory")),
            ("kubernetes.namespace", Some("spark.kubernetes.namespace")),
            ("sparky", None),
            ("foo.bar", None),
            ("hadoop", None),
        ] {
            assert_eq!(without_prefix(typed), meant, "{typed}");
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
