//! `stage --for`: files that are staged for an application of an external submitter, and the settings for that
//! submitter.
//!
//! A stock spark-submit can name fetched files only as `local:`. It takes `file:` for a file of its own machine and
//! would require `spark.kubernetes.file.upload.path`. The driver needs `file:`, because it does not serve all `local:`
//! files to its executors. [`cloakroom_spark::driver_properties`] says how the driver gets it.

pub mod operator;
mod template;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use serde_json::{Map, Value};

use self::operator::ApplicationFile;
use super::application::namespace;
use super::dependencies::{self, Dependencies};
use super::error::PlanError;
use super::facts::Facts;
use super::features::executor_template;
use super::init_container::{self, InitContainer, InitObjects};
use super::names::Names;
use super::needs::Needs;
use super::request::{Answer, Asking, Question};
use super::stage_plan::stage_plan;
use super::submitter::{Machine, Submitter};
use super::{aliases, checks, source};
use crate::StagePlan;
use crate::randomness::Randomness;
use cloakroom_core::resource::{Owner, OwnerKind, POD};
use cloakroom_core::time::SparkDuration;
use cloakroom_spark::keys::DEPENDENCY_LISTS;
use cloakroom_spark::{DependencyUri, MainResource, Origin, SparkConf, keys, split_list};

pub use super::dependencies::FOUND_IN_JARS;

/// The label of the pod that the staged files live for, and of the objects with their tickets.
pub const LABEL: &str = "cloakroom-application";

/// The label of objects that this program creates and that have no owner. `leftovers` finds them by it.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY`].
pub const MANAGER: &str = "cloakroom";

/// The keys that name a file and act here. The others act only in a submission of our own.
const READ_KEYS: [&str; 9] = [
    keys::JARS.name(),
    keys::FILES.name(),
    keys::ARCHIVES.name(),
    keys::PY_FILES.name(),
    keys::DRIVER_POD_TEMPLATE.name(),
    keys::EXECUTOR_POD_TEMPLATE.name(),
    keys::CLOAKROOM_UPLOAD_TOKEN_FILE.name(),
    keys::TLS_CLIENT_CERT_PEM.name(),
    keys::INTERNAL_TLS_CLIENT_CERT_PEM.name(),
];
/// The longest part of [`ExternalRequest::name`] that names of objects begin with. The rest of Kubernetes' 253
/// characters is for the ends of these names.
const LONGEST_NAME: usize = 100;

/// What to stage for an application of an external submitter.
#[derive(Clone)]
pub struct ExternalRequest {
    /// The lists of files and the settings of staging, by Spark's keys.
    pub conf: SparkConf,
    /// The application itself, if the command names it.
    pub application: Option<MainResource>,
    /// The beginning of the names of the objects.
    pub name: String,
    /// The owner of the files. If it is `None`, the pod of the template owns them, by [`LABEL`].
    pub owner: Option<Owner>,
    /// The file of a `SparkApplication`, if `--for` names one.
    pub file: Option<ApplicationFile>,
    /// The longest time that the server keeps the bundles.
    pub ttl: Option<SparkDuration>,
    /// How long the server keeps bundles that are not downloaded, in place of its own limit.
    pub unused_timeout: Option<SparkDuration>,
    /// Whether the submitter sets the names of Spark's containers itself, to Spark's default names.
    pub names_containers: bool,
    /// The submitting machine and its user.
    pub submitter: Submitter,
    /// Whether the plan may ask the staging server.
    pub asking: Asking,
}

/// The checked plan of `stage --for`. Nothing is sent yet.
pub struct ExternalSubmission {
    pub namespace: String,
    /// The beginning of the names of all objects of this plan.
    pub prefix: String,
    /// The name of the driver's pod, if the owner is a pod by its name.
    pub pod_name: Option<String>,
    /// The value of [`LABEL`] on all objects of this plan.
    pub id: String,
    /// What goes to the server. It is `None` if the init-container fetches everything from the web.
    pub staging: Option<StagePlan>,
    /// The objects that tell the init-container what to fetch.
    pub objects: InitObjects,
    /// Spark's lists of files with their new values, by key.
    pub lists: Vec<(&'static str, String)>,
    /// The settings that name Spark's container in a template, if the user has set them.
    pub containers: Vec<(&'static str, String)>,
    /// The application's argument for spark-submit.
    pub application: Option<String>,
    /// The main class in the manifest of a jar that is staged. spark-submit cannot look into that jar.
    pub main_class: Option<String>,
    /// The driver's pod template.
    pub driver: Map<String, Value>,
    /// The executors' pod template, if executors get the init-container too.
    pub executor: Option<String>,
    /// The application's file with the staged files merged into it. If there is one, this file replaces the templates.
    pub file: Option<ApplicationFile>,
    pub warnings: Vec<String>,
}

/// The plan after the first round of facts: which files travel, and how.
pub struct Begun<'a> {
    request: &'a ExternalRequest,
    conf: SparkConf,
    resource: MainResource,
    names: Names,
    namespace: String,
    dependencies: Dependencies,
    warnings: Vec<String>,
}

/// The plan after the second round of facts: everything that goes into the templates.
pub struct Gathered<'a> {
    begun: Begun<'a>,
    init: InitContainer,
    /// The main class in the application's manifest.
    main_class: Option<String>,
    /// The text of the driver's template.
    driver: Option<String>,
    /// The text of the executors' template.
    executor: Option<String>,
}

