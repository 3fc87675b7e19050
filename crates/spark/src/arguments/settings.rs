//! Combines the settings of a command line, of its files and of the environment, by Spark's precedence.

use std::collections::BTreeMap;
use std::path::Path;

use super::command_line::CommandLine;
use super::options::Purpose;
use super::paths;
use crate::conf::Surroundings;
use crate::{Origin, Properties, SparkConf, keys};
use cloakroom_core::text::harmless;

/// Environment variables that set a key unless something else sets it (`SparkSubmitArguments`).
const VARIABLES: [(&str, &str); 5] = [
    ("MASTER", keys::MASTER.name()),
    ("DEPLOY_MODE", keys::DEPLOY_MODE.name()),
    ("SPARK_DRIVER_MEMORY", keys::DRIVER_MEMORY.name()),
    ("SPARK_EXECUTOR_MEMORY", keys::EXECUTOR_MEMORY.name()),
    ("SPARK_EXECUTOR_CORES", keys::EXECUTOR_CORES.name()),
];

/// A variable of spark-submit that sets its key even to an empty value. The key is refused together with a master.
const REMOTE: &str = "SPARK_REMOTE";

/// Keys that spark-submit never takes from the JVM, only from the command line, files and variables.
const NOT_OF_JVM: [&str; 3] = [keys::MASTER.name(), keys::DEPLOY_MODE.name(), keys::APP_NAME.name()];

/// The character by which some editors of Windows mark text as UTF-8.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The variables of the program's other commands, each with the key that it sets.
const UPLOAD_TOKEN: (&str, &str) = ("CLOAKROOM_UPLOAD_TOKEN_FILE", keys::CLOAKROOM_UPLOAD_TOKEN_FILE.name());
const NO_REUSE: (&str, &str) = ("CLOAKROOM_NO_REUSE", keys::CLOAKROOM_NO_REUSE.name());
/// The variable of the certificate to trust at the staging server.
pub const CA_VARIABLE: &str = "CLOAKROOM_CA_FILE";
const CA: (&str, &str) = (CA_VARIABLE, keys::TLS_CLIENT_CERT_PEM.name());

/// The sources that complete a command line.
pub struct Defaults<'a> {
    /// Properties files in the order of precedence: `--properties-file`, then `spark-defaults.conf`.
    pub files: Vec<Properties>,
    /// The submitting machine.
    pub surroundings: Surroundings<'a>,
}

/// The settings, with warnings for the user.
pub struct Settings {
    /// Every key that begins with `spark.`.
    pub conf: SparkConf,
    /// Warnings, in spark-submit's words if it has the same ones.
    pub warnings: Vec<String>,
}

impl Settings {
    /// Combines the sources: options win over `--conf`, then come properties files, then the environment.
    pub fn resolve(line: &CommandLine, defaults: &Defaults<'_>) -> Self {
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
        let Surroundings { variables, system, folder } = defaults.surroundings;
        for (name, key) in VARIABLES.into_iter().chain([(REMOTE, keys::REMOTE.name())]) {
            if let Some(value) = variables.get(name) {
                conf.set_if_missing(key, value, Origin::Variable(name));
            }
        }
        set_uploads(conf, variables);
        absolute_lists(conf, folder);
        for (key, value) in system.range(keys::PREFIX.to_owned()..) {
            if key.starts_with(keys::PREFIX) && !NOT_OF_JVM.contains(&key.as_str()) {
                conf.set_if_missing(key, value, Origin::JavaOption);
            }
        }
        let warnings = by_todays_names(conf);
        settings.warnings.extend(warnings);
        settings
    }

    /// Takes one setting. Spark drops keys without its prefix, so this does the same and warns.
    fn take(&mut self, key: &str, value: &str, origin: Origin) {
        if key.starts_with(keys::PREFIX) {
            self.conf.set(key, value, origin);
        } else if let Some(rest) = key.strip_prefix(BYTE_ORDER_MARK) {
            self.warnings.push(format!(
                "{origin}: `{}` has no effect, because the file begins with a byte order mark (BOM), which is a part of this \
                 key for Spark too: save it as UTF-8 without a BOM",
                harmless(rest)
            ));
        } else {
            self.warnings.push(format!("Ignoring non-Spark config property: {key}"));
        }
    }
}

