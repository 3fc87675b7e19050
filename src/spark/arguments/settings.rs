//! Every setting of a command line, of its files and of the environment, by Spark's precedence.

use std::collections::BTreeMap;
use std::path::Path;

use super::command_line::CommandLine;
use super::options::Purpose;
use super::paths;
use crate::spark::{Origin, Properties, SparkConf};

/// Environment variables that act like an option that nothing else sets (`SparkSubmitArguments`).
const VARIABLES: [(&str, &str); 5] = [
    ("MASTER", "spark.master"),
    ("DEPLOY_MODE", "spark.submit.deployMode"),
    ("SPARK_DRIVER_MEMORY", "spark.driver.memory"),
    ("SPARK_EXECUTOR_MEMORY", "spark.executor.memory"),
    ("SPARK_EXECUTOR_CORES", "spark.executor.cores"),
];

/// Keys whose value is a list of URIs.
const LISTS: [&str; 4] = ["spark.jars", "spark.files", "spark.archives", "spark.submit.pyFiles"];

/// What a command line is completed with.
pub struct Defaults<'a> {
    /// Properties files, the one that wins first: `--properties-file`, then `spark-defaults.conf`.
    pub files: Vec<Properties>,
    /// The environment.
    pub variables: &'a BTreeMap<String, String>,
    /// What relative paths are relative to.
    pub folder: &'a Path,
}

/// The settings, and what the user should know.
pub struct Settings {
    /// Every key that begins with `spark.`.
    pub conf: SparkConf,
    /// In spark-submit's words where it has some.
    pub warnings: Vec<String>,
}

impl Settings {
    /// Flags over `--conf` over properties files over the environment.
    pub fn of(line: &CommandLine, defaults: &Defaults<'_>) -> Self {
        let mut settings = Self { conf: SparkConf::default(), warnings: line.ignored() };
        for file in defaults.files.iter().rev() {
            for property in file.iter() {
                let origin = Origin::File { file: file.file().to_owned(), line: property.line };
                settings.take(property.key, property.value, origin);
            }
        }
        for (key, value) in &line.conf {
            settings.take(key, value, Origin::Conf);
        }
        let conf = &mut settings.conf;
        for (spec, value) in &line.options {
            match spec.purpose {
                Purpose::Setting(key) | Purpose::Dependencies(key) => {
                    conf.set(key, value, Origin::Option(spec.name));
                }
                _ => {}
            }
        }
        for (name, key) in VARIABLES {
            if let Some(value) = defaults.variables.get(name) {
                conf.set_if_missing(key, value, Origin::Variable(name));
            }
        }
        absolute_lists(conf, defaults.folder);
        settings
    }

    /// Spark drops keys that are not its own: they would be in nobody's way, and do nothing.
    fn take(&mut self, key: &str, value: &str, origin: Origin) {
        if key.starts_with("spark.") {
            self.conf.set(key, value, origin);
        } else {
            self.warnings.push(format!("Ignoring non-Spark config property: {key}"));
        }
    }
}

fn absolute_lists(conf: &mut SparkConf, folder: &Path) {
    for key in LISTS {
        if let (Some(list), Some(origin)) = (conf.get(key), conf.origin(key).cloned()) {
            let resolved = paths::resolve_all(list, folder);
            conf.set(key, resolved, origin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(line: &[&str], files: &[(&str, &str)], variables: &[(&str, &str)]) -> Settings {
        let line = CommandLine::parse(line.iter().map(|&word| word.to_owned())).unwrap();
        let files = files.iter().map(|(name, text)| Properties::parse(name, text).unwrap()).collect();
        let variables = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        Settings::of(&line, &Defaults { files, variables: &variables, folder: Path::new("/no/such") })
    }

    #[test]
    fn flags_win_over_conf_over_the_properties_file_over_defaults_over_the_environment() {
        let files = [
            ("app.conf", "spark.driver.memory 3g\nspark.x file\nspark.y file\nspark.z file"),
            ("spark-defaults.conf", "spark.z defaults\nspark.w defaults"),
        ];
        let line = ["--driver-memory", "1g", "-c", "spark.driver.memory=2g", "-c", "spark.y=conf"];
        let variables = [("SPARK_DRIVER_MEMORY", "4g"), ("SPARK_EXECUTOR_MEMORY", "5g")];
        let conf = settings(&line, &files, &variables).conf;
        let expected = [
            ("spark.driver.memory", "1g"),
            ("spark.executor.memory", "5g"),
            ("spark.w", "defaults"),
            ("spark.x", "file"),
            ("spark.y", "conf"),
            ("spark.z", "file"),
        ];
        assert_eq!(conf.iter().collect::<Vec<_>>(), expected);
        let origin = Origin::File { file: "spark-defaults.conf".to_owned(), line: 2 };
        assert_eq!(conf.origin("spark.w"), Some(&origin));
    }

    #[test]
    fn keys_that_are_not_sparks_are_dropped_with_sparks_words() {
        let settings = settings(&["--conf", "foo.bar=1"], &[("f", "sparky=1")], &[]);
        assert_eq!(
            settings.warnings,
            ["Ignoring non-Spark config property: sparky", "Ignoring non-Spark config property: foo.bar"]
        );
        assert_eq!(settings.conf.iter().count(), 0);
    }

    #[test]
    fn the_last_conf_of_a_key_wins_and_a_flag_replaces_a_list() {
        let line = ["-c", "spark.x=1", "-c", "spark.x=2", "-c", "spark.jars=a.jar", "--jars", "b.jar"];
        let conf = settings(&line, &[], &[]).conf;
        assert_eq!(conf.get("spark.x"), Some("2"));
        assert_eq!(conf.get("spark.jars"), Some("file:/no/such/b.jar"));
    }
}
