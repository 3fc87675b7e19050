//! Finds mistyped keys: unknown ones that are similar to a known one.

use strsim::damerau_levenshtein;

use super::{entries, is_placeholder, known, own};

/// How many letters of a mistyped key may be wrong, missing, swapped or superfluous.
const LETTERS: usize = 2;

/// The longest key in bytes that is looked at. No key is nearly as long.
const LONGEST: usize = 200;

/// The probably intended key, if neither Spark nor this program knows `key`. A family has its name or its prefix.
#[must_use]
pub fn near_miss(key: &str) -> Option<&'static str> {
    if key.len() > LONGEST || known::is_known(key) {
        return None;
    }
    by_guides(key)
        .or_else(|| by_last_part(key))
        .or_else(|| by_prefix(key))
        .or_else(|| by_letters(key))
        .or_else(|| by_beginning(key))
}

/// Finds a key for one that only guides know: with a superfluous or without a necessary `kubernetes.`, such as
/// `spark.kubernetes.driver.memory`, or with a name of its own.
fn by_guides(key: &str) -> Option<&'static str> {
    const KUBERNETES: &str = "spark.kubernetes.";
    if key == "spark.kubernetes.volcano.queue" {
        return Some(super::POD_GROUP_FILE.name());
    }
    let other = match key.strip_prefix(KUBERNETES) {
        Some(rest) => format!("{}{rest}", super::PREFIX),
        None => format!("{KUBERNETES}{}", key.strip_prefix(super::PREFIX)?),
    };
    let own = entries().find(|entry| entry.name == other).map(|entry| entry.name);
    own.or_else(|| known::names().find(|name| *name == other))
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
    all.min_by_key(|(letters, _)| *letters).map(|(_, name)| name)
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

/// How many letters differ; `None` if more than [`LETTERS`] do in one part, or if the parts of the keys do not match. A part
/// in capitals matches any text, and so does the rest after a dot at the end.
fn distance(name: &str, key: &str) -> Option<usize> {
    if !name.split('.').any(is_any_text) {
        return few_letters(name, key);
    }
    let (mut own, mut given) = (name.split('.').peekable(), key.split('.'));
    let mut letters = 0;
    while let Some(part) = own.next() {
        let other = given.next().filter(|other| !other.is_empty())?;
        if !is_any_text(part) {
            letters += few_letters(part, other)?;
        } else if own.peek().is_none() {
            return Some(letters);
        }
    }
    given.next().is_none().then_some(letters)
}

fn few_letters(one: &str, other: &str) -> Option<usize> {
    may_be_near(one, other).then(|| damerau_levenshtein(one, other)).filter(|letters| *letters <= LETTERS)
}

/// Whether few letters may differ, by how often each letter is there. The true number takes a hundred times as long.
fn may_be_near(one: &str, other: &str) -> bool {
    // A letter has at most four bytes.
    if one.len().abs_diff(other.len()) > 4 * LETTERS {
        return false;
    }
    let mut surplus = [0_i32; 128];
    for (text, step) in [(one, 1), (other, -1)] {
        text.chars().for_each(|letter| surplus[letter as usize % surplus.len()] += step);
    }
    // A wrong letter is one too many and one too few.
    surplus.iter().map(|count| count.unsigned_abs() as usize).sum::<usize>() <= 2 * LETTERS
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
    fn keys_of_guides_are_recognised() {
        for (typed, meant) in [
            ("spark.kubernetes.executor.cores", "spark.executor.cores"),
            ("spark.kubernetes.driver.memory", "spark.driver.memory"),
            ("spark.kubernetes.executor.instances", "spark.executor.instances"),
            ("spark.container.image", "spark.kubernetes.container.image"),
            ("spark.kubernetes.volcano.queue", "spark.kubernetes.scheduler.volcano.podGroupTemplateFile"),
        ] {
            assert_eq!(near_miss(typed), Some(meant), "{typed}");
        }
    }

    /// Settings of a data source, of a tool, and the like: their names are like those of Spark in length and letters.
    #[test]
    fn an_unknown_key_is_compared_with_few_names() {
        let names: Vec<&str> = entries().map(|entry| entry.name).chain(known::names()).collect();
        for number in 0..300 {
            let key = format!("spark.example.source{number}.read.partition.column");
            assert_eq!(near_miss(&key), None, "{key}");
            let compared = names.iter().filter(|name| may_be_near(name, &key)).count();
            assert!(compared <= 10, "{key}: {compared} of {}", names.len());
        }
        for typed in
            ["spark.executor.memroy", "spark.executr.memory", "spark.executor.memoryy", "spark.xecutor.memor"]
        {
            assert!(may_be_near(typed, "spark.executor.memory"), "{typed}");
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
