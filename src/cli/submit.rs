//! The command line of `cloakroom submit`, which is spark-submit's. The library parses it. This module describes it for
//! `--help`, completions and the manual.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Args, Command};

/// Submit a Spark application to Kubernetes, as spark-submit does, without a JVM
#[derive(Debug, Clone, Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct SubmitArgs {
    /// spark-submit's options, the application, its arguments; see `cloakroom submit --help`
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// Variables without an option of their own. docs/submit-reference.md has those of Spark.
pub const VARIABLES: [&str; 7] = [
    "CLOAKROOM_SERVER",
    "CLOAKROOM_SERVER_NAMESPACE",
    "CLOAKROOM_SERVER_SERVICE",
    "CLOAKROOM_UPLOAD_TOKEN_FILE",
    "CLOAKROOM_CA_FILE",
    "CLOAKROOM_NO_REUSE",
    "CLOAKROOM_SPARK_SUBMIT",
];

const USAGE: &str = "cloakroom submit [options] <app jar | .py file | .R file> [app arguments]
       cloakroom submit --kill SUBMISSION_ID [--master k8s://…]
       cloakroom submit --status SUBMISSION_ID [--master k8s://…]";

const ABOUT: &str = "spark-submit for Kubernetes without a JVM. Called under a name such as spark-submit or spark3-submit, \
                     or with an option of these first, the program is this command.";

/// Every option with its value, its help and its variable. Options that have an effect on Kubernetes come first.
const GROUPS: [(&str, &[(&str, &str)]); 4] = [
    (
        "What and where",
        &[
            (
                "--master MASTER_URL",
                "k8s://https://HOST:PORT, k8s://HOST:PORT (https) or k8s://http://HOST:PORT \
                 [default: the current context of the kubeconfig] [env: MASTER]",
            ),
            (
                "--deploy-mode cluster",
                "Required: Spark's default is client, which needs a JVM on this machine [env: DEPLOY_MODE]",
            ),
            (
                "-n, --namespace NS",
                "Namespace of the application (not an option of spark-submit) [default: that of the kubeconfig's \
                 context if no master is given, else default]",
            ),
            ("--kubernetes-namespace NS", "The same, as kubespark has it"),
            (
                "--class CLASS_NAME",
                "Main class (Java, Scala) [default: what the manifest of a local jar says]",
            ),
            ("--name NAME", "Name of the application [default: the class, or the file's name]"),
            ("--jars JARS", "Comma-separated jars for the class paths of driver and executors"),
            ("--py-files PY_FILES", "Comma-separated .zip, .egg and .py files for PYTHONPATH"),
            ("--files FILES", "Comma-separated files for the working directory of each executor"),
            (
                "--archives ARCHIVES",
                "Comma-separated archives to unpack in the working directory of each executor",
            ),
            (
                "--packages COORDINATES",
                "Comma-separated Maven coordinates, groupId:artifactId:version; the driver resolves them",
            ),
            ("--exclude-packages NAMES", "Comma-separated groupId:artifactId to leave out of --packages"),
            ("--repositories URLS", "Comma-separated repositories to search for --packages"),
        ],
    ),
    (
        "Settings",
        &[
            ("-c, --conf PROP=VALUE", "A Spark property"),
            ("--properties-file FILE", "File of properties [default: conf/spark-defaults.conf]"),
            ("--load-spark-defaults", "Read conf/spark-defaults.conf as well if --properties-file is given"),
            ("--driver-memory MEM", "Memory of the driver [default: 1g] [env: SPARK_DRIVER_MEMORY]"),
            ("--driver-cores NUM", "Cores of the driver [default: 1]"),
            ("--driver-java-options OPTS", "Java options of the driver"),
            ("--driver-class-path PATHS", "Class path entries of the driver"),
            ("--driver-library-path PATHS", "Library path entries of the driver"),
            ("--executor-memory MEM", "Memory of an executor [default: 1g] [env: SPARK_EXECUTOR_MEMORY]"),
            ("--executor-cores NUM", "Cores of an executor [default: 1] [env: SPARK_EXECUTOR_CORES]"),
            (
                "--num-executors NUM",
                "Number of executors; with dynamic allocation at least this many at first [default: 2]",
            ),
            ("--proxy-user NAME", "User to impersonate; not together with --principal"),
            ("--principal PRINCIPAL", "Kerberos principal"),
            ("--keytab KEYTAB", "File with the keys of the principal"),
        ],
    ),
    (
        "Other actions",
        &[
            ("--kill SUBMISSION_ID", "Delete a driver: NAMESPACE:POD, or NAMESPACE:PREFIX* for several"),
            ("--status SUBMISSION_ID", "Print the status of a driver, named in the same forms"),
            ("--dry-run", "Print the objects as YAML and send nothing (not an option of spark-submit)"),
            ("-v, --verbose", "Print the settings as they were understood, and say more"),
            ("--version", "Print the version, and which Spark's objects it creates"),
            ("-h, --help", "Print this help"),
        ],
    ),
    (
        "For other cluster managers",
        &[
            ("--queue NAME", "YARN's; does nothing here, as with spark-submit"),
            ("--supervise", "The standalone cluster's; does nothing here"),
            ("--total-executor-cores NUM", "The standalone cluster's; does nothing here"),
            ("--remote URL", "Spark Connect's; refused"),
        ],
    ),
];

/// Lines have at most 75 characters, so that neither a narrow terminal nor the manual's margin breaks them.
const AFTER: &str = "\
Local files:
  Jars, files, archives and scripts of this machine travel through a
  staging server, which these settings name (all: docs/reference/keys.md):
  --conf spark.kubernetes.resourceStagingServer.uri=URL
      Its address [env: CLOAKROOM_SERVER]
  --conf spark.kubernetes.cloakroom.namespace=NS
      Without an address: the namespace of its Service, to which the API
      server leads [env: CLOAKROOM_SERVER_NAMESPACE] [default: cloakroom]
  --conf spark.kubernetes.cloakroom.service=NAME
      The name of that Service [env: CLOAKROOM_SERVER_SERVICE]
      [default: cloakroom]
  --conf spark.kubernetes.resourceStagingServer.internal.uri=URL
      Where pods reach it, if that is another address [default: the same]
  --conf spark.kubernetes.cloakroom.uploadTokenFile=FILE
      The upload token, if the server wants one
      [env: CLOAKROOM_UPLOAD_TOKEN_FILE]
  --conf spark.kubernetes.cloakroom.uploadServiceAccount=NAME
      Whose tokens are requested, if the server asks the cluster
      [default: cloakroom-uploader]
  --conf spark.ssl.kubernetes.resourceStagingServer.enabled=true
  --conf spark.ssl.kubernetes.resourceStagingServer.clientCertPem=FILE
      The server's certificate, or its CA, if the system does not trust it
      [env: CLOAKROOM_CA_FILE, which sets both]
  --conf spark.kubernetes.cloakroom.noReuse=true
      Send all of each bundle, also what the server has of an earlier one
      [env: CLOAKROOM_NO_REUSE]
  --conf spark.kubernetes.initContainer.image=IMAGE
      Image that fetches the files in the pods
            [default: what the server advertises]

Other cluster managers:
  If CLOAKROOM_SPARK_SUBMIT names a real spark-submit, that program gets
  everything but Kubernetes in cluster mode: other masters, client mode,
  shells, --version. Arguments and environment stay the same.

Exit code:
  The application's exit code: 0, or the driver's own (1 if it has none).
    With spark.kubernetes.cloakroom.exitCode=spark it is 0 even if the
    application fails, as with spark-submit.

Examples:
  cloakroom submit --master k8s://https://HOST:6443 --deploy-mode cluster \\
      --conf spark.kubernetes.container.image=apache/spark:4.3.0 \\
      --class org.example.App local:///opt/app.jar
  cloakroom submit --master k8s://https://HOST:6443 \\
      --status default:app-driver";

/// The command with all its options, for `--help`, completions and the manual.
pub fn described() -> Command {
    let options = GROUPS.iter().flat_map(|(heading, options)| {
        options.iter().map(|(flags, help)| option(flags, help).help_heading(*heading))
    });
    let files = Arg::new("application").hide(true).value_hint(clap::ValueHint::FilePath).num_args(0..);
    Command::new("submit")
        .about("Submit a Spark application, as spark-submit does, without a JVM")
        .override_usage(USAGE)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .help_template("{usage-heading} {usage}\n\n{about}\n\n{all-args}{after-help}")
        .max_term_width(super::MAX_WIDTH)
        .args(options)
        .arg(files)
        .after_help(AFTER)
}

/// The text of `--help`.
pub fn help() -> StyledStr {
    described().about(ABOUT).render_help()
}

/// One option, from flags such as `-c, --conf PROP=VALUE` or `--verbose`. Help shows the name of its variable, never
/// the value.
fn option(flags: &'static str, help: &'static str) -> Arg {
    let (help, variable) = match help.split_once(" [env: ") {
        Some((text, rest)) => (text, rest.strip_suffix(']')),
        None => (help, None),
    };
    let (names, value) = match flags.rsplit_once(' ') {
        Some((names, value)) if !value.starts_with('-') => (names, Some(value)),
        _ => (flags, None),
    };
    let mut arg = Arg::new(names).help(help);
    if let Some(variable) = variable {
        arg = arg.env(variable).hide_env_values(true);
    }
    for name in names.split(", ") {
        arg = match name.strip_prefix("--") {
            Some(long) => arg.long(long),
            None => arg.short(name.trim_start_matches('-').chars().next()),
        };
    }
    match value {
        Some(value) => arg.value_name(value),
        None => arg.action(ArgAction::SetTrue),
    }
}

#[cfg(test)]
mod tests {
    use cloakroom_spark::arguments::OPTIONS;

    use super::*;

    #[test]
    fn every_variable_that_stands_for_no_option_is_in_the_help() {
        let help = help().to_string();
        for name in VARIABLES {
            assert!(help.contains(name), "{name} is missing in {help}");
        }
    }

    #[test]
    fn every_option_that_is_read_is_described_and_no_other() {
        let described: Vec<String> = described()
            .get_arguments()
            .filter_map(|arg| arg.get_long().map(|long| format!("--{long}")))
            .collect();
        let mut names: Vec<&str> = described.iter().map(String::as_str).collect();
        names.sort_unstable();
        let read: Vec<&str> = OPTIONS.iter().map(|spec| spec.name).collect();
        assert_eq!(names, read);
    }
}
