//! Every setting of a command line, of its files and of the environment, by Spark's precedence.

use std::path::Path;

use super::command_line::CommandLine;
use super::options::Purpose;
use super::paths;
use crate::spark::conf::Surroundings;
use crate::spark::{Origin, Properties, SparkConf, keys};

/// Environment variables that act like an option that nothing else sets (`SparkSubmitArguments`).
const VARIABLES: [(&str, &str); 6] = [
    ("MASTER", keys::MASTER.name()),
    ("DEPLOY_MODE", keys::DEPLOY_MODE.name()),
    ("SPARK_DRIVER_MEMORY", keys::DRIVER_MEMORY.name()),
    ("SPARK_EXECUTOR_MEMORY", keys::EXECUTOR_MEMORY.name()),
    ("SPARK_EXECUTOR_CORES", keys::EXECUTOR_CORES.name()),
    // This program's own, as for its other commands.
    ("CLOAKROOM_SERVER", keys::SERVER_URI.name()),
];

/// What a command line is completed with.
pub struct Defaults<'a> {
    /// Properties files, the one that wins first: `--properties-file`, then `spark-defaults.conf`.
    pub files: Vec<Properties>,
    /// The submitting machine.
    pub surroundings: Surroundings<'a>,
}

/// The settings, and what the user should know.
pub struct Settings {
    /// Every key that begins with `spark.`.
    pub conf: SparkConf,
    /// In spark-submit's words where it has some.
    pub warnings: Vec<String>,
}

impl Settings {
    /// Options over `--conf` over properties files over the environment.
    pub fn of(line: &CommandLine, defaults: &Defaults<'_>) -> Self {
        let mut settings = Self { conf: SparkConf::default(), warnings: line.ignored() };
        for file in defaults.files.iter().rev() {
            for property in file.iter() {
                let origin = Origin::File { file: file.file().to_owned(), line: property.line };
                settings.take(property.key, property.value, origin);
            }
        }
        for conf in &line.conf {
            settings.take(&conf.key, &conf.value, conf.origin.clone());
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
            if let Some(value) = defaults.surroundings.variables.get(name) {
                conf.set_if_missing(key, value, Origin::Variable(name));
            }
        }
        absolute_lists(conf, defaults.surroundings.folder);
        let warnings = by_todays_names(conf);
        settings.warnings.extend(warnings);
        settings
    }

    /// Spark drops keys that are not its own: they would be in nobody's way, and do nothing.
    fn take(&mut self, key: &str, value: &str, origin: Origin) {
        if key.starts_with(keys::PREFIX) {
            self.conf.set(key, value, origin);
        } else {
            self.warnings.push(format!("Ignoring non-Spark config property: {key}"));
        }
    }
}

/// Sets today's keys from older ones, as spark-submit does; the older ones stay. Gives a warning for each.
fn by_todays_names(conf: &mut SparkConf) -> Vec<String> {
    let mut warnings = Vec::new();
    for key in [keys::KEYTAB, keys::PRINCIPAL] {
        let Some((value, origin)) = conf.get(&key).map(str::to_owned).zip(conf.origin(&key).cloned()) else {
            continue;
        };
        conf.set(&key, value, origin);
        let older = key.entry.alternatives.iter().filter(|older| conf.contains(older));
        warnings.extend(older.map(|older| format!("`{older}` is an old name: write `{key}`")));
    }
    warnings
}

fn absolute_lists(conf: &mut SparkConf, folder: &Path) {
    for key in keys::DEPENDENCY_LISTS {
        if let (Some(list), Some(origin)) = (conf.get(key), conf.origin(key).cloned()) {
            let resolved = paths::resolve_all(list, folder);
            conf.set(key, resolved, origin);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn settings(line: &[&str], files: &[(&str, &str)], variables: &[(&str, &str)]) -> Settings {
        let line = CommandLine::parse(line.iter().map(|&word| word.to_owned())).unwrap();
        let files = files.iter().map(|(name, text)| Properties::parse(name, text).unwrap()).collect();
        let variables = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let (system, folder) = (BTreeMap::new(), Path::new("/no/such"));
        let surroundings = Surroundings { variables: &variables, system: &system, folder };
        Settings::of(&line, &Defaults { files, surroundings })
    }

    #[test]
    fn options_win_over_conf_over_the_properties_file_over_defaults_over_the_environment() {
        let files = [
            ("app.conf", "spark.executor.memory 3g\nspark.x file\nspark.y file\nspark.z file"),
            ("spark-defaults.conf", "spark.z defaults\nspark.w defaults"),
        ];
        let line = ["--executor-memory", "1g", "-c", "spark.executor.memory=2g", "-c", "spark.y=conf"];
        let variables = [
            ("SPARK_DRIVER_MEMORY", "4g"),
            ("SPARK_EXECUTOR_MEMORY", "5g"),
            ("CLOAKROOM_SERVER", "http://h"),
        ];
        let conf = settings(&line, &files, &variables).conf;
        let expected = [
            ("spark.driver.memory", "4g"),
            ("spark.executor.memory", "1g"),
            ("spark.kubernetes.resourceStagingServer.uri", "http://h"),
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
    fn four_options_are_other_ways_to_write_conf_so_that_the_last_one_wins() {
        for (option, key) in [
            ("--driver-memory", "spark.driver.memory"),
            ("--driver-class-path", "spark.driver.extraClassPath"),
            ("--driver-library-path", "spark.driver.extraLibraryPath"),
            ("--driver-java-options", "spark.driver.extraJavaOptions"),
        ] {
            let conf = format!("--conf={key}=conf");
            let conf = conf.as_str();
            let (first, last) = ([option, "option", conf], [conf, option, "option"]);
            assert_eq!(settings(&first, &[], &[]).conf.get(key), Some("conf"));
            let last = settings(&last, &[], &[]).conf;
            assert_eq!((last.get(key), last.origin(key)), (Some("option"), Some(&Origin::Option(option))));
        }
    }

    #[test]
    fn a_keytab_and_a_principal_may_have_the_names_that_yarn_gave_them() {
        let old = ["-c", "spark.yarn.keytab=k", "-c", "spark.yarn.principal=p"];
        let alone = settings(&old, &[], &[]);
        assert_eq!(alone.conf.get("spark.kerberos.keytab"), Some("k"));
        assert_eq!(alone.conf.get("spark.kerberos.principal"), Some("p"));
        assert_eq!(alone.conf.get("spark.yarn.keytab"), Some("k"));
        assert_eq!(alone.warnings[0], "`spark.yarn.keytab` is an old name: write `spark.kerberos.keytab`");
        let with_todays = [&old[..], &["--keytab", "today"]].concat();
        let both = settings(&with_todays, &[("f", "spark.kerberos.principal file")], &[]).conf;
        assert_eq!(both.get("spark.kerberos.keytab"), Some("today"));
        assert_eq!(both.get("spark.kerberos.principal"), Some("file"));
    }

    #[test]
    fn the_last_conf_of_a_key_wins_and_a_flag_replaces_a_list() {
        let line = ["-c", "spark.x=1", "-c", "spark.x=2", "-c", "spark.jars=a.jar", "--jars", "b.jar"];
        let conf = settings(&line, &[], &[]).conf;
        assert_eq!(conf.get("spark.x"), Some("2"));
        assert_eq!(conf.get("spark.jars"), Some("file:/no/such/b.jar"));
    }
}
