//! The driver's pod template for a stock spark-submit: the user's, with the init-container.

use serde_json::{Map, Value, json};

use super::super::init_container::InitContainer;
use super::super::init_container::merging::{Additions, TemplateKeys, merged, parsed};
use super::super::spec::merge;
use super::super::steps::conf_volume;
use crate::plan::error::PlanError;
use crate::plan::memory::DriverMemory;
use crate::plan::steps::basic::{self, Amounts};
use cloakroom_core::resource::{Owner, POD};
use cloakroom_spark::version::SparkVersion;
use cloakroom_spark::{MainResource, SparkConf, keys};

/// Of the driver.
pub(super) const DRIVER: TemplateKeys = TemplateKeys {
    whose: "driver",
    volumes: &keys::DRIVER_VOLUMES,
    file: keys::DRIVER_POD_TEMPLATE,
    container: keys::DRIVER_TEMPLATE_CONTAINER,
    default_name: "spark-kubernetes-driver",
};

/// Where the init-container sees what spark-submit wrote.
const WRITTEN_FOLDER: &str = "/etc/spark-conf";
const PROPERTIES_VOLUME: &str = "spark-driver-properties";
/// Where the init-container puts what the driver reads.
const PROPERTIES_FOLDER: &str = "/var/spark-data/spark-conf";

/// The template. Pods of an owner that is known by labels get them. `names_files` says that the driver's properties name
/// what the init-container brings.
pub(super) fn driver(
    conf: &SparkConf,
    (resource, init): (&MainResource, &InitContainer),
    user: Option<&str>,
    owner: &Owner,
    names_files: bool,
) -> Result<Map<String, Value>, PlanError> {
    let pod = parsed(conf, &DRIVER, user)?;
    let variables = conf.prefixed(keys::DRIVER_ENV.prefix());
    let policy = conf.get(&keys::CONTAINER_IMAGE_PULL_POLICY).map(|policy| json!(policy));
    let mut additions = Additions {
        init_container: init.container(variables, &resources(conf, resource)?, policy.as_ref()),
        volumes: init.volumes().into(),
        mounts: init.mounts().into(),
    };
    if names_files {
        add_properties(&mut additions);
    }
    let mut pod = merged(conf, &DRIVER, pod, additions)?;
    if owner.kind().as_str() == POD {
        label(&mut pod, owner);
    }
    Ok(pod)
}

/// The driver reads its properties where spark-submit tells it to, and finds the init-container's there: a mount inside of
/// the one that spark-submit adds for them.
///
/// Its path is relative. The kubelet makes a folder in a config map's volume for every mount path below the volume's own
/// (`pkg/volume/util/nested_volumes.go`), and then the init-container would find a folder in place of spark-submit's file. It
/// compares the paths as they are written, and makes a relative one absolute only for the container runtime.
fn add_properties(additions: &mut Additions) {
    let file = conf_volume::PROPERTIES;
    if let Some(Value::Array(arguments)) = additions.init_container.get_mut("args") {
        arguments.insert(0, json!("fetch"));
        for (option, folder) in
            [("--spark-properties", WRITTEN_FOLDER), ("--spark-properties-to", PROPERTIES_FOLDER)]
        {
            arguments.extend([json!(option), json!(format!("{folder}/{file}"))]);
        }
    }
    if let Some(Value::Array(mounts)) = additions.init_container.get_mut("volumeMounts") {
        // spark-submit adds this volume to the pod.
        mounts.push(json!({"name": conf_volume::VOLUME, "mountPath": WRITTEN_FOLDER, "readOnly": true}));
        mounts.push(json!({"name": PROPERTIES_VOLUME, "mountPath": PROPERTIES_FOLDER}));
    }
    additions.volumes.push(json!({"name": PROPERTIES_VOLUME, "emptyDir": {}}));
    additions.mounts.push(json!({
        "name": PROPERTIES_VOLUME,
        "mountPath": format!("{}/{file}", conf_volume::PATH.trim_start_matches('/')),
        "subPath": file,
        "readOnly": true,
    }));
}

/// As much as the driver will have, by the same settings: one runs after the other, so that it costs nothing, and whatever
/// quota or limit range takes the driver takes this as well.
fn resources(conf: &SparkConf, resource: &MainResource) -> Result<Value, PlanError> {
    let memory = DriverMemory::of(conf, resource, SparkVersion::of(conf)?.0)?;
    let Amounts { requests, limits } = basic::amounts(conf, memory)?;
    Ok(json!({"requests": requests, "limits": limits}))
}

fn label(pod: &mut Map<String, Value>, owner: &Owner) {
    let mut metadata = match pod.remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        _ => Map::new(),
    };
    merge(&mut metadata, "labels", owner.labels().map(|(key, value)| (key, json!(value))));
    if !metadata.is_empty() {
        pod.insert("metadata".to_owned(), Value::Object(metadata));
    }
}
