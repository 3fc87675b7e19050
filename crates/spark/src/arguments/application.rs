//! The application of a command line, checked as in Spark's `SparkSubmitArguments` and `SparkSubmit`.

use std::path::Path;

use thiserror::Error;

use super::command_line::CommandLine;
use super::options::{self, Purpose};
use super::{MainResource, SubmitArguments, java_options, master, paths};
use crate::conf::{Origin, SettingError, SparkConf, Surroundings};
use crate::jar::{self, JarError};
use crate::keys;
use crate::uri::{DependencyUri, UriError};

/// The word for an application whose class is on the image's class path (`SparkLauncher.NO_RESOURCE`).
const NO_RESOURCE: &str = "spark-internal";
/// What is run, by its name.
const TAKEN: &str = "a Python script ends with .py, an R script with .R or .r, and everything else is a jar";
const REMOTE: &str = "it is for Spark Connect, and excludes a master: unset it, and give --master k8s://… and --deploy-mode cluster";
const PYTHON_RUNNER: &str = "org.apache.spark.deploy.PythonRunner";
const R_RUNNER: &str = "org.apache.spark.deploy.RRunner";

/// Words and classes that start an interactive program or a server, each with a description.
const NOT_FOR_CLUSTERS: [(&str, &str); 8] = [
    ("spark-shell", "Spark shells"),
    ("pyspark-shell", "Spark shells"),
    ("sparkr-shell", "Spark shells"),
    ("connect-shell", "Spark shells"),
    ("org.apache.spark.repl.Main", "Spark shells"),
    ("org.apache.spark.sql.hive.thriftserver.SparkSQLCLIDriver", "Spark SQL shell"),
    ("org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", "Spark Thrift server"),
    ("org.apache.spark.sql.connect.service.SparkConnectServer", "Spark Connect server"),
];

/// The reason why a command line has no application that can run.
#[derive(Debug, Error)]
pub enum ArgumentsError {
    /// A setting has a value that is not allowed.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The deploy mode is client, which is Spark's default and is not supported here.
    #[error(
        "the deploy mode is client, which is Spark's default and starts the driver on this machine: write \
         --deploy-mode cluster, or {}",
        master::EXTERNAL_SUBMITTER_ADVICE
    )]
    ClientMode,
    /// The command line has no application.
    #[error("missing application resource: name the jar, Python or R file to run after the options")]
    MissingApplication,
    /// The application is a jar that is not on this machine, and there is no `--class`.
    #[error(
        "missing class for the jar {uri}, which is not on this machine, so its manifest cannot be read: give \
         --class"
    )]
    MissingClass { uri: String },
    /// The jar's manifest names no main class.
    #[error(transparent)]
    Jar(#[from] JarError),
    /// The application is neither called as a script nor as a jar, and has no manifest with a main class.
    #[error("the application {path} is taken for a jar, and it names no main class: {TAKEN}")]
    NoScript { path: String },
    /// The application is not a valid URI.
    #[error("the application is not a path and not a URI")]
    Uri(#[from] UriError),
    /// The application has a name after `#`. Only files in lists can have one.
    #[error(
        "the application takes no #name: leave #{name} out; if # is part of the file's name, write file:/// before its \
         path, and %23 for #"
    )]
    NamedApplication { name: String },
    /// The application is a URL with a blank, which Spark would take for a path.
    #[error("the application {uri} is not a URL, because it has a blank in it: write it as %20")]
    BlankInUri {
        /// The URI, without secrets.
        uri: String,
    },
    /// The application is an interactive program or a server.
    #[error("cluster deploy mode is not applicable to {what}: `{given}` needs a driver on this machine")]
    NotForClusters { given: String, what: &'static str },
    /// Both options that change the user are set.
    #[error("only one of --proxy-user and --principal can be provided")]
    ProxyUserAndPrincipal,
}

