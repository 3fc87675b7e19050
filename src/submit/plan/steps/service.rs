//! The headless service by which executors find the driver (`DriverServiceFeatureStep`).

use serde_json::{Map, Value, json};

use crate::spark::{SettingError, SparkConf};
use crate::submit::plan::application::Application;
use crate::submit::plan::error::PlanError;
use crate::submit::plan::metadata::{self, APP_ID_LABEL};
use crate::submit::plan::ports::{self, DriverPorts};
use crate::submit::plan::spec::{DriverSpec, merge};

const BIND_ADDRESS: &str = "spark.driver.bindAddress";
const LABEL_PREFIX: &str = "spark.kubernetes.driver.service.label.";
const ANNOTATION_PREFIX: &str = "spark.kubernetes.driver.service.annotation.";
const FAMILY_POLICY: &str = "spark.kubernetes.driver.service.ipFamilyPolicy";
const FAMILIES: &str = "spark.kubernetes.driver.service.ipFamilies";
const NOT_READY: &str = "spark.kubernetes.driver.service.publishNotReadyAddresses";

pub(super) fn step(application: &Application, mut spec: DriverSpec) -> Result<DriverSpec, PlanError> {
    let conf = &application.conf;
    if conf.contains(BIND_ADDRESS) {
        let problem =
            "it cannot be set on Kubernetes: the driver binds to the address of its pod; leave it out";
        return Err(conf.refuse(BIND_ADDRESS, problem).into());
    }
    let ports = DriverPorts::of(conf)?;
    let service = &application.names.service;
    spec.after_pod.push(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": object_metadata(application)?,
        "spec": service_spec(application, &ports)?,
    }));
    spec.set_property("spark.driver.host", format!("{service}.{}.svc", application.namespace));
    spec.set_property(ports::DRIVER.1, ports.driver.to_string());
    spec.set_property(ports::BLOCK_MANAGER.1, ports.block_manager.to_string());
    Ok(spec)
}

fn object_metadata(application: &Application) -> Result<Map<String, Value>, SettingError> {
    let (conf, names) = (&application.conf, &application.names);
    let mut metadata = Map::from_iter([("name".to_owned(), json!(names.service))]);
    let as_json = |(name, value): (String, String)| (name, json!(value));
    merge(&mut metadata, "labels", [(APP_ID_LABEL, json!(names.app_id))]);
    merge(&mut metadata, "labels", metadata::checked_labels(conf, LABEL_PREFIX)?.into_iter().map(as_json));
    let annotations = metadata::checked_annotations(conf, ANNOTATION_PREFIX)?;
    merge(&mut metadata, "annotations", annotations.into_iter().map(as_json));
    Ok(metadata)
}

fn service_spec(application: &Application, ports: &DriverPorts) -> Result<Value, SettingError> {
    let (conf, version) = (&application.conf, application.version);
    let has_details = version.has_service_details();
    let port = |(name, port): (&str, u16)| {
        let mut entry = json!({"name": name, "port": port, "targetPort": port});
        if has_details && name == ports::CONNECT.0 {
            entry["appProtocol"] = json!("grpc");
        }
        entry
    };
    let ports: Vec<Value> = ports.of_service(version.has_connect_port()).into_iter().map(port).collect();
    let mut spec = json!({
        "clusterIP": "None",
        "ipFamilies": families(conf)?,
        "ipFamilyPolicy": family_policy(conf)?,
        "ports": ports,
        "selector": metadata::labels(application)?,
    });
    if has_details {
        spec["publishNotReadyAddresses"] = json!(conf.boolean(NOT_READY)?.unwrap_or_default());
    }
    Ok(spec)
}

fn family_policy(conf: &SparkConf) -> Result<&str, SettingError> {
    let policies = ["SingleStack", "PreferDualStack", "RequireDualStack"];
    Ok(conf.one_of(FAMILY_POLICY, &policies)?.unwrap_or("SingleStack"))
}

fn families(conf: &SparkConf) -> Result<Vec<&str>, SettingError> {
    match conf.get(FAMILIES) {
        None => Ok(vec!["IPv4"]),
        Some(families @ ("IPv4" | "IPv6" | "IPv4,IPv6" | "IPv6,IPv4")) => Ok(families.split(',').collect()),
        Some(_) => Err(conf.refuse(FAMILIES, "it must be one of `IPv4`, `IPv6`, `IPv4,IPv6`, `IPv6,IPv4`")),
    }
}
