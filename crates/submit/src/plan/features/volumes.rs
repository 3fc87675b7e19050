//! Volumes of `spark.kubernetes.driver.volumes.*`, and the claims that are created for them
//! (`MountVolumesFeatureStep`).

use serde_json::{Map, Value, json};

use super::{Context, Feature};
use crate::plan::error::PlanError;
use crate::plan::names::APP_ID_LABEL;
use crate::plan::spec::{DriverSpec, merge};
use crate::plan::volumes::{Claim, Volume, VolumeSource, volumes};
use cloakroom_spark::keys;

/// In a claim's name, this part becomes a name of the submission's own. Spark replaces it wherever it stands in the
/// name.
const ON_DEMAND: &str = "OnDemand";

pub(super) struct Volumes;

impl Feature for Volumes {
    fn add(self: Box<Self>, context: &Context, spec: &mut DriverSpec) -> Result<(), PlanError> {
        let is_shared = context.conf.read(&keys::SHARED_CLAIMS)?.unwrap_or_default();
        for (at, volume) in volumes(&context.conf, &keys::DRIVER_VOLUMES, context.version)?.iter().enumerate()
        {
            let source = match &volume.source {
                VolumeSource::HostPath { path, kind } => json!({"hostPath": {"path": path, "type": kind}}),
                VolumeSource::Nfs { server, path } => json!({"nfs": {"server": server, "path": path}}),
                VolumeSource::EmptyDir { medium, size_limit: None } => {
                    json!({"emptyDir": {"medium": medium}})
                }
                VolumeSource::EmptyDir { medium, size_limit: Some(size) } => {
                    json!({"emptyDir": {"medium": medium, "sizeLimit": size}})
                }
                VolumeSource::Claim(claim) => {
                    // Spark counts in the order of a hash table. Here the volumes are in the order of type and name.
                    let of_driver = context.names.of(&format!("driver-pvc-{at}"));
                    let name = claim.name.replace(ON_DEMAND, &of_driver);
                    spec.after_pod.extend(new_claim(context, claim, &name, is_shared));
                    json!({"persistentVolumeClaim": {"claimName": name, "readOnly": volume.read_only}})
                }
            };
            let mut source = source;
            source["name"] = json!(volume.name);
            spec.add_volume(source);
            spec.add_mount(mount(volume, context.version.has_volume_details()));
        }
        Ok(())
    }
}

/// Spark sends `subPath` and `subPathExpr` even if they are empty; `subPathExpr` only from 4.0 on.
fn mount(volume: &Volume, has_details: bool) -> Value {
    let mut mount = json!({
        "name": volume.name,
        "mountPath": volume.path,
        "readOnly": volume.read_only,
        "subPath": volume.sub_path,
    });
    if has_details {
        mount["subPathExpr"] = json!(volume.sub_path_expression);
    }
    mount
}

/// The claim to create, if class and size are set. Like Spark, this does not look at the claim's name: a claim with a
/// name of its own is created too.
fn new_claim(context: &Context, claim: &Claim, name: &str, is_shared: bool) -> Option<Value> {
    let (class, size) = (claim.storage_class.as_ref()?, claim.size.as_ref()?);
    // Spark 3.5 and `spark.kubernetes.legacy.useReadWriteOnceAccessMode` let all pods of one node use the claim.
    let one_pod = context.version.has_claims_of_one_pod() && !is_shared;
    let mode = if one_pod { "ReadWriteOncePod" } else { "ReadWriteOnce" };
    let as_json = |(name, value): (&String, &String)| (name.clone(), json!(value));
    let mut metadata = Map::from_iter([("name".to_owned(), json!(name))]);
    merge(&mut metadata, "labels", claim.labels.iter().map(as_json));
    merge(&mut metadata, "labels", [(APP_ID_LABEL, json!(context.names.app_id))]);
    merge(&mut metadata, "annotations", claim.annotations.iter().map(as_json));
    Some(json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": {
            "accessModes": [mode],
            "resources": {"requests": {"storage": size}},
            "storageClassName": class,
        },
    }))
}
