//! Files that are staged for an application that somebody else submits: what travels, and what that submitter is told.
//!
//! A stock spark-submit can name what an init-container brings only as `local:`, because it takes `file:` for a file of
//! its own machine; see [`cloakroom_spark::driver_properties`] for how the driver gets it as `file:` nevertheless.

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
use super::init_container::{self, InitContainer, InitObjects};
use super::machine::Machine;
use super::names::Names;
use super::needs::Needs;
use super::parts::executor_template;
use super::request::{Asking, Question};
use super::stage_plan::stage_plan;
use super::submitter::Submitter;
use super::{aliases, checks, source};
use crate::StagePlan;
use crate::drawn::Drawn;
use cloakroom_core::resource::{Owner, OwnerKind, POD};
use cloakroom_core::time::SparkDuration;
use cloakroom_spark::keys::DEPENDENCY_LISTS;
use cloakroom_spark::{DependencyUri, MainResource, Origin, SparkConf, keys, split_list};

pub use super::dependencies::FOUND_IN_JARS;

/// The label of the pod that what is staged lives for, and of the objects that tell of it.
pub const LABEL: &str = "cloakroom-application";

/// The label of objects that this program makes, and that nothing owns.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY`].
pub const MANAGER: &str = "cloakroom";

/// Of the keys that name files, those that count where no application is submitted.
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
/// Room for what the names of the objects end with.
const LONGEST_NAME: usize = 100;

/// What to stage for an application that is not submitted here.
#[derive(Clone)]
pub struct ExternalRequest {
    /// The lists of files and the settings of staging, by Spark's keys.
    pub conf: SparkConf,
    /// The application itself, if it travels as well.
    pub application: Option<MainResource>,
    /// What the names of the objects begin with.
    pub name: String,
    /// Whom the files live for, if not for the pod that is made by the template.
    pub owner: Option<Owner>,
    /// The file of the application, where there is one.
    pub file: Option<ApplicationFile>,
    /// Upper bound on the bundles' life.
    pub ttl: Option<SparkDuration>,
    /// How long they may stay without being downloaded, instead of what the server says.
    pub unused_timeout: Option<SparkDuration>,
    /// Whether the submitter itself says which containers are Spark's, by Spark's own names for them.
    pub names_containers: bool,
    /// Who stages, and from where.
    pub submitter: Submitter,
    /// Whether the staging server may be asked.
    pub asking: Asking,
}

/// What was checked, and nothing sent of.
pub struct ExternalSubmission {
    /// Where the application will be.
    pub namespace: String,
    /// What the names of everything here begin with.
    pub prefix: String,
    /// The name of the driver's pod, where the owner is the pod of that name.
    pub pod_name: Option<String>,
    /// The value of the label that everything here has.
    pub id: String,
    /// What goes to the server; nothing where all of it is fetched from the web.
    pub staging: Option<StagePlan>,
    /// The objects that tell the init-container of it.
    pub objects: InitObjects,
    /// The settings that name what was staged, by key.
    pub lists: Vec<(&'static str, String)>,
    /// Which containers of the templates are Spark's, where the user has said so.
    pub containers: Vec<(&'static str, String)>,
    /// The application, as spark-submit is to be told.
    pub application: Option<String>,
    /// The class that the application's manifest names, where spark-submit cannot see it: the jar travels.
    pub main_class: Option<String>,
    /// The driver's pod template.
    pub driver: Map<String, Value>,
    /// The executors' pod template, where they get the init-container as well.
    pub executor: Option<String>,
    /// The file of the application with what was staged in it, where there is one. Then nothing is made but by that file.
    pub file: Option<ApplicationFile>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// What is known once it is known where files stand: what travels, and how.
pub struct Begun<'a> {
    request: &'a ExternalRequest,
    conf: SparkConf,
    resource: MainResource,
    names: Names,
    namespace: String,
    dependencies: Dependencies,
    warnings: Vec<String>,
}

/// All that the templates are made of.
pub struct Gathered<'a> {
    begun: Begun<'a>,
    init: InitContainer,
    /// The class that the application's manifest names.
    main_class: Option<String>,
    /// The driver's template, as it stands in its file.
    driver: Option<String>,
    /// The executors'.
    executor: Option<String>,
}

/// Where the files stand that are to be handed over.
pub fn needs(request: &ExternalRequest) -> Result<Needs, PlanError> {
    let (conf, _) = settings(request)?;
    Ok(Needs::places(&conf, |key| READ_KEYS.contains(&key), &resource(request), &request.submitter))
}

impl<'a> Begun<'a> {
    /// Finds the files. The facts are those that [`needs`] asks for.
    pub fn new(request: &'a ExternalRequest, facts: &Facts, drawn: &Drawn) -> Result<Self, PlanError> {
        let machine = Machine { submitter: &request.submitter, facts };
        let (mut conf, mut warnings) = settings(request)?;
        let short: String = request.name.chars().take(LONGEST_NAME).collect();
        let (names, _) = Names::new(&short, drawn);
        let namespace = namespace(&conf)?;
        if let Some(MainResource::Java(uri)) = &request.application {
            add_to_jars(&mut conf, uri)?;
        }
        let resource = resource(request);
        let dependencies = dependencies::resolve(&conf, &resource, machine, drawn, &mut warnings)?;
        Ok(Self { request, conf, resource, names, namespace, dependencies, warnings })
    }

