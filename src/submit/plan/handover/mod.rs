//! Files that are staged for an application that somebody else submits: what travels, and what that submitter is told.
//!
//! A stock spark-submit can name what an init-container brings only as `local:`, because it takes `file:` for a file of
//! its own machine; see [`crate::spark::driver_properties`] for how the driver gets it as `file:` nevertheless.

pub mod operator;
mod template;

use jiff::Timestamp;
use rand::Rng;
use serde_json::{Map, Value};

use super::application::namespace;
use super::dependencies::{self, Dependencies};
use super::error::PlanError;
use super::init_container::{self, Asking, InitContainer, InitObjects};
use super::names::Names;
use super::parts::executor_template;
use super::staging::stage_plan;
use super::submitter::Submitter;
use super::{aliases, checks, source};
use crate::resource::{Owner, OwnerKind, POD};
use crate::spark::keys::DEPENDENCY_LISTS;
use crate::spark::{DependencyUri, MainResource, Origin, SparkConf, jar, keys, split_list};
use crate::submit::StagePlan;

pub use super::dependencies::FOUND_IN_JARS;

/// The label of the pod that what is staged lives for, and of the objects that tell of it.
pub const LABEL: &str = "cloakroom-application";

/// The label of objects that this program makes, and that nothing owns.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY`].
pub const MANAGER: &str = "cloakroom";

/// Room for what the names of the objects end with.
const LONGEST_NAME: usize = 100;

/// What to stage for an application that is not submitted here.
pub struct HandoverRequest {
    /// The lists of files and the settings of staging, by Spark's keys.
    pub conf: SparkConf,
    /// The application itself, if it travels as well.
    pub application: Option<MainResource>,
    /// What the names of the objects begin with.
    pub name: String,
    /// Whom the files live for, if not for the pod that is made by the template.
    pub owner: Option<Owner>,
    /// Whether the submitter itself says which containers are Spark's, by Spark's own names for them.
    pub names_containers: bool,
}

/// What was checked, and nothing sent of.
pub struct Handover {
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
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Checks everything that is to be staged, and makes the templates.
pub async fn hand_over(
    request: HandoverRequest,
    submitter: &Submitter,
    asking: Asking<'_>,
    now: Timestamp,
    random: &mut dyn Rng,
) -> Result<Handover, PlanError> {
    let HandoverRequest { mut conf, application, name, owner, names_containers } = request;
    let mut warnings = aliases::apply(&mut conf)?;
    if names_containers {
        name_containers(&mut conf)?;
    }
    checks::check(&conf)?;
    let short: String = name.chars().take(LONGEST_NAME).collect();
    let (names, _) = Names::new(&short, now, random);
    let namespace = namespace(&conf)?;
    if let Some(MainResource::Java(uri)) = &application {
        add_to_jars(&mut conf, uri)?;
    }
    let resource = application.clone().unwrap_or_else(|| MainResource::Java(FOUND_IN_JARS.to_owned()));
    let dependencies = dependencies::resolve(&conf, &resource, submitter, random, &mut warnings)?;
    let user = source::read(&conf, &template::DRIVER.file, submitter).await?;
    let executor = executor_template::read(&conf, submitter, &mut warnings).await?;
    let init = InitContainer::read(asking, &conf, submitter, &dependencies, &names, &mut warnings).await?;
    let Some(mut init) = init else { return Err(PlanError::NothingToStage) };
    // Another one submits, and draws another id for `spark-app-selector`.
    init.objects.labels = [(MANAGED_BY, MANAGER.to_owned()), (LABEL, names.app_id.clone())].into();
    let owner = match owner {
        Some(owner) => owner,
        None => owner_by_label(&namespace, &names.app_id)?,
    };
    let application = application.map(|_| for_spark_submit(&resource, &dependencies.resource));
    Ok(Handover {
        main_class: main_class(&resource, application.as_deref(), submitter),
        staging: stage_plan(&init, &dependencies, owner.clone()),
        lists: lists(&conf, &dependencies),
        containers: if names_containers { Vec::new() } else { containers(&conf) },
        application,
        driver: template::driver(
            &conf,
            (&resource, &init),
            user.as_deref(),
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
        warnings,
    })
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

/// A jar without one is no mistake: `--class` may be given.
fn main_class(resource: &MainResource, named: Option<&str>, submitter: &Submitter) -> Option<String> {
    match DependencyUri::parse(resource.uri()) {
        Ok(DependencyUri::Submitter(file)) if named == Some(FOUND_IN_JARS) => {
            jar::main_class(&submitter.working_folder.join(file.path())).ok()
        }
        _ => None,
    }
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