/// Sets how files are staged, from the variables of the other commands, unless they are empty.
fn set_uploads(conf: &mut SparkConf, variables: &BTreeMap<String, String>) {
    let set = |conf: &mut SparkConf, (name, key): (&'static str, &str)| {
        let value = variables.get(name).filter(|value| !value.is_empty() && !conf.contains(key));
        value.map(|value| conf.set(key, value, Origin::Variable(name))).is_some()
    };
    set(conf, UPLOAD_TOKEN);
    set(conf, NO_REUSE);
    if set(conf, CA) {
        conf.set_if_missing(&keys::TLS_ENABLED, "true", Origin::Variable(CA.0));
    }
}

/// Copies the values of old names to today's keys, as spark-submit does. The old names stay. Returns one warning for
/// each.
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
    use super::*;

    /// Options of the JVM.
    const SYSTEM: [(&str, &str); 6] = [
        ("spark.app.name", "of-jvm"),
        ("spark.master", "of-jvm"),
        ("spark.v", "of-jvm"),
        ("spark.w", "of-jvm"),
        ("spark.x", "of-jvm"),
        ("user.name", "jo"),
    ];

    fn settings(line: &[&str], files: &[(&str, &str)], variables: &[(&str, &str)]) -> Settings {
        let line = CommandLine::parse(line.iter().map(|&word| word.to_owned())).unwrap();
        let files = files.iter().map(|(name, text)| Properties::parse(name, text).unwrap()).collect();
        let variables = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let property = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let (system, folder) = (SYSTEM.into_iter().map(property).collect(), Path::new("/no/such"));
        let surroundings = Surroundings { variables: &variables, system: &system, folder };
        Settings::resolve(&line, &Defaults { files, surroundings })
    }

    #[test]
    fn options_conf_file_defaults_and_environment_win_in_this_order() {
        let files = [
            ("app.conf", "spark.executor.memory 3g\nspark.x file\nspark.y file\nspark.z file"),
            ("spark-defaults.conf", "spark.z defaults\nspark.w defaults"),
        ];
        let line = ["--executor-memory", "1g", "-c", "spark.executor.memory=2g", "-c", "spark.y=conf"];
        let variables = [("SPARK_DRIVER_MEMORY", "4g"), ("SPARK_EXECUTOR_MEMORY", "5g")];
        let conf = settings(&line, &files, &variables).conf;
        let expected = [
            ("spark.driver.memory", "4g"),
            ("spark.executor.memory", "1g"),
            ("spark.v", "of-jvm"),
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
        assert!(!settings.conf.contains("sparky") && !settings.conf.contains("foo.bar"));
    }

    #[test]
    fn a_byte_order_mark_is_told_with_the_key_that_it_takes() {
        let settings = settings(&[], &[("app.conf", "\u{feff}spark.a 1\nspark.b 2")], &[]);
        assert_eq!((settings.conf.get("spark.a"), settings.conf.get("spark.b")), (None, Some("2")));
        let warning = &settings.warnings[0];
        assert!(
            warning.starts_with("app.conf, line 1: `spark.a` has no effect") && warning.contains("BOM"),
            "{warning}"
        );
    }

    #[test]
    fn variables_of_other_commands_say_how_files_are_staged() {
        let (token, ca) = (("CLOAKROOM_UPLOAD_TOKEN_FILE", "t"), ("CLOAKROOM_CA_FILE", "ca.pem"));
        let no_reuse = settings(&[], &[], &[("CLOAKROOM_NO_REUSE", "true")]).conf;
        assert_eq!(no_reuse.read(&keys::CLOAKROOM_NO_REUSE).unwrap(), Some(true));
        let all = settings(&[], &[], &[token, ca]).conf;
        assert_eq!(all.get(&keys::CLOAKROOM_UPLOAD_TOKEN_FILE), Some("t"));
        assert_eq!(all.get(&keys::TLS_CLIENT_CERT_PEM), Some("ca.pem"));
        assert_eq!(all.get(&keys::TLS_ENABLED), Some("true"));
        let own = ["-c", "spark.ssl.kubernetes.resourceStagingServer.clientCertPem=own.pem"];
        let own = settings(&own, &[], &[ca]).conf;
        assert_eq!(
            (own.get(&keys::TLS_CLIENT_CERT_PEM), own.get(&keys::TLS_ENABLED)),
            (Some("own.pem"), None)
        );
    }

    #[test]
    fn a_remote_of_the_environment_counts_be_it_empty() {
        assert_eq!(settings(&[], &[], &[("SPARK_REMOTE", "")]).conf.get(&keys::REMOTE), Some(""));
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
