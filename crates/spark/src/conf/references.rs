//! References in values: `${spark.KEY}`, `${env:NAME}`, `${system:NAME}`, by the rules of Spark's `ConfigReader`.

use std::collections::BTreeMap;
use std::path::Path;

use super::{SettingError, SparkConf};
use crate::keys;

/// The machine on which settings are read. References can name its variables and properties.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    pub variables: &'a BTreeMap<String, String>,
    /// The system properties of the JVM in which spark-submit would run. Those of Spark are settings, too.
    pub system: &'a BTreeMap<String, String>,
    /// The folder to which relative paths are relative.
    pub folder: &'a Path,
}

/// How many references one value may have, nested ones included. More would only cost time and memory.
const MOST_REFERENCES: usize = 1000;
/// The longest value with its references filled in, in bytes.
const LONGEST: usize = 1 << 20;

/// The reason why references cannot be filled in.
enum Fault {
    /// A reference leads back to itself.
    Circle(String),
    TooMany,
    TooLong,
}

impl SparkConf {
    /// Fills in the references, for those keys for which Spark does it. An unknown reference stays unchanged.
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
            let resolve = |prefix: Option<&str>, name: &str| self.resolve(surroundings, prefix, name);
            let mut filling = Filling { used: Vec::new(), left: MOST_REFERENCES, resolve: &resolve };
            let filled_in = filling.fill(&setting.value).map_err(|fault| {
                let problem = match fault {
                    Fault::Circle(reference) => {
                        format!("the reference `${{{reference}}}` leads back to itself")
                    }
                    Fault::TooMany => format!("it comes to more than {MOST_REFERENCES} references"),
                    Fault::TooLong => "its references come to more than 1 MiB".to_owned(),
                };
                self.refuse(&key, problem)
            })?;
            if let Some(setting) = self.settings.get_mut(&key) {
                setting.filled_in = Some(filled_in);
            }
        }
        Ok(())
    }

    /// The value of a reference: a setting as it was written, or Spark's default for it.
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

/// The state while the references of one value are filled in.
struct Filling<'a> {
    /// The references that led here.
    used: Vec<String>,
    /// How many more references may be filled in.
    left: usize,
    resolve: &'a dyn Fn(Option<&str>, &str) -> Option<String>,
}

impl Filling<'_> {
    /// Returns the text with its references filled in.
    fn fill(&mut self, text: &str) -> Result<String, Fault> {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some(begin) = rest.find("${") {
            let (before, reference) = rest.split_at(begin);
            filled.push_str(before);
            let Some(inside) = inside(&reference[2..]) else {
                filled.push_str("${");
                rest = &reference[2..];
                continue;
            };
            let (whole, after) = reference.split_at(inside.len() + "${}".len());
            match self.stands_for(inside)? {
                Some(value) => filled.push_str(&value),
                None => filled.push_str(whole),
            }
            rest = after;
            if filled.len() > LONGEST {
                return Err(Fault::TooLong);
            }
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn stands_for(&mut self, reference: &str) -> Result<Option<String>, Fault> {
        if self.used.iter().any(|used| used == reference) {
            return Err(Fault::Circle(reference.to_owned()));
        }
        self.left = self.left.checked_sub(1).ok_or(Fault::TooMany)?;
        let (prefix, name) = split(reference);
        let Some(value) = (self.resolve)(prefix, name) else { return Ok(None) };
        self.used.push(reference.to_owned());
        let filled = self.fill(&value)?;
        self.used.pop();
        Ok(Some(filled))
    }
}

/// The text between the braces: at least one character, no blanks.
fn inside(text: &str) -> Option<&str> {
    let first = text.chars().next()?.len_utf8();
    let inside = &text[..first + text[first..].find('}')?];
    (!inside.contains(char::is_whitespace)).then_some(inside)
}

/// Splits `PREFIX:NAME`, if the prefix is a word.
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
    use crate::Origin;

    fn image(value: &str, others: &[(&str, &str)]) -> Result<String, String> {
        let mut conf = SparkConf::default();
        conf.set(&keys::CONTAINER_IMAGE, value, Origin::Conf);
        for (key, value) in others {
            conf.set(key, *value, Origin::Conf);
        }
        let variables = BTreeMap::from([("TAG".to_owned(), "4.3.0".to_owned())]);
        let system = BTreeMap::from([("user.name".to_owned(), "jo".to_owned())]);
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
    fn keys_that_spark_reads_raw_keep_references_and_the_driver_gets_all_raw() {
        let mut conf = SparkConf::default();
        let written = [(keys::APP_NAME.name(), "${env:TAG}"), (keys::CONTAINER_IMAGE.name(), "${env:TAG}")];
        for (key, value) in written {
            conf.set(key, value, Origin::Conf);
        }
        let variables = BTreeMap::from([("TAG".to_owned(), "x".to_owned())]);
        let (system, folder) = (BTreeMap::new(), Path::new("/"));
        conf.fill_in(Surroundings { variables: &variables, system: &system, folder }).unwrap();
        assert_eq!(conf.get(&keys::APP_NAME), Some("${env:TAG}"));
        assert_eq!(conf.get(&keys::CONTAINER_IMAGE), Some("x"));
        assert_eq!(conf.iter().collect::<Vec<_>>(), written);
    }

    #[test]
    fn references_that_only_take_time_or_memory_are_refused() {
        let doubled = |last: &str| -> Vec<(String, String)> {
            let name = |at: usize| format!("spark.x{at}");
            let levels = (0..40).map(|at| (name(at), format!("${{{0}}}${{{0}}}", name(at + 1))));
            levels.chain([(name(40), last.to_owned())]).collect()
        };
        let long = "x".repeat(1 << 15);
        for (settings, problem) in [
            (doubled(""), "more than 1000 references"),
            (vec![("spark.x0".to_owned(), format!("{}{long}", "${spark.y}".repeat(40)))], "more than 1 MiB"),
        ] {
            let mut settings: Vec<(&str, &str)> =
                settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            settings.push(("spark.y", &long));
            let message = image("${spark.x0}", &settings).unwrap_err();
            assert!(message.ends_with(problem), "{message}");
        }
    }
}
