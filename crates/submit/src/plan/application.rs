//! Everything that a submission depends on, put together once. The steps read nothing else.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::conf_folder::{self, ConfFolder};
use super::dependencies::small_files::{self, SmallFile};
use super::dependencies::{self, Dependencies};
use super::error::PlanError;
use super::facts::Facts;
use super::init_container::{self, InitContainer};
use super::machine::Machine;
use super::names::Names;
use super::needs::Needs;
use super::parts::credentials::Credentials;
use super::parts::executor_template;
use super::parts::hadoop::HadoopConf;
use super::parts::kerberos::{self, Kerberos};
use super::parts::volcano;
use super::request::{Answer, Question, Request};
use super::submitter::Submitter;
use super::template::PodTemplate;
use super::{aliases, checks, left_to_spark, volumes};
use crate::drawn::Drawn;
use cloakroom_spark::hadoop_user::short_name;
use cloakroom_spark::version::SparkVersion;
use cloakroom_spark::{MainResource, SettingError, SparkConf, SubmitArguments, keys};

/// The input of the steps: settings, files and drawn values.
pub struct Application {
    /// Settings, with today's names in place of kubespark's.
    pub(super) conf: SparkConf,
    pub(super) resource: MainResource,
    pub(super) main_class: String,
    pub(super) arguments: Vec<String>,
    pub(super) proxy_user: Option<String>,
    /// The value of `SPARK_USER` in the pod.
    pub(super) user: String,
    /// The submitting machine's environment variables.
    pub(super) variables: BTreeMap<String, String>,
    pub(super) version: SparkVersion,
    pub(super) names: Names,
    pub(super) namespace: String,
    pub(super) now: Timestamp,
    pub(super) template: PodTemplate,
    /// The executors' template. It is the text of the file until [`Self::answered`] adds the init-container.
    pub(super) executor_template: Option<String>,
    pub(super) conf_folder: ConfFolder,
    pub(super) hadoop: Option<HadoopConf>,
    pub(super) kerberos: Kerberos,
    pub(super) credentials: Credentials,
    /// The template of Volcano's `PodGroup`. It is `None` without Volcano's step.
    pub(super) pod_group: Option<serde_json::Value>,
    pub(super) dependencies: Dependencies,
    pub(super) small_files: Vec<SmallFile>,
    /// The init-container that fetches files for the driver. It is `None` if there is nothing to fetch.
    pub(super) init_container: Option<InitContainer>,
    /// Warnings for the user, from everything before the steps.
    pub(super) warnings: Vec<String>,
}

/// The plan after the first round of facts: which files travel, and how.
pub struct Begun<'a> {
    request: &'a Request,
    conf: SparkConf,
    version: SparkVersion,
    names: Names,
    now: Timestamp,
    dependencies: Dependencies,
    warnings: Vec<String>,
    /// Warnings about files that travel. They are printed after those about folders.
    warnings_of_files: Vec<String>,
}

/// The places to look at for an application. Settings that are wrong by themselves are refused here.
pub fn needs(request: &Request) -> Result<Needs, PlanError> {
    let mut conf = request.arguments.conf.clone();
    aliases::apply(&mut conf)?;
    checks::check(&conf)?;
    let submitter = &request.submitter;
    let mut needs = Needs::places(&conf, |_| true, &request.arguments.resource, submitter);
    needs.folders = submitter.spark_conf_folder().into_iter().chain(HadoopConf::folder(submitter)).collect();
    Ok(needs)
}

