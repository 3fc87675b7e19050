//! What Spark's feature steps do: each adds to the driver and knows no other step.

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

/// Adds to the driver what its settings ask for.
type Step = fn(&Application, DriverSpec) -> Result<DriverSpec, PlanError>;

/// Spark's steps in Spark's order, each by the name of its class.
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
/// What comes behind them, whatever is left out: the files of this machine, and then the properties, which are complete.
const LAST: [Step; 3] = [small_files::step, init_container::step, conf_volume::step];
const BASIC: &str = "org.apache.spark.deploy.k8s.features.BasicDriverFeatureStep";

/// The steps of an application, in order.
pub(super) fn of(application: &Application) -> Result<Vec<Step>, SettingError> {
    let conf = &application.conf;
    let excluded = excluded(application)?;
    let extra = extra(conf)?.into_iter().map(|class| (class, volcano::step as Step));
    let all = BUILT_IN.into_iter().chain(extra);
    let spark = all.filter(|(class, _)| !excluded.contains(class)).map(|(_, step)| step);
    Ok(spark.chain(LAST).collect())
}

/// The extra steps that are made natively, those that were asked for.
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
    if !application.version.can_exclude_steps() {
        return Ok(Vec::new());
    }
    let classes: Vec<&str> = classes(conf, &keys::EXCLUDED_STEPS).collect();
    if classes.contains(&BASIC) {
        return Err(conf.refuse(
            &keys::EXCLUDED_STEPS,
            format!("{BASIC} cannot be left out: no pod comes about without it"),
        ));
    }
    Ok(classes)
}

fn classes<'a>(conf: &'a SparkConf, key: &str) -> impl Iterator<Item = &'a str> {
    cloakroom_spark::split_list(conf.get(key).unwrap_or_default())
}
