//! The headless service through which executors reach the driver (`DriverServiceFeatureStep`).

use serde_json::{Map, Value, json};

use super::labels;
use super::{Context, Feature};
use crate::plan::error::PlanError;
use crate::plan::metadata;
use crate::plan::names::APP_ID_LABEL;
use crate::plan::ports::{self, DriverPorts};
use crate::plan::spec::{DriverSpec, merge};
use cloakroom_spark::{SettingError, keys};

pub(super) struct Service;

impl Feature for Service {
    fn add(self: Box<Self>, context: &Context, spec: &mut DriverSpec) -> Result<(), PlanError> {
        let conf = &context.conf;
        if conf.contains(&keys::BIND_ADDRESS) {
            let problem =
                "it cannot be set on Kubernetes: the driver binds to the address of its pod; leave it out";
            return Err(conf.refuse(&keys::BIND_ADDRESS, problem).into());
        }
        let ports = DriverPorts::read(conf)?;
        let service = &context.names.service;
        spec.after_pod.push(json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": object_metadata(context)?,
            "spec": service_spec(context, &ports)?,
        }));
        // Spark sets these even if the user did: executors must find the driver through the service.
        spec.set_property(&keys::DRIVER_HOST, format!("{service}.{}.svc", context.namespace));
        spec.set_property(&keys::DRIVER_PORT, ports.driver.to_string());
        spec.set_property(&keys::DRIVER_BLOCK_MANAGER_PORT, ports.block_manager.to_string());
        Ok(())
    }
}

fn object_metadata(context: &Context) -> Result<Map<String, Value>, SettingError> {
    let (conf, names) = (&context.conf, &context.names);
    let mut metadata = Map::from_iter([("name".to_owned(), json!(names.service))]);
    let as_json = |(name, value): (String, String)| (name, json!(value));
    // The user's labels come second, so they win, as in Spark.
    merge(&mut metadata, "labels", [(APP_ID_LABEL, json!(names.app_id))]);
    merge(
        &mut metadata,
        "labels",
        metadata::checked_labels(conf, keys::SERVICE_LABELS.prefix())?.into_iter().map(as_json),
    );
    let annotations = metadata::checked_annotations(conf, keys::SERVICE_ANNOTATIONS.prefix())?;
    merge(&mut metadata, "annotations", annotations.into_iter().map(as_json));
    Ok(metadata)
}

fn service_spec(context: &Context, ports: &DriverPorts) -> Result<Value, SettingError> {
    let (conf, version) = (&context.conf, context.version);
    let has_details = version.has_service_details();
    let port = |(name, port): (&str, u16)| {
        let mut entry = json!({"name": name, "port": port, "targetPort": port});
        if has_details && name == ports::CONNECT {
            entry["appProtocol"] = json!("grpc");
        }
        entry
    };
    let ports: Vec<Value> = ports.of_service(version.has_connect_port()).into_iter().map(port).collect();
    let families = conf.read(&keys::IP_FAMILIES)?.unwrap_or("IPv4");
    // Without a cluster address, the service's name leads to the driver pod itself.
    let mut spec = json!({
        "clusterIP": "None",
        "ipFamilies": families.split(',').collect::<Vec<_>>(),
        "ipFamilyPolicy": conf.read(&keys::IP_FAMILY_POLICY)?.unwrap_or("SingleStack"),
        "ports": ports,
        "selector": labels::labels(context)?,
    });
    if has_details {
        spec["publishNotReadyAddresses"] = json!(conf.read(&keys::PUBLISH_NOT_READY)?.unwrap_or_default());
    }
    Ok(spec)
}
