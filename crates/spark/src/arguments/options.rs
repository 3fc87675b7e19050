//! Every option of `spark-submit --help` (4.x) with its effect.

use crate::keys;

/// The name of a cluster manager with its own options, for messages.
pub const STANDALONE: &str = "Spark's standalone cluster";

/// The effect of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Sets this key, and wins over `--conf`.
    Setting(&'static str),
    /// Is another form of `--conf` with this key. The last one on the line wins (`SparkSubmitCommandBuilder`).
    Conf(&'static str),
    /// Sets this key to a list of URIs. Paths become absolute.
    Dependencies(&'static str),
    /// `--class`
    Class,
    /// `--conf`
    AnyConf,
    /// `--properties-file`
    PropertiesFile,
    /// `--proxy-user`
    ProxyUser,
    /// `--kill`
    Kill,
    /// `--status`
    Status,
    /// Belongs to another cluster manager and has a value. Spark ignores it here.
    Elsewhere(&'static str),
    /// Is a switch, without a value.
    Switch(Switch),
}

/// An option without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// `--dry-run`, which spark-submit does not have.
    DryRun,
    /// `--help`
    Help,
    /// `--load-spark-defaults`
    LoadSparkDefaults,
    /// `--supervise`, which is for Spark's standalone cluster. Spark ignores it here.
    Supervise,
    /// `--verbose`
    Verbose,
    /// `--version`
    Version,
}

/// One option of the command line.
#[derive(Debug, PartialEq, Eq)]
pub struct Spec {
    /// The option as users write it: `--name`.
    pub name: &'static str,
    /// A second form of the option, such as `-c`.
    pub short: Option<&'static str>,
    pub purpose: Purpose,
}

const fn option(name: &'static str, purpose: Purpose) -> Spec {
    Spec { name, short: None, purpose }
}

const fn with_short(name: &'static str, short: &'static str, purpose: Purpose) -> Spec {
    Spec { name, short: Some(short), purpose }
}

/// Every known option. Most are from `SparkSubmitOptionParser`; kubespark adds `--kubernetes-namespace`, and this
/// program adds `--dry-run`, and `--namespace` as kubectl and its own other commands have it.
pub static OPTIONS: [Spec; 37] = [
    option("--archives", Purpose::Dependencies(keys::ARCHIVES.name())),
    option("--class", Purpose::Class),
    with_short("--conf", "-c", Purpose::AnyConf),
    option("--deploy-mode", Purpose::Setting(keys::DEPLOY_MODE.name())),
    option("--driver-class-path", Purpose::Conf(keys::DRIVER_CLASS_PATH.name())),
    option("--driver-cores", Purpose::Setting(keys::DRIVER_CORES.name())),
    option("--driver-java-options", Purpose::Conf(keys::DRIVER_JAVA_OPTIONS.name())),
    option("--driver-library-path", Purpose::Conf(keys::DRIVER_LIBRARY_PATH.name())),
    option("--driver-memory", Purpose::Conf(keys::DRIVER_MEMORY.name())),
    option("--dry-run", Purpose::Switch(Switch::DryRun)),
    option("--exclude-packages", Purpose::Setting(keys::EXCLUDED_PACKAGES.name())),
    option("--executor-cores", Purpose::Setting(keys::EXECUTOR_CORES.name())),
    option("--executor-memory", Purpose::Setting(keys::EXECUTOR_MEMORY.name())),
    option("--files", Purpose::Dependencies(keys::FILES.name())),
    with_short("--help", "-h", Purpose::Switch(Switch::Help)),
    option("--jars", Purpose::Dependencies(keys::JARS.name())),
    option("--keytab", Purpose::Setting(keys::KEYTAB.name())),
    option("--kill", Purpose::Kill),
    option("--kubernetes-namespace", Purpose::Setting(keys::NAMESPACE.name())),
    option("--load-spark-defaults", Purpose::Switch(Switch::LoadSparkDefaults)),
    option("--master", Purpose::Setting(keys::MASTER.name())),
    option("--name", Purpose::Setting(keys::APP_NAME.name())),
    with_short("--namespace", "-n", Purpose::Setting(keys::NAMESPACE.name())),
    option("--num-executors", Purpose::Setting(keys::EXECUTOR_INSTANCES.name())),
    option("--packages", Purpose::Setting(keys::PACKAGES.name())),
    option("--principal", Purpose::Setting(keys::PRINCIPAL.name())),
    option("--properties-file", Purpose::PropertiesFile),
    option("--proxy-user", Purpose::ProxyUser),
    option("--py-files", Purpose::Dependencies(keys::PY_FILES.name())),
    option("--queue", Purpose::Elsewhere("YARN")),
    option("--remote", Purpose::Setting(keys::REMOTE.name())),
    option("--repositories", Purpose::Setting(keys::REPOSITORIES.name())),
    option("--status", Purpose::Status),
    option("--supervise", Purpose::Switch(Switch::Supervise)),
    option("--total-executor-cores", Purpose::Elsewhere(STANDALONE)),
    with_short("--verbose", "-v", Purpose::Switch(Switch::Verbose)),
    option("--version", Purpose::Switch(Switch::Version)),
];

/// The options that spark-submit does not have.
pub const OWN: [&str; 3] = ["--dry-run", "--kubernetes-namespace", "--namespace"];

/// The option with this name.
pub fn find(name: &str) -> Option<&'static Spec> {
    OPTIONS.iter().find(|spec| spec.name == name || spec.short == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_has_a_name_of_its_own() {
        for (at, spec) in OPTIONS.iter().enumerate() {
            assert!(std::ptr::eq(find(spec.name).unwrap(), &raw const OPTIONS[at]), "{}", spec.name);
        }
    }
}