impl<'a> Begun<'a> {
    /// Finds the files, and checks everything that needs no content. `facts` answers [`needs`].
    pub fn new(request: &'a Request, facts: &Facts, drawn: &Drawn) -> Result<Self, PlanError> {
        let machine = Machine { submitter: &request.submitter, facts };
        let (mut conf, resource) = (request.arguments.conf.clone(), &request.arguments.resource);
        let mut warnings = aliases::apply(&mut conf)?;
        warnings.extend(aliases::near_misses(&conf));
        checks::check(&conf)?;
        warnings.extend(checks::warnings(&conf));
        let (version, warning) = SparkVersion::of(&conf)?;
        warnings.extend(warning);
        // Only the driver uses these volumes. Spark checks them here as well, because the driver would fail on them.
        volumes::volumes(&conf, &keys::EXECUTOR_VOLUMES, version)?;
        left_to_spark::check(&conf, resource, version)?;
        let (names, warning) = Names::new(app_name(&conf), drawn);
        warnings.extend(warning);
        let mut warnings_of_files = Vec::new();
        let dependencies =
            dependencies::resolve(&conf, resource, false, machine, drawn, &mut warnings_of_files)?;
        Ok(Self { request, conf, version, names, now: drawn.now, dependencies, warnings, warnings_of_files })
    }

    /// The contents to read: files that go into objects, and files that say how to reach the staging server.
    pub fn needs(&self, facts: &Facts) -> Needs {
        let machine = Machine { submitter: &self.request.submitter, facts };
        let mut needs = Needs::contents(&self.conf, |_| true, &self.dependencies, machine);
        needs.contents.extend(conf_folder::contents(&self.conf, machine));
        needs.contents.extend(HadoopConf::contents(machine));
        needs
    }

    /// Checks every setting and everything that was collected. `facts` has the answers of both rounds.
    pub fn gather(self, facts: &Facts) -> Result<Application, PlanError> {
        let Self { request, conf, version, names, now, dependencies, mut warnings, warnings_of_files } = self;
        let machine = Machine { submitter: &request.submitter, facts };
        left_to_spark::check_ivy_settings(&conf, machine)?;
        let (conf_folder, skipped) = conf_folder::read(&conf, machine)?;
        warnings.extend(skipped.into_iter().chain(warnings_of_files));
        let small_files = small_files::read(&dependencies.small_files, facts)?;
        let hadoop = HadoopConf::read(&conf, machine, version)?;
        kerberos::refuse_login(&conf, hadoop.as_ref())?;
        let executor_template = executor_template::read(&conf, machine, &mut warnings)?;
        let init_container =
            InitContainer::read(request.asking, &conf, machine, &dependencies, &names, &mut warnings)?;
        let SubmitArguments { resource, main_class, arguments, proxy_user, .. } = request.arguments.clone();
        Ok(Application {
            namespace: namespace(&conf)?,
            template: PodTemplate::read(&conf, machine)?,
            executor_template,
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
            now,
            conf_folder,
            dependencies,
            small_files,
            init_container,
            warnings,
        })
    }
}

impl Application {
    /// The question to the staging server that [`super::plan`] needs an answer to, if there is one.
    pub fn question(&self) -> Option<Question> {
        self.init_container.as_ref()?.question()
    }

    /// The application with the staging server's answer in it, if there was a question.
    pub(super) fn answered(mut self, answer: Option<Answer>) -> Result<Self, PlanError> {
        if let (Some(init), Some(answer)) = (&mut self.init_container, answer) {
            self.warnings.extend(init.answered(answer)?);
        }
        let (init, template) = (self.init_container.as_ref(), self.executor_template.take());
        self.executor_template = init_container::executor_template(&self.conf, init, template)?;
        Ok(self)
    }

    /// `spark.app.name`, which the command line always sets.
    pub(super) fn app_name(&self) -> &str {
        app_name(&self.conf)
    }

    /// The name of the driver pod: `spark.kubernetes.driver.pod.name`, else the prefix and `-driver`.
    pub(super) fn pod_name(&self) -> String {
        let given = self.conf.get(&keys::DRIVER_POD_NAME).map(str::to_owned);
        given.unwrap_or_else(|| self.names.of("driver"))
    }
}

/// The value of `SPARK_USER`. Spark makes a Hadoop user of each name, and refuses a name that cannot be one. Before 4.3
/// it sends the proxy user's short name, and the variable `SPARK_USER` wins over that.
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