    /// What the files hold that go into the templates, or say how the staging server is asked.
    pub fn needs(&self, facts: &Facts) -> Needs {
        let machine = Machine { submitter: &self.request.submitter, facts };
        let mut needs =
            Needs::contents(&self.conf, |key| READ_KEYS.contains(&key), &self.dependencies, machine);
        needs.manifests.extend(self.jar());
        needs
    }

    /// The application, where it is a jar of this machine that travels: spark-submit cannot look into it.
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

    /// Checks everything that was collected: in `facts` is what was asked for both times.
    pub fn gather(mut self, facts: &Facts) -> Result<Gathered<'a>, PlanError> {
        let machine = Machine { submitter: &self.request.submitter, facts };
        let Self { request, conf, names, dependencies, warnings, .. } = &mut self;
        let driver = source::read(conf, &template::DRIVER.file, machine)?;
        let executor = executor_template::read(conf, machine, warnings)?;
        let init = InitContainer::read(request.asking, conf, machine, dependencies, names, warnings)?;
        let Some(mut init) = init else { return Err(PlanError::NothingToStage) };
        // Another one submits, and draws another id for `spark-app-selector`.
        init.objects.labels = [(MANAGED_BY, MANAGER.to_owned()), (LABEL, names.app_id.clone())].into();
        // A jar without one is no mistake: `--class` may be given.
        let main_class = self.jar().and_then(|jar| facts.main_classes.get(&jar).cloned());
        Ok(Gathered { begun: self, init, main_class, driver, executor })
    }
}

impl Gathered<'_> {
    /// What the staging server has to be asked before files can be handed over.
    pub fn question(&self) -> Option<Question> {
        self.init.question()
    }
}

/// Checks everything that is to be staged, makes the templates, and merges the file of the application with them.
/// `advertised` is the staging server's answer, if there was a question.
pub fn hand_over(
    gathered: Gathered<'_>,
    advertised: Option<String>,
) -> Result<ExternalSubmission, PlanError> {
    let request = gathered.begun.request;
    let mut external = templates(gathered, advertised)?;
    if let Some(staging) = &mut external.staging {
        (staging.ttl, staging.unused_timeout) = (request.ttl, request.unused_timeout);
    }
    let merged = request.file.as_ref().map(|file| file.merged(&external)).transpose();
    external.file = merged.map_err(|error| PlanError::ApplicationFile { problem: error.to_string() })?;
    Ok(external)
}

fn templates(gathered: Gathered<'_>, advertised: Option<String>) -> Result<ExternalSubmission, PlanError> {
    let Gathered { begun, mut init, main_class, driver, executor } = gathered;
    let Begun { request, conf, resource, names, namespace, dependencies, warnings } = begun;
    init.set_image(advertised)?;
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

/// The settings with today's names, and warnings.
fn settings(request: &ExternalRequest) -> Result<(SparkConf, Vec<String>), PlanError> {
    let mut conf = request.conf.clone();
    let warnings = aliases::apply(&mut conf)?;
    if request.names_containers {
        name_containers(&mut conf)?;
    }
    checks::check(&conf)?;
    Ok((conf, warnings))
}

fn resource(request: &ExternalRequest) -> MainResource {
    request.application.clone().unwrap_or_else(|| MainResource::Java(FOUND_IN_JARS.to_owned()))
}

/// A jar that travels is found in `spark.jars`; to one that does not, spark-submit does the same itself.
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

/// The label that no other pod has. It is not the one that Spark gives each application: a stock spark-submit draws that.
fn owner_by_label(namespace: &str, id: &str) -> Result<Owner, PlanError> {
    let kind = OwnerKind::parse(POD).map_err(PlanError::Owner)?;
    let label = (LABEL.to_owned(), id.to_owned());
    Owner::new(kind, namespace, vec![label], None).map_err(PlanError::Owner)
}

/// The Kubeflow Spark Operator says so for every pod template, whatever the settings say.
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

/// Every list that there is, with what was staged as `local:`.
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

/// What is `file:` by now is what the init-container brings.
fn as_local(entry: &str) -> String {
    match entry.strip_prefix("file:") {
        Some(path) => format!("local:{path}"),
        None => entry.to_owned(),
    }
}

/// A staged jar is found in `spark.jars`: named as the application it would be added to that list once more, as `local:`
/// (Spark 3.5's driver does so).
fn for_spark_submit(resource: &MainResource, placed: &str) -> String {
    match resource {
        MainResource::Java(_) if placed.starts_with("file:") => FOUND_IN_JARS.to_owned(),
        _ => as_local(placed),
    }
}
