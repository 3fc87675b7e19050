//! Spark's features of the driver (`KubernetesDriverBuilder`), and ours behind them. Each file has one feature: the keys that
//! name its files, what it reads, and what it adds to the driver. No feature changes what another one has read.

mod basic;
mod command;
pub(super) mod conf_volume;
pub(super) mod credentials;
pub(super) mod executor_template;
pub(super) mod hadoop;
mod init_container;
pub(super) mod kerberos;
mod labels;
mod local_dirs;
mod network_policy;
mod secrets;
mod service;
mod small_files;
pub(super) mod volcano;
mod volumes;

use jiff::Timestamp;

use super::dependencies::Dependencies;
use super::error::PlanError;
use super::init_container::InitContainer;
use super::names::Names;
use super::spec::DriverSpec;
use super::submitter::Machine;
use cloakroom_spark::version::SparkVersion;
use cloakroom_spark::{SettingError, SparkConf, SubmitArguments, keys, split_list};

pub(super) use basic::{Amounts, amounts};

/// The largest sum of a config map's or secret's data, in bytes (`MaxSecretSize` in Kubernetes' API).
pub(super) const MOST_BYTES: usize = 1 << 20;

/// The input of all features when they are read.
pub(super) struct Reader<'a> {
    /// Settings, with today's names in place of kubespark's.
    pub conf: &'a SparkConf,
    pub machine: Machine<'a>,
    pub version: SparkVersion,
    pub arguments: &'a SubmitArguments,
    pub dependencies: &'a Dependencies,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// The input of all features when they are added.
pub(super) struct Context {
    /// Settings, with today's names in place of kubespark's.
    pub conf: SparkConf,
    pub version: SparkVersion,
    pub names: Names,
    pub namespace: String,
    pub now: Timestamp,
    /// The init-container that fetches files for the driver. It is `None` if there is nothing to fetch.
    pub init_container: Option<InitContainer>,
}

impl Context {
    /// `spark.app.name`, which the command line always sets.
    pub fn app_name(&self) -> &str {
        self.conf.get(&keys::APP_NAME).unwrap_or_default()
    }

    /// The name of the driver pod: `spark.kubernetes.driver.pod.name`, else the prefix and `-driver`.
    pub fn pod_name(&self) -> String {
        let given = self.conf.get(&keys::DRIVER_POD_NAME).map(str::to_owned);
        given.unwrap_or_else(|| self.names.of("driver"))
    }
}

/// A feature with what it has read.
pub(super) trait Feature: Send {
    /// Adds to the driver as the features before it left it.
    fn add(self: Box<Self>, context: &Context, spec: &mut DriverSpec) -> Result<(), PlanError>;
}

pub(super) type Features = Vec<Box<dyn Feature>>;

/// Reads a feature; `None` if it has nothing to add.
type Read = fn(&mut Reader) -> Result<Option<Box<dyn Feature>>, PlanError>;

/// Where Spark has the classes of its features.
const PACKAGE: &str = "org.apache.spark.deploy.k8s.features.";
const BASIC: &str = "BasicDriverFeatureStep";

/// Spark's features, each by the name of its class. The order is Spark's, because it decides the order of volumes, mounts,
/// environment variables and objects.
const BUILT_IN: [(&str, Read); 12] = [
    (BASIC, |from| some(basic::Basic::read(from))),
    ("DriverKubernetesCredentialsFeatureStep", |from| some(credentials::Credentials::read(from))),
    ("DriverServiceFeatureStep", |_| some(Ok(service::Service))),
    ("NetworkPolicyFeatureStep", |_| some(Ok(network_policy::NetworkPolicy))),
    ("MountSecretsFeatureStep", |_| some(Ok(secrets::Mounted))),
    ("EnvSecretsFeatureStep", |_| some(Ok(secrets::InVariables))),
    ("MountVolumesFeatureStep", |_| some(Ok(volumes::Volumes))),
    ("DriverCommandFeatureStep", |from| some(Ok(command::Command::new(from)))),
    ("HadoopConfDriverFeatureStep", |from| boxed(hadoop::HadoopConf::read(from))),
    ("KerberosConfDriverFeatureStep", |from| some(kerberos::Kerberos::read(from))),
    ("PodTemplateConfigMapStep", |from| some(executor_template::ExecutorTemplate::read(from))),
    ("LocalDirsFeatureStep", |from| some(Ok(local_dirs::LocalDirs::new(from)))),
];

/// The only class of `spark.kubernetes.driver.pod.featureSteps` that is built in here.
const EXTRA: (&str, Read) = (volcano::STEP, |from| some(volcano::PodGroup::read(from)));

fn some<F: Feature + 'static>(read: Result<F, PlanError>) -> Result<Option<Box<dyn Feature>>, PlanError> {
    boxed(read.map(Some))
}

fn boxed<F: Feature + 'static>(
    read: Result<Option<F>, PlanError>,
) -> Result<Option<Box<dyn Feature>>, PlanError> {
    Ok(read?.map(|feature| Box::new(feature) as Box<dyn Feature>))
}

/// Reads the features of a submission, in the order in which they are added.
pub(super) fn read(from: &mut Reader) -> Result<Features, PlanError> {
    // Its errors and warnings come first.
    let properties = conf_volume::ConfVolume::read(from)?;
    let excluded = excluded(from.conf, from.version)?;
    let mut features = Features::new();
    for (step, read) in BUILT_IN.into_iter().chain(extra(from.conf)?) {
        let feature = read(from)?;
        // Spark also makes those that it excludes, so it checks their settings, and excludes those of `featureSteps`.
        features.extend(feature.filter(|_| !excluded.contains(&step)));
    }
    // Ours cannot be excluded. The properties come last, because every other feature may change them; in Spark, too, the
    // config map is not a step.
    features.extend(boxed(small_files::SmallFiles::read(from))?);
    features.push(Box::new(init_container::FetchFiles));
    features.push(Box::new(properties));
    Ok(features)
}

/// The extra steps of `spark.kubernetes.driver.pod.featureSteps`. Spark loads each class by reflection. Here a class that is
/// not built in is refused.
fn extra(conf: &SparkConf) -> Result<Vec<(&'static str, Read)>, SettingError> {
    let known = |class: &str| {
        if class.strip_prefix(PACKAGE) == Some(EXTRA.0) {
            return Ok(EXTRA);
        }
        let problem = format!(
            "{class} is a class that only a JVM can run; {PACKAGE}{} is the one that is known here, anything else goes into \
             the pod template (`spark.kubernetes.driver.podTemplateFile`)",
            EXTRA.0
        );
        Err(conf.refuse(&keys::EXTRA_STEPS, problem))
    };
    split_list(conf.get(&keys::EXTRA_STEPS).unwrap_or_default()).map(known).collect()
}

/// The steps of `spark.kubernetes.driver.pod.excludedFeatureSteps`, by the names of their classes.
fn excluded(conf: &SparkConf, version: SparkVersion) -> Result<Vec<&str>, SettingError> {
    // Before 4.1 Spark does not know the key and makes all steps.
    if !version.can_exclude_steps() {
        return Ok(Vec::new());
    }
    let classes = split_list(conf.get(&keys::EXCLUDED_STEPS).unwrap_or_default());
    let steps: Vec<&str> = classes.filter_map(|class| class.strip_prefix(PACKAGE)).collect();
    // Spark would send a pod without a container, and every API server refuses that.
    if steps.contains(&BASIC) {
        let problem = format!("{PACKAGE}{BASIC} cannot be left out: without it, the pod has no container");
        return Err(conf.refuse(&keys::EXCLUDED_STEPS, problem));
    }
    Ok(steps)
}
