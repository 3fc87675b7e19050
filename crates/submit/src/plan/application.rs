//! Everything that a submission depends on, put together once: from here on nothing else counts.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::conf_folder::{self, ConfFolder};
use super::dependencies::{self, Dependencies};
use super::error::PlanError;
use super::facts::Facts;
use super::init_container::{self, InitContainer};
use super::machine::Machine;
use super::names::Names;
use super::parts::credentials::Credentials;
use super::parts::executor_template;
use super::parts::hadoop::HadoopConf;
use super::parts::kerberos::{self, Kerberos};
use super::parts::volcano;
use super::request::{Question, Request};
use super::submitter::Submitter;
use super::template::PodTemplate;
use super::{aliases, checks, left_to_spark, volumes};
use crate::drawn::Drawn;
use cloakroom_spark::hadoop_user::short_name;
use cloakroom_spark::version::SparkVersion;
use cloakroom_spark::{MainResource, SettingError, SparkConf, SubmitArguments, keys};

/// What the steps read.
pub(super) struct Application {
    /// Settings, with today's names for the original's.
    pub conf: SparkConf,
    pub resource: MainResource,
    pub main_class: String,
    pub arguments: Vec<String>,
    pub proxy_user: Option<String>,
    /// Who the application runs as.
    pub user: String,
    /// The submitting machine's environment.
    pub variables: BTreeMap<String, String>,
    pub version: SparkVersion,
    pub names: Names,
    pub namespace: String,
    pub now: Timestamp,
    pub template: PodTemplate,
    /// The executors' template as it stands in its file.
    pub executor_template: Option<String>,
    pub conf_folder: ConfFolder,
    pub hadoop: Option<HadoopConf>,
    pub kerberos: Kerberos,
    pub credentials: Credentials,
    /// Volcano's `PodGroup`, if there is to be one.
    pub pod_group: Option<serde_json::Value>,
    pub dependencies: Dependencies,
    /// What brings the staged ones to the driver.
    pub init_container: Option<InitContainer>,
    /// What came up on the way.
    pub warnings: Vec<String>,
}

/// What is known before the staging server may have to be asked.
struct Begun {
    conf: SparkConf,
    version: SparkVersion,
    names: Names,
    conf_folder: ConfFolder,
    dependencies: Dependencies,
    hadoop: Option<HadoopConf>,
    executor_template: Option<String>,
    warnings: Vec<String>,
}

impl Begun {
    fn gather(arguments: &SubmitArguments, machine: Machine, drawn: &Drawn) -> Result<Self, PlanError> {
        let (mut conf, resource) = (arguments.conf.clone(), &arguments.resource);
        let mut warnings = aliases::apply(&mut conf)?;
        checks::check(&conf)?;
        warnings.extend(checks::warning(&conf));
        let (version, warning) = SparkVersion::of(&conf)?;
        warnings.extend(warning);
        // The driver makes them, and would end with what is wrong with them.
        volumes::volumes(&conf, &keys::EXECUTOR_VOLUMES, version)?;
        left_to_spark::check(&conf, resource, machine, version)?;
        let (names, warning) = Names::new(app_name(&conf), drawn);
        warnings.extend(warning);
        let (conf_folder, skipped) = conf_folder::read(&conf, machine)?;
        warnings.extend(skipped);
        let dependencies = dependencies::resolve(&conf, resource, machine, drawn, &mut warnings)?;
        let hadoop = HadoopConf::read(&conf, machine, version)?;
        kerberos::refuse_login(&conf, hadoop.as_ref())?;
        let executor_template = executor_template::read(&conf, machine, &mut warnings)?;
        Ok(Self { conf, version, names, conf_folder, dependencies, hadoop, executor_template, warnings })
    }
}

/// Whether the staging server has to be asked before the application can be planned.
pub(super) fn question(
    request: &Request,
    facts: &Facts,
    drawn: &Drawn,
) -> Result<Option<Question>, PlanError> {
    let machine = Machine { submitter: &request.submitter, facts };
    let begun = Begun::gather(&request.arguments, machine, drawn)?;
    InitContainer::question(request.asking, &begun.conf, machine, &begun.dependencies)
}

impl Application {
    /// Checks every setting and everything that was collected.
    pub fn gather(request: &Request, facts: &Facts, drawn: &Drawn) -> Result<Self, PlanError> {
        let machine = Machine { submitter: &request.submitter, facts };
        let begun = Begun::gather(&request.arguments, machine, drawn)?;
        let Begun {
            conf,
            version,
            names,
            conf_folder,
            dependencies,
            hadoop,
            executor_template,
            mut warnings,
        } = begun;
        let SubmitArguments { resource, main_class, arguments, proxy_user, .. } = request.arguments.clone();
        let init_container =
            InitContainer::read(request.asking, &conf, machine, &dependencies, &names, &mut warnings)?;
        Ok(Self {
            namespace: namespace(&conf)?,
            template: PodTemplate::read(&conf, machine)?,
            executor_template: init_container::executor_template(
                &conf,
                init_container.as_ref(),
                executor_template,
            )?,
            hadoop,
            kerberos: Kerberos::read(&conf, machine, version)?,
            credentials: Credentials::read(&conf, machine)?,
            pod_group: volcano::read(&conf, machine)?,
            user: user(proxy_user.as_deref(), &request.submitter, version)?,
            variables: request.submitter.variables.clone(),
            conf,
            resource,
            main_class,
            arguments,
            proxy_user,
            version,
            names,
            now: drawn.now,
            conf_folder,
            dependencies,
            init_container,
            warnings,
        })
    }

    /// `spark.app.name`.
    pub fn app_name(&self) -> &str {
        app_name(&self.conf)
    }

    /// Name of the driver pod.
    pub fn pod_name(&self) -> String {
        let given = self.conf.get(&keys::DRIVER_POD_NAME).map(str::to_owned);
        given.unwrap_or_else(|| self.names.of("driver"))
    }
}

/// Spark makes a Hadoop user of each name, and refuses what cannot be one.
fn user(proxy: Option<&str>, submitter: &Submitter, version: SparkVersion) -> Result<String, PlanError> {
    let own = submitter.user.clone()?;
    match proxy {
        None => Ok(own),
        Some("") => Err(PlanError::NoProxyUser),
        Some(name) => {
            let short = short_name(name, "--proxy-user")?;
            if version.has_whole_proxy_user() {
                return Ok(name.to_owned());
            }
            Ok(submitter.variables.get("SPARK_USER").map_or(short, String::as_str).to_owned())
        }
    }
}

fn app_name(conf: &SparkConf) -> &str {
    conf.get(&keys::APP_NAME).unwrap_or_default()
}

pub(super) fn namespace(conf: &SparkConf) -> Result<String, SettingError> {
    Ok(conf.read(&keys::NAMESPACE)?.unwrap_or_else(|| "default".to_owned()))
}