/// The places to look at: paths, patterns and folders that the request names.
pub fn needs(request: &ExternalRequest) -> Result<Needs, PlanError> {
    let (conf, _) = settings(request)?;
    Ok(Needs::places(&conf, |key| READ_KEYS.contains(&key), &resource(request), &request.submitter))
}

impl<'a> Begun<'a> {
    /// Finds the files. `facts` answers [`needs`].
    pub fn new(
        request: &'a ExternalRequest,
        facts: &Facts,
        randomness: &Randomness,
    ) -> Result<Self, PlanError> {
        let machine = Machine { submitter: &request.submitter, facts };
        let (mut conf, mut warnings) = settings(request)?;
        let short: String = request.name.chars().take(LONGEST_NAME).collect();
        let (names, _) = Names::new(&short, randomness);
        let namespace = namespace(&conf)?;
        if let Some(MainResource::Java(uri)) = &request.application {
            add_to_jars(&mut conf, uri)?;
        }
        let resource = resource(request);
        let dependencies = dependencies::resolve(&conf, &resource, true, machine, randomness, &mut warnings)?;
        Ok(Self { request, conf, resource, names, namespace, dependencies, warnings })
    }

    /// The contents to read: files that go into the templates, and files that say how to reach the staging server.
    pub fn needs(&self, facts: &Facts) -> Needs {
        let machine = Machine { submitter: &self.request.submitter, facts };
        let mut needs =
            Needs::contents(&self.conf, |key| READ_KEYS.contains(&key), &self.dependencies, machine);
        needs.manifests.extend(self.jar());
        needs
    }

    /// The application, if it is a local jar that travels. spark-submit cannot read its manifest, so this program does.
    fn jar(&self) -> Option<PathBuf> {
        let MainResource::Java(uri) = self.request.application.as_ref()? else { return None };
        let travels = self.dependencies.resource.starts_with("file:");
        match DependencyUri::parse(uri) {
            Ok(DependencyUri::Submitter(file)) if travels => {
                Some(self.request.submitter.working_folder.join(file.path()))
            }
            _ => None,
        }
    }

    /// Checks everything that was collected. `facts` has the answers of both rounds.
    pub fn gather(mut self, facts: &Facts) -> Result<Gathered<'a>, PlanError> {
        let machine = Machine { submitter: &self.request.submitter, facts };
        let Self { request, conf, names, dependencies, warnings, .. } = &mut self;
        let driver = source::read(conf, &template::DRIVER.file, machine)?;
        let executor = executor_template::read(conf, machine, warnings)?;
        let init = InitContainer::read(request.asking, conf, machine, dependencies, names, warnings)?;
        let Some(mut init) = init else { return Err(PlanError::NothingToStage) };
        // An external submitter draws its own id for `spark-app-selector`, so that label cannot be used here.
        init.objects.labels = [(MANAGED_BY, MANAGER.to_owned()), (LABEL, names.app_id.clone())].into();
        // A jar without a main class is allowed: spark-submit may get `--class`.
        let main_class = self.jar().and_then(|jar| facts.main_classes.get(&jar).cloned());
        Ok(Gathered { begun: self, init, main_class, driver, executor })
    }
}

impl Gathered<'_> {
    /// The question to the staging server that [`hand_over`] needs an answer to, if there is one.
    pub fn question(&self) -> Option<Question> {
        self.init.question()
    }
}

/// Checks everything that is to be staged, makes the templates, and merges them into the application's file.
/// `answer` is the staging server's, if there was a question.
pub fn hand_over(gathered: Gathered<'_>, answer: Option<Answer>) -> Result<ExternalSubmission, PlanError> {
    let request = gathered.begun.request;
    let mut external = templates(gathered, answer)?;
    if let Some(staging) = &mut external.staging {
        (staging.ttl, staging.unused_timeout) = (request.ttl, request.unused_timeout);
    }
    let merged = request.file.as_ref().map(|file| file.merged(&external)).transpose();
    external.file = merged.map_err(|error| PlanError::ApplicationFile { problem: error.to_string() })?;
    Ok(external)
}

