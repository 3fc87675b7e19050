//! References in values: `${spark.KEY}`, `${env:NAME}`, `${system:NAME}`, by the rules of Spark's `ConfigReader`.

use std::collections::BTreeMap;
use std::path::Path;

use super::{SettingError, SparkConf};
use crate::spark::keys;

/// The machine that settings are read on. References can name what it has.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// Environment variables.
    pub variables: &'a BTreeMap<String, String>,
    /// Properties of the system, as a JVM calls them.
    pub system: &'a BTreeMap<&'static str, String>,
    /// What relative paths are relative to.
    pub folder: &'a Path,
}

/// A reference that leads back to itself.
struct Circle(String);

impl SparkConf {
    /// Fills in the references in the values of the keys for which Spark does it. An unknown one stays as it is.
    pub fn fill_in(&mut self, surroundings: Surroundings<'_>) -> Result<(), SettingError> {
        let with_references: Vec<String> = self
            .iter()
            .filter(|(key, value)| {
                value.contains("${") && keys::find(key).is_some_and(|entry| entry.is_substituted)
            })
            .map(|(key, _)| key.to_owned())
            .collect();
        for key in with_references {
            let Some(setting) = self.settings.get(&key) else { continue };
            let filled_in = filled_in(&setting.value, &mut Vec::new(), &|prefix, name| {
                self.resolve(surroundings, prefix, name)
            });
            let filled_in = filled_in.map_err(|Circle(reference)| {
                self.refuse(&key, format!("the reference `${{{reference}}}` leads back to itself"))
            })?;
            if let Some(setting) = self.settings.get_mut(&key) {
                setting.filled_in = Some(filled_in);
            }
        }
        Ok(())
    }

    /// What a reference stands for: a setting as it was written, or the default that Spark declares.
    fn resolve(&self, surroundings: Surroundings<'_>, prefix: Option<&str>, name: &str) -> Option<String> {
        match prefix {
            Some("env") => surroundings.variables.get(name).cloned(),
            Some("system") => surroundings.system.get(name).cloned(),
            Some(_) => None,
            None => match self.setting(name) {
                Some(setting) => Some(setting.value.clone()),
                None => match keys::default_of_spark(name)? {
                    Ok(default) => Some(default.to_owned()),
                    Err(other) => self.resolve(surroundings, None, other),
                },
            },
        }
    }
}

/// The text with what its references stand for. `used` has those that led here.
fn filled_in(
    text: &str,
    used: &mut Vec<String>,
    resolve: &dyn Fn(Option<&str>, &str) -> Option<String>,
) -> Result<String, Circle> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some(begin) = rest.find("${") {
        let (before, reference) = rest.split_at(begin);
        filled.push_str(before);
        let Some(inside) = inside(&reference[2..]) else {
            filled.push_str("${");
            rest = &reference[2..];
            continue;
        };
        let end = inside.len() + "${}".len();
        if used.iter().any(|used| used == inside) {
            return Err(Circle(inside.to_owned()));
        }
        let (prefix, name) = split(inside);
        match resolve(prefix, name) {
            Some(value) => {
                used.push(inside.to_owned());
                filled.push_str(&self::filled_in(&value, used, resolve)?);
                used.pop();
            }
            None => filled.push_str(&reference[..end]),
        }
        rest = &reference[end..];
    }
    filled.push_str(rest);
    Ok(filled)
}

/// What stands between the braces: at least one character, no blanks.
fn inside(text: &str) -> Option<&str> {
    let first = text.chars().next()?.len_utf8();
    let inside = &text[..first + text[first..].find('}')?];
    (!inside.contains(char::is_whitespace)).then_some(inside)
}

/// `PREFIX:NAME`, where the prefix is a word.
fn split(reference: &str) -> (Option<&str>, &str) {
    let is_word =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match reference.split_once(':') {
        Some((prefix, name)) if is_word(prefix) && !name.is_empty() => (Some(prefix), name),
        _ => (None, reference),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spark::Origin;

    fn image(value: &str, others: &[(&str, &str)]) -> Result<String, String> {
        let mut conf = SparkConf::default();
        conf.set(&keys::CONTAINER_IMAGE, value, Origin::Conf);
        for (key, value) in others {
            conf.set(key, *value, Origin::Conf);
        }
        let variables = BTreeMap::from([("TAG".to_owned(), "4.3.0".to_owned())]);
        let system = BTreeMap::from([("user.name", "jo".to_owned())]);
        conf.fill_in(Surroundings { variables: &variables, system: &system, folder: Path::new("/") })
            .map_err(|error| error.to_string())?;
        Ok(conf.get(&keys::CONTAINER_IMAGE).unwrap_or_default().to_owned())
    }

    #[test]
    fn references_are_filled_in_one_inside_the_other() {
        let others = [("spark.name", "spark:${env:TAG}"), ("spark.empty", "")];
        for (value, expected) in [
            ("r/${spark.name}", "r/spark:4.3.0"),
            ("${system:user.name}/${env:TAG}", "jo/4.3.0"),
            ("a${spark.empty}b", "ab"),
            ("${spark.executor.memory}", "1g"),
            ("${spark.no}${env:NO}${system:no}${x:y}", "${spark.no}${env:NO}${system:no}${x:y}"),
            ("${spark.name", "${spark.name"),
            ("${a ${env:TAG}}", "${a 4.3.0}"),
            ("${}", "${}"),
            ("$${env:TAG}", "$4.3.0"),
        ] {
            assert_eq!(image(value, &others).as_deref(), Ok(expected), "{value}");
        }
    }

    #[test]
    fn a_circle_is_refused_with_the_value_as_it_was_written() {
        let others = [("spark.a", "${spark.b}"), ("spark.b", "${spark.a}")];
        let message = image("${spark.a}", &others).unwrap_err();
        assert_eq!(
            message,
            "`spark.kubernetes.container.image` is `${spark.a}`: the reference `${spark.a}` leads back to itself"
        );
        assert_eq!(image("${spark.a}${spark.a}", &[("spark.a", "x")]).as_deref(), Ok("xx"));
    }

    #[test]
    fn keys_that_spark_reads_as_they_are_keep_their_references() {
        let mut conf = SparkConf::default();
        conf.set(&keys::APP_NAME, "${env:TAG}", Origin::Conf);
        let variables = BTreeMap::from([("TAG".to_owned(), "x".to_owned())]);
        conf.fill_in(Surroundings {
            variables: &variables,
            system: &BTreeMap::new(),
            folder: Path::new("/"),
        })
        .unwrap();
        assert_eq!(conf.get(&keys::APP_NAME), Some("${env:TAG}"));
    }

    #[test]
    fn the_driver_gets_what_was_written() {
        let mut conf = SparkConf::default();
        conf.set(&keys::CONTAINER_IMAGE, "${env:TAG}", Origin::Conf);
        let variables = BTreeMap::from([("TAG".to_owned(), "x".to_owned())]);
        conf.fill_in(Surroundings {
            variables: &variables,
            system: &BTreeMap::new(),
            folder: Path::new("/"),
        })
        .unwrap();
        assert_eq!(conf.get(&keys::CONTAINER_IMAGE), Some("x"));
        assert_eq!(conf.iter().collect::<Vec<_>>(), [("spark.kubernetes.container.image", "${env:TAG}")]);
    }
}
