//! Everything that a submission depends on, put together once: in two rounds of facts, and with the answer of the staging
//! server. Features read nothing else.

use jiff::Timestamp;

use super::dependencies::{self, Dependencies};
use super::error::PlanError;
use super::facts::Facts;
use super::features::{self, Context, Features, Reader, conf_volume, hadoop};
use super::init_container::InitContainer;
use super::names::Names;
use super::needs::Needs;
use super::request::{Answer, Question, Request};
use super::submitter::Machine;
use super::template::PodTemplate;
use super::{aliases, checks, left_to_spark, volumes};
use crate::randomness::Randomness;
use cloakroom_spark::version::SparkVersion;
use cloakroom_spark::{MainResource, SettingError, SparkConf, keys};

/// The submission with everything that was collected for it.
pub struct Application {
    pub(super) context: Context,
    pub(super) resource: MainResource,
    pub(super) template: PodTemplate,
    pub(super) features: Features,
    pub(super) dependencies: Dependencies,
    /// Warnings for the user, from everything before the features are added.
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
    needs.folders = submitter.spark_conf_folder().into_iter().chain(hadoop::folder(submitter)).collect();
    Ok(needs)
}

impl<'a> Begun<'a> {
    /// Finds the files, and checks everything that needs no content. `facts` answers [`needs`].
    pub fn new(request: &'a Request, facts: &Facts, randomness: &Randomness) -> Result<Self, PlanError> {
        let machine = Machine { submitter: &request.submitter, facts };
        let (mut conf, resource) = (request.arguments.conf.clone(), &request.arguments.resource);
        let mut warnings = aliases::apply(&mut conf)?;
        warnings.extend(aliases::near_misses(&conf));
        checks::check(&conf)?;
        warnings.extend(checks::warnings(&conf));
        let (version, warning) = SparkVersion::read(&conf)?;
        warnings.extend(warning);
        // Only the driver uses these volumes. Spark checks them here as well, because the driver would fail on them.
        volumes::volumes(&conf, &keys::EXECUTOR_VOLUMES, version)?;
        left_to_spark::check(&conf, resource, version)?;
        let (names, warning) = Names::new(app_name(&conf), randomness);
        warnings.extend(warning);
        let mut warnings_of_files = Vec::new();
        let dependencies =
            dependencies::resolve(&conf, resource, false, machine, randomness, &mut warnings_of_files)?;
        Ok(Self {
            request,
            conf,
            version,
            names,
            now: randomness.now,
            dependencies,
            warnings,
            warnings_of_files,
        })
    }

    /// The contents to read: files that go into objects, and files that say how to reach the staging server.
    pub fn needs(&self, facts: &Facts) -> Needs {
        let machine = Machine { submitter: &self.request.submitter, facts };
        let mut needs = Needs::contents(&self.conf, |_| true, &self.dependencies, machine);
        needs.contents.extend(conf_volume::contents(&self.conf, machine));
        needs.contents.extend(hadoop::contents(machine));
        needs
    }

    /// Checks every setting and everything that was collected. `facts` has the answers of both rounds.
    pub fn gather(self, facts: &Facts) -> Result<Application, PlanError> {
        let Self { request, conf, version, names, now, dependencies, mut warnings, warnings_of_files } = self;
        let machine = Machine { submitter: &request.submitter, facts };
        left_to_spark::check_ivy_settings(&conf, machine)?;
        let mut from = Reader {
            conf: &conf,
            machine,
            version,
            arguments: &request.arguments,
            dependencies: &dependencies,
            warnings: Vec::new(),
        };
        let features = features::read(&mut from)?;
        let warnings_of_features = from.warnings;
        warnings.extend(warnings_of_files.into_iter().chain(warnings_of_features));
        let template = PodTemplate::read(&conf, machine)?;
        let init_container =
            InitContainer::read(request.asking, &conf, machine, &dependencies, &names, &mut warnings)?;
        let namespace = namespace(&conf)?;
        Ok(Application {
            context: Context { conf, version, names, namespace, now, init_container },
            resource: request.arguments.resource.clone(),
            template,
            features,
            dependencies,
            warnings,
        })
    }
}

impl Application {
    /// The question to the staging server that [`super::plan`] needs an answer to, if there is one.
    pub fn question(&self) -> Option<Question> {
        self.context.init_container.as_ref()?.question()
    }

    /// Takes the staging server's answer, if there was a question.
    pub(super) fn answered(&mut self, answer: Option<Answer>) -> Result<(), PlanError> {
        if let (Some(init), Some(answer)) = (&mut self.context.init_container, answer) {
            self.warnings.extend(init.answered(answer)?);
        }
        Ok(())
    }
}

fn app_name(conf: &SparkConf) -> &str {
    conf.get(&keys::APP_NAME).unwrap_or_default()
}

pub(super) fn namespace(conf: &SparkConf) -> Result<String, SettingError> {
    Ok(conf.read(&keys::NAMESPACE)?.unwrap_or_else(|| "default".to_owned()))
}
