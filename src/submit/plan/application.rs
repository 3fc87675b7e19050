//! Everything that a submission depends on, read and drawn once: from here on nothing but the settings counts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rand::Rng;

use super::conf_folder::{self, ConfFolder};
use super::dependencies::{self, Dependencies};
use super::error::PlanError;
use super::init_container::{self, Asking, InitContainer};
use super::names::Names;
use super::parts::credentials::Credentials;
use super::parts::executor_template;
use super::parts::hadoop::HadoopConf;
use super::parts::kerberos::{self, Kerberos};
use super::parts::volcano;
use super::submitter::Submitter;
use super::template::PodTemplate;
use super::{aliases, checks, left_to_spark, volumes};
use crate::spark::hadoop_user::short_name;
use crate::spark::version::SparkVersion;
use crate::spark::{MainResource, SettingError, SparkConf, SubmitArguments, keys};

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

impl Application {
    /// Reads and checks every setting and file that matters.
    pub async fn gather(
        arguments: SubmitArguments,
        submitter: &Submitter,
        asking: Asking<'_>,
        now: Timestamp,
        random: &mut dyn Rng,
    ) -> Result<Self, PlanError> {
        let SubmitArguments { mut conf, resource, main_class, arguments, proxy_user } = arguments;
        let mut warnings = aliases::apply(&mut conf)?;
        checks::check(&conf)?;
        warnings.extend(checks::warning(&conf));
        let (version, warning) = SparkVersion::of(&conf)?;
        warnings.extend(warning);
        // The driver makes them, and would end with what is wrong with them.
        volumes::volumes(&conf, &keys::EXECUTOR_VOLUMES, version)?;
        left_to_spark::check(&conf, &resource, submitter, version)?;
        let (names, warning) = Names::new(app_name(&conf), now, random);
        warnings.extend(warning);
        let (conf_folder, skipped) = conf_folder::read(&conf, submitter)?;
        warnings.extend(skipped);
        let dependencies = dependencies::resolve(&conf, &resource, submitter, random, &mut warnings)?;
        let hadoop = HadoopConf::read(&conf, submitter, version)?;
        kerberos::refuse_login(&conf, hadoop.as_ref())?;
        let executor_template = executor_template::read(&conf, submitter, &mut warnings).await?;
        let init_container =
            InitContainer::read(asking, &conf, submitter, &dependencies, &names, &mut warnings).await?;
        Ok(Self {
            namespace: namespace(&conf)?,
            template: PodTemplate::read(&conf, submitter).await?,
            executor_template: init_container::executor_template(
                &conf,
                init_container.as_ref(),
                executor_template,
            )?,
            hadoop,
            kerberos: Kerberos::read(&conf, submitter, version)?,
            credentials: Credentials::read(&conf, submitter)?,
            pod_group: volcano::read(&conf, submitter).await?,
            user: user(proxy_user.as_deref(), submitter, version)?,
            variables: submitter.variables.clone(),
            conf,
            resource,
            main_class,
            arguments,
            proxy_user,
            version,
            names,
            now,
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
