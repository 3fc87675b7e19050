//! The application of a command line, checked as `SparkSubmitArguments` and `SparkSubmit` check it.

use std::path::Path;

use thiserror::Error;

use super::command_line::CommandLine;
use super::options::{self, Purpose};
use super::{MainResource, SubmitArguments, java_options, master, paths};
use crate::conf::{Origin, SettingError, SparkConf, Surroundings};
use crate::jar::{self, JarError};
use crate::keys;
use crate::uri::{DependencyUri, UriError};

/// What stands for an application whose class is on the image's class path (`SparkLauncher.NO_RESOURCE`).
const NO_RESOURCE: &str = "spark-internal";
const REMOTE: &str = "it is for Spark Connect, and excludes a master: unset it, and give --master k8s://… and --deploy-mode cluster";
const PYTHON_RUNNER: &str = "org.apache.spark.deploy.PythonRunner";
const R_RUNNER: &str = "org.apache.spark.deploy.RRunner";

/// Words and classes that start something that talks to a person or to clients, with what each is.
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

/// A command line that names no application that can run.
#[derive(Debug, Error)]
pub enum ArgumentsError {
    /// A setting that cannot be what it is.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// Spark's default, which is not what this program does.
    #[error(
        "the deploy mode is client, which is Spark's default and starts the driver on this machine: write \
         --deploy-mode cluster, or {}",
        master::HAND_OVER
    )]
    ClientMode,
    /// Nothing to run.
    #[error("missing application resource: name the jar, Python or R file to run behind the options")]
    MissingApplication,
    /// A jar that is not on this machine, and no class.
    #[error("missing class for the jar {uri}, which is not on this machine to be looked into: give --class")]
    MissingClass {
        /// The jar.
        uri: String,
    },
    /// A jar that does not say what to run.
    #[error(transparent)]
    Jar(#[from] JarError),
    /// A URI that is none.
    #[error("the application is not a path and not a URI")]
    Uri(#[from] UriError),
    /// A name behind `#`, which only files of lists can have.
    #[error(
        "the application takes no #name: leave #{name} out; in the name of a file # is written %23, with file:/// in \
         front of its path"
    )]
    NamedApplication {
        /// What stands behind `#`.
        name: String,
    },
    /// A URI that Spark would take for a path.
    #[error("the application {uri} is no URL, because it has a blank in it: write it as %20")]
    BlankInUri {
        /// The URI, without secrets.
        uri: String,
    },
    /// Something that talks to a person or to clients.
    #[error("cluster deploy mode is not applicable to {what}: `{given}` needs a driver on this machine")]
    NotForClusters {
        /// The word or the class.
        given: String,
        /// What it starts.
        what: &'static str,
    },
    /// Two ways to be somebody else.
    #[error("only one of --proxy-user and --principal can be provided")]
    ProxyUserAndPrincipal,
}

impl SubmitArguments {
    /// The application to submit. `conf` is what [`Settings`](super::Settings) gave for this line; its references are filled
    /// in.
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
        let given = line.resource.as_deref().ok_or(ArgumentsError::MissingApplication)?;
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

/// What spark-submit checks before anything else (`validateSubmitArguments`).
pub fn check_amounts(conf: &SparkConf) -> Result<(), SettingError> {
    conf.read(&keys::DRIVER_MEMORY)?;
    conf.read(&keys::EXECUTOR_MEMORY)?;
    conf.read(&keys::DRIVER_CORES)?;
    conf.read(&keys::EXECUTOR_CORES)?;
    // Executors that are asked for on demand may be none to begin with.
    let on_demand = conf.read(&keys::DYNAMIC_ALLOCATION)?.unwrap_or_default();
    if conf.read(&keys::EXECUTOR_INSTANCES)? == Some(0) && !on_demand {
        return Err(conf.refuse(&keys::EXECUTOR_INSTANCES, "it must be a whole number from 1 to 2147483647"));
    }
    Ok(())
}

/// The number does nothing here, but spark-submit reads it.
fn check_total_cores(line: &CommandLine, conf: &SparkConf) -> Result<(), SettingError> {
    let Some(given) = line.value(Purpose::Elsewhere(options::STANDALONE)) else {
        return conf.read(&keys::MOST_CORES).map(drop);
    };
    let mut of_line = SparkConf::default();
    of_line.set(&keys::MOST_CORES, given, Origin::Option("--total-executor-cores"));
    of_line.read(&keys::MOST_CORES).map(drop)
}

impl MainResource {
    /// As it was given, without a look at the machine's folders.
    pub fn of(given: &str, conf: &SparkConf) -> Result<Self, ArgumentsError> {
        let fetched = fetched_name(given, conf)?;
        let resource = Self::by_name(fetched.as_deref().unwrap_or(given), given.to_owned());
        check_unnamed(&resource)?;
        Ok(resource)
    }
}

/// The name of an application that the init-container fetches: Spark never sees its address, whose query may be a secret.
fn fetched_name(given: &str, conf: &SparkConf) -> Result<Option<String>, ArgumentsError> {
    if !conf.read(&keys::CLOAKROOM_FETCH_REMOTE)?.unwrap_or_default() {
        return Ok(None);
    }
    match DependencyUri::parse(given)? {
        DependencyUri::Http(remote) => Ok(Some(remote.file_name()?)),
        _ => Ok(None),
    }
}

/// With a blank even a URL is the name of a file to Spark (`Utils.resolveURI`), and what it has behind `?` would be shown.
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
        DependencyUri::Submitter(file) => Ok(jar::main_class(file.path())?),
        other => Err(ArgumentsError::MissingClass { uri: other.redacted() }),
    }
}

/// What `SparkSubmit.prepareSubmitEnvironment` adds for a driver in a cluster.
fn complete(conf: &mut SparkConf, resource: &MainResource) {
    conf.set(&keys::DEPLOY_MODE, "cluster", Origin::Derived);
    conf.set_if_missing(&keys::PY_FILES, "", Origin::Derived);
    // The driver's service will have that name.
    conf.remove(&keys::DRIVER_HOST);
    if let MainResource::Java(uri) = resource {
        let own = (uri != NO_RESOURCE).then_some(uri.as_str());
        let given = conf.get(&keys::JARS).filter(|list| !list.is_empty());
        let jars = given.into_iter().chain(own).collect::<Vec<_>>().join(",");
        let origin = conf.origin(&keys::JARS).cloned().unwrap_or(Origin::Derived);
        conf.set(&keys::JARS, jars, origin);
    }
}
