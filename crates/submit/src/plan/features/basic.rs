//! Image, name, labels, ports and resources of the driver (`BasicDriverFeatureStep`).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::labels;
use super::{Context, Feature, Reader};
use crate::plan::error::PlanError;
use crate::plan::memory::{self, DriverMemory};
use crate::plan::ports::DriverPorts;
use crate::plan::spec::{DriverSpec, append, merge, merge_inside};
use crate::plan::submitter::Submitter;
use cloakroom_spark::hadoop_user::short_name;
use cloakroom_spark::version::SparkVersion;
use cloakroom_spark::{SettingError, SparkConf, keys, split_list};

/// The container's name, unless a pod template gives it another one.
const CONTAINER_NAME: &str = "spark-kubernetes-driver";

pub(super) struct Basic {
    memory: DriverMemory,
    /// The value of `SPARK_USER` in the pod.
    user: String,
    /// The lists of files that name other places now, by key.
    lists: Vec<(&'static str, String)>,
}

impl Basic {
    pub fn read(from: &Reader) -> Result<Self, PlanError> {
        let Reader { conf, version, arguments, machine, dependencies, .. } = from;
        Ok(Self {
            memory: DriverMemory::compute(conf, &arguments.resource, *version)?,
            user: user(arguments.proxy_user.as_deref(), machine.submitter, *version)?,
            lists: dependencies.lists.clone(),
        })
    }
}

impl Feature for Basic {
    fn add(self: Box<Self>, context: &Context, spec: &mut DriverSpec) -> Result<(), PlanError> {
        let Self { memory, user, lists } = *self;
        configure_container(context, memory, spec)?;
        add_variables(context, &user, spec);
        configure_pod(context, spec)?;
        spec.set_property(&keys::DRIVER_POD_NAME, context.pod_name());
        spec.set_property(&keys::APP_ID, &context.names.app_id);
        spec.set_property(&keys::SUBMIT_IN_DRIVER, "true");
        spec.set_property(&keys::MEMORY_OVERHEAD_FACTOR, memory::java_double(memory.common_factor));
        // These lists replace the user's: they name each file by the place where the driver will find it.
        for (key, value) in lists {
            spec.set_property(key, value);
        }
        Ok(())
    }
}

fn configure_container(
    context: &Context,
    memory: DriverMemory,
    spec: &mut DriverSpec,
) -> Result<(), PlanError> {
    let conf = &context.conf;
    let container = &mut spec.container;
    // Spark keeps a template's name for the container, and replaces its image and pull policy.
    container.entry("name").or_insert_with(|| json!(CONTAINER_NAME));
    container.insert("image".to_owned(), json!(image(conf)?));
    let policy = conf.read(&keys::CONTAINER_IMAGE_PULL_POLICY)?.unwrap_or("IfNotPresent");
    container.insert("imagePullPolicy".to_owned(), json!(policy));
    let ports = DriverPorts::read(conf)?.of_pod(context.version.has_connect_port());
    let port = |(name, port)| json!({"name": name, "containerPort": port, "protocol": "TCP"});
    append(container, "ports", ports.into_iter().map(port));

    let Amounts { requests, mut limits } = amounts(conf, memory)?;
    // Spark sends devices as limits only. Kubernetes then takes the same amount as the request.
    limits.extend(devices(conf)?);
    merge_inside(container, "resources", "requests", requests);
    merge_inside(container, "resources", "limits", limits);
    if context.version.has_security_context() {
        // Spark 4.3 always sends the field. Its default is false, and the driver's own key wins over the common one.
        let escalation = conf
            .read(&keys::DRIVER_PRIVILEGE_ESCALATION)?
            .or(conf.read(&keys::PRIVILEGE_ESCALATION)?)
            .unwrap_or_default();
        merge(container, "securityContext", [("allowPrivilegeEscalation", json!(escalation))]);
    }
    Ok(())
}

/// CPU and memory of a container, by Kubernetes' names for them (`cpu`, `memory`).
pub(in crate::plan) struct Amounts {
    pub requests: Map<String, Value>,
    pub limits: Map<String, Value>,
}

/// CPU and memory of the driver, without devices. The memory is request and limit alike, as in Spark.
pub(in crate::plan) fn amounts(conf: &SparkConf, memory: DriverMemory) -> Result<Amounts, SettingError> {
    let memory = json!(format!("{}Mi", memory.mebibytes));
    // Spark reads `spark.driver.cores` as a number, so `02` is sent as `2`. It sends the request's text unchanged.
    let cores = match (conf.get(&keys::DRIVER_REQUEST_CORES), conf.read(&keys::DRIVER_CORES)?) {
        (Some(request), _) => request.trim().to_owned(),
        (None, cores) => cores.unwrap_or(1).to_string(),
    };
    let named = |name: &str, amount: Value| (name.to_owned(), amount);
    let requests = Map::from_iter([named("cpu", json!(cores)), named("memory", memory.clone())]);
    let mut limits = Map::from_iter([named("memory", memory)]);
    limits.extend(conf.get(&keys::DRIVER_LIMIT_CORES).map(|cores| named("cpu", json!(cores))));
    Ok(Amounts { requests, limits })
}

/// The driver's image. Spark sends an empty one. Here it counts as missing, because every API server refuses it.
fn image(conf: &SparkConf) -> Result<&str, SettingError> {
    let keys = [keys::DRIVER_CONTAINER_IMAGE, keys::CONTAINER_IMAGE];
    let key = keys.into_iter().find(|key| conf.contains(key)).unwrap_or(keys::CONTAINER_IMAGE);
    let what = "it must be the image of the driver, such as registry.example/spark:4.3.0";
    conf.get(&key).filter(|image| !image.trim().is_empty()).ok_or_else(|| conf.refuse(&key, what))
}

/// Devices such as GPUs: `vendor/name` and the amount, from `spark.driver.resource.NAME.{amount,vendor}`.
fn devices(conf: &SparkConf) -> Result<Vec<(String, Value)>, SettingError> {
    let mut devices = BTreeMap::new();
    for (rest, _) in conf.prefixed(keys::DRIVER_RESOURCE_AMOUNT.prefix()) {
        // Any key of a device requests it: like Spark, this refuses a device that has a vendor and no amount.
        let name = rest.split('.').next().unwrap_or_default();
        if devices.contains_key(name) {
            continue;
        }
        let amount_key = keys::DRIVER_RESOURCE_AMOUNT.of(&[name]);
        let vendor_key = keys::DRIVER_RESOURCE_VENDOR.of(&[name]);
        let Some(amount) = conf.read_as(&amount_key, &keys::DRIVER_RESOURCE_AMOUNT)? else {
            return Err(conf.refuse(&amount_key, format!("it must say how many of {name} the driver gets")));
        };
        let device = match (amount, conf.get(&vendor_key)) {
            // No device is requested, so Spark needs no vendor.
            (0, _) => None,
            (_, Some(vendor)) => Some((format!("{vendor}/{name}"), json!(amount.to_string()))),
            (_, None) => {
                let problem =
                    format!("it must name the vendor of the resource {name}, such as nvidia.com or amd.com");
                return Err(conf.refuse(&vendor_key, problem));
            }
        };
        devices.insert(name, device);
    }
    Ok(devices.into_values().flatten().collect())
}

/// Spark makes a Hadoop user of each name, and refuses a name that cannot be one. Before 4.3 it sends the proxy user's short
/// name, and the variable `SPARK_USER` wins over that.
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

fn add_variables(context: &Context, user: &str, spec: &mut DriverSpec) {
    spec.add_variable("SPARK_USER", user);
    spec.add_variable("SPARK_APPLICATION_ID", &context.names.app_id);
    // Spark adds the user's variables here. Kubernetes takes the last variable of a name, so they override the two
    // above and none that comes later.
    for (name, value) in context.conf.prefixed(keys::DRIVER_ENV.prefix()) {
        spec.add_variable(name, value);
    }
    // The driver binds to the address of its pod, so `service` refuses `spark.driver.bindAddress`.
    let address = json!({"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}});
    spec.add_variable_from(json!({"name": "SPARK_DRIVER_BIND_ADDRESS", "valueFrom": address}));
}

fn configure_pod(context: &Context, spec: &mut DriverSpec) -> Result<(), PlanError> {
    let conf = &context.conf;
    spec.metadata.insert("name".to_owned(), json!(context.pod_name()));
    // Spark names the namespace only in the URL. If a template names one, its client library puts the real one in its
    // place.
    if let Some(namespace) = spec.metadata.get_mut("namespace") {
        *namespace = json!(context.namespace);
    }
    let as_json = |(name, value): (String, String)| (name, json!(value));
    merge(&mut spec.metadata, "labels", labels::labels(context)?.into_iter().map(as_json));
    merge(&mut spec.metadata, "annotations", labels::annotations(context)?.into_iter().map(as_json));
    // Spark overwrites the template's policy here.
    spec.spec.insert("restartPolicy".to_owned(), json!("Never"));
    // The driver's own selectors come second, so they win.
    for prefix in [keys::NODE_SELECTOR.prefix(), keys::DRIVER_NODE_SELECTOR.prefix()] {
        merge(
            &mut spec.spec,
            "nodeSelector",
            conf.prefixed(prefix).map(|(name, value)| (name, json!(value))),
        );
    }
    let pull_secrets = split_list(conf.get(&keys::PULL_SECRETS).unwrap_or_default());
    // Behind those of the template, as in Spark.
    append(&mut spec.spec, "imagePullSecrets", pull_secrets.map(|name| json!({"name": name})));
    if let Some(scheduler) = conf.get(&keys::DRIVER_SCHEDULER).or(conf.get(&keys::SCHEDULER)) {
        spec.spec.insert("schedulerName".to_owned(), json!(scheduler));
    }
    Ok(())
}