impl SubmitArguments {
    /// Makes the application to submit. `conf` comes from [`Settings`](super::Settings) for this line, with its
    /// references filled in.
    pub fn new(
        line: &CommandLine,
        mut conf: SparkConf,
        surroundings: Surroundings<'_>,
    ) -> Result<Self, ArgumentsError> {
        if conf.contains(&keys::REMOTE) {
            return Err(conf.refuse(&keys::REMOTE, REMOTE).into());
        }
        master::normalise(&mut conf)?;
        check_deploy_mode(&conf)?;
        let given = line.resource.as_deref().filter(|given| !given.trim().is_empty());
        let given = given.ok_or(ArgumentsError::MissingApplication)?;
        let class = line.value(Purpose::Class);
        check_applicable([Some(given), class])?;
        java_options::check(&conf)?;
        check_amounts(&conf)?;
        check_total_cores(line, &conf)?;
        let proxy_user = line.value(Purpose::ProxyUser).map(str::to_owned);
        if proxy_user.is_some() && conf.contains(&keys::PRINCIPAL) {
            return Err(ArgumentsError::ProxyUserAndPrincipal);
        }
        let fetched = fetched_name(given, &conf)?;
        check_uri(given)?;
        let resource = resource(given, fetched.as_deref().unwrap_or(given), surroundings.folder);
        check_unnamed(&resource)?;
        let main_class = main_class(&resource, class)?;
        let name = class.or(fetched.as_deref());
        let name = name.unwrap_or_else(|| resource.uri().rsplit('/').next().unwrap_or_default());
        conf.set_if_missing(&keys::APP_NAME, name, Origin::Derived);
        complete(&mut conf, &resource);
        conf.fill_in(surroundings)?;
        Ok(Self { conf, resource, main_class, arguments: line.arguments.clone(), proxy_user })
    }
}

fn check_deploy_mode(conf: &SparkConf) -> Result<(), ArgumentsError> {
    match conf.get(&keys::DEPLOY_MODE) {
        Some("cluster") => Ok(()),
        None | Some("client") => Err(ArgumentsError::ClientMode),
        Some(_) => Err(conf.refuse(&keys::DEPLOY_MODE, "write --deploy-mode cluster").into()),
    }
}

fn check_applicable(given: [Option<&str>; 2]) -> Result<(), ArgumentsError> {
    for given in given.into_iter().flatten() {
        if let Some((_, what)) = NOT_FOR_CLUSTERS.iter().find(|(word, _)| *word == given) {
            return Err(ArgumentsError::NotForClusters { given: given.to_owned(), what });
        }
    }
    Ok(())
}

/// The checks that spark-submit makes before all others (`validateSubmitArguments`).
pub fn check_amounts(conf: &SparkConf) -> Result<(), SettingError> {
    conf.read(&keys::DRIVER_MEMORY)?;
    conf.read(&keys::EXECUTOR_MEMORY)?;
    conf.read(&keys::DRIVER_CORES)?;
    conf.read(&keys::EXECUTOR_CORES)?;
    // With dynamic allocation there may be no executors at the beginning. This check of Spark's does not trim the value; the
    // driver does.
    conf.read(&keys::DYNAMIC_ALLOCATION)?;
    let on_demand = conf.get(&keys::DYNAMIC_ALLOCATION).is_some_and(|text| text.eq_ignore_ascii_case("true"));
    if conf.read(&keys::EXECUTOR_INSTANCES)? == Some(0) && !on_demand {
        return Err(conf.refuse(&keys::EXECUTOR_INSTANCES, "it must be a whole number from 1 to 2147483647"));
    }
    Ok(())
}

/// Checks the number as spark-submit does, although it has no effect here.
fn check_total_cores(line: &CommandLine, conf: &SparkConf) -> Result<(), SettingError> {
    let Some(given) = line.value(Purpose::Elsewhere(options::STANDALONE)) else {
        return conf.read(&keys::MOST_CORES).map(drop);
    };
    let mut of_line = SparkConf::default();
    of_line.set(&keys::MOST_CORES, given, Origin::Option("--total-executor-cores"));
    of_line.read(&keys::MOST_CORES).map(drop)
}

