//! The init-container that fetches staged files, and its objects.

use serde_json::{Map, Value, json};

use super::{Context, Feature};
use crate::plan::error::PlanError;
use crate::plan::init_container::merging::Additions;
use crate::plan::spec::{DriverSpec, append};
use cloakroom_spark::keys;

/// What it is, is known when the staging server has answered.
pub(super) struct FetchFiles;

impl Feature for FetchFiles {
    fn add(self: Box<Self>, context: &Context, spec: &mut DriverSpec) -> Result<(), PlanError> {
        let Some(init) = &context.init_container else { return Ok(()) };
        let variables = context.conf.prefixed(keys::DRIVER_ENV.prefix());
        let resources = of_main_container(&spec.container);
        let policy = spec.container.get("imagePullPolicy");
        let additions = Additions {
            init_container: init.container(variables, &resources, policy),
            volumes: init.volumes().into(),
            mounts: init.mounts().into(),
        };
        let additions = additions.without_root_of(&spec.spec);
        additions.check("driver", &spec.spec, &spec.container)?;
        append(&mut spec.spec, "initContainers", [additions.init_container]);
        append(&mut spec.spec, "volumes", additions.volumes);
        append(&mut spec.container, "volumeMounts", additions.mounts);
        // The tickets of jars and files do not exist yet. `StagedBundles::complete` puts them in after staging.
        spec.after_pod.extend(init.objects.make(None, None));
        Ok(())
    }
}

/// CPU and memory of the Spark container, for the init-container.
///
/// Kubernetes counts the larger one of two for a pod: its largest init-container, or its containers together. So equal
/// amounts cost nothing, and pass every quota that the driver passes.
fn of_main_container(container: &Map<String, Value>) -> Value {
    let mut resources = json!({});
    for list in ["requests", "limits"] {
        for name in ["cpu", "memory"] {
            if let Some(amount) = container.get("resources").and_then(|all| all.get(list)?.get(name)) {
                resources[list][name] = amount.clone();
            }
        }
    }
    resources
}