fn templates(gathered: Gathered<'_>, answer: Option<Answer>) -> Result<ExternalSubmission, PlanError> {
    let Gathered { begun, mut init, main_class, driver, executor } = gathered;
    let Begun { request, conf, resource, names, namespace, dependencies, mut warnings } = begun;
    if let Some(answer) = answer {
        warnings.extend(init.answered(answer)?);
    }
    let owner = match &request.owner {
        Some(owner) => owner.clone(),
        None => owner_by_label(&namespace, &names.app_id)?,
    };
    let application =
        request.application.as_ref().map(|_| for_spark_submit(&resource, &dependencies.resource));
    Ok(ExternalSubmission {
        main_class,
        staging: stage_plan(&init, &dependencies, owner.clone()),
        lists: lists(&conf, &dependencies),
        containers: if request.names_containers { Vec::new() } else { containers(&conf) },
        application,
        driver: template::driver(
            &conf,
            (&resource, &init),
            driver.as_deref(),
            &owner,
            !dependencies.lists.is_empty(),
        )?,
        executor: if init.for_executors {
            init_container::executor_template(&conf, Some(&init), executor)?
        } else {
            None
        },
        objects: init.objects,
        prefix: names.prefix,
        pod_name: owner.name().filter(|_| owner.kind().as_str() == POD).map(str::to_owned),
        id: names.app_id,
        namespace,
        file: None,
        warnings,
    })
}

/// The settings with today's names in place of kubespark's, and warnings.
fn settings(request: &ExternalRequest) -> Result<(SparkConf, Vec<String>), PlanError> {
    let mut conf = request.conf.clone();
    let mut warnings = aliases::apply(&mut conf)?;
    warnings.extend(aliases::near_misses(&conf));
    if request.names_containers {
        name_containers(&mut conf)?;
    }
    checks::check(&conf)?;
    Ok((conf, warnings))
}

fn resource(request: &ExternalRequest) -> MainResource {
    request.application.clone().unwrap_or_else(|| MainResource::Java(FOUND_IN_JARS.to_owned()))
}

/// Adds an application that is a jar to `spark.jars`, if it travels. For any other jar, spark-submit does that itself.
fn add_to_jars(conf: &mut SparkConf, uri: &str) -> Result<(), PlanError> {
    let travels = match DependencyUri::parse(uri) {
        Ok(DependencyUri::Submitter(_)) => uri != FOUND_IN_JARS,
        Ok(DependencyUri::Http(_)) => conf.read(&keys::CLOAKROOM_FETCH_REMOTE)?.unwrap_or_default(),
        _ => false,
    };
    if travels {
        let jars =
            split_list(conf.get(&keys::JARS).unwrap_or_default()).chain([uri]).collect::<Vec<_>>().join(",");
        let origin = conf.origin(&keys::JARS).cloned().unwrap_or(Origin::Derived);
        conf.set(&keys::JARS, jars, origin);
    }
    Ok(())
}

/// An owner by a label that no other pod has. It cannot be `spark-app-selector`, because a stock spark-submit draws
/// that id.
fn owner_by_label(namespace: &str, id: &str) -> Result<Owner, PlanError> {
    let kind = OwnerKind::parse(POD).map_err(PlanError::Owner)?;
    let label = (LABEL.to_owned(), id.to_owned());
    Owner::new(kind, namespace, vec![label], None).map_err(PlanError::Owner)
}

/// The Kubeflow Spark Operator takes the container with Spark's default name, whatever the settings say. So another
/// name is refused.
fn name_containers(conf: &mut SparkConf) -> Result<(), PlanError> {
    for keys in [template::DRIVER, init_container::EXECUTOR_TEMPLATE] {
        let name = keys.default_name;
        if conf.get(&keys.container).is_some_and(|given| given != name) {
            let problem = format!("the operator takes the container {name}: call it so in the pod template");
            return Err(conf.refuse(&keys.container, problem).into());
        }
        conf.set(&keys.container, name, Origin::Derived);
    }
    Ok(())
}

fn containers(conf: &SparkConf) -> Vec<(&'static str, String)> {
    let keys = [template::DRIVER.container, init_container::EXECUTOR_TEMPLATE.container];
    keys.into_iter().filter_map(|key| Some((key.name(), conf.get(&key)?.to_owned()))).collect()
}

/// All lists that are not empty, with staged files as `local:`.
fn lists(conf: &SparkConf, dependencies: &Dependencies) -> Vec<(&'static str, String)> {
    let value = |key: &str| {
        let changed = dependencies.lists.iter().find(|(changed, _)| *changed == key);
        let value = changed.map(|(_, value)| value.as_str()).or_else(|| conf.get(key)).unwrap_or_default();
        let entries = value.split(',').map(as_local);
        entries.collect::<Vec<_>>().join(",")
    };
    let lists = DEPENDENCY_LISTS.into_iter().map(|key| (key, value(key)));
    lists.filter(|(_, value)| !value.is_empty()).collect()
}

/// `local:` for an entry that the init-container fetches. At this point only those are `file:`.
fn as_local(entry: &str) -> String {
    match entry.strip_prefix("file:") {
        Some(path) => format!("local:{path}"),
        None => entry.to_owned(),
    }
}

/// The application's argument for spark-submit. A staged jar is `spark-internal`, because it is in `spark.jars`. With
/// its name, Spark 3.5's driver would add it to that list once more, as `local:`.
fn for_spark_submit(resource: &MainResource, placed: &str) -> String {
    match resource {
        MainResource::Java(_) if placed.starts_with("file:") => FOUND_IN_JARS.to_owned(),
        _ => as_local(placed),
    }
}
