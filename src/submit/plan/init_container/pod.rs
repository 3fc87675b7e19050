//! The init-container, its volumes, and where the driver sees what it brought.

use serde_json::{Map, Value, json};

use super::InitContainer;
use super::merging::Additions;
use super::objects::SECRET_FOLDER;
use crate::spark::keys;
use crate::submit::plan::application::Application;
use crate::submit::plan::error::PlanError;
use crate::submit::plan::spec::{DriverSpec, append};

const NAME: &str = "spark-init";
const PROPERTIES_VOLUME: &str = "spark-init-properties";
const PROPERTIES_FOLDER: &str = "/etc/spark-init";
const PROPERTIES_FILE: &str = "spark-init.properties";
const SECRET_VOLUME: &str = "spark-init-secret";
const JARS_VOLUME: &str = "download-jars-volume";
const FILES_VOLUME: &str = "download-files";

/// Adds it to the driver, with its objects as far as they are known.
pub(in crate::submit::plan) fn add(
    application: &Application,
    mut spec: DriverSpec,
) -> Result<DriverSpec, PlanError> {
    let Some(init) = &application.init_container else { return Ok(spec) };
    let variables = application.conf.prefixed(keys::DRIVER_ENV.prefix());
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
    spec.after_pod.extend(init.objects.make(None, None));
    Ok(spec)
}

/// A pod's own needs are those of its largest init-container or of its containers together, whichever are more: the same
/// as the driver's cost nothing, and pass every quota that the driver passes.
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

impl InitContainer {
    /// The container, as the restricted pod security standard wants it. Which user it is, is the image's own affair:
    /// clusters that choose users themselves refuse a fixed one.
    pub(in crate::submit::plan) fn container<'a>(
        &self,
        variables: impl Iterator<Item = (&'a str, &'a str)>,
        resources: &Value,
        policy: Option<&Value>,
    ) -> Value {
        let mut mounts = self.mounts().to_vec();
        for (volume, path) in [(PROPERTIES_VOLUME, PROPERTIES_FOLDER), (SECRET_VOLUME, SECRET_FOLDER)] {
            mounts.push(json!({"name": volume, "mountPath": path, "readOnly": true}));
        }
        let mut container = json!({
            "name": NAME,
            "image": self.image,
            "args": [format!("{PROPERTIES_FOLDER}/{PROPERTIES_FILE}")],
            "volumeMounts": mounts,
            "resources": resources,
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": true,
                "runAsNonRoot": true,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        });
        let variables: Vec<Value> =
            variables.map(|(name, value)| json!({"name": name, "value": value})).collect();
        if !variables.is_empty() {
            container["env"] = json!(variables);
        }
        if let Some(policy) = policy {
            container["imagePullPolicy"] = policy.clone();
        }
        container
    }

    pub(in crate::submit::plan) fn volumes(&self) -> [Value; 4] {
        let (kind, source) = self.objects.properties_source(PROPERTIES_FILE);
        [
            json!({"name": JARS_VOLUME, "emptyDir": {}}),
            json!({"name": FILES_VOLUME, "emptyDir": {}}),
            json!({"name": PROPERTIES_VOLUME, kind: source}),
            json!({"name": SECRET_VOLUME, "secret": {"secretName": self.objects.secret_name()}}),
        ]
    }

    /// Of what is brought.
    pub(in crate::submit::plan) fn mounts(&self) -> [Value; 2] {
        [
            json!({"name": JARS_VOLUME, "mountPath": self.jars}),
            json!({"name": FILES_VOLUME, "mountPath": self.files}),
        ]
    }
}
