//! Spark's feature steps for the driver (`KubernetesDriverBuilder`). Each step adds to the driver and knows no other
//! step.

pub(super) mod basic;
mod command;
pub(super) mod conf_volume;
pub(super) mod credentials;
mod env_secrets;
mod executor_template;
mod hadoop;
mod init_container;
mod kerberos;
mod labels;
mod local_dirs;
mod network_policy;
mod secrets;
mod service;
mod small_files;
mod volcano;
mod volumes;

use super::application::Application;
use super::error::PlanError;
use super::parts::volcano::CLASS;
use super::spec::DriverSpec;
use cloakroom_spark::{SettingError, SparkConf, keys};

/// Takes the driver as the steps before it left it, and returns it with its own additions.
type Step = fn(&Application, DriverSpec) -> Result<DriverSpec, PlanError>;

/// Spark's steps, each by the name of its class. The order is Spark's, because it decides the order of volumes, mounts,
/// environment variables and objects.
const BUILT_IN: [(&str, Step); 12] = [
    (BASIC, basic::step),
    ("org.apache.spark.deploy.k8s.features.DriverKubernetesCredentialsFeatureStep", credentials::step),
    ("org.apache.spark.deploy.k8s.features.DriverServiceFeatureStep", service::step),
    ("org.apache.spark.deploy.k8s.features.NetworkPolicyFeatureStep", network_policy::step),
    ("org.apache.spark.deploy.k8s.features.MountSecretsFeatureStep", secrets::step),
    ("org.apache.spark.deploy.k8s.features.EnvSecretsFeatureStep", env_secrets::step),
    ("org.apache.spark.deploy.k8s.features.MountVolumesFeatureStep", volumes::step),
    ("org.apache.spark.deploy.k8s.features.DriverCommandFeatureStep", command::step),
    ("org.apache.spark.deploy.k8s.features.HadoopConfDriverFeatureStep", hadoop::step),
    ("org.apache.spark.deploy.k8s.features.KerberosConfDriverFeatureStep", kerberos::step),
    ("org.apache.spark.deploy.k8s.features.PodTemplateConfigMapStep", executor_template::step),
    ("org.apache.spark.deploy.k8s.features.LocalDirsFeatureStep", local_dirs::step),
];
/// Steps that always run, behind Spark's. The properties come last, because every other step may change them.
///
/// `spark.kubernetes.driver.pod.excludedFeatureSteps` does not exclude them: in Spark too, the config map is not a
/// step.
const LAST: [Step; 3] = [small_files::step, init_container::step, conf_volume::step];
const BASIC: &str = "org.apache.spark.deploy.k8s.features.BasicDriverFeatureStep";

/// The steps of an application, in order.
pub(super) fn of(application: &Application) -> Result<Vec<Step>, SettingError> {
    let conf = &application.conf;
    let excluded = excluded(application)?;
    let extra = extra(conf)?.into_iter().map(|class| (class, volcano::step as Step));
    let all = BUILT_IN.into_iter().chain(extra);
    // Spark also excludes steps of `featureSteps`, so the filter comes after both lists are joined.
    let spark = all.filter(|(class, _)| !excluded.contains(class)).map(|(_, step)| step);
    Ok(spark.chain(LAST).collect())
}

/// The extra steps of `spark.kubernetes.driver.pod.featureSteps`. Spark loads each class by reflection. Here only
/// Volcano's step is built in; any other class is refused.
fn extra(conf: &SparkConf) -> Result<Vec<&'static str>, SettingError> {
    let known = |class: &str| {
        let problem = format!(
            "{class} is a class that only a JVM can run; {CLASS} is the one that is known here, anything else goes into \
             the pod template (`spark.kubernetes.driver.podTemplateFile`)"
        );
        if class == CLASS { Ok(CLASS) } else { Err(conf.refuse(&keys::EXTRA_STEPS, problem)) }
    };
    classes(conf, &keys::EXTRA_STEPS).map(known).collect()
}

fn excluded(application: &Application) -> Result<Vec<&str>, SettingError> {
    let conf = &application.conf;
    // Before 4.1 Spark does not know the key and makes all steps.
    if !application.version.can_exclude_steps() {
        return Ok(Vec::new());
    }
    let classes: Vec<&str> = classes(conf, &keys::EXCLUDED_STEPS).collect();
    // Spark would send a pod without a container, and every API server refuses that.
    if classes.contains(&BASIC) {
        return Err(conf.refuse(
            &keys::EXCLUDED_STEPS,
            format!("{BASIC} cannot be left out: without it, the pod has no container"),
        ));
    }
    Ok(classes)
}

fn classes<'a>(conf: &'a SparkConf, key: &str) -> impl Iterator<Item = &'a str> {
    cloakroom_spark::split_list(conf.get(key).unwrap_or_default())
}