impl MainResource {
    /// Classifies the application by the given text, without resolving it on this machine's file system.
    pub fn resolve(given: &str, conf: &SparkConf) -> Result<Self, ArgumentsError> {
        let fetched = fetched_name(given, conf)?;
        let resource = Self::by_name(fetched.as_deref().unwrap_or(given), given.to_owned());
        check_unnamed(&resource)?;
        Ok(resource)
    }
}

/// The name of an application that the init-container fetches. Spark must not see its address, because the query may be
/// secret.
fn fetched_name(given: &str, conf: &SparkConf) -> Result<Option<String>, ArgumentsError> {
    if !conf.read(&keys::CLOAKROOM_FETCH_REMOTE)?.unwrap_or_default() {
        return Ok(None);
    }
    match DependencyUri::parse(given)? {
        DependencyUri::Http(remote) => Ok(Some(remote.file_name()?)),
        _ => Ok(None),
    }
}

/// Refuses a URL with a blank. Spark takes it for the name of a file (`Utils.resolveURI`), and would then show its
/// query.
fn check_uri(given: &str) -> Result<(), ArgumentsError> {
    if given.contains("://") && given.contains(' ') {
        return Err(ArgumentsError::BlankInUri { uri: DependencyUri::parse(given)?.redacted() });
    }
    Ok(())
}

fn check_unnamed(resource: &MainResource) -> Result<(), ArgumentsError> {
    match DependencyUri::parse(resource.uri())? {
        DependencyUri::Submitter(file) => match file.fragment() {
            Some(name) => Err(ArgumentsError::NamedApplication { name: name.to_owned() }),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn resource(given: &str, name: &str, folder: &Path) -> MainResource {
    let uri = if given == NO_RESOURCE { given.to_owned() } else { paths::resolve(given, folder) };
    MainResource::by_name(name, uri)
}

fn main_class(resource: &MainResource, class: Option<&str>) -> Result<String, ArgumentsError> {
    let uri = match (resource, class) {
        (MainResource::Python(_), _) => return Ok(PYTHON_RUNNER.to_owned()),
        (MainResource::R(_), _) => return Ok(R_RUNNER.to_owned()),
        (MainResource::Java(_), Some(class)) => return Ok(class.to_owned()),
        (MainResource::Java(uri), None) => uri,
    };
    match DependencyUri::parse(uri)? {
        DependencyUri::Submitter(_) if uri == NO_RESOURCE => {
            Err(ArgumentsError::MissingClass { uri: uri.clone() })
        }
        DependencyUri::Submitter(file) => match jar::main_class(file.path()) {
            Err(JarError::NotAJar { path, .. } | JarError::NoMainClass { path })
                if path.extension().is_none_or(|ending| ending != "jar") =>
            {
                Err(ArgumentsError::NoScript { path: path.display().to_string() })
            }
            class => Ok(class?),
        },
        other => Err(ArgumentsError::MissingClass { uri: other.redacted() }),
    }
}

/// Adds the settings that `SparkSubmit.prepareSubmitEnvironment` adds for a driver in a cluster.
fn complete(conf: &mut SparkConf, resource: &MainResource) {
    conf.set(&keys::DEPLOY_MODE, "cluster", Origin::Derived);
    conf.set_if_missing(&keys::PY_FILES, "", Origin::Derived);
    // This key will be set to the name of the driver's service.
    conf.remove(&keys::DRIVER_HOST);
    if let MainResource::Java(uri) = resource {
        let own = (uri != NO_RESOURCE).then_some(uri.as_str());
        let given = conf.get(&keys::JARS).filter(|list| !list.is_empty());
        let jars = given.into_iter().chain(own).collect::<Vec<_>>().join(",");
        let origin = conf.origin(&keys::JARS).cloned().unwrap_or(Origin::Derived);
        conf.set(&keys::JARS, jars, origin);
    }
}
