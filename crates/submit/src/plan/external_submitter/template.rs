//! The driver's pod template for a stock spark-submit: the user's template with the init-container added.

use serde_json::{Map, Value, json};

use super::super::init_container::InitContainer;
use super::super::init_container::merging::{Additions, TemplateKeys, merged, parsed};
use super::super::spec::merge;
use crate::plan::error::PlanError;
use crate::plan::features::{Amounts, amounts, conf_volume};
use crate::plan::memory::DriverMemory;
use cloakroom_core::resource::{Owner, POD};
use cloakroom_spark::version::SparkVersion;
use cloakroom_spark::{MainResource, SparkConf, keys};

/// The keys and names of the driver's template.
pub(super) const DRIVER: TemplateKeys = TemplateKeys {
    whose: "driver",
    volumes: &keys::DRIVER_VOLUMES,
    file: keys::DRIVER_POD_TEMPLATE,
    container: keys::DRIVER_TEMPLATE_CONTAINER,
    default_name: "spark-kubernetes-driver",
};

/// The mount path of spark-submit's own config map in the init-container.
const WRITTEN_FOLDER: &str = "/etc/spark-conf";
const PROPERTIES_VOLUME: &str = "spark-driver-properties";
/// The folder to which the init-container writes the driver's `spark.properties`.
const PROPERTIES_FOLDER: &str = "/var/spark-data/spark-conf";

/// The template. If the owner is a pod, the template gets its labels. `names_files` says that the driver's properties
/// name fetched files, so the init-container has to rewrite them.
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

/// Puts the properties of the init-container at the path where the driver reads its own (decision 17). It is a mount of
/// one file inside of the mount that spark-submit adds for its config map.
///
/// The mount path is relative. For each mount path below that of a config map, a kubelet makes a folder in the volume
/// (`pkg/volume/util/nested_volumes.go`). The init-container would then find a folder in place of spark-submit's file.
/// The kubelet compares the paths as text, so it does not see a relative one. It makes it absolute for the container
/// runtime.
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

/// CPU and memory as the driver's, from the same settings. The two run one after the other, so the pod needs no more. A
/// quota or limit range that allows the driver allows this too.
fn resources(conf: &SparkConf, resource: &MainResource) -> Result<Value, PlanError> {
    let memory = DriverMemory::compute(conf, resource, SparkVersion::read(conf)?.0)?;
    let Amounts { requests, limits } = amounts(conf, memory)?;
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
